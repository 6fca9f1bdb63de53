//! `split`: every row goes somewhere, where the library says.

use conformax_io::{Block, Data, Source, SourceOptions, Values};

use crate::folder::{CLASSES, Folder, Rows};
use crate::written::{Sample, Write};

fn read(folder: &Folder, name: &str) -> Rows {
    let mut source = Source::open(&Data::Files(vec![folder.file(name)]), &SourceOptions::default()).unwrap();
    let (mut rows, mut block) = (Rows { logits: Vec::new(), labels: Vec::new() }, Block::default());
    while source.read(&mut block).unwrap() {
        let Values::F32(logits) = &block.logits else { panic!("the type changed") };
        rows.logits.extend(logits);
        rows.labels.extend(block.labels.as_ref().unwrap());
    }
    rows
}

#[test]
fn rows_go_where_the_library_says() {
    let (folder, rows) = (Folder::empty(), Rows::new(101, 3));
    folder.write("data.npz", rows.npz());
    let ran = folder.run("split data.npz --fractions 0.4,0.6 --seed 5 -o cal.npz test.npz").ok();
    insta::assert_snapshot!(ran.seen());
    let (cal, test) = Folder::halves(&rows, 5);
    for (name, wanted) in [("cal.npz", cal), ("test.npz", test)] {
        let found = read(&folder, name);
        assert_eq!((found.logits, found.labels), (wanted.logits, wanted.labels));
    }
}

#[test]
fn stratified_parts_keep_the_proportions() {
    let (folder, rows) = (Folder::empty(), Rows::new(300, 4));
    folder.write("data.npz", rows.npz());
    let ran = folder.run("split data.npz --stratify --fractions 0.5,0.5 -o a.npz b.npz --json").ok();
    assert_eq!(ran.json()[0]["rows"], 150);
    let (a, b) = (read(&folder, "a.npz"), read(&folder, "b.npz"));
    for class in 0..CLASSES as u32 {
        let count = |rows: &Rows| rows.labels.iter().filter(|label| **label == class).count();
        assert!(count(&a).abs_diff(count(&b)) <= 2, "class {class}");
    }
}

#[test]
fn counts_first_where_the_file_does_not_say_and_keeps_names() {
    let (folder, sample) = (Folder::empty(), Sample::new(30, 7));
    Write::Csv.write(&sample, folder.path());
    folder.run("split z.csv --fractions 0.5,0.2,0.3 -o a.npz b.npz c.npz").ok();
    for (name, rows) in [("a.npz", 15), ("b.npz", 6), ("c.npz", 9)] {
        let source = Source::open(&Data::Files(vec![folder.file(name)]), &SourceOptions::default()).unwrap();
        assert_eq!(source.rows(), Some(rows));
        assert_eq!(source.names().unwrap().as_slice(), sample.names);
    }
}

#[test]
fn parts_have_any_format_that_is_read_and_every_column() {
    let folder = Folder::empty();
    let row =
        |row: usize| format!("{},{}.5,{}.25,{}\n", 100 - row, row % 7, row % 3, ["cat", "dog"][row % 2]);
    let text: String = (0..40).map(row).collect();
    folder.write("data.csv", format!("id,cat,dog,label\n{text}"));
    let asked = folder.run("split data.csv -o a.csv b.csv").error();
    assert!(asked.contains("column `id`: holds whole numbers") && asked.contains("--drop"), "{asked}");
    let outputs = ["z.npz", "z.parquet", "z.arrow", "z.csv", "z.tsv", "z.jsonl"];
    for name in outputs {
        folder.run(&format!("split data.csv --keep id -o {name} rest-{name}")).ok();
        let keep = SourceOptions { keep: vec!["id".to_owned()], ..SourceOptions::default() };
        let mut ids = Vec::new();
        for part in [name.to_owned(), format!("rest-{name}")] {
            let mut source = Source::open(&Data::Files(vec![folder.file(&part)]), &keep).unwrap();
            let mut block = Block::default();
            while source.read(&mut block).unwrap() {
                assert_eq!(source.names().unwrap().as_slice(), ["cat", "dog"]);
                for row in 0..block.rows() {
                    let id: usize = block.keep[0].cells.text(row).parse().unwrap();
                    assert_eq!(block.logits.get(2 * row), Some(((100 - id) % 7) as f64 + 0.5), "{part}");
                    assert_eq!(block.labels.as_ref().unwrap()[row] as usize, (100 - id) % 2, "{part}");
                    ids.push(id);
                }
            }
        }
        ids.sort_unstable();
        assert_eq!(ids, (61..=100).collect::<Vec<_>>(), "{name}");
    }
}

/// JSON Lines and npz name what is the logits, so nothing has to be said of the rest for it to be carried over.
#[test]
fn parts_have_the_other_columns_unasked() {
    let (folder, rows) = (Folder::empty(), Rows::new(40, 5));
    let line = |row: usize| {
        let logits: Vec<String> =
            rows.logits[CLASSES * row..][..CLASSES].iter().map(ToString::to_string).collect();
        format!("{{\"id\":\"row {row}\",\"logits\":[{}],\"label\":{}}}\n", logits.join(","), rows.labels[row])
    };
    folder.write("data.jsonl", (0..40).map(line).collect::<String>());
    folder.run("split data.jsonl -o a.npz b.npz").ok();
    folder.run("split a.npz -o c.jsonl d.parquet").ok();
    folder.run("split d.parquet -o e.csv f.jsonl").ok();
    let keep = SourceOptions { keep: vec!["id".to_owned()], ..SourceOptions::default() };
    let mut found = Vec::new();
    for part in ["b.npz", "c.jsonl", "e.csv", "f.jsonl"] {
        let mut source = Source::open(&Data::Files(vec![folder.file(part)]), &keep).unwrap();
        let mut block = Block::default();
        while source.read(&mut block).unwrap() {
            for place in 0..block.rows() {
                let row: usize = block.keep[0].cells.text(place)[4..].parse().unwrap();
                let logit = block.logits.get(CLASSES * place).unwrap();
                // JSON Lines holds the shortest text of a number, and its numbers are doubles.
                assert_eq!(logit as f32, rows.logits[CLASSES * row], "{part}");
                found.push(row);
            }
        }
    }
    found.sort_unstable();
    assert_eq!(found, (0..40).collect::<Vec<_>>());
}

#[test]
fn data_may_be_named_after_the_outputs() {
    let folder = Folder::with_data();
    folder.run("split test.npz -o a.npz b.npz").ok();
    folder.run("split -o c.npz d.npz test.npz").ok();
    assert_eq!(folder.read("a.npz"), folder.read("c.npz"));
    let message = folder.run("split -o e.npz f.npz").error();
    assert!(message.contains("no data is named"), "{message}");
}

#[test]
fn refuses_what_cannot_be_written() {
    let folder = Folder::with_data();
    let cases = [
        ("-o a.npz", "2 fractions but 1 outputs"),
        ("-o a.npz b", "b: its name says no format"),
        ("-o a.npz b.npy", "an .npy file holds logits alone"),
        ("-o a.npz a.npz", "named as an output twice"),
        ("-o a.npz cal.npz", "exists already"),
        ("--fractions 0.4,0.7 -o a.npz b.npz", "sum to 1"),
        ("-o a.npz nowhere/b.npz", "nowhere/b.npz"),
    ];
    for (words, wanted) in cases {
        let message = folder.run(&format!("split test.npz {words}")).error();
        assert!(message.contains(wanted), "{words}: {message}");
        assert_eq!(folder.names(), ["cal.npz", "test.npz"], "{words}");
    }
    let message = folder.run_with("split - -o a.npz b.npz", b"a,b,label\n1,2,a\n").error();
    assert!(message.contains("a pipe can be read once only"), "{message}");
}
