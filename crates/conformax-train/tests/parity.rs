//! The same checkpoints and inputs through `transformers` and through ours: tokens, pooled states and logits.
//!
//! `fixtures/checkpoints` is always compared; `CONFORMAX_CHECKPOINTS` names another folder made by its `make.py`, with
//! a backbone: it must hold what the fixtures hold and real weights.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use burn::tensor::{Bool, Int, Tensor, TensorData};
use burn_flex::Flex;
use conformax_train::checkpoint::{Pretrained, PretrainedModel, load_bert, load_with_head};
use conformax_train::data::{BatchInputs, Dataset, Inputs, Part, Parts, Plan, Preparation, Tokenizing};
use serde::Deserialize;

/// What the logits of two implementations in `f32` may differ by.
const FOREIGN: f32 = 1e-5;
/// The same after twelve layers of real weights, whose logits are larger.
const FOREIGN_DEEP: f32 = 2e-4;
/// The folder with real weights.
const REAL: &str = "vit-real";

#[derive(Deserialize)]
struct Expected {
    #[serde(default)]
    texts: Vec<String>,
    #[serde(default)]
    ids: Vec<Vec<i64>>,
    #[serde(default)]
    mask: Vec<Vec<i64>>,
    #[serde(default)]
    types: Vec<Vec<i64>>,
    #[serde(default)]
    images: Vec<Vec<Vec<Vec<f32>>>>,
    #[serde(default)]
    cases: Vec<Expected>,
    logits: Option<Vec<Vec<f32>>>,
    pooled: Option<Vec<Vec<f32>>>,
}

fn folders(name: &str) -> Vec<PathBuf> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/checkpoints");
    // Real weights are not among the fixtures.
    let fixtures = (name != REAL).then_some(fixtures);
    let others = std::env::var_os("CONFORMAX_CHECKPOINTS").map(PathBuf::from);
    [fixtures, others].into_iter().flatten().map(|folder| folder.join(name)).collect()
}

fn expected(folder: &Path) -> Expected {
    let path = folder.join("expected.json");
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&bytes).unwrap()
}

fn integers(rows: &[Vec<i64>]) -> Tensor<Flex, 2, Int> {
    let data = TensorData::new(rows.concat(), [rows.len(), rows[0].len()]);
    Tensor::from_data(data, &Default::default())
}

fn with_head(folder: &Path) -> Pretrained<Flex> {
    load_with_head(folder, &Default::default()).unwrap()
}

fn assert_close(got: Tensor<Flex, 2>, wanted: &[Vec<f32>], most: f32, folder: &Path) {
    assert_eq!(got.dims(), [wanted.len(), wanted[0].len()]);
    let got: Vec<f32> = got.into_data().to_vec().unwrap();
    for (index, (got, wanted)) in got.iter().zip(wanted.concat()).enumerate() {
        assert!((got - wanted).abs() < most, "{}: number {index}: {got}, wanted {wanted}", folder.display());
    }
}

/// The mask that our own tokeniser makes, after comparing it and the ids with the other's.
fn assert_same_tokens(expected: &Expected, folder: &Path) {
    let rows = expected.texts.len();
    let dataset = Dataset {
        inputs: Inputs::Texts(expected.texts.clone()),
        labels: vec![0; rows],
        class_names: vec!["any".into()],
        parts: Parts { test: (0..rows).collect(), ..Parts::default() },
    };
    let tokenizing =
        Tokenizing { tokenizer: folder.join("tokenizer.json"), max_length: expected.ids[0].len() };
    let examples = dataset.prepare(&Preparation::Texts(tokenizing)).unwrap();
    let plan = Plan::evaluation(Arc::new(examples), Part::Test, rows).unwrap();
    let BatchInputs::Tokens { ids, mask, shape, .. } = plan.batch(0).unwrap().inputs else {
        panic!("texts became images");
    };
    // One of the texts is longer than may be kept, so that the batch is as long as the other's.
    assert_eq!(shape, [rows, expected.ids[0].len()]);
    assert_eq!(ids, expected.ids.concat());
    assert_eq!(mask, expected.mask.concat());
}

#[test]
fn tokens_equal_those_of_transformers() {
    for folder in ["bert", "bert-bare"].map(folders).concat() {
        assert_same_tokens(&expected(&folder), &folder);
    }
}

#[test]
fn bert_logits_equal_those_of_transformers() {
    for folder in folders("bert") {
        let expected = expected(&folder);
        let Pretrained { model: PretrainedModel::Bert(model, _), labels } = with_head(&folder) else {
            panic!("{} is not a BERT", folder.display());
        };
        assert_eq!(labels, ["LABEL_0", "LABEL_1", "LABEL_2"]);
        let mask: Tensor<Flex, 2, Bool> = integers(&expected.mask).greater_elem(0);
        let logits = model.forward(integers(&expected.ids), mask, integers(&expected.types));
        assert_close(logits, &expected.logits.unwrap(), FOREIGN, &folder);
    }
}

#[test]
fn a_bare_encoder_in_half_precision_gives_the_same_pooled_states() {
    for folder in folders("bert-bare") {
        let expected = expected(&folder);
        let model = load_bert::<Flex>(&folder, 3, &Default::default()).unwrap();
        let mask: Tensor<Flex, 2, Bool> = integers(&expected.mask).greater_elem(0);
        let pooled = model.pooled(integers(&expected.ids), mask, integers(&expected.types));
        assert_close(pooled, &expected.pooled.unwrap(), FOREIGN, &folder);
    }
}

/// The folder's logits of the images, and the head's part in it, are the other's.
fn assert_same_logits(folder: &Path, expected: &Expected, most: f32) {
    let Pretrained { model: PretrainedModel::Vit(model, _), .. } = with_head(folder) else {
        panic!("{} is not a ViT", folder.display());
    };
    let images = &expected.images;
    let [height, width] = [images[0][0].len(), images[0][0][0].len()];
    let values = images.concat().concat().concat();
    let data = TensorData::new(values, [images.len(), 3, height, width]);
    let logits = model.for_images([height, width]).forward(Tensor::from_data(data, &Default::default()));
    assert_close(logits, expected.logits.as_ref().unwrap(), most, folder);
}

#[test]
fn vit_logits_equal_those_of_transformers() {
    for folder in folders("vit") {
        assert_same_logits(&folder, &expected(&folder), FOREIGN);
    }
}

#[test]
fn logits_of_real_weights_equal_those_of_transformers_at_every_size() {
    for folder in folders(REAL) {
        let cases = expected(&folder).cases;
        assert_eq!(cases.len(), 3, "its own image size, half of it, and another shape");
        for case in cases {
            assert_same_logits(&folder, &case, FOREIGN_DEEP);
        }
    }
}
