//! Nothing that was answered is lost or counted twice: kills under load, a full disk, damage, two of a kind.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use crate::folder::{Folder, Rows};
use crate::service::{Client, Service, body_of, labels_of};

/// What the clients and whoever kills share.
#[derive(Default)]
struct Load {
    address: Mutex<Option<SocketAddr>>,
    answered: AtomicU64,
    over: AtomicBool,
}

/// Asks until it is answered, wherever the service is by then; how often it had to.
fn ask(load: &Load, client: &mut Option<Client>, path: &str, body: &str) -> (serde_json::Value, u32) {
    let mut tries = 0;
    loop {
        tries += 1;
        if client.is_none() {
            let address = *load.address.lock().unwrap();
            *client = address.and_then(|address| Client::new(address).ok());
        }
        match client.as_mut().map(|client| client.post(path, body)) {
            Some(Ok(answer)) if answer.status == 200 => {
                load.answered.fetch_add(1, Ordering::SeqCst);
                return (answer.json(), tries);
            }
            Some(Ok(answer)) => panic!("{}: {}", answer.status, answer.text()),
            _ => {
                *client = None;
                std::thread::yield_now();
            }
        }
    }
}

/// Rows of a request.
const BATCH: usize = 10;

/// Predicts and labels until it is over; the names whose labels were acknowledged.
fn client(load: &Load, rows: &Rows, who: usize) -> BTreeSet<String> {
    let (mut connection, mut acknowledged) = (None, BTreeSet::new());
    for turn in 0.. {
        if load.over.load(Ordering::SeqCst) {
            break;
        }
        let which = turn * BATCH % 50..turn * BATCH % 50 + BATCH;
        // Names as long as they may be fill a journal soon.
        let prefix = format!("{who}-{turn}-{}-", "x".repeat(220));
        ask(load, &mut connection, "/v1/predict", &body_of(rows, which.clone(), Some(&prefix)));
        let names: Vec<String> = which.clone().map(|row| format!("{prefix}{row}")).collect();
        let labels = names.iter().zip(which).map(|(name, row)| (name.as_str(), rows.labels[row]));
        let (told, tries) = ask(load, &mut connection, "/v1/feedback", &labels_of(labels));
        for (result, name) in told["results"].as_array().unwrap().iter().zip(names) {
            let outcome = result["outcome"].as_str().unwrap();
            let is_taken = outcome == "counted" || (outcome == "repeated" && tries > 1);
            assert!(is_taken, "{name}: {outcome} after {tries}");
            assert!(acknowledged.insert(name));
        }
    }
    acknowledged
}

/// The latest file of a kind in the folder of the one model, 0 where there is none.
fn latest(folder: &Folder, kind: &str) -> u64 {
    let files_in = |path: std::path::PathBuf| std::fs::read_dir(path).into_iter().flatten().flatten();
    let streams = files_in(folder.file("state/model"));
    let names = streams.flat_map(|stream| files_in(stream.path())).map(|file| file.file_name());
    let number = |name: std::ffi::OsString| {
        let (number, _) = name.to_str()?.strip_prefix(kind)?.strip_prefix('-')?.split_once('.')?;
        number.parse().ok()
    };
    names.filter_map(number).max().unwrap_or(0)
}

/// Moments in the life of a snapshot.
const MOMENTS: [&str; 5] = ["created", "cleared", "written", "synced", "named"];

#[test]
fn a_hundred_kills_under_load_lose_no_label_and_count_none_twice() {
    const WORDS: &str =
        "serve model.json --listen 127.0.0.1:0 --state state --window 10000000 --max-journal 1";
    let folder = Folder::with_model();
    let load = Arc::new(Load::default());
    let clients: Vec<_> = (0..3)
        .map(|who| {
            let load = Arc::clone(&load);
            std::thread::spawn(move || client(&load, &Rows::new(50, 1), who))
        })
        .collect();
    let mut state = 7_u64;
    for kill in 0..100 {
        // Every twentieth dies in the middle of a compaction, the others whenever it happens to be: some answers and
        // some microseconds after they began, both from a small generator.
        let mut command = folder.command(WORDS);
        let moment = (kill % 20 == 19).then(|| MOMENTS[kill / 20]);
        let snapshot = latest(&folder, "journal") + 1;
        if let Some(moment) = moment {
            command.env("CONFORMAX_HOLD", format!("{moment} snapshot-{snapshot}.bin"));
        }
        let mut started = Service::run(command);
        *load.address.lock().unwrap() = Some(started.address);
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        match moment {
            Some(moment) => {
                started.wait_until(|service| service.notes().contains(&format!("held: {moment}")))
            }
            None => {
                let until = load.answered.load(Ordering::SeqCst) + (state >> 60);
                while load.answered.load(Ordering::SeqCst) < until {
                    std::thread::yield_now();
                }
                std::thread::sleep(Duration::from_micros((state >> 40) % 5_000));
            }
        }
        *load.address.lock().unwrap() = None;
        started.kill();
    }
    let service = Service::run(folder.command(WORDS));
    *load.address.lock().unwrap() = Some(service.address);
    load.over.store(true, Ordering::SeqCst);
    let acknowledged: BTreeSet<String> =
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
    let status = service.status("model");
    assert!(acknowledged.len() > 1_000 && latest(&folder, "journal") >= 5, "{}", acknowledged.len());
    assert_eq!((&status["labelled"], &status["waiting"]), (&json!(acknowledged.len()), &json!(0)));
    // Not their number alone: each of them is there.
    for names in Vec::from_iter(&acknowledged).chunks(500) {
        let told =
            service.post("/v1/feedback", &labels_of(names.iter().map(|name| (name.as_str(), 0)))).json();
        for (result, name) in told["results"].as_array().unwrap().iter().zip(names) {
            assert_eq!((&result["id"], &result["outcome"]), (&json!(name), &json!("repeated")));
        }
    }
}

/// Predicts and labels until it is not answered; how many rows and how many labels were.
fn answered(address: SocketAddr, who: usize, answers: &AtomicU64) -> [u64; 2] {
    let (rows, mut told) = (Rows::new(1, 1), [0, 0]);
    let Ok(mut client) = Client::new(address) else { return told };
    for turn in 0.. {
        let prefix = format!("{who}-{turn}-");
        let Ok(answer) = client.post("/v1/predict", &body_of(&rows, 0..1, Some(&prefix))) else { break };
        assert_eq!(answer.json()["sets"][0]["id"], format!("{prefix}0"));
        told[0] += 1;
        let label = labels_of([(format!("{prefix}0").as_str(), 1)]);
        let Ok(answer) = client.post("/v1/feedback", &label) else { break };
        assert_eq!(answer.json()["results"][0]["outcome"], "counted");
        told[1] += 1;
        answers.fetch_add(2, Ordering::SeqCst);
    }
    told
}

/// Told to stop in the middle of everything: what the service knows afterwards is what its clients were answered, to
/// the row and to the label.
#[test]
fn what_is_taken_in_under_load_is_answered_before_the_end() {
    let folder = Folder::with_model();
    let service = Service::start(&folder, "model.json --state state");
    let (address, answers) = (service.address, Arc::new(AtomicU64::new(0)));
    let clients: Vec<_> = (0..8)
        .map(|who| {
            let answers = Arc::clone(&answers);
            std::thread::spawn(move || answered(address, who, &answers))
        })
        .collect();
    while answers.load(Ordering::SeqCst) < 200 {
        std::thread::yield_now();
    }
    service.signal("-TERM");
    let told: Vec<[u64; 2]> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    assert!(service.ended().success());
    let sum = |of: usize| told.iter().map(|told| told[of]).sum::<u64>();
    let status = Service::start(&folder, "model.json --state state").status("model");
    assert_eq!((&status["predicted"], &status["labelled"]), (&json!(sum(0)), &json!(sum(1))));
}

/// A limit on file sizes stands in for a full disk: the journal takes no more, which is told, and what it took stays.
#[test]
fn a_full_disk_is_told_of_and_nothing_answered_is_lost() {
    let folder = Folder::with_model();
    let mut limited = Command::new("sh");
    let run = "ulimit -f 8; exec \"$0\" serve model.json --listen 127.0.0.1:0 --state state";
    limited.args(["-c", run, env!("CARGO_BIN_EXE_conformax")]).current_dir(folder.path());
    let service = Service::run(limited);
    let rows = Rows::new(1, 1);
    let mut client = service.client();
    let (mut kept, mut refused) = (0, 0);
    while refused < 5 {
        let answer = client.post("/v1/predict", &body_of(&rows, 0..1, Some(&format!("{kept}-")))).unwrap();
        if answer.status == 200 {
            let label = json!({"rows": [{"id": format!("{kept}-0"), "label": 0}]}).to_string();
            match client.post("/v1/feedback", &label).unwrap() {
                answer if answer.status == 200 => kept += 1,
                answer => {
                    answer.problem(507);
                    refused += 1;
                }
            }
        } else {
            answer.problem(507);
            refused += 1;
        }
        assert!(kept < 1_000, "the limit is not kept");
    }
    // Whoever sends requests here is told to send them elsewhere.
    let problem = service.get("/readyz").problem(503);
    assert!(problem["detail"].as_str().unwrap().contains("the disk is full"), "{problem}");
    assert_eq!(service.get("/healthz").status, 200);
    // Without waiting for labels there is nothing to keep.
    let untracked = client.post("/v1/predict?track=false", &body_of(&rows, 0..1, None)).unwrap();
    assert_eq!((untracked.status, service.status("model")["labelled"].clone()), (200, json!(kept)));
    service.kill();
    let again = Service::start(&folder, "model.json --state state");
    assert_eq!(again.get("/readyz").status, 200);
    assert!(kept > 5);
    assert_eq!(again.status("model")["labelled"], kept);
}

#[test]
fn a_second_process_on_the_folder_is_refused() {
    let folder = Folder::with_model();
    let service = Service::start(&folder, "model.json --state state");
    let message = folder.run("serve model.json --listen 127.0.0.1:0 --state state").error();
    assert!(message.contains("another process serves from this folder"), "{message}");
    assert_eq!(service.get("/readyz").status, 200);
    service.kill();
    // The lock goes with the process, however it ends.
    assert_eq!(Service::start(&folder, "model.json --state state").get("/readyz").status, 200);
}

#[test]
fn a_damaged_journal_stops_the_start_and_says_what_to_do() {
    let folder = Folder::with_model();
    let service = Service::start(&folder, "model.json --state state");
    let fingerprint = service.status("model")["fingerprint"].as_str().unwrap().to_owned();
    let rows = Rows::new(20, 1);
    service.post("/v1/predict", &body_of(&rows, 0..20, Some("r"))).json();
    for row in 0..20 {
        let label = json!({"rows": [{"id": format!("r{row}"), "label": 1}]}).to_string();
        service.post("/v1/feedback", &label).json();
    }
    service.kill();
    let path = format!("state/model/{fingerprint}/journal-0.log");
    let whole = folder.read(&path);
    // Half of the last record: it was never answered.
    folder.write(&path, &whole[..whole.len() - 3]);
    let service = Service::start(&folder, "model.json --state state");
    assert!(service.notes().contains("cut "), "{}", service.notes());
    assert_eq!(service.status("model")["labelled"], 19);
    service.kill();
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    folder.write(&path, &damaged);
    let message = folder.run("serve model.json --listen 127.0.0.1:0 --state state").error();
    assert!(message.contains("damaged at byte") && message.contains("truncate -s"), "{message}");
    folder.write(&path, "");
    let message = folder.run("serve model.json --listen 127.0.0.1:0 --state state").error();
    assert!(message.contains("has been emptied") && message.contains("restore the file"), "{message}");
    assert_eq!(folder.read(&path), b"", "nothing is changed");
}

/// A snapshot that takes for ever: requests are answered meanwhile, and what they brought is there after a kill.
#[test]
fn requests_go_on_while_a_snapshot_is_written() {
    let folder = Folder::with_model();
    let words = "serve model.json --listen 127.0.0.1:0 --state state --max-journal 1";
    let mut command = folder.command(words);
    command.env("CONFORMAX_HOLD", "written snapshot-1.bin");
    let mut service = Service::run(command);
    let rows = Rows::new(50, 1);
    let prefix = "x".repeat(200);
    for batch in 0..90 {
        let body = body_of(&rows, 0..50, Some(&format!("{prefix}{batch}-")));
        service.post("/v1/predict", &body).json();
    }
    service.wait_until(|service| service.notes().contains("held: written snapshot-1.bin"));
    service.post("/v1/predict", &body_of(&rows, 0..10, Some("late-"))).json();
    for id in [format!("{prefix}0-3"), "late-7".to_owned()] {
        let label = json!({"rows": [{"id": id, "label": 1}]}).to_string();
        assert_eq!(service.post("/v1/feedback", &label).json()["results"][0]["outcome"], "counted");
    }
    let status = service.status("model");
    let fingerprint = status["fingerprint"].as_str().unwrap().to_owned();
    service.kill();
    let mut service = Service::run(folder.command(words));
    let again = service.status("model");
    for key in ["predicted", "labelled", "waiting", "level", "log_capital"] {
        assert_eq!(again[key], status[key], "{key}");
    }
    assert_eq!((&again["labelled"], &again["waiting"]), (&json!(2), &json!(90 * 50 + 10 - 2)));
    // What no snapshot holds is put together now, and the files before it go.
    let names = || {
        let entries = std::fs::read_dir(folder.file(&format!("state/model/{fingerprint}"))).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    service.wait_until(|_| names() == ["journal-2.log", "snapshot-2.bin"]);
    assert_eq!(service.status("model"), again);
}
