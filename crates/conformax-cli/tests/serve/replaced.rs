//! Model files that are replaced while rows of the one before wait for their labels.

use serde_json::{Value, json};

use crate::folder::{CLASSES, Folder};
use crate::service::Service;

const ANIMALS: &str = "ant\nbee\ncat\ndog\nelk\nfox\n";
/// The same names for other classes.
const TURNED: &str = "fox\nelk\ndog\ncat\nbee\nant\n";

/// A folder with one calibration under two lists of names.
fn with_names() -> Folder {
    let folder = Folder::with_data();
    for (names, model) in [(ANIMALS, "model.json"), (TURNED, "turned.json")] {
        folder.write("names.txt", names);
        folder.run(&format!("calibrate cal.npz --names names.txt -o {model}")).ok();
    }
    folder
}

fn replace(folder: &Folder, by: &str) {
    std::fs::copy(folder.file(by), folder.file("new.json")).unwrap();
    std::fs::rename(folder.file("new.json"), folder.file("model.json")).unwrap();
}

/// Predicts a row whose first class is certain; its set.
fn predict(service: &Service, id: &str) -> Value {
    let logits: Vec<f64> = (0..CLASSES).map(|class| if class == 0 { 40.0 } else { 0.0 }).collect();
    let body = json!({"rows": [{"id": id, "logits": logits}]}).to_string();
    service.post("/v1/predict", &body).json()["sets"][0]["labels"].clone()
}

fn label(service: &Service, id: &str, label: &str) -> Value {
    let body = json!({"rows": [{"id": id, "label": label}]}).to_string();
    service.post("/v1/feedback", &body).json()["results"][0].clone()
}

#[test]
fn other_names_alone_are_picked_up_and_labels_keep_to_the_names_of_their_sets() {
    let folder = with_names();
    let mut service = Service::start(&folder, "model.json --fixed --state state");
    let first = service.status("model")["fingerprint"].clone();
    assert_eq!(predict(&service, "before"), json!(["ant"]));
    assert_eq!(predict(&service, "before too"), json!(["ant"]));
    replace(&folder, "turned.json");
    service.wait_until(|service| service.status("model")["fingerprint"] != first);
    assert_eq!(predict(&service, "after"), json!(["fox"]));
    // The first class was the ant then and is the fox now.
    for (id, told, covered) in [("before", "ant", true), ("before too", "fox", false), ("after", "fox", true)]
    {
        let told = label(&service, id, told);
        assert_eq!((&told["outcome"], &told["covered"]), (&json!("counted"), &json!(covered)), "{id}");
    }
    assert_eq!(service.status("model")["labelled"], 1);
}

#[test]
fn a_name_that_the_row_could_not_have_is_refused_for_that_reason() {
    let folder = with_names();
    let mut service = Service::start(&folder, "model.json");
    let first = service.status("model")["fingerprint"].clone();
    predict(&service, "before");
    folder.write("names.txt", "a\nb\nc\nd\ne\nf\n");
    folder.run("calibrate cal.npz --names names.txt -o letters.json").ok();
    replace(&folder, "letters.json");
    service.wait_until(|service| service.status("model")["fingerprint"] != first);
    let body = json!({"rows": [{"id": "before", "label": "a"}]}).to_string();
    let problem = service.post("/v1/feedback", &body).problem(422);
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("`a` is not among the class names of the model that gave the row"), "{detail}");
    assert_eq!(problem["row"], 0);
    assert_eq!(label(&service, "before", "ant")["outcome"], "counted");
}

/// After a restart too, a row that waits is labelled in the words it was predicted in or not at all.
#[test]
fn rows_of_other_names_are_not_taken_up_after_a_restart() {
    let folder = with_names();
    let service = Service::start(&folder, "model.json --state state");
    predict(&service, "before");
    service.kill();
    std::fs::rename(folder.file("model.json"), folder.file("animals.json")).unwrap();
    replace(&folder, "turned.json");
    let service = Service::start(&folder, "model.json --state state");
    assert_eq!(label(&service, "before", "ant")["outcome"], "unknown");
    service.kill();
    replace(&folder, "animals.json");
    let service = Service::start(&folder, "model.json --state state");
    let told = label(&service, "before", "ant");
    assert_eq!((&told["outcome"], &told["covered"]), (&json!("counted"), &json!(true)));
}
