//! The activations against slow plain ones, finite differences, limits and 60-digit values.
// Helpers of tests may unwrap, and finite differences may use the platform's functions.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use crate::common::reference::{entmax_bisect, entropy_as_printed, loss_as_defined, sparsemax_sorted};
use conformax::{Entmax, Error, Gamma, Logits, Row, entmax15, entropy, softmax, sparsemax};

const GAMMAS: [f64; 15] =
    [1.0, 1.0 + 1e-9, 1.001, 1.02, 1.1, 1.3, 1.5, 1.9, 1.999, 2.0, 2.001, 2.5, 3.0, 8.0, 16.0];

/// A uniform stream in [0, 1) from a seed.
struct Uniform(u64);

impl Uniform {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn row(&mut self, classes: usize, spread: f64) -> Vec<f64> {
        (0..classes).map(|_| spread * (self.next() + self.next() + self.next() - 1.5)).collect()
    }
}

/// Rows of every kind: smooth, on a coarse grid with ties, far from zero, masked, one label, all tied.
fn rows() -> Vec<Vec<f64>> {
    let mut uniform = Uniform(7);
    let mut rows = vec![vec![0.3], vec![-2.0; 5], vec![1.0; 100], vec![0.0, 1e-9, -1e-9, 0.0]];
    for classes in [2, 3, 10, 40, 130] {
        for spread in [0.01, 0.5, 2.0, 10.0] {
            rows.push(uniform.row(classes, spread));
            rows.push(uniform.row(classes, spread).iter().map(|z| (z * 4.0).round() / 4.0).collect());
            rows.push(uniform.row(classes, spread).iter().map(|z| z + 1e6).collect());
            let masked = |(class, z): (usize, &f64)| if class % 3 == 1 { f64::NEG_INFINITY } else { *z };
            rows.push(uniform.row(classes, spread).iter().enumerate().map(masked).collect());
        }
    }
    rows
}

fn entmax(gamma: f64) -> Entmax {
    Entmax::new(Gamma::new(gamma).unwrap())
}

fn forward(entmax: Entmax, logits: &[f64]) -> Vec<f64> {
    let mut p = vec![f64::NAN; logits.len()];
    entmax.forward(Row::new(logits).unwrap(), &mut p);
    p
}

fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, |worst, d| if d <= worst { worst } else { d })
}

#[test]
fn agrees_with_bisection() {
    for logits in rows() {
        for gamma in GAMMAS {
            for beta in [0.0, 0.3, 1.0, 7.0] {
                let p = forward(entmax(gamma).with_beta(beta).unwrap(), &logits);
                let reference = entmax_bisect(&logits, Gamma::new(gamma).unwrap(), beta);
                let difference = largest_difference(&p, &reference);
                // Above γ = 2 a mass moves by the 1/(γ − 1)-th power of a gap's own rounding.
                let tolerance = if gamma > 2.0 { 1e-10 } else { 1e-13 };
                assert!(difference < tolerance, "γ {gamma} β {beta} {difference:e} {logits:?}");
            }
        }
    }
}

/// Bisection in 60-digit decimal arithmetic, with γ read as its decimal.
#[test]
fn agrees_with_sixty_digits() {
    let first = [1.0, 0.75, 0.5, 0.4375, -1.0];
    let second = [0.0, -0.015625, -0.0625, -0.25, -3.0];
    let cases = [
        (
            first,
            1.000000001,
            [
                0.32357751975068094,
                0.25200242568717357,
                0.1962596863873042,
                0.18436891307678638,
                0.043791455098054884,
            ],
        ),
        (
            first,
            1.02,
            [
                0.32715359781295406,
                0.2531860160046078,
                0.1956834925031244,
                0.18343934894749866,
                0.04053754473181511,
            ],
        ),
        (
            first,
            2.001,
            [0.5785336092026936, 0.32833255800856154, 0.07791568557711057, 0.015218147211634258, 0.0],
        ),
        (first, 2.5, [0.6777357668749086, 0.3222642331250915, 0.0, 0.0, 0.0]),
        (
            second,
            1.000000001,
            [
                0.26648919548971584,
                0.26235766345460987,
                0.25034343132051284,
                0.20754199405235918,
                0.01326771568280228,
            ],
        ),
        (
            second,
            2.001,
            [0.3321573169127701, 0.3165147121265733, 0.26958209140364886, 0.08174587955700774, 0.0],
        ),
        (second, 8.0, [0.7290601281779606, 0.2709398718220394, 0.0, 0.0, 0.0]),
        (second, 16.0, [0.9078081673401993, 0.09219183265980072, 0.0, 0.0, 0.0]),
    ];
    for (logits, gamma, masses) in cases {
        let p = forward(entmax(gamma), &logits);
        assert!(largest_difference(&p, &masses) < 4e-16, "γ {gamma} {p:?}");
    }
}

#[test]
fn sparsemax_agrees_with_the_papers_algorithm() {
    for logits in rows() {
        let centre = Row::new(&logits).unwrap().max();
        let shifted: Vec<f64> = logits.iter().map(|z| z - centre).collect();
        assert!(largest_difference(&sparsemax(&logits).unwrap(), &sparsemax_sorted(&shifted)) < 1e-14);
    }
}

#[test]
fn sums_to_one_orders_by_logit_and_gives_masked_classes_nothing() {
    for logits in rows() {
        for gamma in GAMMAS {
            let p = forward(entmax(gamma), &logits);
            let sum: f64 = p.iter().sum();
            assert!((sum - 1.0).abs() < 1e-15 * (2.0 + p.len() as f64), "γ {gamma} {sum}");
            for (a, p_a) in logits.iter().zip(&p) {
                assert!((0.0..=1.0).contains(p_a), "{p_a}");
                assert!(*a > f64::NEG_INFINITY || p_a.to_bits() == 0);
                assert!(
                    logits.iter().zip(&p).all(|(b, p_b)| (a > b || p_a <= p_b) && (a != b || p_a == p_b))
                );
            }
        }
    }
}

#[test]
fn scale_does_not_matter_beyond_what_f64_holds() {
    let shape = [1.0, 0.75, 0.5, -1.0];
    for gamma in GAMMAS {
        let plain = forward(entmax(gamma), &shape);
        for scale in [2.0_f64.powi(-1000), 2.0_f64.powi(-300), 2.0_f64.powi(300), 2.0_f64.powi(1022)] {
            let logits: Vec<f64> = shape.iter().map(|z| z * scale).collect();
            let p = forward(entmax(gamma).with_beta(1.0 / scale).unwrap(), &logits);
            assert!(largest_difference(&p, &plain) < 1e-15, "γ {gamma} {scale:e} {p:?}");
        }
        // The difference of these two overflows.
        assert_eq!(forward(entmax(gamma), &[f64::MAX, -f64::MAX]), [1.0, 0.0]);
        let warm = entmax(gamma).with_beta(2.0_f64.powi(-1026)).unwrap();
        let p = forward(warm, &[f64::MAX, -f64::MAX]);
        assert!(largest_difference(&p, &forward(entmax(gamma), &[0.25, -0.25])) < 1e-14, "γ {gamma} {p:?}");
        assert_eq!(forward(entmax(gamma), &[f64::MIN_POSITIVE, -5e-324]), [0.5, 0.5]);
    }
}

/// Two orders of summing can disagree on whether the gap's label is in the support: the mass is tiny either way, and a
/// number.
#[test]
fn tied_tops_and_one_small_gap_give_masses_that_sum_to_one() {
    for tied in (100..=1000_u32).step_by(9) {
        let n = f64::from(tied);
        for gamma in [2.5, 3.0, 8.0] {
            // At this gap the label drops out of the support.
            let gap = n.powf(1.0 - gamma) / (gamma - 1.0);
            for gap in [0.5, 1.0 - 1e-15, 1.0, 1.0 + 1e-15, 2.0].map(|factor| factor * gap) {
                let mut logits = vec![0.0; tied as usize];
                logits.push(-gap);
                let p = forward(entmax(gamma), &logits);
                let sum: f64 = p.iter().sum();
                assert!(p.iter().all(|p| p.is_finite()), "γ {gamma} {tied} {gap:e}");
                assert!((sum - 1.0).abs() < 1e-15 * (2.0 + n), "γ {gamma} {tied} {gap:e} {sum}");
                let (tops, last) = (&p[..tied as usize], p[tied as usize]);
                assert!(tops.iter().all(|top| *top == tops[0] && *top >= last), "γ {gamma} {tied} {gap:e}");
            }
        }
    }
}

#[test]
fn at_beta_zero_finite_logits_share_equally() {
    for gamma in GAMMAS {
        let p = forward(entmax(gamma).with_beta(0.0).unwrap(), &[1e300, f64::NEG_INFINITY, -1e300, 0.0, 1.0]);
        assert!(largest_difference(&p, &[0.25, 0.0, 0.25, 0.25, 0.25]) < 1e-15, "{p:?}");
    }
}

#[test]
fn every_width_gives_the_same_bits() {
    let single: Vec<f32> = Uniform(3).row(50, 3.0).iter().map(|z| *z as f32).collect();
    let double: Vec<f64> = single.iter().map(|z| f64::from(*z)).collect();
    assert_eq!(softmax(&single).unwrap(), softmax(&double).unwrap());
    assert_eq!(sparsemax(&single).unwrap(), sparsemax(&double).unwrap());
    assert_eq!(entmax15(&single).unwrap(), entmax15(&double).unwrap());
}

#[test]
fn is_continuous_at_softmax() {
    let logits = Uniform(11).row(20, 4.0);
    let at_one = forward(entmax(1.0), &logits);
    let mut slope = vec![0.0; 20];
    entmax(1.0).gamma_derivative(&at_one, &mut slope);
    for above in [1e-3, 1e-6, 1e-9, 1e-12, 1e-15] {
        let near = forward(entmax(1.0 + above), &logits);
        let step: Vec<f64> = at_one.iter().zip(&slope).map(|(p, s)| p + above * s).collect();
        let difference = largest_difference(&near, &step);
        assert!(difference < 10.0 * above * above + 1e-15, "{above:e} {difference:e}");
        let mut slope_near = vec![0.0; 20];
        entmax(1.0 + above).gamma_derivative(&near, &mut slope_near);
        assert!(largest_difference(&slope_near, &slope) < 20.0 * above + 1e-13, "{above:e}");
        let entropies =
            [entropy(&at_one, Gamma::SOFTMAX), entropy(&at_one, Gamma::new(1.0 + above).unwrap())];
        assert!((entropies[0] - entropies[1]).abs() < 10.0 * above + 1e-14, "{above:e} {entropies:?}");
    }
}

#[test]
fn entropy_is_the_printed_formula() {
    for logits in rows() {
        let p = forward(entmax(1.3), &logits);
        for gamma in GAMMAS.into_iter().filter(|gamma| *gamma == 1.0 || *gamma > 1.01) {
            let gamma = Gamma::new(gamma).unwrap();
            let (ours, printed) = (entropy(&p, gamma), entropy_as_printed(&p, gamma));
            assert!((ours - printed).abs() < 1e-12, "γ {gamma} {ours} {printed}");
            assert!(ours >= 0.0);
        }
    }
    assert_eq!(entropy(&[0.0, 1.0, 0.0], Gamma::SOFTMAX), 0.0);
}

/// Rows where no mass is so small that a step would move a label over the edge of the support.
fn smooth_rows(gamma: f64) -> Vec<Vec<f64>> {
    let mut uniform = Uniform(23);
    let clear = |p: f64| p == 0.0 || p > if gamma > 2.0 { 0.05 } else { 1e-3 };
    let rows = (0..400).map(|i| uniform.row(2 + i % 6, if gamma > 2.0 { 0.3 } else { 1.5 }));
    rows.filter(|row| forward(entmax(gamma), row).into_iter().all(clear)).take(20).collect()
}

/// Whether all of `rows` have the same support: a kink in between spoils a difference quotient.
fn same_support(rows: [&[f64]; 3]) -> bool {
    (0..rows[0].len()).all(|class| {
        (rows[0][class] > 0.0) == (rows[1][class] > 0.0) && (rows[1][class] > 0.0) == (rows[2][class] > 0.0)
    })
}

#[test]
fn backward_is_the_derivative_of_forward() {
    const STEP: f64 = 1e-6;
    for gamma in GAMMAS {
        let mut checked = 0;
        for logits in smooth_rows(gamma) {
            let entmax = entmax(gamma).with_beta(1.25).unwrap();
            let p = forward(entmax, &logits);
            let upstream = Uniform(5).row(p.len(), 2.0);
            let mut product = vec![f64::NAN; p.len()];
            entmax.backward(&p, &upstream, &mut product);
            for class in 0..p.len() {
                let moved = |by: f64| {
                    let mut logits = logits.clone();
                    logits[class] += by;
                    forward(entmax, &logits)
                };
                let (low, high) = (moved(-STEP), moved(STEP));
                if !same_support([&low, &p, &high]) {
                    continue;
                }
                let quotient: f64 =
                    (0..p.len()).map(|k| upstream[k] * (high[k] - low[k]) / (2.0 * STEP)).sum();
                let tolerance = 1e-6 * (1.0 + quotient.abs());
                assert!(
                    (product[class] - quotient).abs() < tolerance,
                    "γ {gamma} {} {quotient}",
                    product[class]
                );
                checked += 1;
            }
        }
        assert!(checked >= 20, "γ {gamma}: only {checked}");
    }
}

#[test]
fn gamma_derivative_is_the_derivative_in_gamma() {
    const STEP: f64 = 1e-6;
    for gamma in [1.02, 1.1, 1.3, 1.5, 1.9, 1.999, 2.0, 2.001, 2.5, 3.0, 8.0, 15.0] {
        let mut checked = 0;
        for logits in smooth_rows(gamma) {
            let p = forward(entmax(gamma), &logits);
            let (low, high) =
                (forward(entmax(gamma - STEP), &logits), forward(entmax(gamma + STEP), &logits));
            if !same_support([&low, &p, &high]) {
                continue;
            }
            let mut slope = vec![f64::NAN; p.len()];
            entmax(gamma).gamma_derivative(&p, &mut slope);
            let quotient: Vec<f64> =
                low.iter().zip(&high).map(|(low, high)| (high - low) / (2.0 * STEP)).collect();
            assert!(largest_difference(&slope, &quotient) < 1e-7, "γ {gamma} {slope:?} {quotient:?}");
            assert!(slope.iter().sum::<f64>().abs() < 1e-12);
            checked += 1;
        }
        assert!(checked >= 5, "γ {gamma}: only {checked}");
    }
}

#[test]
fn loss_is_its_definition_and_never_negative() {
    for logits in rows() {
        for gamma in GAMMAS.into_iter().filter(|gamma| *gamma == 1.0 || *gamma > 1.0005) {
            for label in 0..logits.len().min(6) {
                let beta = 0.8;
                let entmax = entmax(gamma).with_beta(beta).unwrap();
                let loss = entmax.loss(Row::new(&logits).unwrap(), label as u32);
                if logits[label] == f64::NEG_INFINITY {
                    assert_eq!(loss, f64::INFINITY);
                    continue;
                }
                let defined = loss_as_defined(&logits, label, Gamma::new(gamma).unwrap(), beta);
                let tolerance = 1e-11 * (1.0 + defined.abs());
                assert!(
                    (loss - defined).abs() < tolerance,
                    "γ {gamma} label {label} {loss} {defined} {logits:?}"
                );
                assert!(loss >= 0.0);
                assert_eq!(loss == 0.0, forward(entmax, &logits)[label] == 1.0, "γ {gamma} {loss:e}");
            }
        }
    }
}

#[test]
fn a_confident_rows_loss_keeps_its_digits() {
    for gap in [20.0_f64, 100.0, 600.0] {
        let loss = entmax(1.0).loss(Row::new(&[0.0, -gap]).unwrap(), 0);
        assert!((loss / (-gap).exp().ln_1p() - 1.0).abs() < 1e-13, "{loss:e}");
        // Next to softmax the loss is the same up to γ − 1 of it and of its logarithm squared.
        let near = entmax(1.0 + 1e-13).loss(Row::new(&[0.0, -gap]).unwrap(), 0);
        assert!((near / loss - 1.0).abs() < 1e-7, "{near:e}");
    }
    for edge in [1e-3, 1e-5, 1e-7] {
        // Sparsemax of two labels: ½‖p − e₀‖² = ((1 − gap)/2)².
        let loss = entmax(2.0).loss(Row::new(&[0.0, edge - 1.0]).unwrap(), 0);
        assert!((loss / (edge * edge / 4.0) - 1.0).abs() < 1e-15 / edge, "{loss:e}");
    }
    assert_eq!(entmax(2.0).loss(Row::new(&[0.0, -1.0]).unwrap(), 0), 0.0);
}

#[test]
fn a_lost_labels_loss_stays_finite_where_its_mass_underflows() {
    for gamma in [1.0, 1.0 + 1e-9] {
        let loss = entmax(gamma).loss(Row::new(&[0.0, -5000.0]).unwrap(), 1);
        assert!((loss - 5000.0).abs() < 0.1, "{loss}");
    }
    let sparse = entmax(1.5).loss(Row::new(&[0.0, -1e300]).unwrap(), 1);
    assert!((sparse / 1e300 - 1.0).abs() < 1e-15);
}

#[test]
fn loss_gradient_is_the_derivative_of_loss() {
    const STEP: f64 = 1e-5;
    let tame = |row: &Vec<f64>| row.len() <= 10 && row.iter().all(|z| z.abs() < 100.0);
    for gamma in GAMMAS {
        // Above γ = 2 the gradient is infinitely steep at the edge of the support, which spoils the quotient.
        let rows = if gamma > 2.0 { smooth_rows(gamma) } else { rows().into_iter().filter(tame).collect() };
        let entmax = entmax(gamma).with_beta(0.75).unwrap();
        for logits in rows {
            let mut gradient = vec![f64::NAN; logits.len()];
            let loss = entmax.loss_gradient(Row::new(&logits).unwrap(), 0, &mut gradient);
            assert_eq!(loss, entmax.loss(Row::new(&logits).unwrap(), 0));
            let p = forward(entmax, &logits);
            for class in 0..logits.len() {
                let expected = 0.75 * (p[class] - if class == 0 { 1.0 } else { 0.0 });
                assert!((gradient[class] - expected).abs() < 1e-14);
                let moved = |by: f64| {
                    let mut logits = logits.clone();
                    logits[class] += by;
                    entmax.loss(Row::new(&logits).unwrap(), 0)
                };
                let quotient = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
                assert!(
                    (gradient[class] - quotient).abs() < 1e-4,
                    "γ {gamma} {} {quotient}",
                    gradient[class]
                );
            }
        }
    }
}

#[test]
fn many_rows_give_the_bits_of_each_row_alone() {
    let (rows, classes) = (1000, 130);
    let data = Uniform(17).row(rows * classes, 3.0);
    let labels: Vec<u32> = (0..rows as u32).map(|row| row % classes as u32).collect();
    let logits = Logits::new(&data, classes).unwrap();
    for gamma in [1.0, 1.2, 1.5, 2.0, 3.0] {
        let entmax = entmax(gamma);
        let p = entmax.forward_rows(logits).unwrap();
        let losses = entmax.loss_rows(logits, &labels).unwrap();
        let mut gradients = vec![0.0; data.len()];
        assert_eq!(entmax.loss_gradient_rows_into(logits, &labels, &mut gradients).unwrap(), losses);
        let (mut products, mut slopes) = (vec![0.0; data.len()], vec![0.0; data.len()]);
        entmax.backward_rows_into(&p, &data, classes, &mut products).unwrap();
        entmax.gamma_derivative_rows_into(&p, classes, &mut slopes).unwrap();
        for row in 0..rows {
            let range = row * classes..(row + 1) * classes;
            let alone = Row::new(&data[range.clone()]).unwrap();
            let mut out = vec![0.0; classes];
            entmax.forward(alone, &mut out);
            assert_eq!(out, p[range.clone()]);
            assert_eq!(entmax.loss_gradient(alone, labels[row], &mut out), losses[row]);
            assert_eq!(out, gradients[range.clone()]);
            entmax.backward(&p[range.clone()], &data[range.clone()], &mut out);
            assert_eq!(out, products[range.clone()]);
            entmax.gamma_derivative(&p[range.clone()], &mut out);
            assert_eq!(out, slopes[range]);
        }
        let mut single = vec![0.0_f32; data.len()];
        entmax.forward_rows_into(logits, &mut single).unwrap();
        assert!(single.iter().zip(&p).all(|(single, p)| *single == *p as f32));
    }
}

#[test]
fn names_the_first_bad_row_whatever_thread_meets_it() {
    let mut data = vec![0.5_f32; 100 * 1500];
    data[1400 * 100 + 7] = f32::NAN;
    data[90 * 100 + 3] = f32::INFINITY;
    let logits = Logits::new(&data, 100).unwrap();
    let labels = vec![0; 1500];
    let first = Err(Error::Logit { row: 90, class: 3, value: f64::INFINITY });
    assert_eq!(Entmax::default().forward_rows(logits), first);
    assert_eq!(Entmax::default().loss_rows(logits, &labels), first);
    assert_eq!(Entmax::default().loss_gradient_rows_into(logits, &labels, &mut vec![0.0; data.len()]), first);
}

#[test]
fn rejects_shapes_and_labels_that_do_not_fit() {
    let logits = Logits::new(&[0.0_f32; 6], 3).unwrap();
    let entmax = Entmax::default();
    assert_eq!(entmax.loss_rows(logits, &[0]), Err(Error::Rows { what: "labels", wanted: 2, got: 1 }));
    assert_eq!(entmax.loss_rows(logits, &[0, 3]), Err(Error::Label { row: 1, label: 3, classes: 3 }));
    assert_eq!(entmax.forward_rows_into(logits, &mut [0.0; 5]), Err(Error::Shape { len: 5, classes: 3 }));
    let short = Err(Error::Rows { what: "rows of output", wanted: 2, got: 1 });
    assert_eq!(entmax.forward_rows_into(logits, &mut [0.0; 3]), short);
    assert_eq!(entmax.backward_rows_into(&[0.0; 6], &[0.0; 6], 3, &mut [0.0; 3]), short);
    assert_eq!(entmax.gamma_derivative_rows_into(&[0.0; 6], 0, &mut [0.0; 6]), Err(Error::Classes(0)));
    for beta in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(entmax.with_beta(beta), Err(Error::Parameter { name: "beta", .. })));
    }
}
