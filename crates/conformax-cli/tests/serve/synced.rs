//! Labels are on the disk before they are answered, many of them with one `fdatasync`; a disk that fails is told of.

#![cfg(target_os = "linux")]

use serde_json::json;

use crate::folder::{Folder, Rows};
use crate::service::{Client, Service, body_of, labels_of, stood_before};

/// A disk that writes down in the file `asked` how often it was, waits as long as there is a file `slow`, and fails
/// where there is a file `broken`.
const DISK: &str = r#"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
extern "C" int fdatasync(int file) {
    int asked = open("asked", O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (write(asked, "x", 1) != 1) abort();
    close(asked);
    while (access("slow", F_OK) == 0) usleep(1000);
    if (access("broken", F_OK) == 0) { errno = EIO; return -1; }
    return syscall(SYS_fdatasync, file);
}
"#;

/// Started on such a disk, with rows `r0` to `r20` that wait for their labels.
fn with_rows(folder: &Folder) -> Service {
    let mut command = folder.command("serve --listen 127.0.0.1:0 model.json --state state");
    command.env("LD_PRELOAD", stood_before(folder, "disk", DISK));
    let service = Service::run(command);
    service.post("/v1/predict", &body_of(&Rows::new(21, 1), 0..21, Some("r"))).json();
    service
}

fn label(row: usize) -> String {
    labels_of([(format!("r{row}").as_str(), 0)])
}

/// One label is on its way to the disk, which takes its time, and twenty others come meanwhile: none is answered before
/// the disk has it, and the twenty need it once.
#[test]
fn labels_are_answered_once_they_are_on_the_disk_and_share_its_time() {
    let folder = Folder::with_model();
    let mut service = with_rows(&folder);
    let asked = || std::fs::read(folder.file("asked")).map_or(0, |asked| asked.len());
    folder.write("slow", "");
    let mut clients: Vec<Client> = (0..21).map(|_| service.client()).collect();
    clients[0].send("/v1/feedback", &label(0));
    service.wait_until(|_| asked() > 0 || clients[0].is_answered());
    for (row, client) in clients.iter_mut().enumerate().skip(1) {
        client.send("/v1/feedback", &label(row));
    }
    let is_answered = |clients: &[Client]| clients.iter().any(Client::is_answered);
    service.wait_until(|service| service.status("model")["labelled"] == 21 || is_answered(&clients));
    assert!(!is_answered(&clients), "a label is answered that is not on the disk");
    assert_eq!(asked(), 1);
    std::fs::remove_file(folder.file("slow")).unwrap();
    for client in &mut clients {
        assert_eq!(client.answer().unwrap().json()["results"][0]["outcome"], "counted");
    }
    assert_eq!(asked(), 2, "twenty labels that wait share a sync");
}

/// What a disk has refused it may have dropped, and would not say so again: from then on no label is taken for kept.
#[test]
fn a_disk_that_fails_is_told_of_and_labels_answered_before_are_kept() {
    let folder = Folder::with_model();
    let service = with_rows(&folder);
    assert_eq!(service.post("/v1/feedback", &label(0)).json()["results"][0]["outcome"], "counted");
    folder.write("broken", "");
    let problem = service.post("/v1/feedback", &label(1)).problem(503);
    assert!(problem["detail"].as_str().unwrap().contains("could not be synced"), "{problem}");
    std::fs::remove_file(folder.file("broken")).unwrap();
    service.post("/v1/feedback", &label(2)).problem(503);
    service.get("/readyz").problem(503);
    assert_eq!(service.get("/healthz").status, 200);
    service.kill();
    let again = Service::start(&folder, "model.json --state state");
    assert_eq!(again.get("/readyz").status, 200);
    let told = again.post("/v1/feedback", &labels_of([("r0", 0), ("r3", 0)])).json();
    assert_eq!(told["results"][0]["outcome"], json!("repeated"));
    assert_eq!(told["results"][1]["outcome"], json!("counted"));
}
