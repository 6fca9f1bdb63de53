//! `study` and `compare`: procedures side by side, on files of one's own.

use crate::folder::{Folder, Rows, SMALL_STUDY};

fn folder(study: &str) -> Folder {
    let folder = Folder::empty();
    folder.write("data.npz", Rows::new(300, 1).npz());
    folder.write("small.toml", study);
    folder
}

/// Nobody types what the numbers of a study are, so it is asked; logarithms are of double precision.
#[test]
fn probabilities_of_a_study_are_pointed_out_and_taken_where_they_are_said_to_be() {
    let folder = Folder::empty();
    let row = |row: usize| format!("{},{},{}\n", row as f64 / 256.0, 1.0 - row as f64 / 256.0, row % 2);
    folder.write("p.csv", format!("a,b,label\n{}", (1..200).map(row).collect::<String>()));
    for kind in ["procedures", "conditional"] {
        let told = |input: &str| {
            let head =
                format!("kind = \"{kind}\"\nsplits = 2\nlevels = [0.3]\n[[benchmarks]]\npath = \"p.csv\"\n");
            folder.write("study.toml", head + input);
            folder.run("study study.toml -o out --force").ok().err
        };
        let wanted = "warning: the rows of p are not negative and sum to 1, as probabilities do, and are taken for \
                      logits; give input = \"probabilities\" under its name";
        assert!(told("").contains(wanted), "{kind}: {}", told(""));
        assert!(!told("input = \"probabilities\"\n").contains("sum to 1"), "{kind}");
        assert!(folder.text("out/results.json").contains("\"accuracy\": 0.5"), "{kind}");
    }
}

/// A name alone makes nobody's rows those of the benchmark that ships, and its rows are known under any path.
#[test]
fn data_called_like_a_benchmark_that_ships_are_not_that_benchmark() {
    let folder = Folder::empty();
    let study = format!("splits = 2\nlevels = [0.1]\n{}\n[[benchmarks]]\npath = ", ONE_PROCEDURE);
    folder.write("cifar10.npz", Rows::new(300, 1).npz());
    folder.write("own.toml", format!("{study}\"cifar10.npz\"\n"));
    folder.run("study own.toml -o own").ok();
    let page = folder.text("own/report/index.html");
    assert!(!page.contains("CIFAR-10") && !page.contains("paper 0."), "nothing of the paper's");
    let ours = concat!(env!("CARGO_MANIFEST_DIR"), "/../conformax-study/benchmarks");
    folder.write("ships.toml", format!("{study}\"{ours}\"\nname = \"newsgroups\"\n"));
    folder.run("study ships.toml -o ships").ok();
    let page = folder.text("ships/report/index.html");
    assert!(page.contains("20 Newsgroups") && page.contains("paper 0."), "its numbers and title");
}

const ONE_PROCEDURE: &str = "[[procedures]]\nname = \"InvProb\"\nscore = \"inv_prob\"\n";

#[test]
fn a_study_leaves_results_and_a_report() {
    let folder = folder(SMALL_STUDY);
    let ran = folder.run("study small.toml -o out").ok();
    assert_eq!(ran.out.trim(), "out/report/index.html");
    let csv = std::fs::read_to_string(folder.file("out/results.csv")).unwrap();
    // Two procedures and two other ways to tune one of them, two levels, two splits, and the heading.
    assert_eq!(csv.lines().count(), 1 + 4 * 2 * 2, "{csv}");
    for key in [
        "benchmark",
        "procedure",
        "alpha",
        "split",
        "n_cal",
        "n_test",
        "threshold",
        "gamma",
        "lambda",
        "k_reg",
    ] {
        assert!(csv.lines().next().unwrap().split(',').any(|column| column == key), "{key}");
    }
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.file("out/results.json")).unwrap()).unwrap();
    assert_eq!(json["records"].as_array().unwrap().len(), 8);
    let tuned = json["tuned"].as_array().unwrap();
    assert_eq!(tuned.iter().filter(|it| it["procedure"] == "opt-entmax (all rows)").count(), 4);
    assert_eq!(csv.matches("\nmine,opt-entmax (all rows),").count(), 4, "{csv}");
    let cost = std::fs::read_to_string(folder.file("out/tables/tuning-cost.md")).unwrap();
    assert!(cost.contains("| opt-entmax |") && cost.contains("Size, all rows"), "{cost}");
    let page = std::fs::read_to_string(folder.file("out/report/index.html")).unwrap();
    assert!(page.contains("opt-entmax"));
    for outside in ["src=\"http", "href=\"http", "url(http", "@import"] {
        assert!(!page.contains(outside), "the page works without a network: {outside}");
    }
    for kind in ["figures", "tables"] {
        assert!(std::fs::read_dir(folder.file("out").join(kind)).unwrap().count() > 3, "{kind}");
    }
}

#[test]
fn a_conditional_study_has_a_page_of_its_own() {
    let folder = folder("kind = \"conditional\"\nsplits = 2\n[[benchmarks]]\npath = \"data.npz\"\n");
    let ran = folder.run("study small.toml -o out").ok();
    assert_eq!(ran.out.trim(), "out/report/index.html");
    let csv = std::fs::read_to_string(folder.file("out/results.csv")).unwrap();
    // Two splits and two levels of five procedures and four weightings, and the heading.
    assert_eq!(csv.lines().count(), 1 + 2 * 2 * (5 + 4), "{csv}");
    let page = std::fs::read_to_string(folder.file("out/report/index.html")).unwrap();
    assert!(page.contains("Coverage where it matters") && page.contains("clustered classes"));
    let message = folder.run("study conditionally").error();
    assert!(message.contains("conditionally"), "{message}");
}

#[test]
fn a_conditional_study_of_too_few_rows_says_so() {
    let folder = Folder::empty();
    let row = |row: usize| -> String {
        let logits: Vec<&str> = (0..6).map(|class| if class == row { "3.5" } else { "0.5" }).collect();
        format!("{},{}\n", logits.join(","), ["a", "b", "c", "d", "e", "f"][row])
    };
    folder.write("data.csv", format!("a,b,c,d,e,f,label\n{}", (0..6).map(row).collect::<String>()));
    let benchmark = "[[benchmarks]]\nname = \"mine\"\npath = \"data.csv\"\n";
    let head = "name = \"few\"\nkind = \"conditional\"\nsplits = 3\ncalibration = 0.4\nlevels = [0.1]\n";
    folder.write("few.toml", format!("{head}{benchmark}"));
    let message = folder.run("study few.toml -o out").error();
    assert!(message.contains("mine: 6 rows of 6 classes are too few"), "{message}");
    assert!(!folder.file("out").exists());
}

#[test]
fn too_few_rows_are_told_with_how_many_there_are() {
    let folder = folder("[[benchmarks]]\nname = \"mine\"\npath = \"few.csv\"\n");
    for (rows, parts) in [(1, "0, 1 and 0"), (5, "0, 2 and 3")] {
        folder.write("few.csv", "a,b,label\n".to_owned() + &"1,2,a\n".repeat(rows));
        let message = folder.run("study small.toml -o out").error();
        let wanted = format!("benchmark mine: has too few rows ({rows}) to be split into");
        assert!(message.contains(&wanted) && message.contains(parts), "{message}");
        assert!(!folder.file("out").exists());
        let message = folder.run("compare few.csv").error();
        let wanted = format!("few.csv: {rows} row{} cannot be split", if rows == 1 { "" } else { "s" });
        assert!(message.contains(&wanted) && message.contains("at least 6 are needed"), "{message}");
    }
}

#[test]
fn what_is_said_to_be_written_is_what_the_file_holds() {
    for kind in ["procedures", "conditional"] {
        let folder = folder(&format!("kind = \"{kind}\"\nsplits = 2\n[[benchmarks]]\npath = \"data.npz\"\n"));
        let ran = folder.run("study small.toml -o out").ok();
        let records = folder.text("out/results.csv").lines().count() - 1;
        assert!(ran.err.contains(&format!("{records} records over 1 benchmark")), "{records}: {}", ran.err);
    }
}

#[test]
fn results_are_replaced_only_when_asked() {
    let folder = folder(SMALL_STUDY);
    folder.run("study small.toml -o out").ok();
    let message = folder.run("study small.toml -o out").error();
    assert!(message.contains("results.json") && message.contains("--force"), "{message}");
    folder.run("study small.toml -o out --force").ok();
}

#[test]
fn threads_do_not_change_a_byte_of_the_results() {
    let folder = folder(SMALL_STUDY);
    folder.run("study small.toml -o one --threads 1").ok();
    folder.run("study small.toml -o two --threads 2").ok();
    let read = |name: &str| std::fs::read(folder.file(name).join("results.csv")).unwrap();
    assert_eq!(read("one"), read("two"));
}

#[test]
fn a_bad_study_is_told_with_its_line_before_any_work() {
    for (wrong, right, word) in [
        ("score = \"inv_prop\"", "score = \"inv_prob\"", "inv_prop"),
        ("levels = [0.1, 1.2]", "levels = [0.1, 0.2]", "alpha"),
        ("path = \"gone.npz\"", "path = \"data.npz\"", "gone.npz"),
    ] {
        let text = SMALL_STUDY.replace(right, wrong);
        let line = text.lines().position(|line| line == wrong).unwrap() + 1;
        let folder = folder(&text);
        let message = folder.run("study small.toml -o out").error();
        assert!(message.contains(&format!("small.toml:{line}")) && message.contains(word), "{message}");
        assert!(!folder.file("out/results.csv").exists());
    }
}

#[test]
fn compare_says_which_is_best_and_how_to_get_it() {
    let folder = folder(SMALL_STUDY);
    let seen = folder.run("compare data.npz --alpha 0.2 --splits 5").ok().out;
    for word in [
        "InvProb",
        "RAPS",
        "log-margin",
        "1.5-entmax",
        "sparsemax",
        "opt-entmax",
        "on these rows",
        "-o model.json",
    ] {
        assert!(seen.contains(word), "{word}: {seen}");
    }
    // The rows that chose do not calibrate: what calibrates comes out of a split and had no part in the comparison.
    let commands: Vec<&str> = seen.lines().filter(|line| line.starts_with("  conformax")).collect();
    assert_eq!(commands.len(), 3, "{seen}");
    assert!(
        commands[0].contains("split data.npz ") && commands[0].ends_with("-o data-choose.npz data-cal.npz"),
        "{seen}"
    );
    assert!(commands[1].contains("compare data-choose.npz"), "{seen}");
    assert!(
        commands[2].contains(" data-cal.npz ") && commands[2].ends_with("--alpha 0.2 -o model.json"),
        "{seen}"
    );
    for command in &commands {
        folder.run(command.trim_start().trim_start_matches("conformax ")).ok();
    }
    // Of the part that chooses, the other part is left to calibrate.
    let again = folder.run("compare data-choose.npz --alpha 0.2 --splits 5").ok().out;
    let commands: Vec<&str> = again.lines().filter(|line| line.starts_with("  conformax")).collect();
    assert!(commands.len() == 1 && commands[0].contains(" data-cal.npz "), "{again}");
    let json = folder.run("compare data.npz --alpha 0.2 --splits 5 --json").ok().json();
    let procedures = json["procedures"].as_array().unwrap();
    assert_eq!(procedures.len(), 6);
    let sizes: Vec<f64> =
        procedures.iter().map(|row| row["average_size"]["mean"].as_f64().unwrap()).collect();
    assert!(sizes.iter().all(|size| (1.0..6.0).contains(size)), "{sizes:?}");
    // At most one is marked, and only the smallest.
    let marked: Vec<usize> = (0..6).filter(|place| procedures[*place]["best"] == true).collect();
    let smallest = sizes.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(marked.len() <= 1 && marked.iter().all(|place| sizes[*place] == smallest), "{json}");
}

/// What was said of the data is said to the commands that read it, and of their parts what still holds of them.
#[test]
fn compare_prints_commands_for_the_data_it_was_given() {
    let folder = Folder::empty();
    let row = |row: usize| ["0.7,0.3,8,x\n", "0.2,0.8,9,y\n", "0.6,0.4,8,y\n"][row % 3];
    folder.write("rows.csv", "x,y,id,truth\n".to_owned() + &(0..90).map(row).collect::<String>());
    let words = "rows.csv --label-column truth --drop id";
    let seen = folder.run(&format!("compare {words} --input probabilities --alpha 0.2 --splits 5")).ok().out;
    let commands: Vec<&str> = seen.lines().filter(|line| line.starts_with("  conformax")).collect();
    assert!(commands[0].contains(&format!("split {words} --fractions")), "{seen}");
    assert!(commands[1].contains("compare rows-choose.npz --input probabilities --alpha"), "{seen}");
    assert!(commands[2].contains(" rows-cal.npz --input probabilities "), "{seen}");
    for command in &commands {
        folder.run(command.trim_start().trim_start_matches("conformax ")).ok();
    }
    // The model takes what the user has.
    folder.run("predict model.json rows.csv --input probabilities --drop id,truth").ok();
}

#[test]
fn compare_needs_labels() {
    let folder = folder(SMALL_STUDY);
    folder.write("bad.csv", "a,b\n1,2\n3,4\n");
    let message = folder.run("compare bad.csv").error();
    assert!(message.contains("bad.csv") && message.contains("label"), "{message}");
}
