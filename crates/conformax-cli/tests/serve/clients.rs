//! Clients that are slow, many, half there, or in the middle of something when the service is told to stop.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::folder::{Folder, Rows};
use crate::service::{Client, JSON, Service, body_of, request_head};

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

/// As slow as a client can be: every byte is a packet of its own, and others are answered in between.
#[test]
fn a_request_that_comes_byte_by_byte_is_answered() {
    let folder = Folder::with_model();
    let service = Service::start(&folder, "model.json");
    let body = body_of(&Rows::new(2, 1), 0..2, Some("r"));
    let wanted = service.post("/v1/predict", &body).json();
    let (mut slow, mut other) = (service.client(), service.client());
    let head = request_head("POST", "/v1/predict", &[JSON], body.len());
    for (sent, byte) in [head.as_bytes(), body.as_bytes()].concat().iter().enumerate() {
        slow.stream.get_mut().write_all(&[*byte]).unwrap();
        if sent % 50 == 0 {
            assert_eq!(other.ask("GET", "/healthz", &[], b"").unwrap().status, 200);
        }
    }
    assert_eq!(slow.answer().unwrap().json(), wanted);
}

/// Bytes of memory that a process has and that it has asked for.
#[cfg(target_os = "linux")]
fn memory(service: &Service) -> [u64; 2] {
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.id())).unwrap();
    ["VmRSS:", "VmData:"].map(|name| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
    })
}

/// Two hundred bodies of 60 MB are on their way, by what their heads say. A hundredth of it would be too much memory to
/// have, and a tenth too much to ask for.
#[cfg(target_os = "linux")]
#[test]
fn claimed_lengths_take_no_memory() {
    const CLAIMED: usize = 60_000_000;
    let folder = Folder::with_model();
    let service = Service::start(&folder, "model.json");
    service.get("/healthz");
    let before = memory(&service);
    let open: Vec<Client> = (0..200)
        .map(|_| {
            let mut client = service.client();
            let headers = [JSON, ("expect", "100-continue")];
            let head = request_head("POST", "/v1/predict", &headers, CLAIMED);
            client.stream.get_mut().write_all(head.as_bytes()).unwrap();
            // The service has begun to read the body.
            assert_eq!(client.answer().unwrap().status, 100);
            client.stream.get_mut().write_all(b"{\"rows\":[").unwrap();
            client
        })
        .collect();
    assert_eq!(service.get("/healthz").status, 200);
    let claimed = (CLAIMED * open.len()) as u64;
    let more = [0, 1].map(|which| memory(&service)[which].saturating_sub(before[which]));
    assert!(more[0] < claimed / 100 && more[1] < claimed / 10, "{more:?}");
}

#[test]
fn what_is_no_http_is_refused() {
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
    // A head has a limit of its own, whatever is read at a time.
    let head = |len: usize| {
        let (start, end) =
            ("GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx: ", "\r\n\r\n");
        ask(&format!("{start}{}{end}", "y".repeat(len - start.len() - end.len())))
    };
    assert!(head(16 << 10).starts_with("HTTP/1.1 200"));
    assert!(head((16 << 10) + 1).starts_with("HTTP/1.1 431"));
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
    for stream in &flood[19..] {
        let mut refused = Client::of(stream.try_clone().unwrap());
        let problem = refused.answer().unwrap().problem(503);
        assert!(problem["detail"].as_str().unwrap().contains("no more connections"), "{problem}");
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
