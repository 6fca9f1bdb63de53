//! What the service answers.

use serde_json::{Value, json};

use crate::folder::{Folder, Rows, lines};
use crate::service::{JSON, Service, body_of};

#[test]
fn sets_are_those_of_the_command_as_json_and_as_arrow() {
    let folder = Folder::with_model();
    let rows = Rows::new(300, 2);
    let wanted = lines(&folder.run("predict model.json test.npz").ok().out);
    let service = Service::start(&folder, "model.json --fixed");
    let got = service.post("/v1/predict", &body_of(&rows, 0..300, None)).json();
    assert_eq!((&got["model"], &got["level"]), (&json!("model"), &json!(0.1)));
    let sets = got["sets"].as_array().unwrap();
    assert_eq!(sets.len(), 300);
    for (row, (got, wanted)) in sets.iter().zip(&wanted).enumerate() {
        assert_eq!((&got["labels"], &got["size"]), (&wanted["labels"], &wanted["size"]));
        assert_eq!(got["id"], format!("row-{row}"));
    }
    folder.run("split test.npz --fractions 0.5,0.5 -o half.arrow rest.arrow").ok();
    folder.run("predict model.json half.arrow -o wanted.arrow").ok();
    let table = folder.read("half.arrow");
    let kind = ("content-type", "application/vnd.apache.arrow.file");
    let answer = service.client().ask("POST", "/v1/predict?track=false", &[kind], &table).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.body == folder.read("wanted.arrow"), "the very bytes that predict writes");
    // Tracked, the rows get names under which labels are taken.
    let answer = service.client().ask("POST", "/v1/predict", &[kind], &table).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(service.status("model")["predicted"], 450);
    let label = json!({"rows": [{"id": "row-300", "label": 0}]}).to_string();
    assert_eq!(service.post("/v1/feedback", &label).json()["results"][0]["outcome"], "counted");
}

/// Rows in JSON and in tables are read apart, and of both the prior is taken out before their sets are found.
#[test]
fn sets_of_a_model_with_a_prior_are_those_of_the_command() {
    let folder = Folder::with_model();
    folder.write("shares.json", "[0.9, 0.02, 0.02, 0.02, 0.02, 0.02]");
    folder.run("calibrate cal.npz --prior shares.json -o prior.json").ok();
    let rows = Rows::new(300, 2);
    let wanted = lines(&folder.run("predict prior.json test.npz").ok().out);
    let service = Service::start(&folder, "prior.json --fixed");
    let got = service.post("/v1/predict", &body_of(&rows, 0..300, None)).json();
    for (got, wanted) in got["sets"].as_array().unwrap().iter().zip(&wanted) {
        assert_eq!(got["labels"], wanted["labels"]);
    }
    folder.run("split test.npz --fractions 0.5,0.5 -o half.arrow rest.arrow").ok();
    folder.run("predict prior.json half.arrow -o wanted.arrow").ok();
    let kind = ("content-type", "application/vnd.apache.arrow.file");
    let table = folder.read("half.arrow");
    let answer = service.client().ask("POST", "/v1/predict?track=false", &[kind], &table).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.body == folder.read("wanted.arrow"), "the very bytes that predict writes");
}

/// A table is answered in the form it came in: a stream with a stream, which is read without knowing its end.
#[test]
fn an_arrow_stream_is_answered_with_a_stream() {
    use arrow_ipc::{reader, writer};
    let folder = Folder::with_model();
    folder.run("split test.npz --fractions 0.5,0.5 -o half.arrow rest.arrow").ok();
    folder.run("predict model.json half.arrow -o wanted.arrow").ok();
    let batches = |bytes: Vec<u8>| -> Vec<_> {
        reader::FileReader::try_new(std::io::Cursor::new(bytes), None).unwrap().map(Result::unwrap).collect()
    };
    let rows = batches(folder.read("half.arrow"));
    let mut body = writer::StreamWriter::try_new(Vec::new(), &rows[0].schema()).unwrap();
    rows.iter().for_each(|batch| body.write(batch).unwrap());
    let service = Service::start(&folder, "model.json --fixed");
    let kind = "application/vnd.apache.arrow.stream";
    let body = body.into_inner().unwrap();
    let path = "/v1/predict?track=false";
    let answer = service.client().ask("POST", path, &[("content-type", kind)], &body).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.head.contains(&format!("content-type: {kind}\r\n")), "{}", answer.head);
    let sets = reader::StreamReader::try_new(answer.body.as_slice(), None).unwrap();
    let sets: Vec<_> = sets.map(Result::unwrap).collect();
    assert_eq!(sets, batches(folder.read("wanted.arrow")));
}

/// Whatever way a whole number is written, in JSON and in tables, it is one id.
#[test]
fn an_id_has_one_form_however_it_comes() {
    let folder = Folder::with_model();
    let service = Service::start(&folder, "model.json");
    for (given, again) in
        [("1", "1.0"), ("2.0", "\"2\""), ("\"3\"", "3"), ("18446744073709551615", "\"18446744073709551615\"")]
    {
        let body = format!("{{\"rows\":[{{\"id\":{given},\"logits\":[0,1,2,3,4,5]}}]}}");
        service.post("/v1/predict", &body).json();
        let label = format!("{{\"rows\":[{{\"id\":{again},\"label\":5}}]}}");
        assert_eq!(
            service.post("/v1/feedback", &label).json()["results"][0]["outcome"],
            "counted",
            "{given}"
        );
    }
    for id in ["1.5", "18446744073709551616", "true"] {
        let body = format!("{{\"rows\":[{{\"id\":{id},\"logits\":[0,1,2,3,4,5]}}]}}");
        let problem = service.post("/v1/predict", &body).problem(422);
        assert!(problem["detail"].as_str().unwrap().contains("text or a whole number"), "{problem}");
    }
    let header = "id,a,b,c,d,e,f\n";
    folder.write("ids.csv", format!("{header}7.0,0,1,2,3,4,5\n8.0,0,1,2,3,4,5\n"));
    folder.write("odd.csv", format!("{header}7.5,0,1,2,3,4,5\n8.0,0,1,2,3,4,5\n"));
    let ask = |name: &str| {
        let table = table_with_ids(&folder, name);
        let kind = ("content-type", "application/vnd.apache.arrow.file");
        service.client().ask("POST", "/v1/predict", &[kind], &table).unwrap()
    };
    assert_eq!(ask("ids.csv").status, 200, "{}", ask("ids.csv").text());
    let label = "{\"rows\":[{\"id\":7,\"label\":5}]}";
    assert_eq!(service.post("/v1/feedback", label).json()["results"][0]["outcome"], "counted");
    assert_eq!(ask("odd.csv").problem(422)["row"], 0);
}

/// The rows of a CSV as an Arrow file: floating-point ids beside a column of logits.
fn table_with_ids(folder: &Folder, name: &str) -> Vec<u8> {
    use std::sync::Arc;

    use arrow_array::types::Float64Type;
    use arrow_array::{ArrayRef, Float64Array, ListArray, RecordBatch};
    let text = folder.text(name);
    let rows: Vec<Vec<f64>> = text
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect())
        .collect();
    let ids: ArrayRef = Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| row[0])));
    let logits = rows.iter().map(|row| Some(row[1..].iter().map(|value| Some(*value))));
    let logits: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(logits));
    let batch = RecordBatch::try_from_iter([("id", ids), ("logits", logits)]).unwrap();
    let mut writer = arrow_ipc::writer::FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

/// A key that means nothing is a mistake of whoever wrote it, and a label that is passed over is one lost.
#[test]
fn every_key_of_a_row_means_something() {
    let folder = Folder::with_model();
    let service = Service::start(&folder, "model.json");
    let good = "{\"logits\":[0,1,2,3,4,5]}";
    for (path, row, key) in [
        ("/v1/predict", "{\"logits\":[0,1,2,3,4,5],\"label\":1}", "`label`"),
        ("/v1/predict", "{\"logits\":[0,1,2,3,4,5],\"identifier\":1}", "`identifier`"),
        ("/v1/predict", "{\"logits\":[0,1,2,3,4,5],\"group\":1}", "`group`"),
        ("/v1/feedback", "{\"id\":1,\"label\":1,\"logits\":[0,1,2,3,4,5]}", "`logits`"),
        ("/v1/feedback", "{\"id\":1,\"lable\":1}", "`lable`"),
    ] {
        let before = if path == "/v1/predict" { good } else { "{\"id\":0,\"label\":0}" };
        let problem = service.post(path, &format!("{{\"rows\":[{before},{row}]}}")).problem(422);
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(key) && problem["row"] == 1, "{row}: {problem}");
        assert_eq!(detail.contains("/v1/feedback"), key == "`label`", "{detail}");
    }
    assert_eq!(service.status("model")["predicted"], 0);
}

/// A page whose name was made to resolve to this machine asks under that name, and is not answered.
#[test]
fn without_a_token_only_names_of_this_machine_are_answered() {
    let folder = Folder::with_model();
    let service = Service::start(&folder, "model.json");
    let ask = |service: &Service, path: &str, host: &str| {
        service.client().ask("GET", path, &[("host", host)], b"").unwrap()
    };
    let port = service.address.port();
    for host in
        ["localhost", "127.0.0.1", "[::1]", &format!("127.0.0.1:{port}"), &format!("localhost:{port}")]
    {
        assert_eq!(ask(&service, "/v1/status", host).status, 200, "{host}");
    }
    for path in ["/", "/v1/status", "/metrics", "/healthz", "/openapi.json"] {
        let problem = ask(&service, path, "evil.example").problem(421);
        assert!(problem["detail"].as_str().unwrap().contains("started with a token"), "{problem}");
    }
    let mut command = folder.command("serve model.json --listen 127.0.0.1:0");
    command.env("CONFORMAX_TOKEN", "correct-horse-battery");
    let guarded = Service::run(command);
    assert_eq!(ask(&guarded, "/healthz", "conformax.example").status, 200);
    assert_eq!(ask(&guarded, "/v1/status", "conformax.example").status, 401);
    let open = Service::start(&folder, "model.json --insecure");
    assert_eq!(ask(&open, "/v1/status", "conformax.example").status, 200);
}

/// The service and `watch` are one stream.
#[test]
fn levels_and_alarms_are_those_of_watch() {
    let folder = Folder::with_model();
    let rows = Rows::new(80, 9);
    let service = Service::start(&folder, "model.json --step 0.05 --state state");
    let mut client = service.client();
    let mut watched = String::new();
    let mut levels = Vec::new();
    for row in 0..80 {
        let answer = client.post("/v1/predict", &body_of(&rows, row..row + 1, Some("r"))).unwrap().json();
        levels.push((answer["level"].clone(), answer["sets"][0]["labels"].clone()));
        let label = json!({"rows": [{"id": format!("r{row}"), "label": rows.labels[row]}]});
        let told = client.post("/v1/feedback", &label.to_string()).unwrap().json();
        assert_eq!(told["results"][0]["outcome"], "counted");
        let body: Value = serde_json::from_str(&body_of(&rows, row..row + 1, Some("r"))).unwrap();
        let mut line = body["rows"][0].clone();
        line["label"] = json!(rows.labels[row]);
        watched.push_str(&format!("{line}\n"));
    }
    let wanted = lines(&folder.run_with("watch model.json - --step 0.05", watched.as_bytes()).ok().out);
    for ((level, labels), wanted) in levels.iter().zip(&wanted) {
        assert_eq!((level, labels), (&wanted["level"], &wanted["labels"]));
    }
    let status = service.status("model");
    assert_eq!(status["log_capital"], wanted[79]["log_capital"]);
    assert_eq!((&status["labelled"], &status["waiting"]), (&json!(80), &json!(0)));
    assert_eq!(status["trace"].as_array().unwrap().len(), 80);
    let band = &status["band"];
    assert!(band[0].as_f64().unwrap() < 0.9 && band[1].as_f64().unwrap() > 0.9, "{band}");
}

#[test]
fn wrong_requests_get_problems_that_say_where() {
    let folder = Folder::with_model();
    let service = Service::start(&folder, "model.json --max-rows 3 --max-body 1");
    let good = "{\"logits\":[0,1,2,3,4,5]}";
    for (body, status, row, class) in [
        (format!("{{\"rows\":[{good},{{\"logits\":[0,1]}}]}}"), 422, json!(1), Value::Null),
        (format!("{{\"rows\":[{good},{{\"logits\":[0,1,2,\"x\",4,5]}}]}}"), 422, json!(1), json!(3)),
        (format!("{{\"rows\":[{good},{good},{{\"logits\":[0,1,2,3,4,\"inf\"]}}]}}"), 422, json!(2), json!(5)),
        ("{\"rows\":[{\"id\":1}]}".to_owned(), 422, json!(0), Value::Null),
        (format!("{{\"rows\":[{good},{good},{good},{good}]}}"), 413, Value::Null, Value::Null),
        ("{\"rows\":[".to_owned(), 400, Value::Null, Value::Null),
        ("{\"rows\":7}".to_owned(), 400, Value::Null, Value::Null),
        ("{}".to_owned(), 400, Value::Null, Value::Null),
        ("{\"rows\":[],\"row\":1}".to_owned(), 400, Value::Null, Value::Null),
        (String::new(), 400, Value::Null, Value::Null),
        (format!("{{\"rows\":{}", "[".repeat(10_000)), 400, Value::Null, Value::Null),
        (" ".repeat(2 << 20), 413, Value::Null, Value::Null),
    ] {
        let problem = service.post("/v1/predict", &body).problem(status);
        let start = &body[..body.len().min(80)];
        assert_eq!((&problem["row"], &problem["class"]), (&row, &class), "{start}: {problem}");
    }
    let mut client = service.client();
    for (method, path, headers, status) in [
        ("POST", "/v1/predict", vec![("content-type", "text/plain")], 415),
        ("POST", "/v1/predict", vec![], 415),
        ("POST", "/v1/predict?model=other", vec![JSON], 404),
        ("POST", "/v1/predict?colour=red", vec![JSON], 400),
        ("GET", "/v1/predict", vec![], 405),
        ("GET", "/nowhere", vec![], 404),
        ("POST", "/v1/predict", vec![("content-type", "application/vnd.apache.arrow.stream")], 422),
        // Read as it is, it would be told to be no JSON.
        ("POST", "/v1/predict", vec![JSON, ("content-encoding", "gzip")], 415),
        (
            "POST",
            "/v1/feedback",
            vec![JSON, ("content-encoding", "identity"), ("content-encoding", "br")],
            415,
        ),
        ("POST", "/v1/feedback", vec![JSON, ("content-encoding", "Identity")], 400),
    ] {
        let answer = client.ask(method, path, &headers, b"").unwrap();
        answer.problem(status);
        let packed = headers.iter().any(|(name, _)| *name == "content-encoding") && status == 415;
        assert_eq!(answer.head.contains("accept-encoding: identity\r\n"), packed, "{}", answer.head);
    }
    service.post("/v1/feedback", "{\"rows\":[{\"id\":1,\"label\":6}]}").problem(422);
    service.post("/v1/feedback", "{\"rows\":[{\"label\":1}]}").problem(422);
    let told = service.post("/v1/feedback", "{\"rows\":[{\"id\":1,\"label\":1}]}").json();
    assert_eq!(told["results"][0]["outcome"], "unknown");
    // Nothing of that has left a trace, and it goes on as before.
    assert_eq!(service.status("model")["predicted"], 0);
    assert_eq!(
        service.post("/v1/predict", &format!("{{\"rows\":[{good}]}}")).json()["sets"][0]["id"],
        "row-0"
    );
}

#[test]
fn only_who_has_the_token_may_ask() {
    let folder = Folder::with_model();
    let mut command = folder.command("serve model.json --listen 127.0.0.1:0");
    command.env("CONFORMAX_TOKEN", "correct-horse-battery");
    let service = Service::run(command);
    for (path, status) in
        [("/v1/status", 401), ("/metrics", 401), ("/openapi.json", 401), ("/healthz", 200), ("/", 200)]
    {
        assert_eq!(service.get(path).status, status, "{path}");
    }
    let with = |token: &str| {
        let value = format!("Bearer {token}");
        service.client().ask("GET", "/v1/status", &[("authorization", value.as_str())], b"").unwrap().status
    };
    assert_eq!((with("correct-horse-battery"), with("correct-horse-batterz"), with("")), (200, 401, 401));
    let message = folder.run("serve model.json --listen 0.0.0.0:0").error();
    assert!(message.contains("CONFORMAX_TOKEN") && message.contains("--insecure"), "{message}");
    let mut short = folder.command("serve model.json");
    let short = short.env("CONFORMAX_TOKEN", "short").output().unwrap();
    let message = String::from_utf8(short.stderr).unwrap();
    assert_eq!(short.status.code(), Some(2));
    assert!(message.contains("at least 16") && message.contains("hint: the token is"), "{message}");
}

#[test]
fn models_that_cannot_stream_are_refused_at_the_start() {
    let folder = Folder::with_model();
    folder.run("tune cal.npz --rows all -o selected.json").ok();
    let message = folder.run("serve a=model.json b=selected.json --listen 127.0.0.1:0").error();
    assert!(message.contains("selected.json"), "{message}");
    assert!(
        message.contains("cannot be streamed: its score was chosen by all rows at one level"),
        "{message}"
    );
}

#[test]
fn an_address_that_is_taken_is_told_of_once() {
    let folder = Folder::with_model();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let message = folder.run(&format!("serve model.json --listen {}", taken.local_addr().unwrap())).error();
    assert_eq!(message.matches("(os error").count(), 1, "{message}");
    assert!(message.contains("hint: give another address with --listen"), "{message}");
}

#[test]
fn a_replaced_model_is_picked_up_and_a_bad_one_is_not() {
    let folder = Folder::with_model();
    folder.run("calibrate test.npz --alpha 0.3 -o other.json").ok();
    let mut service = Service::start(&folder, "a=model.json b=other.json --state state");
    let first = service.status("a")["fingerprint"].clone();
    let body = "{\"rows\":[{\"id\":\"x\",\"logits\":[0,1,2,3,4,5]}]}";
    service.post("/v1/predict?model=a", body).json();
    // Written beside and renamed: half a file would be a second failure.
    folder.write("bad.json", "{\"not\": \"a model\"}");
    std::fs::rename(folder.file("bad.json"), folder.file("model.json")).unwrap();
    service.wait_until(|service| service.notes().contains("the old model stays"));
    assert_eq!(service.status("a")["fingerprint"], first);
    std::fs::copy(folder.file("other.json"), folder.file("new.json")).unwrap();
    std::fs::rename(folder.file("new.json"), folder.file("model.json")).unwrap();
    service.wait_until(|service| service.status("a")["fingerprint"] != first);
    assert_eq!((&service.status("a")["alpha"], &service.status("a")["predicted"]), (&json!(0.3), &json!(0)));
    // The label of a row that the old model gave still counts, for that model.
    let label = "{\"rows\":[{\"id\":\"x\",\"label\":5}]}";
    assert_eq!(service.post("/v1/feedback?model=a", label).json()["results"][0]["outcome"], "counted");
    assert_eq!(service.post("/v1/feedback?model=a", label).json()["results"][0]["outcome"], "repeated");
    let metrics = service.get("/metrics").text();
    assert!(metrics.contains("conformax_reload_failures_total 1"), "{metrics}");
    assert!(metrics.contains("conformax_level{model=\"b\"} 0.3"), "{metrics}");
    assert!(
        metrics.contains("conformax_requests_total{route=\"/v1/feedback\",status=\"200\"} 2"),
        "{metrics}"
    );
}

#[test]
fn the_description_knows_every_field_of_the_status() {
    let folder = Folder::with_model();
    let service = Service::start(&folder, "model.json");
    let described = service.get("/openapi.json").json();
    let known = described["components"]["schemas"]["Standing"]["properties"].as_object().unwrap();
    let status = service.status("model");
    for key in status.as_object().unwrap().keys() {
        assert!(known.contains_key(key), "{key}");
    }
    assert_eq!(known.len(), status.as_object().unwrap().len());
    for path in described["paths"].as_object().unwrap().keys() {
        assert_ne!(service.get(path).status, 404, "{path}");
    }
}
