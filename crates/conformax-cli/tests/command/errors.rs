//! Every error names the file and the row, says what to do, ends with 2, and leaves nothing behind.

use conformax_io::Model;

use crate::folder::{Folder, Rows, lines};

#[test]
fn bad_rows_are_named() {
    let folder = Folder::with_model();
    let mut rows = Rows::new(300, 2);
    rows.logits[6 * 17 + 4] = f32::NAN;
    folder.write("nan.npz", rows.npz());
    let before = folder.names();
    for words in
        ["predict model.json nan.npz -o s.csv", "evaluate model.json nan.npz", "calibrate nan.npz -o m.json"]
    {
        let message = folder.run(words).error();
        assert!(message.contains("nan.npz: logit at row 17, class 4 is NaN"), "{message}");
        assert!(message.contains("hint:"), "{message}");
        assert_eq!(folder.names(), before);
    }
    let json = folder.run("inspect nan.npz --json").ok().json();
    assert_eq!(json["nan"], 1);
    let ran = folder.run("inspect nan.npz").ok();
    assert!(ran.err.contains("row 17"), "{}", ran.err);
}

#[test]
fn rows_count_from_the_start_of_their_own_file() {
    let folder = Folder::with_model();
    folder.write("a.csv", "0,1,2,3,4,5\n1,2,3,4,5,6\n1,2,3,4,5,7\n");
    folder.write("b.csv", "0,1,2,3,4,5\n1,2,3,4,5,6\n1,2,inf,4,5,7\n");
    let message = folder.run("predict model.json a.csv b.csv -o s.csv").error();
    assert!(message.contains("b.csv: logit at row 1, class 2 is inf"), "{message}");
}

#[test]
fn tuning_names_the_row_it_met() {
    let folder = Folder::empty();
    let mut rows = Rows::new(50, 2);
    rows.logits[6 * 33] = f32::NAN;
    folder.write("cal.npz", rows.npz());
    let message = folder.run("tune cal.npz -o m.json").error();
    assert!(message.contains("cal.npz: logit at row 33, class 0 is NaN"), "{message}");
    assert_eq!(folder.names(), ["cal.npz"]);
}

#[test]
fn labels_that_name_no_class_are_refused() {
    let folder = Folder::empty();
    let mut rows = Rows::new(20, 2);
    rows.labels[7] = 6;
    folder.write("cal.npz", rows.npz());
    let message = folder.run("calibrate cal.npz -o m.json").error();
    assert!(message.contains("cal.npz: row 7") && message.contains("label 6 is outside 0..6"), "{message}");
    folder.write("cal.csv", "a,b,label\n1,2,a\n1,2,c\n");
    let message = folder.run("calibrate cal.csv -o m.json").error();
    assert!(message.contains("cal.csv: row 1") && message.contains("`c`"), "{message}");
    folder.write("z.npy", crate::written::npy("<f4", false, &[2, 2], &[0; 16]));
    folder.write("y.npy", crate::written::npy("|u1", false, &[2], &[0, 2]));
    let message = folder.run("calibrate --logits z.npy --labels y.npy -o m.json").error();
    assert!(message.contains("y.npy: row 1: label 2 is outside 0..2"), "{message}");
    folder.write("only.csv", "a,b\n1,2\n");
    let message = folder.run("calibrate only.csv -o m.json").error();
    assert!(message.contains("has no labels") && message.contains("--label-column"), "{message}");
}

#[test]
fn other_classes_than_the_models_are_refused() {
    let folder = Folder::empty();
    folder.write("cal.csv", "cat,dog,eel,label\n3,1,0,cat\n0,2,1.5,eel\n1,0,4,eel\n");
    folder.run("calibrate cal.csv -o model.json").ok();
    let cases = [
        ("two.csv", "cat,dog\n1,2\n", "two.csv"),
        ("order.csv", "cat,eel,dog\n1,2,3\n", "class 1 is `eel`"),
        ("other.csv", "cat,dog,fox\n1,2,3\n", "class 2 is `fox`"),
    ];
    for (name, text, wanted) in cases {
        folder.write(name, text);
        for words in [format!("predict model.json {name}"), format!("evaluate model.json {name}")] {
            let message = folder.run(&words).error();
            assert!(message.contains(name), "{message}");
            assert!(message.contains(wanted) || message.contains("no labels"), "{message}");
        }
    }
    assert!(folder.run("predict model.json order.csv").error().contains("--classes lists columns"));
    let ran = folder.run("predict model.json order.csv --classes cat,dog,eel").ok();
    assert_eq!(lines(&ran.out)[0]["labels"][0], "dog");
    folder.write("names.txt", "cat\neel\ndog\n");
    folder.write("new.npy", crate::written::npy("<f4", false, &[1, 3], &[0; 12]));
    let message = folder.run("predict model.json new.npy --names names.txt").error();
    assert!(message.contains("names.txt: class 1"), "{message}");
}

#[test]
fn a_model_that_cannot_be_used_says_why() {
    let folder = Folder::with_model();
    let text = folder.text("model.json");
    let cases = [
        ("version.json", text.replacen("\"version\": 2", "\"version\": 3", 1), "version is 3"),
        ("half.json", text[..text.len() / 2].to_owned(), "damaged"),
        ("other.json", "{\"a\": 1}".to_owned(), "other.json"),
        ("empty.json", String::new(), "empty.json"),
        ("rank.json", text.replacen("\"rank\": 181", "\"rank\": 180", 1), "checksum"),
    ];
    for (name, text, wanted) in cases {
        folder.write(name, text);
        for words in [format!("predict {name} test.npz"), format!("inspect {name}")] {
            let message = folder.run(&words).error();
            assert!(message.contains(name) && message.contains(wanted), "{message}");
        }
    }
}

#[test]
fn files_that_are_not_there_are_named() {
    let folder = Folder::with_model();
    for words in [
        "calibrate no.npz -o m.json",
        "predict no.npz test.npz",
        "predict model.json no.npz",
        "predict model.json test.npz --names no.npz",
        "inspect no.npz",
        "split no.npz -o a.npz b.npz",
        "tune no.npz -o m.json",
    ] {
        let message = folder.run(words).error();
        assert!(message.starts_with("error: no.npz: "), "{words}: {message}");
        assert!(
            message.contains("hint: check the name") && !message.contains("folder"),
            "{words}: {message}"
        );
    }
    let message = folder.run("predict model.json test.npz -o nowhere/sets.csv").error();
    assert!(
        message.contains("nowhere/sets.csv") && message.contains("hint: make the folder first"),
        "{message}"
    );
}

#[test]
fn damaged_and_unknown_files_are_refused() {
    let folder = Folder::with_model();
    let bytes = folder.read("test.npz");
    folder.write("short.npz", &bytes[..bytes.len() / 2]);
    folder.write("note.txt", "\0\0\0\0\0");
    folder.write("empty.csv", "a,b,label\n");
    for (name, wanted) in
        [("short.npz", "short.npz"), ("note.txt", "unknown format"), ("empty.csv", "no rows")]
    {
        let message = folder.run(&format!("calibrate {name} -o m.json")).error();
        assert!(message.contains(name) && message.contains(wanted), "{message}");
    }
    let message = folder.run("predict model.json test.npz -o sets.npz").error();
    assert!(message.contains("sets.npz") && message.contains(".parquet"), "{message}");
}

#[test]
fn an_existing_model_is_refused_before_anything_is_read() {
    let folder = Folder::with_model();
    let message = folder.run_with("calibrate - -o model.json", b"not read").error();
    assert!(message.contains("model.json: exists already"), "{message}");
    folder.run("calibrate cal.npz --alpha 0.2 --force -o model.json").ok();
    assert_eq!(Model::read(&folder.file("model.json")).unwrap().levels[0].alpha().value(), 0.2);
}

#[test]
fn arguments_that_make_no_sense_end_with_2() {
    let folder = Folder::with_data();
    let cases = [
        ("calibrate cal.npz --alpha 1 -o m.json", "strictly between 0 and 1"),
        ("calibrate cal.npz --confidence 90 -o m.json", "strictly between 0 and 1"),
        ("calibrate cal.npz --alpha ten -o m.json", "decimal"),
        ("calibrate cal.npz --score softmax -o m.json", "no score is called"),
        ("calibrate cal.npz --score lac --gamma 2 -o m.json", "the score inv_prob takes no gamma, got 2"),
        ("calibrate cal.npz --gamma 0.5 -o m.json", "gamma must lie between 1 and 16"),
        ("calibrate cal.npz --labels y.npy -o m.json", "--labels"),
        ("calibrate -o m.json", "DATA"),
        ("calibrate cal.npz", "--output"),
        ("frobnicate", "frobnicate"),
    ];
    for (words, wanted) in cases {
        let message = folder.run(words).error();
        assert!(message.contains(wanted), "{words}: {message}");
        assert_eq!(folder.names(), ["cal.npz", "test.npz"], "{words}");
    }
}
