//! Who gets to ask: connections are taken up to a number, held to their times, and drained at the end.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Semaphore;

use crate::Limits;
use crate::client_stream::ClientStream;
use crate::problem::{KIND, Problem};

/// How long to leave a system alone that has no room for another connection.
const BREATH: Duration = Duration::from_millis(50);
/// More headers than any client of ours sends.
const HEADERS: usize = 64;

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

/// Answers connections until `stopped`, and those in hand to their end.
pub(crate) async fn answer(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    stopped: impl Future<Output = ()>,
) {
    let (graceful, places) = (GracefulShutdown::new(), Arc::new(Semaphore::new(limits.connections)));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head_time).max_headers(HEADERS);
    // Below that the library refuses.
    http.max_buf_size(limits.head.max(8 << 10));
    tokio::pin!(stopped);
    let full = full();
    loop {
        let stream = tokio::select! {
            () = &mut stopped => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(_) => {
                    tokio::time::sleep(BREATH).await;
                    continue;
                }
            },
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            // Without waiting for whoever it is to listen.
            let _ = stream.try_write(&full);
            continue;
        };
        // Answers are small and whole; waiting to fill a packet would only delay them.
        let _ = stream.set_nodelay(true);
        let io = TokioIo::new(ClientStream::new(stream, limits.write_time));
        let connection = http.serve_connection(io, TowerToHyperService::new(router.clone()));
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            // A client that went away is no news.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(limits.drain_time, graceful.shutdown()).await;
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
