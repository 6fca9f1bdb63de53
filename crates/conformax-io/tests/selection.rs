//! A selection in its calibration file: bits survive, sets are the same, and what no calibration gives is refused.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use conformax::{
    Alpha, Draw, Generator, InvProbScore, Logits, Masked, Promise, Remember, Rival, ScoreSpec, Selection,
    Thresholds, Tuner, entmax_grid, raps_grid,
};
use conformax_io::{Model, SelectionRecord};

const CLASSES: usize = 12;

fn rows(n: usize, seed: u64) -> (Vec<f32>, Vec<u32>) {
    let mut random = Generator::new(seed, "rows");
    let logits: Vec<f32> = (0..n * CLASSES).map(|_| random.below(60_000) as f32 / 10_000.0).collect();
    let label = |row: &[f32]| {
        let top = (0..CLASSES).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap();
        if random.below(10) < 6 { top as u32 } else { random.below(CLASSES as u64) as u32 }
    };
    let labels = logits.chunks(CLASSES).map(label).collect();
    (logits, labels)
}

fn grids() -> [Vec<ScoreSpec>; 3] {
    let entmax: Vec<ScoreSpec> = entmax_grid().into_iter().map(ScoreSpec::Entmax).collect();
    let raps = raps_grid(CLASSES, Draw::Seeded(3)).into_iter().map(ScoreSpec::Raps);
    let mixed = [entmax[0], entmax[4], ScoreSpec::InvProb(InvProbScore)];
    [entmax, raps.collect(), mixed.to_vec()]
}

fn model(grid: Vec<ScoreSpec>, alpha: f64) -> Model {
    let (logits, labels) = rows(120, 5);
    let logits = Logits::new(&logits, CLASSES).unwrap();
    let tuner = Tuner::new(grid, CLASSES, Alpha::new(alpha).unwrap()).unwrap();
    let mut tuner = tuner.remembering(Remember::Rows);
    let rows = logits.labelled(&labels).unwrap();
    tuner.extend(rows).unwrap();
    let mut pairs = tuner.finish_selecting().unwrap();
    pairs.extend(rows).unwrap();
    let (selection, wins) = pairs.finish().unwrap();
    Model::of_selection(SelectionRecord { selection, wins: Some(wins) }, None)
}

#[test]
fn a_selection_survives_its_file_and_predicts_the_same() {
    let (test, _) = rows(200, 6);
    let test = Logits::new(&test, CLASSES).unwrap();
    let mut choices = 0;
    for grid in grids() {
        for alpha in [0.05, 0.2, 0.001] {
            let model = model(grid.clone(), alpha);
            let text = model.to_json().unwrap();
            let back = Model::from_json(&text).unwrap();
            assert_eq!(back, model);
            assert_eq!(back.to_json().unwrap(), text);
            let sets = |model: &Model| model.predictor(&model.levels[0]).predict(test).unwrap();
            assert_eq!(sets(&back), sets(&model));
            assert!(matches!(back.levels[0].promise, Promise::Selected(level) if level.n() == 120));
            assert_eq!(back.levels[0].law(), None);
            choices += usize::from(back.predictor(&back.levels[0]).is_a_choice());
        }
    }
    assert!(choices > 1, "files of one candidate are not all that is tested");
}

#[test]
fn says_what_is_promised_and_why_the_rest_is_not_to_be_had() {
    let model = model(grids()[0].clone(), 0.1);
    assert_eq!(
        model.promise(),
        "coverage is at least 1 - alpha over all rows, exactly; no law of realised coverage"
    );
    let message = model.level(Alpha::new(0.2).unwrap()).unwrap_err().to_string();
    assert!(message.contains("chosen by all rows at alpha 0.1") && message.contains("at 0.2"), "{message}");
    assert!(model.no_p_values().unwrap().contains("for one level"));
    assert_eq!(model.calibration().map(|_| ()), None);
    assert!(!model.is_plain());
}

#[test]
fn what_no_calibration_gives_is_refused() {
    let refused = |change: fn(&mut Vec<Rival<ScoreSpec>>), word: &str| {
        let mut model = model(grids()[0].clone(), 0.1);
        let record = model.selection.as_mut().unwrap();
        let mut rivals = record.selection.rivals().to_vec();
        change(&mut rivals);
        let (alpha, rows) =
            (record.selection.alpha(), (record.selection.n(), record.selection.rows().clone()));
        record.selection = Selection::from_parts(rivals, CLASSES, alpha, rows, Masked::Allowed).unwrap();
        let message = model.to_json().unwrap_err().to_string();
        assert!(message.contains(word), "{message} does not say {word}");
    };
    let others = |rivals: &mut Vec<Rival<ScoreSpec>>| {
        let scores: Vec<ScoreSpec> = rivals.iter().map(|rival| rival.score).collect();
        rivals.iter_mut().zip(scores.iter().cycle().skip(1)).for_each(|(rival, score)| rival.score = *score);
    };
    refused(others, "leading");
    // Below all scores of the family, so that the counts stay what they are.
    refused(|rivals| rivals.iter_mut().for_each(|rival| rival.low = -3.0), "cannot give");
    let mut other = model(grids()[0].clone(), 0.1);
    other.selection.as_mut().unwrap().wins = Some(vec![1; 9]);
    assert!(other.to_json().unwrap_err().to_string().contains("as many labels"));
    let mut other = model(grids()[0].clone(), 0.1);
    other.levels[0].thresholds = Thresholds::One(0.5);
    assert!(other.to_json().unwrap_err().to_string().contains("leading candidate"));
    let mut other = model(grids()[0].clone(), 0.1);
    other.selection = None;
    assert!(other.to_json().unwrap_err().to_string().contains("promises what"));
}

/// Whatever is changed in a file is found out, by what it says or by the checksum.
#[test]
fn a_changed_file_is_refused() {
    let text = model(grids()[0].clone(), 0.1).to_json().unwrap();
    for (from, to) in
        [("\"at_high\"", "\"at_top\""), ("\"wins\": 0", "\"wins\": 1"), ("\"gamma\": 1.2", "\"gamma\": 1.25")]
    {
        let changed = text.replacen(from, to, 1);
        assert!(changed != text && Model::from_json(&changed).is_err(), "{from}");
    }
}

#[test]
fn every_key_is_documented_and_in_the_schema() {
    let page = include_str!("../../../docs/calibration-file.md");
    let schema: serde_json::Value =
        serde_json::from_str(include_str!("../../../docs/calibration-file.schema.json")).unwrap();
    let file: serde_json::Value =
        serde_json::from_str(&model(grids()[0].clone(), 0.1).to_json().unwrap()).unwrap();
    let candidates = file["selection"]["candidates"].as_array().unwrap();
    let known = &schema["properties"]["selection"]["properties"]["candidates"]["items"]["properties"];
    for key in candidates.iter().flat_map(|candidate| candidate.as_object().unwrap().keys()) {
        assert!(!known[key].is_null(), "the schema lacks {key}");
        assert!(page.contains(&format!("`{key}`")), "the page lacks {key}");
    }
    assert!(page.contains("| `selection` |"));
}
