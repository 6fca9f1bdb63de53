//! Who gets to ask: connections are taken up to a number, held to their times, and drained at the end.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::StatusCode;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::HttpService;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};

use crate::Limits;
use crate::client_stream::ClientStream;
use crate::problem::{KIND, Problem};

/// How long to leave a system alone that has no room for another connection.
const BREATH: Duration = Duration::from_millis(50);
/// More headers than any client of ours sends.
const HEADERS: usize = 64;
/// Most that is read at a time, and that a connection may keep to read to. Every piece is handed from one task to
/// another, and a table is hundreds of them all the same.
const PIECE: usize = 64 << 10;
/// How long connections are still answered as before once the service stops. Whatever had come by then has been seen at
/// its end, since a timer fires only after the system was asked for news.
const LAST_LOOK: Duration = Duration::from_millis(10);

/// Listens with room for as many clients at the door as may be inside. One who finds it full is not told so: its system
/// asks again after a second, then after two, four and so on.
pub(crate) fn listen(address: SocketAddr, limits: Limits) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A service that is started again must not wait for the connections of the one before to be forgotten.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(i32::try_from(limits.connections).unwrap_or(i32::MAX).cast_unsigned())
}

/// Answers connections until `stopped`, and then those that had come to their end, at the door included.
pub(crate) async fn answer(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    stopped: impl Future<Output = ()>,
) {
    let (stop, stopping) = watch::channel(false);
    let places = Arc::new(Semaphore::new(limits.connections));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head_time).max_headers(HEADERS);
    http.max_header_size(limits.head).max_buf_size(limits.head.max(PIECE));
    let full = full();
    let let_in = |stream: TcpStream| {
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            // Without waiting for whoever it is to listen.
            let _ = stream.try_write(&full);
            return;
        };
        // Answers are small and whole; waiting to fill a packet would only delay them.
        let _ = stream.set_nodelay(true);
        let io = TokioIo::new(ClientStream::new(stream, limits.write_time));
        let connection = http.serve_connection(io, TowerToHyperService::new(router.clone()));
        tokio::spawn(hold(connection, place, stopping.clone()));
    };
    tokio::pin!(stopped);
    loop {
        tokio::select! {
            () = &mut stopped => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => let_in(stream),
                Err(_) => sleep(BREATH).await,
            },
        }
    }
    // To its client a connection at the door is one like any other.
    if let Ok(door) = listener.into_std() {
        while let Ok((stream, _)) = door.accept() {
            let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
            let _ = stream.map(&let_in);
        }
    }
    stop.send_replace(true);
    let all = u32::try_from(limits.connections).unwrap_or(u32::MAX);
    let _ = timeout(limits.drain_time, places.acquire_many(all)).await;
}

/// Answers a connection for as long as its client asks, or until the service stops and what it had asked is answered.
async fn hold<S>(
    connection: http1::Connection<TokioIo<ClientStream<TcpStream>>, S>,
    _place: OwnedSemaphorePermit,
    mut stopping: watch::Receiver<bool>,
) where
    S: HttpService<Incoming, ResBody = Body>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    tokio::pin!(connection);
    tokio::select! {
        // A client that went away is no news.
        _ = connection.as_mut() => return,
        _ = stopping.wait_for(|stopping| *stopping) => {}
    }
    if timeout(LAST_LOOK, connection.as_mut()).await.is_err() {
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}

/// What a connection beyond the last is told, whatever it was about to ask.
fn full() -> Vec<u8> {
    let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no more connections are held; try again");
    let body = problem.to_json();
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: {KIND}\r\ncontent-length: {}\r\nretry-after: 1\r\n\
         connection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), &body].concat()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    const HERE: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

    /// Connections that the system has made with clients of whom nobody here has taken any.
    fn at_the_door(listener: &TcpListener, clients: usize) -> Vec<TcpStream> {
        let address = listener.local_addr().unwrap();
        // A client that finds the door full asks again after 1, 2, 4, 8 and 16 seconds, and would be late.
        let connect = |_| TcpStream::connect_timeout(&address, Duration::from_secs(30)).unwrap();
        (0..clients).map(connect).collect()
    }

    #[tokio::test]
    async fn a_thousand_clients_find_room_at_the_door() {
        let most = std::fs::read_to_string("/proc/sys/net/core/somaxconn");
        let most = most.map_or(128, |most| most.trim().parse().unwrap());
        let listener = listen(HERE.into(), Limits::default()).unwrap();
        at_the_door(&listener, most.min(1_000));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn who_has_asked_before_the_stop_is_answered() {
        let listener = listen(HERE.into(), Limits::default()).unwrap();
        let mut clients = at_the_door(&listener, 100);
        for client in &mut clients {
            client.write_all(b"GET /here HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        }
        let router = Router::new().route("/here", axum::routing::get(async || "answered"));
        answer(listener, router, Limits::default(), async {}).await;
        for client in &mut clients {
            let mut answer = String::new();
            client.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("answered"), "{answer:?}");
        }
    }
}
