//! Batches are a function of seed and step: threads, restarts and errors change nothing about them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::sync::Arc;

use conformax_train::data::{
    Augment, Batch, BatchInputs, Batches, Examples, ImageTransform, Part, Plan, Preparation, Source,
    Splitting,
};
use tempfile::TempDir;

const RANDOM: Augment = Augment { flip: true, padding: 4, mixup: 0.0 };

/// CIFAR-10 with `train` + 3 images, the bytes of each image telling it from the others.
fn cifar(train: usize) -> (TempDir, Arc<Examples>) {
    let folder = tempfile::tempdir().unwrap();
    let record =
        |row: usize| (0..3073).map(move |i| if i == 0 { row % 10 } else { (row * 31 + i * 7) % 256 } as u8);
    let write = |name: &str, rows: std::ops::Range<usize>| {
        std::fs::write(folder.path().join(name), rows.flat_map(record).collect::<Vec<u8>>()).unwrap();
    };
    write("data_batch_1.bin", 0..train);
    write("test_batch.bin", train..train + 3);
    let data = Source::Cifar10 { path: folder.path().to_owned() }.read().unwrap();
    let examples = data.split(&Splitting::default()).unwrap().prepare(&pixels()).unwrap();
    (folder, Arc::new(examples))
}

fn pixels() -> Preparation {
    Preparation::Images(ImageTransform::default())
}

fn training(examples: &Arc<Examples>, seed: u64) -> Plan {
    Plan::training(examples.clone(), 4, RANDOM, seed).unwrap()
}

fn collect(plan: &Plan, steps: std::ops::Range<u64>, workers: usize) -> Vec<Batch> {
    Batches::new(plan.clone(), steps, workers).map(Result::unwrap).collect()
}

#[test]
fn threads_and_restarts_change_nothing() {
    let (_folder, examples) = cifar(19);
    let plan = training(&examples, 7);
    assert_eq!(plan.steps_per_epoch(), 5);
    let plain: Vec<Batch> = (0..12).map(|step| plan.batch(step).unwrap()).collect();
    for workers in [0, 1, 2, 5, 40] {
        assert_eq!(collect(&plan, 0..12, workers), plain, "{workers} workers");
    }
    for start in 0..12 {
        let fresh = training(&examples, 7);
        assert_eq!(collect(&fresh, start..12, 3), plain[start as usize..], "taken up at step {start}");
    }
    assert_ne!(training(&examples, 8).batch(0).unwrap(), plain[0]);
    assert!(collect(&plan, 4..4, 2).is_empty());
}

#[test]
fn an_epoch_sees_each_row_once_in_an_order_of_its_own() {
    let (_folder, examples) = cifar(19);
    // Without changes to the images, a row is known by its first pixel.
    let plan = Plan::training(examples, 4, Augment::default(), 7).unwrap();
    let first_pixels = |batch: &Batch| match &batch.inputs {
        BatchInputs::Images { values, shape, .. } => {
            values.chunks(shape[1..].iter().product()).map(|i| i[0]).collect()
        }
        BatchInputs::Tokens { .. } => Vec::new(),
    };
    let orders: Vec<Vec<f32>> =
        collect(&plan, 0..10, 2).chunks(5).map(|e| e.iter().flat_map(first_pixels).collect()).collect();
    assert_ne!(orders[0], orders[1]);
    let sorted = |order: &[f32]| {
        let mut order = order.to_vec();
        order.sort_by(f32::total_cmp);
        order.dedup();
        order
    };
    assert_eq!(sorted(&orders[0]).len(), 19);
    assert_eq!(sorted(&orders[0]), sorted(&orders[1]));
}

#[test]
fn a_single_last_row_joins_the_batch_before() {
    let sizes = |rows| {
        let (_folder, examples) = cifar(rows);
        let plan = training(&examples, 0);
        collect(&plan, 0..plan.steps_per_epoch(), 1)
            .iter()
            .map(|batch| batch.labels.len())
            .collect::<Vec<_>>()
    };
    assert_eq!(sizes(8), [4, 4]);
    assert_eq!(sizes(9), [4, 5]);
    assert_eq!(sizes(10), [4, 4, 2]);
    assert_eq!(sizes(1), [1]);
}

#[test]
fn evaluation_is_in_order_and_leaves_images_alone() {
    let (_folder, examples) = cifar(10);
    let plan = Plan::evaluation(examples.clone(), Part::Test, 2).unwrap();
    let batches = collect(&plan, 0..plan.steps_per_epoch(), 2);
    assert_eq!(batches.iter().map(|batch| batch.labels.as_slice()).collect::<Vec<_>>(), [&[0, 1][..], &[2]]);
    let BatchInputs::Images { values, shape, .. } = &batches[1].inputs else { panic!("images went in") };
    assert_eq!(*shape, [1, 3, 32, 32]);
    let wanted = (1..3073).map(|i| ((12 * 31 + i * 7) % 256) as f32 * (1.0 / 255.0));
    assert!(values.iter().copied().eq(wanted));
    let error = Plan::evaluation(examples, Part::Validation, 2).unwrap_err().to_string();
    assert_eq!(error, "the validation part has no rows");
}

#[test]
fn dropping_the_batches_ends_their_threads() {
    let (_folder, examples) = cifar(40);
    let mut batches = Batches::new(training(&examples, 1), 0..1_000_000_000, 3);
    assert_eq!(batches.next().unwrap().unwrap().step, 0);
    drop(batches);
    // Each thread held the examples through its plan.
    assert_eq!(Arc::strong_count(&examples), 1);
}

#[test]
#[should_panic(expected = "index out of bounds")]
fn a_panic_on_a_thread_reaches_the_caller() {
    let (_folder, examples) = cifar(8);
    let mut examples = Arc::into_inner(examples).unwrap();
    examples.labels.clear();
    Batches::new(training(&Arc::new(examples), 0), 0..2, 2).for_each(drop);
}

fn image(path: &Path, size: u32) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    image::RgbImage::from_pixel(size, size, image::Rgb([size as u8; 3])).save(path).unwrap();
}

/// A folder with six images of four pixels, one of which `spoil` replaces.
fn spoilt(spoil: impl Fn(&Path)) -> Vec<Result<u64, String>> {
    let folder = tempfile::tempdir().unwrap();
    (0..6).for_each(|row| image(&folder.path().join(format!("class/{row}.png")), 2));
    spoil(&folder.path().join("class/4.png"));
    let source =
        Source::ImageFolder { path: folder.path().to_owned(), validation: "val".into(), test: "test".into() };
    let examples = Arc::new(source.read().unwrap().prepare(&pixels()).unwrap());
    assert_eq!(examples.input_shape(), Some([3, 2, 2]));
    let plan = Plan::evaluation(examples, Part::Train, 1).unwrap();
    let seen = |batch: Result<Batch, conformax_train::data::Error>| {
        batch.map(|batch| batch.step).map_err(|e| e.to_string())
    };
    Batches::new(plan, 0..6, 3).map(seen).collect()
}

#[test]
fn an_error_on_a_thread_comes_at_its_step_and_ends_the_batches() {
    let broken = spoilt(|path| std::fs::write(path, "no image").unwrap());
    assert_eq!(broken[..4], [Ok(0), Ok(1), Ok(2), Ok(3)]);
    let message = broken[4].as_ref().unwrap_err();
    assert!(message.contains("class/4.png: damaged or not a PNG or JPEG image"), "{message}");
    assert_eq!(broken.len(), 5);
    let larger = spoilt(|path| image(path, 3));
    let message = larger[4].as_ref().unwrap_err();
    assert!(
        message.ends_with("class/4.png: the image is 3×3, the others are 2×2; resize them to one size"),
        "{message}"
    );
}

#[test]
fn texts_of_like_length_share_a_batch_and_each_is_seen_once() {
    const ROWS: usize = 203;
    let length = |row: usize| 1 + row * 37 % 29;
    let folder = tempfile::tempdir().unwrap();
    // A text is known by its number of words, and its label by its row.
    let rows: String = (0..ROWS).map(|row| format!("{},{}\n", "cat ".repeat(length(row)), row % 7)).collect();
    let path = folder.path().join("texts.csv");
    std::fs::write(&path, format!("text,label\n{rows}")).unwrap();
    let tokenizer = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/training-data/tokenizer.json");
    let preparation = Preparation::Texts(conformax_train::data::Tokenizing { tokenizer, max_length: 64 });
    let examples = Arc::new(Source::at(&path).unwrap().read().unwrap().prepare(&preparation).unwrap());
    let plan = Plan::training(examples, 4, Augment::default(), 5).unwrap();
    let steps = plan.steps_per_epoch();
    let mut orders = Vec::new();
    for epoch in 0..2 {
        let (mut places, mut lengths) = (0, Vec::new());
        for batch in collect(&plan, epoch * steps..(epoch + 1) * steps, 2) {
            let BatchInputs::Tokens { mask, shape, .. } = &batch.inputs else {
                panic!("texts became images")
            };
            places += shape[0] * shape[1];
            lengths.extend(mask.chunks(shape[1]).map(|row| row.iter().sum::<i64>()));
        }
        let tokens: i64 = lengths.iter().sum();
        assert!((places as f64) < 1.35 * tokens as f64, "{places} places for {tokens} tokens");
        orders.push(lengths.clone());
        lengths.sort_unstable();
        let mut wanted: Vec<i64> = (0..ROWS).map(|row| length(row) as i64 + 2).collect();
        wanted.sort_unstable();
        assert_eq!(lengths, wanted, "epoch {epoch}");
    }
    assert_ne!(orders[0], orders[1]);
}
