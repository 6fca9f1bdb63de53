//! What people do by mistake: a file twice, one kind of file for another, options that would go unheard.

use std::process::Stdio;

use crate::folder::{Folder, Rows};

/// A few rows of two classes, enough to calibrate at alpha 0.5.
const ROWS: &str = "cat,dog,label\n2.5,1,cat\n0.5,2,dog\n1,1.5,cat\n3,0.25,cat\n0,1,dog\n";

#[test]
fn a_file_that_is_given_twice_would_count_its_rows_twice() {
    let folder = Folder::with_model();
    folder.write("c.csv", ROWS);
    std::fs::create_dir(folder.file("shards")).unwrap();
    std::fs::hard_link(folder.file("c.csv"), folder.file("shards/linked.csv")).unwrap();
    for words in [
        "calibrate c.csv c.csv -o m.json",
        "calibrate c.csv ./c.csv -o m.json",
        "calibrate c.csv shards -o m.json",
        "evaluate model.json test.npz test.npz",
        "predict model.json test.npz test.npz",
        "split c.csv c.csv -o a.csv b.csv",
        "inspect c.csv c.csv",
        "calibrate - - -o m.json",
    ] {
        let message = folder.run(words).error();
        assert!(message.contains("is given twice: its rows would count twice"), "{words}: {message}");
        assert!(!folder.file("m.json").exists(), "{words}");
    }
    folder.write("d.csv", ROWS.replace("2.5", "2.25"));
    folder.run("calibrate c.csv d.csv -o m.json").ok();
}

#[test]
fn a_part_that_is_given_twice_would_count_its_rows_twice() {
    let folder = Folder::with_model();
    folder.write("other.npz", Rows::new(100, 3).npz());
    folder.run("calibrate cal.npz --partial -o p0").ok();
    folder.run("calibrate other.npz --partial -o p1").ok();
    folder.run("evaluate model.json test.npz --partial -o e0").ok();
    for part in ["p0", "e0"] {
        folder.write("copy", folder.read(part));
        for words in [format!("merge {part} {part}"), format!("merge {part} copy")] {
            let message = folder.run(&words).error();
            assert!(message.contains(&format!("holds the same rows as `{part}`")), "{words}: {message}");
        }
    }
    folder.run("merge p0 p1 -o m.json").ok();
    let ran = folder.run("merge e0").ok();
    assert!(ran.out.contains("of 1 part\n"), "{}", ran.out);
}

#[test]
fn a_file_in_the_place_of_another_is_called_what_it_is() {
    let folder = Folder::with_model();
    folder.write("rows.csv", ROWS);
    folder.write("rows.jsonl", "{\"logits\": [1, 2], \"label\": 0}\n");
    folder.run("calibrate cal.npz --partial -o part").ok();
    let cases = [
        ("predict part test.npz", "part: is a part that `merge` puts together, not a calibration file"),
        ("evaluate test.npz model.json", "test.npz: is data (npz), not a calibration file"),
        ("predict rows.csv test.npz", "rows.csv: is data (CSV), not a calibration file"),
        ("predict rows.jsonl test.npz", "rows.jsonl: is data (JSON Lines), not a calibration file"),
        (
            "merge model.json -o m.json",
            "model.json: is a calibration file, not a part that `merge` puts together",
        ),
        ("merge cal.npz -o m.json", "cal.npz: is data (npz), not a part that `merge` puts together"),
        ("predict model.json model.json", "model.json: is a calibration file, not data"),
        ("calibrate part -o m.json", "part: is a part that `merge` puts together, not data"),
        ("inspect part", "part: is a part that `merge` puts together, not data"),
        ("watch model.json test.npz", "test.npz: is data (npz), not JSON Lines"),
        ("watch model.json rows.csv", "rows.csv: is data (CSV), not JSON Lines"),
        ("watch model.json part", "part: is a part that `merge` puts together, not JSON Lines"),
    ];
    for (words, wanted) in cases {
        let message = folder.run(words).error();
        assert!(message.contains(wanted), "{words}: {message}");
    }
}

#[test]
fn labels_of_their_own_go_with_logits_of_their_own() {
    let folder = Folder::with_model();
    let wanted = "labels.npy: --labels goes with --logits: name the file of the logits with --logits too";
    let before = folder.names();
    for words in [
        "calibrate --labels labels.npy -o m.json",
        "calibrate cal.npz --labels labels.npy -o m.json",
        "evaluate model.json test.npz --labels labels.npy",
        "evaluate model.json --labels labels.npy",
        "split cal.npz --labels labels.npy --fractions 0.5,0.5 -o a.npz b.npz",
        "split --labels labels.npy --fractions 0.5,0.5 -o a.npz b.npz",
        "inspect cal.npz --labels labels.npy",
        "compare --labels labels.npy",
        "plan --by class --labels labels.npy",
    ] {
        let message = folder.run(words).error();
        assert!(message.contains(wanted), "{words}: {message}");
        assert_eq!(folder.names(), before, "{words}");
    }
    let message = folder.run("calibrate -o m.json").error();
    assert!(message.contains("required arguments") && message.contains("<DATA>"), "{message}");
}

#[test]
fn options_that_would_go_unheard_are_refused() {
    let folder = Folder::with_model();
    folder.run("calibrate cal.npz --partial -o part").ok();
    let cases = [
        ("merge part -o m.json --expect-coverage", "leave out --expect-coverage"),
        ("merge part -o m.json --allow-seen", "leave out --expect-coverage and --allow-seen"),
        ("calibrate cal.npz --partial --json -o m.json", "cannot be used with"),
        ("predict model.json test.npz --format csv -o sets.jsonl", "--format is for standard output"),
        ("predict model.json test.npz -o noext", "sets are written as .parquet, .arrow, .jsonl or .csv"),
        ("inspect model.json --drop id", "model.json: is a calibration file, of which flags"),
        ("inspect model.json --input logits", "model.json: is a calibration file, of which flags"),
        ("calibrate cal.npz --score raps --penalty 0.1 -o m.json", "what TorchCP calls penalty is --lambda"),
        (
            "calibrate cal.npz --score saps --penalty fixed -o m.json",
            "the score saps takes no penalty, got fixed",
        ),
    ];
    let before = folder.names();
    for (words, wanted) in cases {
        let message = folder.run(words).error();
        assert!(message.contains(wanted), "{words}: {message}");
        assert_eq!(folder.names(), before, "{words}");
    }
}

#[test]
fn numbers_beyond_all_use_are_refused_at_the_option() {
    let folder = Folder::with_model();
    for words in [
        "calibrate - --alpha 1e-400 -o m.json",
        "tune - --alpha 1e-400 -o m.json",
        "compare - --alpha 1e-400",
        "predict model.json - --alpha 1e-400",
        "evaluate model.json - --alpha 0.1,0.123456789012345678",
        "plan --alpha 1e-400",
    ] {
        let message = folder.run(words).error();
        assert!(message.contains("alpha must be a decimal that a double holds"), "{words}: {message}");
        assert!(message.contains("--alpha"), "{words}: {message}");
    }
    for threads in ["1025", "20000", "100000", "-1"] {
        let message = folder.run(&format!("predict model.json test.npz --threads={threads}")).error();
        assert!(message.contains("--threads"), "{message}");
    }
    folder.run("predict model.json test.npz --threads 3").ok();
    // As many as there are processors, whatever the environment asks of the library beneath.
    let processors = std::thread::available_parallelism().unwrap().get();
    folder.write("data.npz", Rows::new(100, 3).npz());
    folder.write("study.toml", crate::folder::SMALL_STUDY);
    let mut study = folder.command("study study.toml -o out");
    assert!(study.env("RAYON_NUM_THREADS", (processors + 1).to_string()).status().unwrap().success());
    let results: serde_json::Value = serde_json::from_slice(&folder.read("out/results.json")).unwrap();
    assert_eq!(results["provenance"]["threads"], processors);
    for words in ["study study.toml -o -", "report data.npz -o -"] {
        let message = folder.run(words).error();
        assert!(message.contains("standard output, and a folder is wanted"), "{words}: {message}");
        assert!(!folder.file("-").exists(), "{words}");
    }
}

#[test]
fn numbers_below_zero_are_told_as_numbers() {
    let folder = Folder::with_data();
    for (words, wanted) in [
        ("calibrate cal.npz --alpha -0.1 -o m.json", "alpha must lie strictly between 0 and 1"),
        ("calibrate cal.npz --confidence -1 -o m.json", "--confidence"),
        ("calibrate cal.npz --score raps --lambda -1 -o m.json", "lambda must be"),
        ("calibrate cal.npz --gamma -2 -o m.json", "gamma must lie between 1 and 16, got -2"),
        ("calibrate cal.npz --pac -0.5 -o m.json", "wanted a probability between 0 and 1"),
        ("split cal.npz --seed -1 -o a.npz b.npz", "--seed"),
        ("inspect cal.npz --threads -1", "--threads"),
        ("plan --n -5", "--n <N>"),
    ] {
        let message = folder.run(words).error();
        assert!(message.contains(wanted) && !message.contains("tip:"), "{words}: {message}");
    }
    assert_eq!(folder.names(), ["cal.npz", "test.npz"]);
}

/// Nothing but the file, under whatever name standard output goes by.
#[cfg(target_os = "linux")]
#[test]
fn a_file_to_standard_output_comes_alone() {
    let folder = Folder::with_data();
    for name in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        for words in ["calibrate cal.npz", "tune cal.npz", "weigh cal.npz test.npz"] {
            let ran = folder.run(&format!("{words} -o {name}")).ok();
            assert!(
                serde_json::from_str::<serde_json::Value>(&ran.out).is_ok(),
                "{words} {name}: {}",
                ran.out
            );
        }
    }
}

#[test]
fn a_file_of_names_that_does_not_fit_is_named() {
    let folder = Folder::with_data();
    folder.write("two.txt", "ant\nbee\n");
    folder.write("gap.txt", "ant\nbee\n\ndog\nelk\nfox\n");
    folder.write("six.txt", "ant\nbee\ncat\ndog\nelk\nfox\n\n\n");
    for words in ["calibrate cal.npz -o m.json", "inspect cal.npz", "split cal.npz -o a.npz b.npz"] {
        let message = folder.run(&format!("{words} --names two.txt")).error();
        assert!(message.contains("two.txt: names 2 classes, and cal.npz has 6"), "{words}: {message}");
        let message = folder.run(&format!("{words} --names gap.txt")).error();
        assert!(message.contains("gap.txt: line 3 is empty"), "{words}: {message}");
        folder.run(&format!("{words} --names six.txt")).ok();
    }
}

#[test]
fn a_part_of_a_split_without_rows_is_refused() {
    let folder = Folder::empty();
    folder.write("c.csv", ROWS);
    let message = folder.run("split c.csv --fractions 0.99,0.01 -o a.csv b.csv").error();
    assert!(
        message.contains("b.csv: would hold no rows: the fraction 0.01 of 5 rows leaves none"),
        "{message}"
    );
    let message = folder.run("split c.csv --fractions 1,0 -o a.csv b.csv").error();
    assert!(message.contains("a fraction must lie strictly between 0 and 1, got 0"), "{message}");
    let message = folder.run("split c.csv --fractions 0.5,0.4 -o a.csv b.csv").error();
    assert!(message.contains("fractions must sum to 1, these sum to 0.9"), "{message}");
    assert_eq!(folder.names(), ["c.csv"]);
}

#[test]
fn numbers_of_rows_are_no_class_when_they_are_floats_either() {
    let folder = Folder::empty();
    let table = |first: &dyn Fn(usize) -> String| {
        let rows = (0..12).map(|row| {
            format!("{},{}.5,{}.25,{}\n", first(row), row % 3, (row + 1) % 4, ["cat", "dog"][row % 2])
        });
        rows.fold("n,cat,dog,label\n".to_owned(), |text, row| text + &row)
    };
    folder.write("counted.csv", table(&|row| format!("{row}.0")));
    folder.write("told.csv", table(&|row| format!("{}.0", row * 7919 % 101)));
    folder.write("exponents.csv", table(&|row| format!("{row}e0")));
    for name in ["counted.csv", "told.csv", "exponents.csv"] {
        let message = folder.run(&format!("calibrate {name} -o m.json")).error();
        assert!(
            message.contains("column `n`: holds whole numbers that identify or number rows"),
            "{message}"
        );
        folder.run(&format!("calibrate {name} --drop n --alpha 0.4 --force -o model.json")).ok();
    }
    folder.write("logits.csv", table(&|row| format!("{}.0", row % 4)));
    folder.run("calibrate logits.csv --alpha 0.4 -o m.json").ok();
}

#[test]
fn probabilities_are_pointed_out_to_whoever_has_a_model_of_logits() {
    let folder = Folder::empty();
    folder.write("cal.csv", ROWS);
    folder.write("p.csv", "cat,dog,label\n0.25,0.75,dog\n0.5,0.5,cat\n");
    folder.run("calibrate cal.csv --alpha 0.4 -o model.json").ok();
    for words in ["predict model.json p.csv", "evaluate model.json p.csv"] {
        let ran = folder.run(words).ok();
        assert!(ran.err.contains("sum to 1, as probabilities do"), "{words}: {}", ran.err);
        assert!(ran.err.contains("as the model was calibrated on"), "{words}: {}", ran.err);
    }
    let ran = folder.run("predict model.json cal.csv").ok();
    assert!(!ran.err.contains("warning"), "{}", ran.err);
    folder.run("calibrate p.csv --alpha 0.4 --input probabilities -o of-p.json").ok();
    let message = folder.run("predict of-p.json cal.csv").error();
    assert!(message.contains("probability must lie between 0 and 1"), "{message}");
    assert!(message.contains("numbers of the kind that calibrated it"), "{message}");
}

#[test]
fn a_model_and_parts_may_come_through_a_pipe() {
    let folder = Folder::with_model();
    let plain = folder.run("predict model.json test.npz").ok().out;
    let model = folder.read("model.json");
    assert_eq!(folder.run_with("predict - test.npz", &model).ok().out, plain);
    let message = folder.run_with("predict - -", &model).error();
    assert!(message.contains("standard input is the calibration file"), "{message}");
    folder.run("calibrate cal.npz --partial -o part").ok();
    folder.run_with("merge - -o merged.json", &folder.read("part")).ok();
    for words in ["inspect -", "calibrate - -o m.json"] {
        let message = folder.run_with(words, &folder.read("part")).error();
        let wanted = "standard input: is a part that `merge` puts together, not data";
        assert!(message.contains(wanted), "{words}: {message}");
    }
    let message = folder.run_with("calibrate - -o m.json", &model).error();
    assert!(message.contains("standard input: is a calibration file, not data"), "{message}");
    assert_eq!(folder.read("merged.json"), model);
    let csv = folder.run("predict model.json test.npz --format csv").ok().out;
    assert_eq!(folder.run("predict model.json test.npz -o - --format csv").ok().out, csv);
}

/// A table that nobody can read is no reason to make the file again.
#[cfg(target_os = "linux")]
#[test]
fn a_full_standard_output_tells_what_was_written() {
    let folder = Folder::with_data();
    let cases = [
        ("calibrate cal.npz -o m.json", "m.json was written"),
        ("tune cal.npz -o t.json", "t.json was written"),
        ("split test.npz -o a.npz b.npz", "a.npz, b.npz were written"),
    ];
    for (words, wanted) in cases {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = folder.command(words).stdout(Stdio::from(full)).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words}: {err}");
        assert!(err.contains("writing to standard output") && err.contains(wanted), "{words}: {err}");
    }
    assert_eq!(folder.names(), ["a.npz", "b.npz", "cal.npz", "m.json", "t.json", "test.npz"]);
}

/// Names come from files and may hold anything; what a person reads holds no control characters.
#[test]
fn no_table_lets_control_characters_through() {
    let folder = Folder::empty();
    let (data, model) = ("c\u{1b}[2J.csv", "m\u{1b}]0;x\u{7}.json");
    let (class, shown) = ("c\u{1b}[2J\u{7}t", "c\\u{1b}[2J\\u{7}t");
    let line = |row: usize| format!("{}.5,{}.25,{}\n", row % 5, row * 3 % 7, [class, "dog"][row % 2]);
    folder.write(data, format!("{class},dog,label\n") + &(0..24).map(line).collect::<String>());
    folder.write(model, "");
    let run = |code: i32, words: &[&str]| {
        let output = folder.command("").args(words).output().unwrap();
        let seen = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        assert!(!seen.contains(|c: char| c.is_control() && c != '\n'), "{words:?}: {seen:?}");
        assert_eq!(output.status.code(), Some(code), "{words:?}: {seen}");
        seen
    };
    run(2, &["inspect", model]);
    run(0, &["calibrate", data, "--alpha", "0.4", "--force", "-o", model]);
    assert!(run(0, &["inspect", model]).contains(shown));
    assert!(run(0, &["inspect", data]).contains(shown));
    run(2, &["evaluate", model, data]);
    assert!(run(0, &["evaluate", model, data, "--allow-seen"]).contains("m\\u{1b}]0;x\\u{7}.json"));
    run(0, &["predict", model, data]);
    run(0, &["predict", model, data, "-o", "s\u{1b}.csv"]);
    run(0, &["split", data, "-o", "a\u{1b}.csv", "b\u{1b}.csv"]);
    run(0, &["tune", data, "-o", "t\u{1b}.json"]);
    let advice = run(0, &["compare", data, "--splits", "2"]);
    assert!(advice.contains(r"conformax split $'c\033[2J.csv' --fractions"), "{advice}");
    run(0, &["report", data, "--splits", "2", "--alpha", "0.4", "-o", "r\u{1b}"]);
    assert!(run(0, &["plan", data, "--by", "class"]).contains(shown));
    assert!(run(0, &["weigh", "a\u{1b}.csv", "b\u{1b}.csv", "-o", "w\u{1b}"]).contains(shown));
    run(0, &["calibrate", data, "--alpha", "0.4", "--partial", "-o", "p\u{1b}"]);
    run(0, &["merge", "p\u{1b}", "-o", "n\u{1b}.json"]);
    run(2, &["merge", "p\u{1b}", "p\u{1b}", "-o", "n\u{1b}.json", "--force"]);
    run(2, &["study", "no\u{1b}.toml", "-o", "o\u{1b}ut"]);
    run(2, &["frob\u{1b}nicate"]);
    run(2, &["plan", "--alpha", "0.1\u{1b}"]);
}

#[test]
fn nothing_is_written_over_what_is_read() {
    let folder = Folder::with_model();
    folder.write("c.csv", ROWS);
    folder.write("clusters.csv", "cat,a\ndog,a\n");
    folder.run("calibrate c.csv --partial --alpha 0.5 -o part").ok();
    std::fs::create_dir(folder.file("shards")).unwrap();
    std::fs::hard_link(folder.file("c.csv"), folder.file("shards/linked.csv")).unwrap();
    let read = ["c.csv", "clusters.csv", "part", "cal.npz", "test.npz", "model.json"];
    let before = read.map(|name| folder.read(name));
    for words in [
        "calibrate c.csv -o c.csv",
        "calibrate c.csv -o ./c.csv",
        "calibrate c.csv -o shards/linked.csv",
        "calibrate shards -o c.csv",
        "calibrate c.csv --by clusters.csv -o clusters.csv",
        "tune cal.npz -o cal.npz",
        "predict model.json test.npz -o model.json",
        "predict model.json test.npz -o test.npz",
        "evaluate model.json test.npz --partial -o test.npz",
        "split c.csv -o a.csv c.csv",
        "merge part -o part",
        "weigh cal.npz test.npz -o test.npz",
    ] {
        for words in [words.to_owned(), format!("{words} --force")] {
            let message = folder.run(&words).error();
            assert!(message.contains(": name another output"), "{words}: {message}");
        }
    }
    assert_eq!(read.map(|name| folder.read(name)), before);
    for (words, wanted) in [
        ("calibrate shards -o c.csv", "c.csv: is the same file as shards/linked.csv, which is read"),
        ("calibrate shards -o shards/linked.csv", "would lie in shards, whose files are read"),
        // The next run would take it for a shard.
        ("split shards/ -o shards/a.csv b.csv", "shards/a.csv: would lie in shards/, whose files are read"),
        ("split . -o ./a.csv b.csv", "./a.csv: would lie in ., whose files are read"),
    ] {
        let message = folder.run(words).error();
        assert!(message.contains(wanted), "{words}: {message}");
    }
    folder.run("calibrate shards --alpha 0.5 -o shards/model.json").ok();
    folder.run("predict model.json test.npz -o sets.csv").ok();
    folder.run("predict model.json test.npz -o sets.csv --force").ok();
}

#[cfg(unix)]
#[test]
fn nothing_is_written_over_what_standard_input_is() {
    let folder = Folder::empty();
    folder.write("c.csv", ROWS);
    let input = std::fs::File::open(folder.file("c.csv")).unwrap();
    let mut command = folder.command("calibrate - -o c.csv --force");
    let output = command.stdin(input).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("c.csv: is the same file as standard input"), "{message}");
    assert_eq!(folder.text("c.csv"), ROWS);
}

#[test]
fn a_pac_that_is_no_probability_is_called_by_what_it_should_be() {
    let folder = Folder::with_data();
    for words in ["calibrate cal.npz -o m.json", "plan"] {
        for bad in ["0", "1", "-0.5", "NaN", "much"] {
            let message = folder.run(&format!("{words} --pac={bad}")).error();
            let wanted = format!("wanted a probability between 0 and 1, such as 0.05, got {bad}");
            assert!(message.contains(&wanted) && !message.contains("alpha must"), "{words} {bad}: {message}");
        }
    }
}

#[test]
fn parts_of_a_split_are_files_of_their_own_however_they_are_spelled() {
    let folder = Folder::empty();
    folder.write("c.csv", ROWS);
    std::fs::create_dir(folder.file("dd")).unwrap();
    for names in ["s.csv s.csv", "s.csv ./s.csv", "s.csv dd/../s.csv"] {
        for force in ["", " --force"] {
            let words = format!("split c.csv --fractions 0.5,0.5 -o {names}{force}");
            let message = folder.run(&words).error();
            assert!(message.contains("is named as an output twice"), "{words}: {message}");
            assert!(!folder.file("s.csv").exists(), "{words}");
        }
    }
}
