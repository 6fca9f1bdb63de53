//! `report`: a page about one's own logits, whatever they are like.

use crate::folder::{CLASSES, Folder, Rows};

/// A folder with a CSV of these rows: a name per class, and labels by name.
fn with_csv(names: &[String], rows: &[(Vec<String>, usize)]) -> Folder {
    let folder = Folder::empty();
    let mut text = format!("{},label\n", names.join(","));
    for (logits, label) in rows {
        text += &format!("{},{}\n", logits.join(","), names[*label]);
    }
    folder.write("data.csv", text);
    folder
}

fn names(classes: usize) -> Vec<String> {
    (0..classes).map(|class| format!("kind {class}")).collect()
}

fn results(folder: &Folder) -> serde_json::Value {
    serde_json::from_slice(&folder.read("out/results.json")).unwrap()
}

#[test]
fn one_command_makes_the_page_without_a_word_about_the_papers_numbers() {
    let folder = Folder::empty();
    folder.write("data.npz", Rows::new(600, 1).npz());
    let ran = folder.run("report data.npz -o out").ok();
    assert_eq!(ran.out.trim(), "out/report/index.html");
    assert!(!ran.err.contains("warning"), "{}", ran.err);
    let page = folder.text("out/report/index.html");
    assert!(page.len() < 1_500_000, "{} bytes", page.len());
    for part in ["data.npz", "id=\"found\"", "id=\"try\"", "id=\"examples\""] {
        assert!(page.contains(part), "{part}");
    }
    for part in
        ["id=\"claims\"", "class=\"tally\"", "in the paper, with", "what the paper prints", "src=\"http"]
    {
        assert!(!page.contains(part), "{part}");
    }
    let results = results(&folder);
    assert_eq!(results["claims"].as_array().unwrap().len(), 0);
    assert_eq!(results["levels"].as_array().unwrap().len(), 10);
    assert_eq!(results["provenance"]["splits"], 20);
    let rows = results["examples"][0]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 9);
    // Classes without names go by their numbers.
    assert!(rows.iter().all(|row| row["names"].as_array().unwrap().len() == CLASSES));
    assert!(rows.iter().all(|row| row["names"].as_array().unwrap().iter().any(|name| name == "5")));
}

#[test]
fn names_title_levels_and_splits_are_as_asked() {
    let folder = Folder::empty();
    folder.write("data.npz", Rows::new(300, 2).npz());
    folder.write("names.txt", "ant\nbee\ncat\ndog\nelk\n<!--<script>fox\n");
    let flags = "--names names.txt --title Mine --alpha 0.2,0.1 --confidence 0.8 --splits 3 --seed 7";
    folder.run(&format!("report data.npz -o out {flags}")).ok();
    let (page, results) = (folder.text("out/report/index.html"), results(&folder));
    assert!(page.contains("conformax · Mine") && !page.contains("<!--<script>fox"));
    assert_eq!(results["levels"], serde_json::json!([0.2, 0.1]));
    assert_eq!((&results["provenance"]["splits"], &results["provenance"]["seed"]), (&3.into(), &7.into()));
    let named = results["examples"][0]["rows"][0]["names"].as_array().unwrap();
    assert!(named.iter().any(|name| name == "<!--<script>fox"), "{named:?}");
}

#[test]
fn a_report_is_replaced_only_when_asked() {
    let folder = Folder::empty();
    folder.write("data.npz", Rows::new(60, 3).npz());
    let quick = "report data.npz -o out --splits 2 --alpha 0.2";
    folder.run(quick).ok();
    let message = folder.run(quick).error();
    assert!(message.contains("results.json") && message.contains("--force"), "{message}");
    folder.run(&format!("{quick} --force")).ok();
}

#[test]
fn a_file_in_the_place_of_the_folder_is_called_one() {
    let folder = Folder::empty();
    folder.write("data.npz", Rows::new(60, 3).npz());
    folder.write("small.toml", crate::folder::SMALL_STUDY);
    for words in ["report data.npz -o small.toml", "study small.toml -o data.npz"] {
        let message = folder.run(words).error();
        assert!(message.contains("is a file, and a folder is wanted"), "{words}: {message}");
    }
}

/// A folder with something else in it is somebody's, though no file of a report is there.
#[test]
fn a_folder_that_holds_something_is_filled_only_when_asked() {
    let folder = Folder::empty();
    folder.write("data.npz", Rows::new(60, 3).npz());
    let quick = "report data.npz -o out --splits 2 --alpha 0.2";
    std::fs::create_dir(folder.file("out")).unwrap();
    folder.write("out/notes.txt", "mine");
    let message = folder.run(quick).error();
    assert!(message.contains("out: exists already") && message.contains("--force"), "{message}");
    assert_eq!(std::fs::read_dir(folder.file("out")).unwrap().count(), 1);
    folder.run(&format!("{quick} --force")).ok();
    assert_eq!(folder.text("out/notes.txt"), "mine");
    std::fs::create_dir(folder.file("empty")).unwrap();
    folder.run(&quick.replace("out", "empty")).ok();
}

#[test]
fn one_class_is_refused_for_what_it_is() {
    let rows = vec![(vec!["1.5".to_owned()], 0); 40];
    let folder = with_csv(&names(1), &rows);
    let message = folder.run("report data.csv -o out").error();
    assert!(message.contains("data.csv: has 1 class") && message.contains("at least 2"), "{message}");
    assert_eq!(folder.names(), ["data.csv"]);
}

#[test]
fn too_few_rows_are_refused_and_leave_nothing() {
    let rows = |n: usize| -> Vec<(Vec<String>, usize)> {
        (0..n).map(|row| (vec![format!("{row}.5"), "2.25".to_owned()], row % 2)).collect()
    };
    let folder = with_csv(&names(2), &rows(5));
    let message = folder.run("report data.csv -o out").error();
    assert!(message.contains("5 rows") && message.contains("at least 6"), "{message}");
    assert_eq!(folder.names(), ["data.csv"]);
    // Six are enough for a page, and it says that its sets are full.
    let folder = with_csv(&names(2), &rows(6));
    let ran = folder.run("report data.csv -o out").ok();
    assert!(ran.err.contains("their sets hold every label") && ran.err.contains("413 rows"), "{}", ran.err);
}

#[test]
fn bad_data_are_told_as_elsewhere_and_leave_nothing() {
    let folder = Folder::empty();
    folder.write("nan.csv", "a,b,label\n1.5,nan,a\n");
    let message = folder.run("report nan.csv -o out").error();
    assert!(message.contains("nan.csv") && message.contains("row 0"), "{message}");
    folder.write("logits.csv", "a,b\n1.5,2.5\n");
    let message = folder.run("report logits.csv -o out").error();
    assert!(message.contains("label"), "{message}");
    assert_eq!(folder.names(), ["logits.csv", "nan.csv"]);
}

#[test]
fn awkward_data_make_a_page() {
    let logit = |row: usize, class: usize| format!("{}.5", (row * 7 + class * 3) % 11);
    let made = |rows: usize, classes: usize| -> Vec<(Vec<String>, usize)> {
        (0..rows).map(|row| ((0..classes).map(|c| logit(row, c)).collect(), row % classes)).collect()
    };
    // Two classes; rows that are all the same; all right, all wrong; impossible classes, some of them true.
    let same = vec![(vec!["1.5".to_owned(), "0.5".to_owned(), "0.5".to_owned()], 0); 40];
    let wrong: Vec<_> = same.iter().map(|(row, _)| (row.clone(), 2)).collect();
    let mut masked = made(40, 4);
    for (row, (logits, label)) in masked.iter_mut().enumerate() {
        logits[(*label + row % 3) % 4] = "-inf".to_owned();
    }
    let cases = [("two", made(40, 2), 2), ("same", same, 3), ("wrong", wrong, 3), ("masked", masked, 4)];
    for (case, rows, classes) in cases {
        let folder = with_csv(&names(classes), &rows);
        folder.run("report data.csv -o out --splits 3 --alpha 0.1,0.3").ok();
        let examples = &results(&folder)["examples"][0];
        let taken = examples["rows"].as_array().unwrap();
        assert!(!taken.is_empty() && taken.len() <= 9, "{case}");
        let kinds: Vec<&str> = taken.iter().map(|row| row["kind"].as_str().unwrap()).collect();
        match case {
            "same" => assert!(!kinds.contains(&"wrong")),
            "wrong" => assert!(kinds.iter().all(|kind| *kind == "wrong")),
            _ => {}
        }
        assert!(folder.text("out/report/index.html").contains("id=\"try\""), "{case}");
    }
}

#[test]
fn ten_thousand_classes_make_a_small_page() {
    let classes = 10_000;
    let rows: Vec<(Vec<String>, usize)> = (0..12)
        .map(|row| {
            let logits = (0..classes).map(|class| format!("{}.25", (row * 7919 + class * 104_729) % 101));
            (logits.collect(), row * 800)
        })
        .collect();
    let folder = with_csv(&names(classes), &rows);
    folder.run("report data.csv -o out --splits 2 --alpha 0.2").ok();
    let page = folder.text("out/report/index.html");
    assert!(page.len() < 600_000, "{} bytes", page.len());
    let found = results(&folder);
    let row = &found["examples"][0]["rows"][0];
    assert!(row["labels"].as_array().unwrap().len() <= 25);
    // All rows do not choose among so many classes, and the page says so.
    assert!(found["tuned"].as_array().unwrap().iter().all(|it| it["procedure"] != "opt-entmax (all rows)"));
    let note =
        "All rows do not choose on data.csv: with more than 2,000 classes a study would take too long.";
    assert_eq!(page.matches(note).count(), 2, "at one level, and beside what tuning costs");
}
