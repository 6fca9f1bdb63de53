//! Calibration files: what is read can be written, read again and used.

use conformax::{Alpha, Row, Score};
use conformax_io::Model;

/// Reads `bytes` as a calibration file.
pub fn read_model(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("model.json");
    std::fs::write(&path, bytes).expect("a file in it");
    let Ok(model) = Model::read(&path) else { return };
    let text = model.to_json().expect("a model that was read can be written");
    assert_eq!(
        Model::from_json(&text).as_ref().ok(),
        Some(&model),
        "it reads differently when written again"
    );
    use_model(&model);
}

/// Every level of a model predicts, on a row of its own width where that is one to set aside memory for.
fn use_model(model: &Model) {
    const WIDE: usize = 1 << 12;
    let row: Vec<f32> = (0..model.classes.min(WIDE)).map(|class| (class % 7) as f32).collect();
    let row = Row::new(&row).expect("a model has a class, and these logits are finite");
    for level in &model.levels {
        let calibrated = model.at(level.alpha).expect("a recorded level is known");
        let (mut set, mut probabilities) = (Vec::new(), Vec::new());
        calibrated.set_into(row, &mut set);
        calibrated.score().probabilities_into(row, &set, level.threshold, &mut probabilities);
        assert_eq!(set.len(), probabilities.len());
    }
    let other = Alpha::new(0.37).expect("a level");
    let recorded = model.levels.iter().any(|level| level.alpha == other);
    assert_eq!(model.level(other).is_ok(), recorded || model.scores.is_some());
    if let Some(calibration) = model.calibration() {
        assert_eq!(calibration.scores().n(), model.n);
    }
    assert!(!model.has_seen(0) || !model.calibrating_rows.is_empty() || model.tuning.is_some());
}
