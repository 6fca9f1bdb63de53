//! `evaluate`: figures, keys, the gate, and the refusal of rows the model has seen.

use conformax::{Alpha, EntmaxScore, Level, Strata, Tuning, calibrate, evaluate};
use conformax_io::{Model, Overwrite};

use crate::folder::{Folder, Rows};

#[test]
fn shows_every_metric_with_its_interval() {
    let folder = Folder::with_model();
    insta::assert_snapshot!(folder.run("evaluate model.json test.npz").seen());
    insta::assert_snapshot!(folder.run("evaluate model.json test.npz --json").seen());
}

#[test]
fn figures_are_the_librarys() {
    let folder = Folder::with_model();
    let (cal, test) = (Rows::new(200, 1), Rows::new(300, 2));
    let json = folder.run("evaluate model.json test.npz --alpha 0.1,0.25 --json").ok().json();
    let levels = json["levels"].as_array().unwrap();
    assert_eq!(levels.len(), 2);
    for (found, alpha) in levels.iter().zip([0.1, 0.25]) {
        let alpha = Alpha::new(alpha).unwrap();
        let model = calibrate(EntmaxScore::default(), cal.as_logits(), &cal.labels, alpha).unwrap();
        let sets = model.predict(test.as_logits()).unwrap();
        let wanted = evaluate(&sets, &test.labels, alpha, &Strata::default()).unwrap();
        let law = Level::new(200, alpha).law().interval_of_rows(0.95, 300).unwrap();
        assert_eq!(found["threshold"], model.thresholds().as_slice()[0]);
        assert_eq!(found["coverage"], wanted.coverage);
        assert_eq!(found["average_size"], wanted.average_size);
        assert_eq!(found["sscv"], wanted.sscv);
        assert_eq!(found["covgap"], wanted.covgap);
        assert_eq!(found["strata"], serde_json::to_value(&wanted.strata).unwrap());
        assert_eq!(found["coverage_interval"], serde_json::json!([law.0, law.1]));
    }
}

#[test]
fn rows_the_model_has_seen_are_refused() {
    let folder = Folder::with_model();
    let mixed = Rows::new(300, 2);
    let cal = Rows::new(200, 1);
    let with = |rows: usize| {
        let mut mixed = Rows { logits: mixed.logits.clone(), labels: mixed.labels.clone() };
        mixed.logits.extend(&cal.logits[..crate::folder::CLASSES * rows]);
        mixed.labels.extend(&cal.labels[..rows]);
        mixed.npz()
    };
    folder.write("mixed.npz", with(30));
    let message = folder.run("evaluate model.json mixed.npz").error();
    let wanted = "mixed.npz: 30 of 330 rows also calibrated or tuned this model, row 300 first";
    assert!(message.contains(wanted) && message.contains("--allow-seen"), "{message}");
    let ran = folder.run("evaluate model.json mixed.npz --allow-seen").ok();
    assert!(
        ran.err.contains("warning: mixed.npz: 30 of 330 rows") && !ran.out.contains("the law says"),
        "{}",
        ran.err
    );
    let message = folder.run("evaluate model.json mixed.npz --allow-seen --expect-coverage").error();
    assert!(message.contains("no law to be held to"), "{message}");
    // So few may be chance: a warning, and the law still holds.
    folder.write("few.npz", with(3));
    let ran = folder.run("evaluate model.json few.npz --expect-coverage").ok();
    assert!(
        ran.err.contains("warning: few.npz: 3 of 303 rows") && ran.err.contains("may be chance"),
        "{}",
        ran.err
    );
    assert!(ran.out.contains("the law says"), "{}", ran.out);
}

/// Sets of the top label alone cover as often as it is right, and a law of ranks says nothing of that.
#[test]
fn a_coverage_above_the_law_is_explained_where_the_threshold_is_zero() {
    let folder = Folder::empty();
    let rows = |from: usize, n: usize| {
        (from..from + n).fold("a,b,label\n".to_owned(), |text, row| text + &format!("{row}.5,0,a\n"))
    };
    folder.write("cal.csv", rows(1, 40));
    folder.write("test.csv", rows(1000, 500));
    folder.run("calibrate cal.csv -o model.json").ok();
    let ran = folder.run("evaluate model.json test.csv").ok();
    let why = "alpha = 0.1: the top label alone is right often enough; sets hold it and its ties, and coverage is the \
               accuracy, which may lie above what the law says";
    assert!(ran.err.contains(why) && ran.out.contains("the law says"), "{}{}", ran.out, ran.err);
    let ran = folder.run("evaluate model.json test.csv --json").ok();
    assert!(!ran.err.contains(why), "a machine has the threshold: {}", ran.err);
}

/// Rows with equal logits are no sign of leakage: the whole flow runs on benchmarks that have some.
#[test]
fn a_split_of_a_shipped_benchmark_calibrates_and_passes_the_gate() {
    let folder = Folder::empty();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benchmarks/trained/newsgroups-minilm/test.npz");
    std::fs::copy(data, folder.file("data.npz")).unwrap();
    folder.run("split data.npz --fractions 0.4,0.6 -o cal.npz test.npz").ok();
    folder.run("calibrate cal.npz --alpha 0.1 -o model.json").ok();
    let ran = folder.run("evaluate model.json test.npz --expect-coverage").ok();
    // Rows that are alike by chance are told of; nothing is held against the figures.
    assert!(ran.out.contains("the law says") && !ran.err.contains("flatter"), "{}{}", ran.out, ran.err);
}

/// Trees, quantised models and empty texts give equal rows, which say nothing of one another.
#[test]
fn equal_rows_are_not_taken_for_the_same_row() {
    let folder = Folder::empty();
    let rows = |from: usize, count: usize| {
        let mut text = String::from("a,b,c,label\n");
        for row in from..from + count {
            let votes = [row % 7, row * 5 % 11, row * 3 % 4];
            text += &format!("{},{},{},{}\n", votes[0], votes[1], votes[2], ["a", "b", "c"][row % 3]);
        }
        text
    };
    folder.write("cal.csv", rows(0, 700));
    folder.write("test.csv", rows(311, 900));
    folder.run("calibrate cal.csv -o model.json").ok();
    let ran = folder.run("evaluate model.json test.csv").ok();
    assert!(!ran.err.contains("calibrated"), "{}", ran.err);
    // But all of them, each as often, are the rows that calibrated, in whatever order and by whatever shards.
    let text = folder.text("cal.csv");
    let (head, lines) = text.split_once('\n').unwrap();
    let backwards: Vec<&str> = lines.lines().rev().collect();
    folder.write("again.csv", format!("{head}\n{}\n", backwards.join("\n")));
    let message = folder.run("evaluate model.json again.csv --expect-coverage").error();
    let wanted = "again.csv: 700 of 700 rows also calibrated or tuned this model, row 0 first";
    assert!(message.contains(wanted), "{message}");
    folder.run("split again.csv --fractions 0.4,0.6 -o a.csv b.csv").ok();
    for part in ["a", "b"] {
        folder.run(&format!("evaluate model.json {part}.csv --partial -o {part}")).ok();
    }
    assert!(folder.run("merge a b --expect-coverage").error().contains("700 of 700 rows"));
}

/// The work is done and the exit code decided before anything is printed.
#[test]
fn a_closed_pipe_changes_neither_the_file_nor_the_exit_code() {
    let folder = Folder::with_data();
    assert_eq!(folder.run_unread("calibrate cal.npz -o model.json >&3"), 0);
    folder.run("inspect model.json").ok();
    let mut shifted = Rows::new(300, 2);
    shifted.labels.iter_mut().step_by(3).for_each(|label| *label = (*label + 1) % 6);
    folder.write("shifted.npz", shifted.npz());
    assert_eq!(folder.run_unread("evaluate model.json shifted.npz --expect-coverage >&3"), 1);
    // What is said about the data goes to the same pipe, before the work.
    for (words, file) in [
        ("calibrate cal.npz --alpha 0.0001 -o few.json", "few.json"),
        ("tune cal.npz --alpha 0.0001 -o tuned.json", "tuned.json"),
        ("predict few.json test.npz -o sets.csv", "sets.csv"),
        ("report cal.npz --splits 2 --alpha 0.0001 -o page", "page/results.json"),
    ] {
        assert_eq!(folder.run_unread(&format!("{words} >&3 2>&3")), 0, "{words}");
        assert!(folder.file(file).exists(), "{words}");
    }
    let gate = "evaluate model.json shifted.npz --alpha 0.0001,0.1 --expect-coverage >&3 2>&3";
    assert_eq!(folder.run_unread(gate), 1);
}

#[test]
fn seen_rows_are_known_in_any_format() {
    let folder = Folder::with_model();
    let cal = Rows::new(200, 1);
    let mut text = String::from("0,1,2,3,4,5,label\n");
    for (row, label) in cal.logits.chunks(6).zip(&cal.labels) {
        let cells: Vec<String> = row.iter().map(|value| f64::from(*value).to_string()).collect();
        text += &format!("{},{label}\n", cells.join(","));
    }
    folder.write("again.csv", text);
    let message = folder.run("evaluate model.json again.csv").error();
    assert!(message.contains("200 of 200 rows"), "{message}");
}

#[test]
fn the_gate_says_no_where_coverage_is_too_low_to_be_chance() {
    let folder = Folder::with_model();
    let ran = folder.run("evaluate model.json test.npz --expect-coverage");
    let yes = "yes: coverage is not below what chance alone undercuts once in a thousand\n";
    assert_eq!((ran.code, ran.err.as_str()), (0, yes));
    let mut shifted = Rows::new(300, 2);
    shifted.labels.iter_mut().step_by(3).for_each(|label| *label = (*label + 1) % 6);
    folder.write("shifted.npz", shifted.npz());
    let ran = folder.run("evaluate model.json shifted.npz --expect-coverage");
    insta::assert_snapshot!(ran.seen());
    assert_eq!(ran.code, 1);
    assert_eq!(folder.run("evaluate model.json shifted.npz").code, 0);
}

#[test]
fn the_gate_follows_the_law_to_the_row() {
    // One class is always right by far, the other wrong by a gap that is or is not within the threshold.
    let folder = Folder::empty();
    let line = |gap: f64| format!("0,{gap},a\n");
    let mut cal = String::from("a,b,label\n");
    (0..200).for_each(|row| cal += &line((row + 1) as f64 / 100.0));
    folder.write("cal.csv", cal);
    folder.run("calibrate cal.csv --score log_margin -o model.json").ok();
    let level = conformax::CoverageLaw::at_level(200, Alpha::new(0.1).unwrap());
    let least = level.quantile_of_count(0.001, 100) as usize;
    for (covered, code) in [(least, 0), (least - 1, 1)] {
        let mut test = String::from("a,b,label\n");
        let gap = |row: usize| if row < covered { 0.001 } else { 9.0 };
        (0..100).for_each(|row| test += &line(gap(row) + row as f64 * 1e-6));
        folder.write("test.csv", test);
        let ran = folder.run("evaluate model.json test.csv --expect-coverage");
        assert_eq!(ran.code, code, "{}{}", ran.out, ran.err);
    }
    let mut test = String::from("a,b,label\n");
    (0..1000).for_each(|row| test += &line(0.001 + row as f64 * 1e-6));
    folder.write("test.csv", test);
    let ran = folder.run("evaluate model.json test.csv --expect-coverage").ok();
    assert!(ran.err.contains("warning: coverage") && ran.err.contains("is above"), "{}", ran.err);
}

#[test]
fn a_threshold_of_zero_or_without_end_is_not_warned_about() {
    let folder = Folder::empty();
    let rows = |from: usize| -> String {
        let line = |row: usize| format!("{}.5,0,a\n", row + 1);
        String::from("a,b,label\n") + &(from..from + 400).map(line).collect::<String>()
    };
    folder.write("cal.csv", rows(0));
    folder.write("test.csv", rows(1000));
    folder.run("calibrate cal.csv --alpha 0.1,0.001 -o model.json").ok();
    let ran = folder.run("evaluate model.json test.csv --expect-coverage").ok();
    assert!(!ran.err.contains("is above"), "{}", ran.err);
    assert!(ran.out.contains("∞"), "{}", ran.out);
    let json = folder.run("evaluate model.json test.csv --alpha 0.001 --json").ok().json();
    assert_eq!(json["levels"][0]["threshold"], "inf");
}

#[test]
fn levels_are_asked_of_the_scores() {
    let folder = Folder::with_model();
    let json = folder.run("evaluate model.json test.npz --confidence 0.5 --json").ok().json();
    assert_eq!(json["levels"][0]["alpha"], 0.5);
}

#[test]
fn sets_that_would_be_empty_are_filled_on_request() {
    let folder = Folder::with_data();
    folder.run("calibrate cal.npz --score lac --alpha 0.6 -o model.json").ok();
    let plain = folder.run("evaluate model.json test.npz --json").ok().json();
    let filled = folder.run("evaluate model.json test.npz --non-empty --json").ok().json();
    let (plain, filled) = (&plain["levels"][0], &filled["levels"][0]);
    assert!(plain["empty_ratio"].as_f64().unwrap() > 0.0);
    assert_eq!(filled["empty_ratio"], 0.0);
    assert!(filled["coverage"].as_f64() > plain["coverage"].as_f64());
}

/// The paper's way of tuning leans on the rows that calibrate, so no law holds and no interval is printed.
#[test]
fn no_law_is_claimed_where_none_holds() {
    let folder = Folder::with_data();
    folder.run("tune cal.npz -o model.json").ok();
    let mut model = Model::read(&folder.file("model.json")).unwrap();
    let record = model.tuning.as_mut().unwrap();
    assert_eq!(std::mem::replace(&mut record.tuning, Tuning::Paper), Tuning::Valid);
    model.write(&folder.file("paper.json"), Overwrite::Refuse).unwrap();
    let json = folder.run("evaluate paper.json test.npz --json").ok().json();
    assert_eq!(json["levels"][0]["coverage_interval"], serde_json::Value::Null);
    let json = folder.run("inspect paper.json --json").ok().json();
    assert_eq!(json["levels"][0]["coverage_interval"], serde_json::Value::Null);
    let message = folder.run("evaluate paper.json test.npz --expect-coverage").error();
    assert!(message.contains("paper.json") && message.contains("tune again"), "{message}");
}
