//! Tiny BERT and ViT learn a handful of random rows by heart, and a frozen backbone stays as it was.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::sync::{Mutex, MutexGuard, PoisonError};

use burn::module::{AutodiffModule, Module, ModuleVisitor, Param, ParamId};
use burn::tensor::backend::Backend;
use burn::tensor::{Bool, Distribution, Int, Tensor, TensorData};
use burn_autodiff::Autodiff;
use burn_flex::Flex;
use burn_optim::{AdamWConfig, GradientsParams, Optimizer};
use conformax_train::loss::Loss;
use conformax_train::model::bert::{Bert, BertConfig};
use conformax_train::model::vit::{Vit, VitConfig};

type Training = Autodiff<Flex>;

/// The backend has one generator for the whole process: tests that draw from it take turns.
static GENERATOR: Mutex<()> = Mutex::new(());

fn turn(seed: u64) -> MutexGuard<'static, ()> {
    let turn = GENERATOR.lock().unwrap_or_else(PoisonError::into_inner);
    Training::seed(&Default::default(), seed);
    turn
}

const ROWS: usize = 12;
const CLASSES: usize = 3;
const TOKENS: usize = 6;

fn bert() -> Bert<Training> {
    let config = BertConfig {
        vocab_size: 20,
        hidden_size: 16,
        num_hidden_layers: 2,
        num_attention_heads: 2,
        intermediate_size: 32,
        max_position_embeddings: TOKENS,
        type_vocab_size: 2,
        layer_norm_eps: 1e-12,
        hidden_dropout_prob: 0.1,
        attention_probs_dropout_prob: 0.1,
        classifier_dropout: Some(0.0),
        initializer_range: 0.2,
    };
    config.init(CLASSES, &Default::default())
}

fn vit() -> Vit<Training> {
    let config = VitConfig {
        image_size: 4,
        patch_size: 2,
        num_channels: 3,
        hidden_size: 16,
        num_hidden_layers: 2,
        num_attention_heads: 2,
        intermediate_size: 32,
        layer_norm_eps: 1e-12,
        hidden_dropout_prob: 0.05,
        attention_probs_dropout_prob: 0.05,
        initializer_range: 0.2,
    };
    config.init(CLASSES, &Default::default())
}

fn integers<const D: usize>(shape: [usize; D], value: impl Fn(usize) -> usize) -> Tensor<Training, D, Int> {
    let values: Vec<i64> = (0..shape.iter().product()).map(|index| value(index) as i64).collect();
    Tensor::from_data(TensorData::new(values, shape), &Default::default())
}

/// Tokens without a pattern, the last third of some rows padding.
fn tokens() -> (Tensor<Training, 2, Int>, Tensor<Training, 2, Bool>, Tensor<Training, 2, Int>) {
    let ids = integers([ROWS, TOKENS], |index| (index * 7919 + index * index * 31) % 97 % 20);
    let mask = integers([ROWS, TOKENS], |index| {
        usize::from((index / TOKENS).is_multiple_of(2) || index % TOKENS < TOKENS * 2 / 3)
    });
    (ids, mask.greater_elem(0), integers([ROWS, TOKENS], |index| index % TOKENS / 3))
}

fn labels() -> Tensor<Training, 1, Int> {
    integers([ROWS], |row| (row * row + row / 4) % CLASSES)
}

/// Trains with `logits` as the forward pass; returns the model and the optimiser's parameters with a state.
fn fit<M: AutodiffModule<Training>>(
    mut model: M,
    logits: impl Fn(&M) -> Tensor<Training, 2>,
    loss: Loss,
    steps: usize,
) -> (M, usize) {
    let mut optimizer = AdamWConfig::new().init();
    for _ in 0..steps {
        let gradients = loss.forward(logits(&model), labels()).backward();
        let gradients = GradientsParams::from_grads(gradients, &model);
        model = optimizer.step(0.01, model, gradients);
    }
    let states = optimizer.to_record().len();
    (model, states)
}

fn assert_known_by_heart(logits: Tensor<Flex, 2>) {
    let best: Vec<i64> = logits.argmax(1).into_data().convert::<i64>().to_vec().unwrap();
    let wanted: Vec<i64> = labels().into_data().convert::<i64>().to_vec().unwrap();
    assert_eq!(best, wanted);
}

#[test]
fn bert_overfits_a_small_set() {
    let _turn = turn(1);
    let (ids, mask, types) = tokens();
    let forward = |model: &Bert<Training>| model.forward(ids.clone(), mask.clone(), types.clone());
    let (model, _) = fit(bert(), forward, Loss::Entmax15, 60);
    assert_known_by_heart(model.valid().forward(ids.inner(), mask.inner(), types.inner()));
}

#[test]
fn vit_overfits_a_small_set() {
    let _turn = turn(2);
    let images = Tensor::<Training, 4>::random([ROWS, 3, 4, 4], Distribution::Default, &Default::default());
    let (model, _) = fit(vit(), |model| model.forward(images.clone()), Loss::CrossEntropy, 60);
    assert_known_by_heart(model.valid().forward(images.inner()));
}

/// Every parameter's numbers, the head's apart.
#[derive(Default)]
struct Weights {
    path: Vec<String>,
    backbone: Vec<(ParamId, Vec<f32>)>,
    head: Vec<(ParamId, Vec<f32>)>,
}

impl<B: Backend> ModuleVisitor<B> for Weights {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.path.push(name.into());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
        let values = (param.id, param.val().into_data().convert::<f32>().to_vec().unwrap());
        if self.path[0] == "head" { self.head.push(values) } else { self.backbone.push(values) }
    }
}

fn weights<M: Module<Training>>(model: &M) -> Weights {
    let mut weights = Weights::default();
    model.visit(&mut weights);
    weights
}

fn assert_head_alone_changed<M: Module<Training>>(before: &Weights, model: &M, states: usize) {
    let after = weights(model);
    assert!(before.backbone.len() > 20 && before.head.len() == 2);
    assert_eq!(before.backbone, after.backbone);
    assert!(before.head.iter().zip(&after.head).all(|(before, after)| before != after));
    assert_eq!(states, 2, "the optimiser keeps a state for the head's weight and bias alone");
}

#[test]
fn a_frozen_backbone_is_neither_changed_nor_remembered() {
    let _turn = turn(3);
    let (ids, mask, types) = tokens();
    let model = bert().freeze_backbone();
    let before = weights(&model);
    let forward = |model: &Bert<Training>| model.forward(ids.clone(), mask.clone(), types.clone());
    let (model, states) = fit(model, forward, Loss::Sparsemax, 3);
    assert_head_alone_changed(&before, &model, states);

    let images = Tensor::<Training, 4>::random([ROWS, 3, 4, 4], Distribution::Default, &Default::default());
    let model = vit().freeze_backbone();
    let before = weights(&model);
    let (model, states) = fit(model, |model| model.forward(images.clone()), Loss::Sparsemax, 3);
    assert_head_alone_changed(&before, &model, states);
}
