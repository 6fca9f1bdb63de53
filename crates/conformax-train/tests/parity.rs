//! The same checkpoints and inputs through `transformers` and through ours: tokens, pooled states and logits.
//!
//! `fixtures/checkpoints` is always compared; `CONFORMAX_CHECKPOINTS` names another folder made by its `make.py`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use burn::tensor::{Bool, Int, Tensor, TensorData};
use burn_flex::Flex;
use burn_nn::Linear;
use conformax_train::checkpoint::{load_bert, load_vit};
use conformax_train::data::{BatchInputs, Dataset, Inputs, Part, Parts, Plan, Preparation, Tokenizing};
use safetensors::{Dtype, SafeTensors};
use serde::Deserialize;

/// What the logits of two implementations in `f32` may differ by.
const FOREIGN: f32 = 1e-5;

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
    logits: Option<Vec<Vec<f32>>>,
    pooled: Option<Vec<Vec<f32>>>,
}

fn folders(name: &str) -> Vec<PathBuf> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/checkpoints");
    let others = std::env::var_os("CONFORMAX_CHECKPOINTS").map(PathBuf::from);
    [Some(fixtures), others].into_iter().flatten().map(|folder| folder.join(name)).collect()
}

fn expected(folder: &Path) -> Expected {
    serde_json::from_slice(&std::fs::read(folder.join("expected.json")).unwrap()).unwrap()
}

fn integers(rows: &[Vec<i64>]) -> Tensor<Flex, 2, Int> {
    let data = TensorData::new(rows.concat(), [rows.len(), rows[0].len()]);
    Tensor::from_data(data, &Default::default())
}

/// Gives a model the head that its loader leaves out.
fn take_head(head: &mut Linear<Flex>, folder: &Path) {
    let bytes = std::fs::read(folder.join("model.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let read = |name: &str| {
        let view = file.tensor(name).unwrap();
        let dtype = match view.dtype() {
            Dtype::F32 => burn::tensor::DType::F32,
            Dtype::BF16 => burn::tensor::DType::BF16,
            other => panic!("the fixture has a head of {other:?}"),
        };
        TensorData::from_bytes_vec(view.data().to_vec(), view.shape().to_vec(), dtype).convert::<f32>()
    };
    let device = Default::default();
    let weight = Tensor::<Flex, 2>::from_data(read("classifier.weight"), &device).transpose();
    head.weight = burn::module::Param::from_tensor(weight);
    head.bias = Some(burn::module::Param::from_data(read("classifier.bias"), &device));
}

fn assert_close(got: Tensor<Flex, 2>, wanted: &[Vec<f32>], folder: &Path) {
    assert_eq!(got.dims(), [wanted.len(), wanted[0].len()]);
    let got: Vec<f32> = got.into_data().to_vec().unwrap();
    for (index, (got, wanted)) in got.iter().zip(wanted.concat()).enumerate() {
        assert!(
            (got - wanted).abs() < FOREIGN,
            "{}: number {index}: {got}, wanted {wanted}",
            folder.display()
        );
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
    let BatchInputs::Tokens { ids, mask, .. } = plan.batch(0).unwrap().inputs else {
        panic!("texts became images");
    };
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
        let mut model = load_bert::<Flex>(&folder, 3, &Default::default()).unwrap();
        take_head(&mut model.head, &folder);
        let mask: Tensor<Flex, 2, Bool> = integers(&expected.mask).greater_elem(0);
        let logits = model.forward(integers(&expected.ids), mask, integers(&expected.types));
        assert_close(logits, &expected.logits.unwrap(), &folder);
    }
}

#[test]
fn a_bare_encoder_in_half_precision_gives_the_same_pooled_states() {
    for folder in folders("bert-bare") {
        let expected = expected(&folder);
        let model = load_bert::<Flex>(&folder, 3, &Default::default()).unwrap();
        let mask: Tensor<Flex, 2, Bool> = integers(&expected.mask).greater_elem(0);
        let pooled = model.pooled(integers(&expected.ids), mask, integers(&expected.types));
        assert_close(pooled, &expected.pooled.unwrap(), &folder);
    }
}

#[test]
fn vit_logits_equal_those_of_transformers() {
    for folder in folders("vit") {
        let expected = expected(&folder);
        let mut model = load_vit::<Flex>(&folder, 3, &Default::default()).unwrap();
        take_head(&mut model.head, &folder);
        let shape = [expected.images.len(), 3, 8, 8];
        let values = expected.images.concat().concat().concat();
        let images = Tensor::from_data(TensorData::new(values, shape), &Default::default());
        assert_close(model.forward(images), &expected.logits.unwrap(), &folder);
    }
}
