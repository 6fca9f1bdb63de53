//! A clock that jumps: nothing the service decides rests on what time it is.

#![cfg(target_os = "linux")]

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::folder::{Folder, Rows};
use crate::service::{Service, body_of, stood_before};

/// Years that the clock is ahead and behind in turn, every time it is asked.
const YEARS: u64 = 40;

/// A library that stands before the system's own: wall-clock time jumps, monotonic time does not.
fn jumping_clock(folder: &Folder) -> std::path::PathBuf {
    let source = r#"
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static int calls;
static long jump() { return (__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED) % 2 ? 1 : -1) * YEARS * 31556952L; }
extern "C" int clock_gettime(clockid_t id, struct timespec *now) noexcept {
    int done = syscall(SYS_clock_gettime, id, now);
    if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE) now->tv_sec += jump();
    return done;
}
extern "C" time_t time(time_t *to) noexcept {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to) *to = now.tv_sec;
    return now.tv_sec;
}
"#;
    stood_before(folder, "clock", &source.replace("YEARS", &format!("{YEARS}L")))
}

fn start(folder: &Folder, clock: Option<&std::path::Path>) -> Service {
    let mut command = folder.command("serve --listen 127.0.0.1:0 model.json --state state");
    if let Some(clock) = clock {
        command.env("LD_PRELOAD", clock);
    }
    Service::run(command)
}

/// Rows, labels, a model that is replaced by an older and a newer file, a kill and a restart: every answer.
fn lived(folder: &Folder, clock: Option<&std::path::Path>) -> Vec<Value> {
    let rows = Rows::new(30, 1);
    let mut answers = Vec::new();
    let mut service = start(folder, clock);
    for row in 0..30 {
        answers.push(service.post("/v1/predict", &body_of(&rows, row..row + 1, Some("r"))).json());
        if row % 3 != 0 {
            let label = json!({"rows": [{"id": format!("r{}", row - 1), "label": rows.labels[row - 1]}]});
            answers.push(service.post("/v1/feedback", &label.to_string()).json());
        }
        if row % 10 == 9 {
            answers.push(service.status("model"));
            service.kill();
            service = start(folder, clock);
        }
    }
    let (now, years) = (SystemTime::now(), Duration::from_secs(YEARS * 31_556_952));
    for (file, time) in [("other.json", now - years), ("first.json", now + years)] {
        let before = service.status("model")["fingerprint"].clone();
        std::fs::copy(folder.file(file), folder.file("new.json")).unwrap();
        std::fs::File::options()
            .write(true)
            .open(folder.file("new.json"))
            .unwrap()
            .set_modified(time)
            .unwrap();
        std::fs::rename(folder.file("new.json"), folder.file("model.json")).unwrap();
        service.wait_until(|service| service.status("model")["fingerprint"] != before);
        answers.push(service.post("/v1/predict", &body_of(&rows, 0..3, None)).json());
    }
    answers.push(json!(service.get("/readyz").status));
    answers
}

#[test]
fn a_clock_that_jumps_changes_no_answer() {
    let folders = [(); 2].map(|()| {
        let folder = Folder::with_model();
        std::fs::copy(folder.file("model.json"), folder.file("first.json")).unwrap();
        folder.run("calibrate test.npz --alpha 0.3 -o other.json").ok();
        folder
    });
    let clock = jumping_clock(&folders[1]);
    // The one place that shows the time, by which it is known to jump.
    let year =
        1970 + SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() / 31_556_952;
    let dated = |clock| start(&folders[1], clock).get("/healthz").head;
    let wrong = dated(Some(clock.as_path()));
    assert!([year - YEARS, year + YEARS].iter().any(|year| wrong.contains(&format!(" {year} "))), "{wrong}");
    assert!(dated(None).contains(&format!(" {year} ")));
    let [steady, jumping] = [lived(&folders[0], None), lived(&folders[1], Some(&clock))];
    assert_eq!(steady.len(), jumping.len());
    for (steady, jumping) in steady.iter().zip(&jumping) {
        assert_eq!(steady, jumping);
    }
}
