//! Logits of a checkpoint's own head, on texts and images, from one file of weights and from several.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use conformax_io::{Block, Data, Overwrite, Source as Rows, SourceOptions, Values};
use conformax_train::data::Source;
use conformax_train::{Device, LogitsRequest, Matched, Scored, Unobserved, logits};
use safetensors::SafeTensors;
use safetensors::tensor::{TensorView, serialize};
use serde_json::{Value, json};
use tempfile::TempDir;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/checkpoints").join(name)
}

fn expected(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(fixture(name).join("expected.json")).unwrap()).unwrap()
}

/// A copy of a fixture with other labels, its weights in two files.
fn sharded(name: &str, labels: [&str; 3], folder: &Path) {
    let mut config: Value =
        serde_json::from_slice(&std::fs::read(fixture(name).join("config.json")).unwrap()).unwrap();
    config["id2label"] = json!({"0": labels[0], "1": labels[1], "2": labels[2]});
    std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
    if name == "bert" {
        std::fs::copy(fixture(name).join("tokenizer.json"), folder.join("tokenizer.json")).unwrap();
    }
    let bytes = std::fs::read(fixture(name).join("model.safetensors")).unwrap();
    let tensors: BTreeMap<String, TensorView<'_>> = SafeTensors::deserialize(&bytes)
        .unwrap()
        .iter()
        .map(|(name, view)| (name.to_owned(), view))
        .collect();
    let mut index = BTreeMap::new();
    for shard in 0..2 {
        let file = format!("model-0000{}-of-00002.safetensors", shard + 1);
        let part: Vec<_> =
            tensors.iter().enumerate().filter(|(at, _)| at % 2 == shard).map(|(_, tensor)| tensor).collect();
        index.extend(part.iter().map(|(name, _)| ((*name).clone(), file.clone())));
        std::fs::write(folder.join(&file), serialize(part, None).unwrap()).unwrap();
    }
    let index = json!({"metadata": {}, "weight_map": index});
    std::fs::write(folder.join("model.safetensors.index.json"), index.to_string()).unwrap();
}

fn score(checkpoint: &Path, data: &Path, output: &Path) -> Result<Scored, conformax_train::Error> {
    let data = Source::at(data)?;
    let request =
        LogitsRequest { checkpoint: checkpoint.to_owned(), data, part: None, max_length: 16, batch_size: 3 };
    logits(&request, (output, Overwrite::Refuse), Device::Cpu, &mut Unobserved)
}

fn read(path: &Path) -> (Vec<f32>, Vec<u32>, Vec<String>) {
    let mut source = Rows::open(&Data::Files(vec![path.to_owned()]), &SourceOptions::default()).unwrap();
    let names = source.names().unwrap().as_slice().to_vec();
    let (mut all, mut labels, mut block) = (Vec::new(), Vec::new(), Block::default());
    while source.read(&mut block).unwrap() {
        let Values::F32(values) = &block.logits else { panic!("logits are f32") };
        all.extend_from_slice(values);
        labels.extend_from_slice(block.labels.as_ref().unwrap());
    }
    (all, labels, names)
}

/// The fixture's texts as a table; labels go round the classes.
fn table(folder: &Path, classes: [&str; 3], texts: &[String]) -> PathBuf {
    let path = folder.join("texts.csv");
    let rows: String = texts
        .iter()
        .enumerate()
        .map(|(row, text)| format!("\"{}\",{}\n", text.replace('"', "\"\""), classes[row % 3]))
        .collect();
    std::fs::write(&path, format!("text,label\n{rows}")).unwrap();
    path
}

#[test]
fn a_head_on_texts_gives_the_logits_of_transformers() {
    let expected = expected("bert");
    // One text was given a second type there, which one text alone never has.
    let same: Vec<usize> = (0..expected["texts"].as_array().unwrap().len()).filter(|row| *row != 1).collect();
    let texts: Vec<String> =
        same.iter().map(|row| expected["texts"][row].as_str().unwrap().to_owned()).collect();
    let folder = tempfile::tempdir().unwrap();
    sharded("bert", ["sport", "animal", "thing"], folder.path());
    let data = table(folder.path(), ["animal", "sport", "thing"], &texts);
    let output = folder.path().join("test.npz");
    let scored = score(folder.path(), &data, &output).unwrap();
    assert_eq!((scored.rows, scored.matched), (texts.len(), Matched::ByName));
    let (values, labels, names) = read(&output);
    assert_eq!(names, ["sport", "animal", "thing"]);
    assert_eq!(labels[..3], [1, 0, 2], "numbers are the checkpoint's");
    for (row, wanted) in values.chunks(3).zip(same.iter().map(|row| &expected["logits"][row])) {
        for (class, value) in row.iter().enumerate() {
            let wanted = wanted[class].as_f64().unwrap() as f32;
            assert!((value - wanted).abs() < 1e-5, "{value}, wanted {wanted}");
        }
    }
    let right =
        values.chunks(3).zip(&labels).filter(|(row, label)| row.iter().all(|v| *v <= row[**label as usize]));
    assert_eq!(right.count() as f64 / texts.len() as f64, scored.accuracy);
    let again = score(folder.path(), &data, &output).unwrap_err().to_string();
    assert!(again.contains("test.npz"), "{again}");
}

fn images(folder: &Path, names: [&str; 3], size: u32) -> PathBuf {
    let images = folder.join("images");
    for (class, name) in names.iter().enumerate() {
        std::fs::create_dir_all(images.join(name)).unwrap();
        let shade = |x: u32, y: u32| image::Rgb([(x * 20 + class as u32 * 40) as u8, (y * 20) as u8, 90]);
        image::RgbImage::from_fn(size, size, shade).save(images.join(name).join("1.png")).unwrap();
    }
    images
}

#[test]
fn a_head_on_images_matches_classes_by_order_or_by_name() {
    for (names, matched) in
        [(["n01", "n02", "n03"], Matched::ByOrder), (["LABEL_0", "LABEL_2", "LABEL_1"], Matched::ByName)]
    {
        let folder: TempDir = tempfile::tempdir().unwrap();
        let data = images(folder.path(), names, 12);
        let output = folder.path().join("test.npz");
        let scored = score(&fixture("vit"), &data, &output).unwrap();
        assert_eq!((scored.rows, scored.matched), (3, matched));
        let (_, labels, found) = read(&output);
        assert_eq!((labels, found.len()), (vec![0, 1, 2], 3));
    }
}

#[test]
fn says_what_does_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    let data = images(folder.path(), ["cat", "dog", "LABEL_0"], 12);
    let output = folder.path().join("test.npz");
    let error = score(&fixture("vit"), &data, &output).unwrap_err().to_string();
    assert!(error.contains("class `cat` of the data is no label of the checkpoint"), "{error}");
    let error = score(&fixture("bert-bare"), &data, &output).unwrap_err().to_string();
    assert!(error.contains("classifier.weight is missing"), "{error}");
    let other = tempfile::tempdir().unwrap();
    let known = images(other.path(), ["LABEL_0", "LABEL_1", "LABEL_2"], 12);
    let error = score(&fixture("bert"), &known, &output).unwrap_err().to_string();
    assert!(error.contains("the data are images, and the model takes texts"), "{error}");
    sharded("vit", ["a", "b", "c"], folder.path());
    std::fs::remove_file(folder.path().join("model-00002-of-00002.safetensors")).unwrap();
    let error = score(folder.path(), &data, &output).unwrap_err().to_string();
    assert!(error.contains("model-00002-of-00002.safetensors: "), "{error}");
    assert!(!output.exists());
}
