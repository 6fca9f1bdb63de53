//! Logits of a checkpoint's own head, on texts and images, from one file of weights and from several.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use conformax_io::{Block, Data, Overwrite, Source as Rows, SourceOptions, Values};
use conformax_train::data::Source;
use conformax_train::{Device, LogitsRequest, Matched, Scored, Unobserved, logits};
use safetensors::tensor::{TensorView, serialize};
use safetensors::{Dtype, SafeTensors};
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

/// Shape and numbers of a tensor that takes the place of one by this name, if any does.
type Replace<'a> = &'a dyn Fn(&str, &TensorView<'_>) -> Option<(Vec<usize>, Vec<f32>)>;

/// The vision transformer of the fixture with other tensors and another config.
fn changed(folder: &Path, tensors: Replace<'_>, config: &dyn Fn(&mut Value)) {
    let mut value: Value =
        serde_json::from_slice(&std::fs::read(fixture("vit").join("config.json")).unwrap()).unwrap();
    config(&mut value);
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("config.json"), value.to_string()).unwrap();
    let bytes = std::fs::read(fixture("vit").join("model.safetensors")).unwrap();
    let stored = SafeTensors::deserialize(&bytes).unwrap();
    let replaced: BTreeMap<String, (Vec<usize>, Vec<u8>)> = stored
        .iter()
        .filter_map(|(name, view)| {
            let (shape, values) = tensors(name, &view)?;
            Some((name.to_owned(), (shape, values.iter().flat_map(|value| value.to_le_bytes()).collect())))
        })
        .collect();
    let all = stored.iter().map(|(name, view)| match replaced.get(name) {
        Some((shape, bytes)) => (name, TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap()),
        None => (name, view),
    });
    std::fs::write(folder.join("model.safetensors"), serialize(all, None).unwrap()).unwrap();
}

/// The fixture's numbers, which are stored as bf16: the upper half of an f32.
fn numbers(view: &TensorView<'_>) -> Vec<f32> {
    let bits = view.data().as_chunks::<2>().0.iter().map(|bytes| u32::from(u16::from_le_bytes(*bytes)) << 16);
    bits.map(f32::from_bits).collect()
}

/// A head of more labels: each has the weights of one of the three.
fn with_labels(labels: &[String], folder: &Path) {
    let repeated = |name: &str, view: &TensorView<'_>| {
        name.starts_with("classifier.").then(|| {
            let (shape, held) = (view.shape(), numbers(view));
            let width = held.len() / 3;
            let rows = (0..labels.len()).flat_map(|k| held[k % 3 * width..][..width].to_vec()).collect();
            ([&[labels.len()], &shape[1..]].concat(), rows)
        })
    };
    let named: BTreeMap<String, &String> = (0..).map(|k: usize| k.to_string()).zip(labels).collect();
    changed(folder, &repeated, &|config| config["id2label"] = json!(named));
}

/// Red, green and blue planes of 32 by 32 bytes.
fn planes(image: usize) -> Vec<u8> {
    (0..3 * 32 * 32).map(|at| ((at / 7 * (image + 3) + at % 32 * 5 + at / 1024 * 40) % 256) as u8).collect()
}

fn png(planes: &[u8]) -> image::RgbImage {
    image::RgbImage::from_fn(32, 32, |x, y| {
        image::Rgb([0, 1, 2].map(|plane| planes[plane * 1024 + (y * 32 + x) as usize]))
    })
}

/// The logits of three images under the labels 0, 3 and 7 are the same from a file of records and from a folder of PNG
/// files.
fn assert_records_are_read_as_images(train: &str, test: &str, names_in: &str, classes: usize, coarse: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let (records, images) = (folder.path().join("records"), folder.path().join("images"));
    std::fs::create_dir_all(&records).unwrap();
    let names: Vec<String> = (0..classes).map(|class| format!("class {class}")).collect();
    std::fs::write(records.join(names_in), names.join("\n")).unwrap();
    let mut bytes = Vec::new();
    for label in [0, 3, 7] {
        bytes.extend([coarse, &[label], &planes(label.into())].concat());
        let class = images.join(&names[usize::from(label)]);
        std::fs::create_dir_all(&class).unwrap();
        png(&planes(label.into())).save(class.join("1.png")).unwrap();
    }
    std::fs::write(records.join(train), &bytes[..bytes.len() / 3]).unwrap();
    std::fs::write(records.join(test), bytes).unwrap();
    let checkpoint = folder.path().join("checkpoint");
    let reversed: Vec<String> = names.into_iter().rev().collect();
    with_labels(&reversed, &checkpoint);
    let last = classes as u32 - 1;
    let [of_records, of_images] = [&records, &images].map(|data| {
        let output = data.with_extension("npz");
        let scored = score(&checkpoint, data, &output).unwrap();
        assert_eq!((scored.rows, scored.matched), (3, Matched::ByName));
        let (values, labels, names) = read(&output);
        assert_eq!((labels, names), (vec![last, last - 3, last - 7], reversed.clone()));
        values
    });
    assert_eq!(of_records.len(), 3 * classes);
    for (at, (a, b)) in of_records.iter().zip(&of_images).enumerate() {
        assert!((a - b).abs() < 1e-5, "number {at}: {a} of records, {b} of images");
    }
    assert_ne!(of_records[..3], of_records[classes..classes + 3], "the images are different");
}

#[test]
fn a_head_on_cifar_gives_the_logits_of_its_images() {
    assert_records_are_read_as_images("data_batch_1.bin", "test_batch.bin", "batches.meta.txt", 10, &[]);
    assert_records_are_read_as_images("train.bin", "test.bin", "fine_label_names.txt", 100, &[9]);
}

#[test]
fn a_head_on_idx_files_gives_the_logits_of_grey_images() {
    let folder = tempfile::tempdir().unwrap();
    // One channel that sees what three see of a grey image.
    let grey = |name: &str, view: &TensorView<'_>| {
        name.ends_with("projection.weight").then(|| {
            let summed =
                |kernel: &[f32]| (0..16).map(|at| kernel[at] + kernel[16 + at] + kernel[32 + at]).collect();
            let values = numbers(view).chunks(48).flat_map(|kernel| -> Vec<f32> { summed(kernel) }).collect();
            (vec![16, 1, 4, 4], values)
        })
    };
    let one_channel = folder.path().join("one-channel");
    changed(&one_channel, &grey, &|config| config["num_channels"] = json!(1));
    std::fs::write(
        one_channel.join("preprocessor_config.json"),
        r#"{"image_mean": [0.5], "image_std": [0.5]}"#,
    )
    .unwrap();
    let (idx, images) = (folder.path().join("idx"), folder.path().join("images"));
    std::fs::create_dir_all(&idx).unwrap();
    let size = |n: u32| n.to_be_bytes();
    let pixel = |row: u32, x: u32, y: u32| (x * 20 + y * (9 + row * 4) + row * 30) as u8;
    let mut bytes = [size(0x803), size(3), size(12), size(12)].concat();
    for row in 0..3 {
        bytes.extend((0..144).map(|at| pixel(row, at % 12, at / 12)));
        // The data's classes are the numbers of the checkpoint's labels, and so are the folders.
        std::fs::create_dir_all(images.join(row.to_string())).unwrap();
        let image = image::RgbImage::from_fn(12, 12, |x, y| image::Rgb([pixel(row, x, y); 3]));
        image.save(images.join(format!("{row}/1.png"))).unwrap();
    }
    let labels = [size(0x801).to_vec(), size(3).to_vec(), vec![0, 1, 2]].concat();
    for part in ["train", "t10k"] {
        std::fs::write(idx.join(format!("{part}-images-idx3-ubyte")), &bytes).unwrap();
        std::fs::write(idx.join(format!("{part}-labels-idx1-ubyte")), &labels).unwrap();
    }
    let [of_idx, of_images] = [(one_channel, &idx), (fixture("vit"), &images)].map(|(checkpoint, data)| {
        let output = data.with_extension("npz");
        let scored = score(&checkpoint, data, &output).unwrap();
        assert_eq!((scored.rows, scored.matched), (3, Matched::ByNumber));
        let (values, labels, _) = read(&output);
        assert_eq!(labels, [0, 1, 2]);
        values
    });
    for (a, b) in of_idx.iter().zip(&of_images) {
        assert!((a - b).abs() < 1e-4, "{of_idx:?} and {of_images:?}");
    }
}

#[test]
fn a_head_on_newsgroups_gives_the_logits_of_the_posts_texts() {
    let folder = tempfile::tempdir().unwrap();
    let groups = ["sci.space", "alt.atheism", "rec.autos"];
    sharded("bert", groups, folder.path());
    let texts = ["the cat sat", "play games again", "a mat, a cat"].map(str::to_owned);
    let news = folder.path().join("news");
    // In the order of the groups' names, in which they are read.
    let sorted = ["alt.atheism", "rec.autos", "sci.space"];
    for (group, text) in sorted.iter().zip(&texts) {
        for part in ["20news-bydate-train", "20news-bydate-test"] {
            std::fs::create_dir_all(news.join(part).join(group)).unwrap();
            let post = format!("From: someone\nSubject: this\n\n{text}");
            std::fs::write(news.join(part).join(group).join("1"), post).unwrap();
        }
    }
    let csv = table(folder.path(), sorted, &texts);
    let [of_posts, of_texts] = [&news, &csv].map(|data| {
        let output = data.with_extension("npz");
        let scored = score(folder.path(), data, &output).unwrap();
        assert_eq!((scored.rows, scored.matched), (3, Matched::ByName));
        read(&output)
    });
    assert_eq!(of_posts.1, [1, 2, 0], "numbers are the checkpoint's");
    assert_eq!(of_posts, of_texts);
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
