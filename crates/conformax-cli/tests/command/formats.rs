//! Every input format gives the same model and the same sets.

use conformax_io::Model;

use crate::folder::{Folder, lines};
use crate::written::{Sample, Write};

/// The model and the sets of a sample that was written in one way.
fn calibrated(folder: &Folder, data: &str, extra: &str) -> (Model, Vec<serde_json::Value>) {
    folder.run(&format!("calibrate {data} {extra} --alpha 0.3 --force -o model.json")).ok();
    let ran = folder.run(&format!("predict model.json {data} {extra} --probabilities")).ok();
    (Model::read(&folder.file("model.json")).unwrap(), lines(&ran.out))
}

#[test]
fn every_format_gives_the_same_sets() {
    let sample = Sample::new(40, 9);
    let folder = Folder::empty();
    Write::Npz.write(&sample, folder.path());
    let (reference, sets) = calibrated(&folder, "z.npz", "");
    assert_eq!(sets[0]["labels"][0], *sample.names[most(sample.row(0))]);
    let index = |line: &serde_json::Value| -> Vec<usize> {
        let labels = line["labels"].as_array().unwrap();
        let place = |name: &str| sample.names.iter().position(|other| other == name);
        let class = |label: &serde_json::Value| match label.as_str() {
            Some(name) => place(name).unwrap(),
            None => label.as_u64().unwrap() as usize,
        };
        labels.iter().map(class).collect()
    };
    for (write, _, named) in Write::ALL {
        let folder = Folder::empty();
        let path = write.write(&sample, folder.path());
        let (model, found) = calibrated(&folder, path.file_name().unwrap().to_str().unwrap(), "");
        assert_eq!(model.levels, reference.levels, "{write:?}");
        assert_eq!(model.evidence, reference.evidence, "{write:?}");
        assert_eq!(model.calibrating_rows, reference.calibrating_rows, "{write:?}");
        assert_eq!(model.names.is_some(), named, "{write:?}");
        for (found, wanted) in found.iter().zip(&sets) {
            assert_eq!(index(found), index(wanted), "{write:?}");
            assert_eq!(found["probabilities"], wanted["probabilities"], "{write:?}");
        }
    }
}

fn most(row: &[f64]) -> usize {
    (0..row.len()).reduce(|best, next| if row[next] > row[best] { next } else { best }).unwrap()
}

#[test]
fn a_pair_of_arrays_shards_and_a_folder_are_one_data_set() {
    let (sample, folder) = (Sample::new(40, 9), Folder::empty());
    Write::NpzHalf.write(&sample, folder.path());
    let (reference, sets) = calibrated(&folder, "z.npz", "");
    sample.write_pair(folder.path(), "");
    folder.run("calibrate --logits logits.npy --labels labels.npy --alpha 0.3 -o pair.json").ok();
    let pair = Model::read(&folder.file("pair.json")).unwrap();
    assert_eq!((&pair.evidence, &pair.levels), (&reference.evidence, &reference.levels));
    std::fs::create_dir(folder.file("shards")).unwrap();
    folder.run("split z.npz --fractions 0.25,0.75 -o shards/a.npz shards/b.npz").ok();
    for data in ["shards", "shards/a.npz shards/b.npz"] {
        let (model, found) = calibrated(&folder, data, "");
        assert_eq!(model.levels, reference.levels);
        let mut sorted = found.iter().map(|line| line["labels"].to_string()).collect::<Vec<_>>();
        let mut wanted = sets.iter().map(|line| line["labels"].to_string()).collect::<Vec<_>>();
        sorted.sort();
        wanted.sort();
        assert_eq!(sorted, wanted);
        assert_eq!(found.last().unwrap()["row"], 39);
    }
}

#[test]
fn standard_input_is_read_in_every_streamed_format() {
    let (sample, folder) = (Sample::new(40, 9), Folder::empty());
    Write::NpzHalf.write(&sample, folder.path());
    let (_, sets) = calibrated(&folder, "z.npz", "");
    let labels = |lines: &[serde_json::Value]| -> Vec<String> {
        lines.iter().map(|line| line["labels"].to_string()).collect()
    };
    for write in [Write::Npy, Write::CsvCounting, Write::JsonLines] {
        let path = write.write(&sample, folder.path());
        let ran = folder.run_with("predict model.json -", &std::fs::read(path).unwrap()).ok();
        assert_eq!(labels(&lines(&ran.out)), labels(&sets), "{write:?}");
    }
    let bytes = folder.read("z.jsonl");
    let ran = folder.run_with("calibrate - --alpha 0.3 -o piped.json", &bytes).ok();
    assert!(ran.out.contains("calibrated on 40 rows"), "{}", ran.out);
    assert_eq!(
        Model::read(&folder.file("piped.json")).unwrap().evidence,
        Model::read(&folder.file("model.json")).unwrap().evidence
    );
}

#[test]
fn columns_may_have_other_names() {
    let folder = Folder::empty();
    let line = |row: usize| format!("{{\"z\":[{row},1,2],\"y\":{},\"label\":9}}\n", row % 3);
    folder.write("cal.jsonl", (0..30).map(line).collect::<String>());
    folder.run("calibrate cal.jsonl --logits-column z --label-column y -o model.json").ok();
    let message = folder.run("calibrate cal.jsonl --label-column y -o other.json").error();
    assert!(message.contains("hint: name the right one with --logits-column"), "{message}");
}

/// A header that counts names nothing, and classes without names are known by their numbers.
#[test]
fn columns_that_bear_other_numbers_are_other_classes() {
    let folder = Folder::empty();
    let row = |row: usize| format!("{}.5,{}.5,1.5,{}\n", row % 5, row % 3, row % 3);
    folder.write("cal.csv", "0,1,2,label\n".to_owned() + &(0..30).map(row).collect::<String>());
    folder.run("calibrate cal.csv --by class --alpha 0.3 -o model.json").ok();
    folder.write("same.csv", "0,1,2\n1.5,2.5,3.5\n");
    assert_eq!(folder.run("predict model.json same.csv").ok().out.lines().count(), 1);
    for (header, message) in [
        ("2,1,0", "class 0 is `2` here and `0` elsewhere"),
        ("9,8,7", "class 0 is `9` here and `0` elsewhere"),
        ("1,2,3", "class 0 is `1` here and `0` elsewhere"),
    ] {
        folder.write("other.csv", format!("{header}\n1.5,2.5,3.5\n"));
        let told = folder.run("predict model.json other.csv").error();
        assert!(told.contains(message), "{told}");
    }
}

#[test]
fn one_fingerprint_in_every_format() {
    let sample = Sample::new(40, 9);
    for (write, dtype, _) in Write::ALL {
        let folder = Folder::empty();
        let path = write.write(&sample, folder.path());
        let json = folder.run(&format!("inspect {} --json", path.file_name().unwrap().to_str().unwrap()));
        let json = json.ok().json();
        assert_eq!(json["fingerprint"], format!("{:016x}", sample.fingerprint()), "{write:?}");
        assert_eq!((json["rows"].as_u64(), json["classes"].as_u64()), (Some(40), Some(9)), "{write:?}");
        assert_eq!(json["dtype"], dtype.to_string(), "{write:?}");
    }
}
