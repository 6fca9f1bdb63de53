//! What one client may take from the others, over real sockets: time for a head, for a request and for an answer.
//!
//! Each limit is so short that it is reached whatever the machine does, and nothing here is over before it must be.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use conformax::{Alpha, Calibration, ScoreSpec, SortedScores, StreamOptions};
use conformax_io::{ClassNames, Model, Overwrite};
use conformax_serve::{Limits, Options, serve};

/// A service on a thread of this process, which ends with the test.
struct Service {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    running: Option<JoinHandle<()>>,
    _folder: tempfile::TempDir,
}

/// Letters in the name of each of the three classes, all of which are in every set.
const NAME: usize = 2_000;

impl Service {
    fn start(limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.json");
        let scores = SortedScores::new((0..50).map(f64::from).collect()).unwrap();
        let calibration = Calibration::from_scores(ScoreSpec::default(), 3, scores).unwrap();
        let names = ["a", "b", "c"].map(|letter| letter.repeat(NAME)).to_vec();
        let names = ClassNames::new(names).unwrap();
        let model = Model::new(&calibration, &[Alpha::new(0.001).unwrap()], Some(names));
        model.write(&path, Overwrite::Refuse).unwrap();
        let options = Options {
            models: vec![("model".to_owned(), path)],
            listen: "127.0.0.1:0".parse().unwrap(),
            state: None,
            token: None,
            insecure: false,
            alpha: None,
            stream: StreamOptions::default(),
            limits,
            threads: 2,
        };
        let (stop, (tell, told)) = (Arc::new(AtomicBool::new(false)), channel());
        let stopped = Arc::clone(&stop);
        let running = std::thread::spawn(move || {
            let ready = move |address| tell.send(address).unwrap();
            serve(&options, ready, move || stopped.load(Ordering::SeqCst), Arc::new(|_: &str| ())).unwrap();
        });
        Self { address: told.recv().unwrap(), stop, running: Some(running), _folder: folder }
    }

    /// A connection that has sent this.
    fn sent(&self, bytes: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(bytes.as_bytes()).unwrap();
        stream
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let ended = self.running.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || matches!(ended, Some(Ok(()))), "the service ends as it should");
    }
}

/// Everything that comes until the end; a connection that is torn has come to its end too.
fn rest_of(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8(bytes).unwrap()
}

fn head(length: usize) -> String {
    format!(
        "POST /v1/predict?track=false HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: \
         application/json\r\ncontent-length: {length}\r\n\r\n"
    )
}

const SHORT: Duration = Duration::from_millis(50);

#[test]
fn a_request_that_takes_too_long_is_told_so() {
    let service = Service::start(Limits { request_time: SHORT, ..Limits::default() });
    let answer = rest_of(service.sent(&(head(1_000) + "{\"rows\":[")));
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("application/problem+json") && answer.contains("\"status\":408"), "{answer}");
    assert!(answer.contains("a request may take 50ms"), "{answer}");
}

#[test]
fn a_head_that_does_not_come_ends_the_connection() {
    let service = Service::start(Limits { head_time: SHORT, ..Limits::default() });
    for begun in ["", "POST /v1/predict HTTP/1.1\r\nhost: loc"] {
        let answer = rest_of(service.sent(begun));
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408 "), "{answer}");
    }
}

/// There is room for one connection, and the client that has it asks for more than sockets hold and reads none of it.
#[test]
fn a_client_that_never_reads_its_answer_gives_its_place_to_another() {
    const ROWS: usize = 4_000;
    let service = Service::start(Limits { connections: 1, write_time: SHORT, ..Limits::default() });
    let rows = vec!["{\"logits\":[0,1,2]}"; ROWS].join(",");
    let body = format!("{{\"rows\":[{rows}]}}");
    let stuck = service.sent(&(head(body.len()) + &body));
    let healthy = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    while !rest_of(service.sent(healthy)).starts_with("HTTP/1.1 200 ") {
        std::thread::sleep(Duration::from_millis(5));
    }
    let got = rest_of(stuck);
    assert!(got.starts_with("HTTP/1.1 200 ") && got.len() < ROWS * 3 * NAME, "{} bytes", got.len());
}
