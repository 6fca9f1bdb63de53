//! The Rust examples of the README, compiled and run: the functions below hold their very lines.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    unused_qualifications,
    reason = "an example prints and names things in full, and a test that cannot go on has failed"
)]

use std::error::Error;

use conformax_io::Model;

/// Logits and labels of twenty rows, and logits to come.
const CLASSES: usize = 3;

fn rows() -> (Vec<f32>, Vec<u32>, Vec<f32>) {
    let logit = |place: usize| ((place * 7 + place / CLASSES * 5) % 11) as f32 / 2.0;
    let logits = |from: usize| (from..from + 20 * CLASSES).map(logit).collect::<Vec<_>>();
    (logits(0), (0..20).map(|row| row % CLASSES as u32).collect(), logits(100))
}

fn calibrates() -> Result<Vec<Vec<u32>>, Box<dyn Error>> {
    let (classes, (cal, cal_labels, test)) = (CLASSES, rows());
    use conformax::{Alpha, EntmaxScore, Gamma, Logits, calibrate};

    let score = EntmaxScore { gamma: Gamma::new(1.5)? };
    let model = calibrate(score, Logits::new(&cal, classes)?, &cal_labels, Alpha::new(0.1)?)?;
    let sets = model.predict(Logits::new(&test, classes)?)?;
    for set in &sets {
        println!("{set:?}"); // labels, best first
    }
    Ok(sets.iter().map(<[u32]>::to_vec).collect())
}

fn reads_a_calibration_file() -> Result<Vec<Vec<u32>>, Box<dyn Error>> {
    use conformax::{Alpha, Logits};
    let (classes, test) = (CLASSES, rows().2);
    let model = conformax_io::Model::read("model.json".as_ref())?;
    let sets = model.at(Alpha::new(0.1)?)?.predict(Logits::new(&test, classes)?)?;
    Ok(sets.iter().map(<[u32]>::to_vec).collect())
}

/// A calibration file of the same rows, at another level.
fn write_model() -> Result<(), Box<dyn Error>> {
    let (cal, labels, _) = rows();
    let score = conformax::ScoreSpec::default();
    let mut calibrator = conformax::Calibrator::new(score, CLASSES)?;
    calibrator.extend(conformax::Logits::new(&cal, CLASSES)?.labelled(&labels)?)?;
    let model = Model::new(&calibrator.finish()?, &[conformax::Alpha::new(0.2)?], None);
    Ok(std::fs::write("model.json", model.to_json()?)?)
}

#[test]
fn examples_run_and_agree() {
    let folder = tempfile::tempdir().unwrap();
    std::env::set_current_dir(folder.path()).unwrap();
    write_model().unwrap();
    assert_eq!(calibrates().unwrap(), reads_a_calibration_file().unwrap());
}

#[test]
fn examples_are_those_of_the_readme() {
    let plain = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let (readme, here) = (include_str!("../../../README.md"), plain(include_str!("readme.rs")));
    let blocks: Vec<&str> =
        readme.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        assert!(here.contains(plain(block).trim()), "not compiled here:\n{block}");
    }
}
