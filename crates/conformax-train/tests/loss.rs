//! The losses on the device against the core's definitions: values and gradients, through automatic differentiation.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use burn::tensor::{Int, Tensor, TensorData};
use burn_autodiff::Autodiff;
use burn_flex::Flex;
use conformax::{Entmax, Gamma, Row};
use conformax_train::loss::Loss;

/// An `f32` path against its `f64` reference: absolute for what is at most 1, relative above.
const SINGLE: f64 = 2e-6;
const GAMMAS: [f64; 13] = [1.0, 1.0 + 1e-9, 1.001, 1.1, 1.3, 1.5, 1.9, 1.999, 2.0, 2.001, 2.5, 4.0, 16.0];

/// Losses of all rows, and the gradient of their sum.
fn on_device(rows: &[Vec<f32>], labels: &[u32], loss: Loss) -> (Vec<f32>, Vec<f32>) {
    let device = Default::default();
    let shape = [rows.len(), rows[0].len()];
    let logits = Tensor::<Autodiff<Flex>, 2>::from_data(TensorData::new(rows.concat(), shape), &device);
    let logits = logits.require_grad();
    let labels: Vec<i64> = labels.iter().map(|label| i64::from(*label)).collect();
    let labels = Tensor::<_, 1, Int>::from_data(TensorData::new(labels, [shape[0]]), &device);
    let losses = loss.rows(logits.clone(), labels);
    let gradients = losses.clone().sum().backward();
    let gradient = logits.grad(&gradients).expect("the logits require a gradient");
    (losses.into_data().to_vec().unwrap(), gradient.into_data().to_vec().unwrap())
}

fn assert_close(got: f32, wanted: f64, place: impl Fn() -> String) {
    let distance = (f64::from(got) - wanted).abs();
    assert!(distance <= SINGLE * wanted.abs().max(1.0), "{}: {got}, core {wanted}", place());
}

fn assert_equals_core(rows: &[Vec<f32>], labels: &[u32], gamma: f64) {
    let gamma = Gamma::new(gamma).unwrap();
    let classes = rows[0].len();
    let (losses, gradient) = on_device(rows, labels, Loss::Entmax { gamma });
    let mut slopes = vec![0.0; classes];
    for (index, (row, label)) in rows.iter().zip(labels).enumerate() {
        let value = Entmax::new(gamma).loss_gradient(Row::new(row).unwrap(), *label, &mut slopes);
        assert_close(losses[index], value, || format!("loss at γ = {gamma:?}, label {label} of {row:?}"));
        for (class, slope) in slopes.iter().enumerate() {
            let place = || format!("slope of class {class} at γ = {gamma:?}, label {label} of {row:?}");
            assert_close(gradient[index * classes + class], *slope, place);
        }
    }
}

/// Numbers in −1..1, different for every seed.
fn noise(seed: u64) -> impl FnMut() -> f32 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 40) as f32 / (1_u32 << 23) as f32) - 1.0
    }
}

fn random_rows(count: usize, classes: usize, spread: f32) -> (Vec<Vec<f32>>, Vec<u32>) {
    let mut next = noise(classes as u64 + 1);
    let rows = (0..count).map(|_| (0..classes).map(|_| spread * next()).collect()).collect();
    (rows, (0..count).map(|row| (row * 7 % classes) as u32).collect())
}

#[test]
fn equals_the_core_on_random_rows() {
    for (count, classes) in [(3, 1), (40, 2), (40, 3), (40, 10), (4, 1000)] {
        for spread in [0.03, 1.0, 8.0] {
            let (rows, labels) = random_rows(count, classes, spread);
            for gamma in GAMMAS {
                assert_equals_core(&rows, &labels, gamma);
            }
        }
    }
}

#[test]
fn equals_the_core_on_ties() {
    let mut rows: Vec<Vec<f32>> = vec![vec![0.0; 1000], vec![-3.5; 1000]];
    rows.push((0..1000).map(|class| (class % 3) as f32 * 0.25).collect());
    rows.push((0..1000).map(|class| if class < 2 { 1.0 } else { 1.0 - f32::EPSILON }).collect());
    for gamma in GAMMAS {
        assert_equals_core(&rows, &[0, 999, 500, 1], gamma);
    }
}

#[test]
fn equals_the_core_on_large_logits() {
    let rows = vec![
        vec![1e4, -1e4, 9_999.5, 0.0],
        vec![-1e4, -1e4, -1e4, -9_999.75],
        vec![1e4, 1e4, -1e4, 1e4 - 0.001],
        vec![1e30, -1e30, 0.0, 1.0],
    ];
    for gamma in GAMMAS {
        for label in 0..4 {
            assert_equals_core(&rows, &[label; 4], gamma);
        }
    }
}

#[test]
fn labels_at_the_edge_of_the_support_are_exact_above_two() {
    // 1 − γ's gap away from the top, by a few units in the last place: masses there range from 0 to a third.
    for gamma in [2.5_f64, 4.0, 16.0] {
        let width = (1.0 / (gamma - 1.0)) as f32;
        let rows: Vec<Vec<f32>> =
            (-3..=3).map(|ulps| vec![0.0, -width * (1.0 + ulps as f32 * f32::EPSILON), -1e-9]).collect();
        assert_equals_core(&rows, &[1; 7], gamma);
    }
}

#[test]
fn a_confident_row_keeps_the_digits_of_its_small_loss() {
    for gamma in [1.0, 1.1, 1.5, 2.0] {
        let gamma = Gamma::new(gamma).unwrap();
        // Just inside the support, or far enough for a small softmax mass.
        let gap = if gamma == Gamma::SOFTMAX { 14.0 } else { gamma.delta() as f32 * 0.99 };
        let row = vec![gap, 0.0];
        let (losses, _) = on_device(std::slice::from_ref(&row), &[0], Loss::Entmax { gamma });
        let wanted = Entmax::new(gamma).loss(Row::new(&row).unwrap(), 0);
        let relative = (f64::from(losses[0]) / wanted - 1.0).abs();
        assert!(relative < 1e-3, "γ = {gamma:?}: {} and the core {wanted}", losses[0]);
    }
}

#[test]
fn the_mean_is_over_rows_and_names_are_indices() {
    let (rows, labels) = random_rows(6, 5, 2.0);
    let device = Default::default();
    let logits = Tensor::<Flex, 2>::from_data(TensorData::new(rows.concat(), [6, 5]), &device);
    let targets: Vec<i64> = labels.iter().map(|label| i64::from(*label)).collect();
    let targets = Tensor::<Flex, 1, Int>::from_data(TensorData::new(targets, [6]), &device);
    for (loss, gamma) in [
        (Loss::CrossEntropy, Gamma::SOFTMAX),
        (Loss::Entmax15, Gamma::ENTMAX15),
        (Loss::Sparsemax, Gamma::SPARSEMAX),
    ] {
        let core: f64 = rows
            .iter()
            .zip(&labels)
            .map(|(row, label)| Entmax::new(gamma).loss(Row::new(row).unwrap(), *label))
            .sum();
        let mean = loss.forward(logits.clone(), targets.clone()).into_scalar();
        assert_close(mean, core / 6.0, || format!("{loss:?}"));
    }
}

#[test]
fn reads_from_a_configuration_and_refuses_an_index_outside_the_family() {
    let read = |text: &str| toml::from_str::<Loss>(text);
    assert_eq!(read("name = 'cross-entropy'").unwrap(), Loss::CrossEntropy);
    let gamma = Gamma::new(1.3).unwrap();
    assert_eq!(read("name = 'entmax'\ngamma = 1.3").unwrap(), Loss::Entmax { gamma });
    assert_eq!(toml::to_string(&Loss::Entmax { gamma }).unwrap(), "name = \"entmax\"\ngamma = 1.3\n");
    let message = read("name = 'entmax'\ngamma = 0.5").unwrap_err().to_string();
    assert!(message.contains("gamma") && message.contains("0.5"), "{message}");
    assert!(read("name = 'entmax'").is_err() && read("name = 'sparsemax'\ngamma = 2").is_err());
}

#[test]
fn a_smoothed_loss_is_the_mean_over_labels_in_its_shares() {
    const SMOOTHING: f64 = 0.3;
    let device = Default::default();
    let (rows, labels) = random_rows(6, 4, 3.0);
    let logits = Tensor::<Flex, 2>::from_data(TensorData::new(rows.concat(), [6, 4]), &device);
    let tensor = |labels: &[u32]| {
        let labels: Vec<i64> = labels.iter().map(|label| i64::from(*label)).collect();
        Tensor::<Flex, 1, Int>::from_data(TensorData::new(labels, [6]), &device)
    };
    for loss in [Loss::CrossEntropy, Loss::Entmax15, Loss::Sparsemax] {
        let of = |labels: &[u32]| f64::from(loss.forward(logits.clone(), tensor(labels)).into_scalar());
        let all: f64 = (0..4).map(|class| of(&[class; 6])).sum();
        let wanted = (1.0 - SMOOTHING) * of(&labels) + SMOOTHING / 4.0 * all;
        let found = loss.smoothed(logits.clone(), tensor(&labels), SMOOTHING).into_scalar();
        assert_close(found, wanted, || format!("{loss:?}"));
        assert_close(loss.smoothed(logits.clone(), tensor(&labels), 0.0).into_scalar(), of(&labels), || {
            "none".into()
        });
    }
}
