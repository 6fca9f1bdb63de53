//! `calibrate`: what it prints, and that it is what the library computes.

use conformax::{Alpha, Level, Masked, Parameters, Penalty, ScoreSpec, calibrate};
use conformax_io::{Input, KeptLevel, Model};

use crate::folder::{CLASSES, Folder, Rows};

#[test]
fn prints_what_calibration_found() {
    let folder = Folder::with_data();
    insta::assert_snapshot!(
        folder.run("calibrate cal.npz -o model.json --alpha 0.1 --confidence 0.95").seen()
    );
    insta::assert_snapshot!(folder.run("calibrate cal.npz -o b.json --score log-margin").seen());
    insta::assert_snapshot!(folder.run("calibrate cal.npz -o c.json --score lac --json").seen());
}

#[test]
fn thresholds_are_the_librarys_for_every_score() {
    let (folder, rows) = (Folder::with_data(), Rows::new(200, 1));
    for name in ["entmax", "sparsemax", "log_margin", "inv_prob", "aps", "raps", "saps", "top_k", "margin"] {
        folder.run(&format!("calibrate cal.npz --force --score {name} --alpha 0.2 -o m.json")).ok();
        let model = Model::read(&folder.file("m.json")).unwrap();
        let spec = ScoreSpec::named(name, Parameters::default()).unwrap();
        let alpha = Alpha::new(0.2).unwrap();
        let library = calibrate(spec, rows.as_logits(), &rows.labels, alpha).unwrap();
        let kept = KeptLevel::one(Level::new(200, alpha), library.thresholds().as_slice()[0]);
        assert_eq!(model.levels, [kept], "{name}");
        assert_eq!((model.score, model.masked, model.n), (spec, Masked::Allowed, 200));
    }
}

#[test]
fn parameters_seed_and_policy_reach_the_file() {
    let folder = Folder::with_data();
    folder
        .run("calibrate cal.npz --score raps --lam-reg 0.1 --kreg 2 --seed 7 --masked never -o m.json")
        .ok();
    let model = Model::read(&folder.file("m.json")).unwrap();
    assert_eq!(model.score.to_string(), "raps(lambda=0.1, k_reg=2)");
    assert_eq!(model.score.draw(), Some(conformax::Draw::Seeded(7)));
    assert_eq!(model.masked, Masked::Never);
    folder.run("calibrate cal.npz --score raps --penalty fixed -o fixed.json").ok();
    let model = Model::read(&folder.file("fixed.json")).unwrap();
    assert_eq!(model.score.parameters().penalty, Some(Penalty::Fixed));
    folder.run("calibrate cal.npz --score aps --not-randomized -o plain.json").ok();
    let model = Model::read(&folder.file("plain.json")).unwrap();
    assert_eq!(model.score.draw(), Some(conformax::Draw::Conservative));
}

#[test]
fn too_few_rows_say_how_many_are_needed() {
    let folder = Folder::empty();
    folder.write("cal.npz", Rows::new(50, 1).npz());
    let ran = folder.run("calibrate cal.npz --alpha 0.01 -o model.json").ok();
    assert!(ran.out.contains('∞'), "{}", ran.out);
    assert!(ran.err.contains("warning: 50 rows cannot reach alpha = 0.01"), "{}", ran.err);
    assert!(ran.err.contains("at least 99 rows"), "{}", ran.err);
}

#[test]
fn a_masked_true_label_is_an_error_where_masks_are_final() {
    let folder = Folder::empty();
    folder.write("cal.csv", "a,b,label\n1,0,a\n-inf,1,a\n");
    folder.run("calibrate cal.csv -o allowed.json").ok();
    let message = folder.run("calibrate cal.csv --masked never -o never.json").error();
    assert!(message.contains("cal.csv") && message.contains("row 1"), "{message}");
    assert_eq!(folder.names(), ["allowed.json", "cal.csv"]);
}

#[test]
fn thresholds_alone_make_a_smaller_file_that_knows_its_limits() {
    let folder = Folder::with_model();
    folder.run("calibrate cal.npz --thresholds-only -o small.json").ok();
    assert!(folder.read("small.json").len() < folder.read("model.json").len());
    folder.run("predict small.json test.npz -o sets.csv").ok();
    for words in ["--alpha 0.2", "--p-values", "--all-p-values"] {
        let message = folder.run(&format!("predict small.json test.npz {words} -o other.csv")).error();
        assert!(message.contains("small.json") && message.contains("calibrate again"), "{message}");
        assert!(
            message.contains("was saved without scores") && !message.contains("can be used"),
            "{message}"
        );
    }
}

#[test]
fn probabilities_and_their_logarithms_calibrate_alike() {
    let folder = Folder::empty();
    folder.write("p.csv", "a,b,c,label\n0.5,0.25,0.25,a\n0.125,0.875,0,b\n0.25,0.25,0.5,a\n");
    let ln = |p: f64| p.ln();
    let line = |p: [f64; 3], label: &str| format!("{},{},{},{label}\n", ln(p[0]), ln(p[1]), ln(p[2]));
    let text = line([0.5, 0.25, 0.25], "a") + &line([0.125, 0.875, 0.0], "b") + &line([0.25, 0.25, 0.5], "a");
    folder.write("l.csv", format!("a,b,c,label\n{text}"));
    folder.run("calibrate p.csv --input probabilities --alpha 0.5 -o p.json").ok();
    folder.run("calibrate l.csv --input log-probabilities --alpha 0.5 -o l.json").ok();
    let threshold = |name: &str| Model::read(&folder.file(name)).unwrap().levels[0].threshold().unwrap();
    assert!((threshold("p.json") - threshold("l.json")).abs() < 1e-12);
    let message = folder.run("calibrate l.csv --input probabilities -o bad.json").error();
    assert!(message.contains("row 0, class 0") && message.contains("between 0 and 1"), "{message}");
}

#[test]
fn a_threshold_of_zero_is_explained() {
    let folder = Folder::empty();
    let line = |row: usize| format!("{}.5,0,a\n", row + 1);
    folder.write("cal.csv", String::from("a,b,label\n") + &(0..40).map(line).collect::<String>());
    let ran = folder.run("calibrate cal.csv -o model.json").ok();
    insta::assert_snapshot!(ran.seen());
    folder.write("new.csv", "a,b\n3,1\n2,2\n");
    let ran = folder.run("predict model.json new.csv --probabilities").ok();
    let wanted = concat!(
        "{\"row\":0,\"labels\":[\"a\"],\"size\":1,\"probabilities\":[1.0]}\n",
        "{\"row\":1,\"labels\":[\"a\",\"b\"],\"size\":2,\"probabilities\":[0.5,0.5]}\n"
    );
    assert_eq!(ran.out, wanted);
}

/// Thresholds without scores are those of the scores, in constant memory or from a pipe.
#[test]
fn thresholds_alone_are_the_same_thresholds() {
    let folder = Folder::with_data();
    folder.run("calibrate cal.npz --alpha 0.1,0.05,0.001 -o full.json").ok();
    folder.run("calibrate cal.npz --alpha 0.1,0.05,0.001 --thresholds-only -o bare.json").ok();
    // The same numbers as text, which can be read once alone.
    let rows = Rows::new(200, 1);
    let line = |(logits, label): (&[f32], &u32)| {
        let cells = logits.iter().map(|logit| f64::from(*logit).to_string());
        cells.chain([label.to_string()]).collect::<Vec<_>>().join(",") + "\n"
    };
    let lines = rows.logits.chunks(CLASSES).zip(&rows.labels).map(line);
    let csv = format!("0,1,2,3,4,5,label\n{}", lines.collect::<String>());
    let piped = "calibrate - --alpha 0.1,0.05,0.001 --thresholds-only -o piped.json";
    folder.run_with(piped, csv.as_bytes()).ok();
    let model = |name: &str| Model::read(&folder.file(name)).unwrap();
    let full = model("full.json");
    for bare in [model("bare.json"), model("piped.json")] {
        assert_eq!((&bare.levels, bare.evidence.is_none()), (&full.levels, true));
        assert_eq!(bare.calibrating_rows, full.calibrating_rows);
    }
}

/// Seven shards in any order give the very file, and the very evaluation, that all rows give at once.
#[test]
fn parts_put_together_are_the_whole() {
    let folder = Folder::with_data();
    folder.run("calibrate cal.npz --alpha 0.1,0.05 -o whole.json").ok();
    let names: Vec<String> = (0..7).map(|shard| format!("s{shard}.npz")).collect();
    let shards = |data: &str| {
        folder
            .run(&format!(
                "split {data} --fractions 0.1,0.2,0.1,0.15,0.05,0.3,0.1 -o {} --force",
                names.join(" ")
            ))
            .ok();
    };
    shards("cal.npz");
    for shard in 0..7 {
        folder.run(&format!("calibrate s{shard}.npz --alpha 0.1,0.05 --partial -o part{shard}")).ok();
    }
    for (order, name) in [("3 0 6 1 2 5 4", "a.json"), ("6 5 4 3 2 1 0", "b.json")] {
        let parts: Vec<String> = order.split(' ').map(|shard| format!("part{shard}")).collect();
        folder.run(&format!("merge {} -o {name}", parts.join(" "))).ok();
        assert_eq!(folder.text(name), folder.text("whole.json"), "{order}");
    }
    shards("test.npz");
    for shard in 0..7 {
        folder.run(&format!("evaluate whole.json s{shard}.npz --partial -o seen{shard}")).ok();
    }
    let whole = folder.run("evaluate whole.json test.npz --json").ok().json();
    folder.run("calibrate s0.npz --alpha 0.2 --pac 0.1 --partial -o pac").ok();
    let (mixed, backwards) = ("4 0 6 1 2 5 3", "6 5 4 3 2 1 0");
    let merged = |order: &str, flag: &str| {
        let parts: Vec<String> = order.split(' ').map(|shard| format!("seen{shard}")).collect();
        folder.run(&format!("merge {} {flag}", parts.join(" "))).ok()
    };
    for flag in ["", "--json", "--expect-coverage"] {
        assert_eq!(merged(mixed, flag).out, merged(backwards, flag).out, "{flag}");
    }
    let without_data = |mut report: serde_json::Value| {
        assert!(report["data"].take() != serde_json::Value::Null, "it says what it is about");
        report
    };
    assert_eq!(without_data(merged(mixed, "--json").json()), without_data(whole));
    for (words, wanted) in [
        ("merge part0 seen1 -o x.json", "some parts are of a calibration and some of an evaluation"),
        ("merge pac seen1 -o x.json", "some parts are of a calibration and some of an evaluation"),
        ("merge seen1 pac", "some parts are of a calibration and some of an evaluation"),
        ("merge part0 part1", "name the calibration file to write with -o"),
        ("merge seen0 seen1 -o x.json", "leave out -o"),
        ("merge cal.npz -o x.json", "is data (npz), not a part that `merge` puts together"),
    ] {
        let message = folder.run(words).error();
        assert!(message.contains(wanted), "{words}: {message}");
    }
    folder.run("calibrate s0.npz --gamma 2 --alpha 0.1,0.05 --partial -o other").ok();
    let message = folder.run("merge part0 other -o x.json").error();
    assert!(message.contains("other: ") && message.contains("their scores differ"), "{message}");
}

/// What the numbers were is kept, and held against what they are said to be later.
#[test]
fn probabilities_are_pointed_out_and_remembered() {
    let folder = Folder::empty();
    let mut text = String::from("a,b,label\n");
    (1..200).for_each(|row| {
        text += &format!("{},{},{}\n", row as f64 / 256.0, 1.0 - row as f64 / 256.0, ["a", "b"][row % 2])
    });
    folder.write("p.csv", text);
    let ran = folder.run("calibrate p.csv -o taken.json").ok();
    assert!(ran.err.contains("--input probabilities"), "{}", ran.err);
    let ran = folder.run("calibrate p.csv --input probabilities -o model.json").ok();
    assert!(!ran.err.contains("--input"), "{}", ran.err);
    assert_eq!(Model::read(&folder.file("model.json")).unwrap().input, Input::Probabilities);
    folder.run("split p.csv --fractions 0.5,0.5 -o half.csv rest.csv").ok();
    for words in [
        "calibrate p.csv --thresholds-only --alpha 0.3 -o out --force",
        "calibrate p.csv --truncate-ranks --alpha 0.3 -o out --force",
        "calibrate p.csv --by class --alpha 0.3 -o out --force",
        "tune p.csv --alpha 0.3 -o out --force",
        "tune p.csv --rows all --alpha 0.3 -o out --force",
        "compare p.csv --splits 2",
        "report p.csv --splits 2 --alpha 0.3 -o page --force",
        "weigh half.csv rest.csv -o out --force",
    ] {
        let run = |input: &str| folder.run(&format!("{words} {input}")).ok().err;
        assert!(run("").contains("give --input probabilities"), "{words}");
        assert!(!run("--input probabilities").contains("--input"), "{words}");
    }
    // What is taken out of the logits hides nothing.
    folder.write("prior.json", "[0.5, 0.5]");
    let ran = folder.run("calibrate p.csv --prior prior.json -o prior-taken.json").ok();
    assert!(ran.err.contains("give --input probabilities"), "{}", ran.err);
    let row = b"{\"logits\":[0.25,0.75]}\n{\"logits\":[0.5,0.5]}\n";
    for (model, told) in [("taken.json", 1), ("prior-taken.json", 1), ("model.json", 0)] {
        let ran = folder.run_with(&format!("watch {model}"), row).ok();
        assert_eq!(ran.err.matches("are not negative and sum to 1").count(), told, "{model}: {}", ran.err);
    }
    let plain = folder.run("predict model.json p.csv").ok().out;
    assert_eq!(folder.run("predict model.json p.csv --input probabilities").ok().out, plain);
    let message = folder.run("predict model.json p.csv --input logits").error();
    assert!(message.contains("was calibrated on probabilities"), "{message}");
}

/// Where true labels are impossible the threshold is infinite: full sets, coverage of 1, and a word about why. A gap
/// that no double holds is as good as -inf.
#[test]
fn impossible_true_labels_are_counted() {
    for (top, bottom) in [("1.5", "-inf"), ("1e308", "-1e308")] {
        let folder = Folder::empty();
        let line = |row: usize| match row < 9 {
            true => format!("{top},{bottom},b\n"),
            false => "1.5,1,a\n".to_owned(),
        };
        folder.write("cal.csv", (0..40).fold("a,b,label\n".to_owned(), |text, row| text + &line(row)));
        let ran = folder.run("calibrate cal.csv --alpha 0.1 -o model.json").ok();
        assert!(ran.err.contains("9 of 40 true labels"), "{bottom}: {}", ran.err);
        assert!(ran.out.contains("1.000 to 1.000"), "{bottom}: {}", ran.out);
        let ran = folder.run("calibrate cal.csv --alpha 0.1 --thresholds-only -o bare.json").ok();
        assert!(ran.err.contains("9 of 40 true labels"), "{bottom}: {}", ran.err);
        let ran = folder.run("calibrate cal.csv --alpha 0.1 --by class -o class.json").ok();
        let wanted = "beyond all numbers in b (9 of 9 rows), so their labels will be in every set";
        assert!(ran.err.contains(wanted), "{bottom}: {}", ran.err);
        folder.write(
            "sites.csv",
            (0..40).fold("a,b,label,site\n".to_owned(), |text, row| {
                text + &line(row).replace('\n', if row < 20 { ",north\n" } else { ",south\n" })
            }),
        );
        for words in ["--by site", "--by site --thresholds-only"] {
            let ran =
                folder.run(&format!("calibrate sites.csv --alpha 0.1 {words} -o site.json --force")).ok();
            let wanted =
                "beyond all numbers in north (9 of 20 rows), so sets of their rows will hold every label";
            assert!(ran.err.contains(wanted), "{bottom}: {}", ran.err);
        }
        let sets = folder.run("predict model.json cal.csv").ok().out;
        assert!(sets.lines().all(|line| line.contains("\"size\":2")), "{bottom}: {sets}");
    }
}
