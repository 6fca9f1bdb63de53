//! The README's Rust example: logits in, calibrated sets out.
#![allow(clippy::print_stdout)]

use conformax::{Alpha, EntmaxScore, Gamma, Logits, Strata, calibrate, evaluate};

fn main() -> conformax::Result<()> {
    let classes = 3;
    let cal = [3.0_f32, 1.0, 0.0, 0.5, 2.0, 1.5, 1.0, 0.0, 4.0, 2.0, 2.5, 0.0];
    let cal_labels = [0, 2, 2, 0];
    let test = [2.0_f32, 1.75, -1.0, 0.0, 5.0, 1.0];
    let test_labels = [1, 1];

    let score = EntmaxScore { gamma: Gamma::new(1.5)? };
    let alpha = Alpha::new(0.2)?;
    let model = calibrate(score, Logits::new(&cal, classes)?, &cal_labels, alpha)?;
    let (sets, probabilities) = model.predict_probabilities(Logits::new(&test, classes)?)?;
    for set in sets.iter() {
        println!("{set:?}");
    }
    println!("{probabilities:?}");
    let metrics = evaluate(&sets, &test_labels, alpha, &Strata::default())?;
    println!("coverage {}, average size {}", metrics.coverage, metrics.average_size);
    Ok(())
}
