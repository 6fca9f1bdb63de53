//! Calibration files: what is read can be written, read again and used.

use conformax::{Alpha, Logits};
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
    let row = Logits::new(&row, row.len()).expect("a model has a class");
    for kept in &model.levels {
        let predictor = model.at(kept.alpha()).expect("a recorded level is known");
        let (sets, probabilities) = predictor.predict_probabilities(row).expect("these logits are finite");
        assert_eq!(sets.labels().len(), probabilities.len());
    }
    let other = Alpha::new(0.37).expect("a level");
    let recorded = model.levels.iter().any(|kept| kept.alpha() == other);
    assert_eq!(model.level(other).is_ok(), recorded || model.evidence.is_some());
    if let Some(calibration) = model.calibration() {
        assert_eq!(calibration.n(), model.n);
    }
    assert_eq!(model.rows().len(), 1 + usize::from(model.tuning.is_some()));
}
