//! The speed bars of the service, with the load on the same machine: scripts/bars-serve builds and runs it.
//!
//! Single rows of 1,000 logits in JSON against a route that reads the same bodies and answers a constant; a table of
//! 10,000 rows against the command on the same file; idle connections to a process of their own. Rows are those of
//! ImageNet-5k, sets those at alpha = 0.1. Ratios of the best of several rounds.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement that cannot go on has failed")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use conformax::{Alpha, Calibration, Logits, ScoreSpec, StreamOptions};
use conformax_io::{
    Block, Data, DataColumns, DataWriter, Dtype, Model, Overwrite, Source, SourceOptions, Values,
};
use conformax_serve::{Limits, Options, serve};

const CLASSES: usize = 1_000;
const BULK: usize = 10_000;
const CLIENTS: usize = 4;
const REQUESTS: usize = 2_000;
/// Rows that requests bring in turn.
const DIFFERENT: usize = 100;
const ROUNDS: usize = 5;
const ROUNDS_OF_TABLES: usize = 15;
const IDLE: usize = 10_000;

fn main() {
    let command = std::env::args().nth(1);
    let folder = tempfile::tempdir().unwrap();
    let (model, (logits, labels)) = (folder.path().join("model.json"), rows());
    write_model(&model, &logits, &labels);
    let logits: Vec<f32> = logits.iter().copied().cycle().take(BULK * CLASSES).collect();
    let state = folder.path().join("state");
    let (address, stop) = start(&model, Some(&state));

    let body = |row: &[f32]| format!("{{\"rows\":[{{\"logits\":{row:?}}}]}}");
    let bodies: Vec<String> = logits.chunks(CLASSES).take(DIFFERENT).map(body).collect();
    let (mut parse, mut predict) = (Best::default(), Best::default());
    for _ in 0..ROUNDS {
        parse.take(load(address, "/v1/parse", &bodies));
        predict.take(load(address, "/v1/predict", &bodies));
    }
    println!("single rows of {CLASSES} logits in JSON, {CLIENTS} connections, journal on:");
    println!("  parsing alone  {:>8.0} a second, p99 {:>7.0} µs", parse.rate, parse.p99 * 1e6);
    println!("  predicting     {:>8.0} a second, p99 {:>7.0} µs", predict.rate, predict.p99 * 1e6);
    bar("rate, predicting / parsing", predict.rate / parse.rate, 0.7, true);
    bar("p99, predicting / parsing", predict.p99 / parse.p99, 2.0, false);

    if let Some(command) = command {
        bulk(address, Path::new(&command), folder.path(), &logits);
        idle(Path::new(&command), &model);
    }
    stop.store(true, Ordering::SeqCst);
}

fn bar(what: &str, value: f64, bar: f64, at_least: bool) {
    let met = if at_least { value >= bar } else { value <= bar };
    let (word, sign) = (if met { "met" } else { "MISSED" }, if at_least { "≥" } else { "≤" });
    println!("  {what}: {value:.2} (bar {sign} {bar}): {word}");
}

/// The logits and labels of ImageNet-5k.
fn rows() -> (Vec<f32>, Vec<u32>) {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../benchmarks"));
    let file = |name: &str| folder.join(name);
    let data =
        Data::Pair { logits: file("imagenet5k-logits.npy"), labels: Some(file("imagenet5k-labels.npy")) };
    let whole = SourceOptions { block_bytes: 1 << 30, ..SourceOptions::default() };
    let mut block = Block::default();
    Source::open(&data, &whole).unwrap().read(&mut block).unwrap();
    let Values::F16(logits) = block.logits else { unreachable!("they are half floats") };
    (logits.iter().map(|logit| logit.to_f32()).collect(), block.labels.unwrap())
}

fn write_model(path: &Path, logits: &[f32], labels: &[u32]) {
    let rows = Logits::new(logits, CLASSES).unwrap().labelled(labels).unwrap();
    let calibration = Calibration::of(ScoreSpec::default(), rows).unwrap();
    Model::new(&calibration, &[Alpha::new(0.1).unwrap()], None).write(path, Overwrite::Replace).unwrap();
}

fn start(model: &Path, state: Option<&Path>) -> (SocketAddr, Arc<AtomicBool>) {
    let options = Options {
        models: vec![("model".to_owned(), model.to_owned())],
        listen: "127.0.0.1:0".parse().unwrap(),
        state: state.map(Path::to_owned),
        token: None,
        insecure: false,
        alpha: None,
        stream: StreamOptions { step: 0.0, decay: None, ..StreamOptions::default() },
        limits: Limits::default(),
        threads: 0,
    };
    let (tell, told) = channel();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    std::thread::spawn(move || {
        let ready = move |address| tell.send(address).unwrap();
        serve(&options, ready, move || stopped.load(Ordering::SeqCst), Arc::new(|_: &str| {})).unwrap();
    });
    (told.recv().unwrap(), stop)
}

#[derive(Default)]
struct Best {
    rate: f64,
    p99: f64,
}

impl Best {
    fn take(&mut self, (rate, p99): (f64, f64)) {
        self.rate = self.rate.max(rate);
        self.p99 = if self.p99 == 0.0 { p99 } else { self.p99.min(p99) };
    }
}

/// Requests a second over all connections, and the 99th percentile of their times.
fn load(address: SocketAddr, path: &str, bodies: &[String]) -> (f64, f64) {
    let requests: Vec<Vec<u8>> =
        bodies.iter().map(|body| request(path, "application/json", body.as_bytes())).collect();
    let started = Instant::now();
    let mut times: Vec<f64> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| {
                    let mut stream = TcpStream::connect(address).unwrap();
                    stream.set_nodelay(true).unwrap();
                    let mut buffer = Vec::new();
                    let time = |number: usize| {
                        let asked = Instant::now();
                        ask(&mut stream, &requests[number % requests.len()], &mut buffer);
                        asked.elapsed().as_secs_f64()
                    };
                    (0..REQUESTS).map(time).collect::<Vec<f64>>()
                })
            })
            .collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    let rate = times.len() as f64 / started.elapsed().as_secs_f64();
    times.sort_unstable_by(f64::total_cmp);
    (rate, times[times.len() * 99 / 100])
}

fn request(path: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let len = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {kind}\r\ncontent-length: {len}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// Sends a request and reads its answer, which must be a good one.
fn ask(stream: &mut TcpStream, request: &[u8], buffer: &mut Vec<u8>) {
    stream.write_all(request).unwrap();
    buffer.clear();
    let mut piece = [0; 1 << 16];
    loop {
        let read = stream.read(&mut piece).unwrap();
        assert!(read > 0, "the connection ended");
        buffer.extend_from_slice(&piece[..read]);
        let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 200"), "{head}");
        let length =
            head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        if buffer.len() == end + 4 + length.unwrap() {
            return;
        }
    }
}

/// A table over the wire, as a file and as a stream, against the command on the same file.
fn bulk(address: SocketAddr, command: &Path, folder: &Path, logits: &[f32]) {
    let file = folder.join("rows.arrow");
    write_table(&file, logits);
    std::fs::write(folder.join("rows.arrows"), stream_of(&std::fs::read(file).unwrap())).unwrap();
    for (form, name) in [("file", "rows.arrow"), ("stream", "rows.arrows")] {
        let kind = format!("application/vnd.apache.arrow.{form}");
        let request = request("/v1/predict?track=false", &kind, &std::fs::read(folder.join(name)).unwrap());
        let (mut served, mut alone) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..ROUNDS_OF_TABLES {
            let started = Instant::now();
            ask(&mut TcpStream::connect(address).unwrap(), &request, &mut Vec::new());
            served = served.min(started.elapsed().as_secs_f64());
            let started = Instant::now();
            let ran = Command::new(command)
                .args(["predict", "model.json", name, "--force", "-o", "sets.arrow"])
                .current_dir(folder)
                .output();
            assert!(ran.unwrap().status.success());
            alone = alone.min(started.elapsed().as_secs_f64());
        }
        let [wire, command] = [served, alone].map(|seconds| seconds * 1e3);
        println!(
            "a table of {BULK} rows, as a {form}: {wire:.0} ms over the wire, {command:.0} ms by the command"
        );
        bar("speed, wire / command", alone / served, 0.5, true);
    }
}

/// The stream that a file of Arrow holds: what is between its mark and its footer.
fn stream_of(file: &[u8]) -> &[u8] {
    let (rest, end) = file.split_last_chunk::<10>().unwrap();
    let footer = u32::from_le_bytes(*end.first_chunk().unwrap()) as usize;
    // Every message begins with this, and how far the mark is padded is up to the writer.
    let first = rest.windows(4).position(|four| four == [0xff; 4]).unwrap();
    &rest[first..rest.len() - footer]
}

fn write_table(path: &Path, logits: &[f32]) {
    let (rows, dtype) = (BULK as u64, Dtype::F32);
    let columns = DataColumns { rows, classes: CLASSES, dtype, names: None, labels: false, keep: Vec::new() };
    let mut writer = DataWriter::create(path, Overwrite::Replace, &columns).unwrap();
    let block = Block { classes: CLASSES, logits: Values::F32(logits.to_vec()), ..Block::default() };
    writer.write(&block, &(0..BULK).collect::<Vec<_>>()).unwrap();
    writer.finish().unwrap();
}

/// Connections to a service in a process of its own: each has its limit on open files.
fn idle(command: &Path, model: &Path) {
    let mut service = Command::new(command)
        .arg("serve")
        .arg(model)
        .args(["--listen", "127.0.0.1:0"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(service.stderr.take().unwrap()).lines();
    let address = lines.find_map(|line| line.unwrap().strip_prefix("listening on http://")?.parse().ok());
    hold(address.unwrap());
    service.kill().unwrap();
    service.wait().unwrap();
}

fn hold(address: SocketAddr) {
    let (mut held, mut buffer) = (Vec::new(), Vec::new());
    let (full, started) = (full_doors(), Instant::now());
    while held.len() < IDLE {
        match TcpStream::connect(address) {
            Ok(stream) => held.push(stream),
            Err(error) => {
                println!("idle connections: {} held, then {error} (ulimit -n)", held.len());
                break;
            }
        }
    }
    // A client that finds the door full asks again after a second or more, and so do all that come after it.
    let found_full = full_doors()
        .zip(full)
        .map_or_else(String::new, |(now, before)| format!(", {} found the door full", now - before));
    println!("idle connections: {} made in {:.1?}{found_full}", held.len(), started.elapsed());
    let started = Instant::now();
    let request = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n";
    // Every one of them is there, and is answered.
    for stream in &mut held {
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        ask(stream, request, &mut buffer);
    }
    println!("idle connections: each answered once, in {:.0?} for all", started.elapsed());
    bar("held", held.len() as f64, IDLE as f64, true);
}

/// How often a client of this machine's services found no room at the door, where the system counts it.
fn full_doors() -> Option<u64> {
    let counts = std::fs::read_to_string("/proc/net/netstat").ok()?;
    let mut lines = counts.lines().filter(|line| line.starts_with("TcpExt:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let place = names.split_whitespace().position(|name| name == "ListenOverflows")?;
    values.split_whitespace().nth(place)?.parse().ok()
}
