//! Data as a configuration names it, from files to batches.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::sync::Arc;

use conformax_train::data::{
    BatchInputs, ImageTransform, Part, Plan, Preparation, Remove, Resize, Source, Splitting, Tokenizing,
};

fn source(text: &str) -> Result<Source, String> {
    toml::from_str(text).map_err(|error| error.to_string())
}

#[test]
fn a_configuration_names_format_and_path() {
    assert_eq!(source("format = 'cifar10'\npath = 'x'"), Ok(Source::Cifar10 { path: "x".into() }));
    let newsgroups = Source::Newsgroups { path: "n".into(), remove: Remove::all() };
    assert_eq!(source("format = 'newsgroups'\npath = 'n'"), Ok(newsgroups.clone()));
    let written = toml::to_string(&newsgroups).unwrap();
    assert_eq!(source(&written), Ok(newsgroups), "{written}");
    let folder = source("format = 'image-folder'\npath = 'i'\ntest = 'val'").unwrap();
    assert_eq!(
        folder,
        Source::ImageFolder { path: "i".into(), validation: "val".into(), test: "val".into() }
    );
    for (wrong, why) in [
        ("format = 'cifar11'\npath = 'x'", "unknown variant `cifar11`"),
        ("format = 'idx'", "missing field `path`"),
        ("format = 'idx'\npath = 'x'\nsplit = 1", "unknown field `split`"),
    ] {
        let error = source(wrong).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn options_have_the_defaults_of_their_documentation() {
    assert_eq!(toml::from_str::<Splitting>("").unwrap(), Splitting::default());
    assert_eq!(toml::from_str::<ImageTransform>("").unwrap().resize, Resize::Keep);
    let resize =
        toml::from_str::<ImageTransform>("resize.short-side = { size = 256, crop = 224 }").unwrap().resize;
    assert_eq!(resize, Resize::ShortSide { size: 256, crop: 224 });
    let tokens: Tokenizing = toml::from_str("tokenizer = 't.json'").unwrap();
    assert_eq!(tokens.max_length, 128);
    assert!(toml::from_str::<Splitting>("tests = 0.2").is_err());
}

#[test]
fn a_table_of_texts_becomes_batches_of_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("posts.csv");
    std::fs::write(&path, "text,label\nThe space shuttle,sci\norbit,sci\na b c,other\nlaunch,sci\n").unwrap();
    let tokenizer = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/training-data/tokenizer.json");
    let preparation = Preparation::Texts(Tokenizing { tokenizer, max_length: 5 });
    let source =
        Source::Csv { train: path, validation: None, test: None, text: "text".into(), label: "label".into() };
    let data = source.read().unwrap();
    let wrong =
        data.clone().prepare(&Preparation::Images(ImageTransform::default())).unwrap_err().to_string();
    assert_eq!(wrong, "the data are texts, and the model takes images");
    let splitting = Splitting { test: Some(0.25), ..Splitting::default() };
    let examples = Arc::new(data.split(&splitting).unwrap().prepare(&preparation).unwrap());
    assert_eq!((examples.classes(), examples.vocabulary(), examples.input_shape()), (2, Some(27), None));
    assert_eq!((examples.parts.train.len(), examples.parts.test.len()), (3, 1));
    let all = [Part::Train, Part::Test].map(|part| {
        Plan::evaluation(examples.clone(), part, 8).and_then(|plan| plan.batch(0)).unwrap().inputs
    });
    let [BatchInputs::Tokens { ids, mask, types, shape }, _] = &all else { panic!("texts went in") };
    assert_eq!((*shape, ids.len(), mask.len(), types.len()), ([3, 5], 15, 15, 15));
    for (ids, mask) in ids.chunks(5).zip(mask.chunks(5)) {
        assert_eq!(ids[0], 2, "a document starts with [CLS]");
        assert!(ids.iter().zip(mask).all(|(id, mask)| (*id == 0) == (*mask == 0)), "{ids:?} {mask:?}");
    }
}

#[test]
fn images_of_any_size_become_batches_of_one() {
    let folder = tempfile::tempdir().unwrap();
    for (class, part, width, height) in [("a", "train", 9, 5), ("b", "train", 4, 4), ("b", "test", 30, 7)] {
        let place = folder.path().join(part).join(class);
        std::fs::create_dir_all(&place).unwrap();
        let picture = image::RgbImage::from_pixel(width, height, image::Rgb([255, 51, 0]));
        picture.save(place.join("1.png")).unwrap();
    }
    let data =
        Source::ImageFolder { path: folder.path().into(), validation: "val".into(), test: "test".into() };
    let transform = ImageTransform { resize: Resize::ShortSide { size: 4, crop: 3 }, ..Default::default() };
    let examples = Arc::new(data.read().unwrap().prepare(&Preparation::Images(transform)).unwrap());
    for (part, rows) in [(Part::Train, 2), (Part::Test, 1)] {
        let batch = Plan::evaluation(examples.clone(), part, 8).and_then(|plan| plan.batch(0)).unwrap();
        let BatchInputs::Images { values, shape, .. } = batch.inputs else { panic!("images went in") };
        assert_eq!(shape, [rows, 3, 3, 3]);
        for (plane, wanted) in values.chunks(9).zip([1.0, 0.2, 0.0].into_iter().cycle()) {
            assert!(plane.iter().all(|value: &f32| (value - wanted).abs() < 1e-6), "{plane:?}, not {wanted}");
        }
    }
}
