//! Clients that are slow, many, half there, or in the middle of something when the service is told to stop.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::folder::{Folder, Rows};
use crate::service::{Client, Service, body_of};

/// Requests that never end hold up nobody else.
#[test]
fn half_requests_hold_up_nobody() {
    let folder = Folder::with_model();
    let service = Service::start(&folder, "model.json");
    let halves: Vec<TcpStream> = ["", "PO", "POST /v1/predict HTTP/1.1\r\nhost", "POST /v1/predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{\"rows\""]
        .iter()
        .cycle()
        .take(400)
        .map(|half| {
            let mut stream = TcpStream::connect(service.address).unwrap();
            stream.write_all(half.as_bytes()).unwrap();
            stream
        })
        .collect();
    let rows = Rows::new(5, 1);
    assert_eq!(
        service.post("/v1/predict", &body_of(&rows, 0..5, None)).json()["sets"].as_array().unwrap().len(),
        5
    );
    drop(halves);
    assert_eq!(service.status("model")["predicted"], 5);
}

#[test]
fn what_is_no_http_is_refused_and_claimed_lengths_take_no_memory() {
    let folder = Folder::with_model();
    let service = Service::start(&folder, "model.json");
    let ask = |request: &str| {
        let mut stream = TcpStream::connect(service.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        // A connection that is closed under what it still sends may be reset.
        let _ = stream.read_to_string(&mut answer);
        answer
    };
    assert!(ask("\u{16}\u{3}\u{1} not http\r\n\r\n").starts_with("HTTP/1.1 400"));
    assert!(
        ask(&format!("GET / HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "y".repeat(40_000)))
            .starts_with("HTTP/1.1 431")
    );
    let huge = "POST /v1/predict HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 18446744073709551615\r\n\r\n";
    assert!(ask(huge).starts_with("HTTP/1.1 4"), "{}", ask(huge));
    assert_eq!(service.get("/healthz").status, 200);
}

/// Beyond its number, connections are closed; those there are go on, and when they are gone there is room again.
#[test]
fn a_flood_of_connections_leaves_those_there_are_alone() {
    let folder = Folder::with_model();
    let mut service = Service::start(&folder, "model.json --max-connections 20");
    let mut first = service.client();
    assert_eq!(first.ask("GET", "/healthz", &[], b"").unwrap().status, 200);
    let flood: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(service.address).unwrap()).collect();
    // They are taken in the order they came in: one place had gone before, and these are beyond the last.
    for mut stream in &flood[19..] {
        let mut start = [0; 12];
        stream.read_exact(&mut start).unwrap();
        assert_eq!(&start, b"HTTP/1.1 503");
    }
    assert_eq!(first.ask("GET", "/healthz", &[], b"").unwrap().status, 200);
    drop(flood);
    service.wait_until(|service| {
        Client::new(service.address)
            .and_then(|mut client| client.ask("GET", "/healthz", &[], b""))
            .is_ok_and(|answer| answer.status == 200)
    });
}

/// A request that is in the middle of its body when the service is told to stop is answered; nobody new is let in.
#[test]
fn what_was_accepted_is_answered_before_the_end() {
    let folder = Folder::with_model();
    let mut service = Service::start(&folder, "model.json --state state");
    let rows = Rows::new(40, 1);
    let mut open: Vec<(Client, String)> = (0..20)
        .map(|row| {
            let body = body_of(&rows, row..row + 1, Some("r"));
            let mut client = service.client();
            let head = format!("POST /v1/predict HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
            client.stream.get_mut().write_all(head.as_bytes()).unwrap();
            // The service has begun to read the body.
            assert_eq!(client.answer().unwrap().status, 100);
            client.stream.get_mut().write_all(&body.as_bytes()[..10]).unwrap();
            (client, body)
        })
        .collect();
    service.signal("-TERM");
    service.wait_until(|service| TcpStream::connect(service.address).is_err());
    for (client, body) in &mut open {
        client.stream.get_mut().write_all(&body.as_bytes()[10..]).unwrap();
        let answer = client.answer().unwrap();
        assert_eq!(answer.json()["sets"].as_array().unwrap().len(), 1);
    }
    drop(open);
    assert!(service.ended().success());
    let again = Service::start(&folder, "model.json --state state");
    assert_eq!(again.status("model")["waiting"], 20);
}

/// `nohup`, and the background of a script: what the process was started to ignore it goes on to ignore.
#[cfg(target_os = "linux")]
#[test]
fn signals_that_were_to_be_ignored_stay_so() {
    let folder = Folder::with_model();
    let run = "trap '' HUP INT; exec \"$0\" serve model.json --listen 127.0.0.1:0";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", run, env!("CARGO_BIN_EXE_conformax")]).current_dir(folder.path());
    let service = Service::run(command);
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.id())).unwrap();
    let mask = |name: &str| {
        let mask = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        u64::from_str_radix(mask.trim(), 16).unwrap()
    };
    let bit = |signal: i32| 1_u64 << (signal - 1);
    let (ignored, caught) = (mask("SigIgn:"), mask("SigCgt:"));
    for signal in [libc::SIGHUP, libc::SIGINT] {
        assert!(ignored & bit(signal) != 0 && caught & bit(signal) == 0, "{signal}: {status}");
    }
    assert!(caught & bit(libc::SIGTERM) != 0);
    service.signal("-HUP");
    service.signal("-INT");
    assert_eq!(service.get("/readyz").status, 200);
    service.signal("-TERM");
    assert!(service.ended().success());
}
