//! The calibration file: bits survive, and what calibration could not have made is refused.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use conformax::{
    Alpha, ApsScore, Calibration, Candidate, Choice, Draw, EntmaxScore, Evidence, Gamma, InvProbScore,
    Lambda, Level, MarginScore, Masked, Penalty, RapsScore, RowSet, SapsScore, ScoreSpec, SortedScores,
    Thresholds, TopKScore, Tuning,
};
use conformax_io::{ClassNames, Input, Model, Overwrite, Problem, TuningRecord};
use proptest::prelude::*;
use serde_json::{Value, json};

fn scores_of(model: &Model) -> &SortedScores {
    match model.evidence.as_ref().unwrap() {
        Evidence::Groups(groups) => &groups[0],
        other => panic!("{other:?}"),
    }
}

fn alpha(value: f64) -> Alpha {
    Alpha::new(value).unwrap()
}

fn model() -> Model {
    let scores: Vec<f64> = (0..40).map(|row| f64::from(row / 2) / 7.0).chain([f64::INFINITY]).collect();
    let scores = SortedScores::new(scores).unwrap();
    let score = ScoreSpec::Entmax(EntmaxScore { gamma: Gamma::new(1.3).unwrap() });
    let calibration = Calibration::from_scores(score, 3, scores).unwrap().with_masked(Masked::Never);
    let names = ClassNames::new(vec!["cat".to_owned(), "\"dog\"|ä".to_owned(), "".to_owned()]).unwrap();
    let rows = RowSet::new((0..41_u64).map(|row| row.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect());
    let mut model = Model::new(&calibration, &[alpha(0.1), alpha(0.05), alpha(0.001)], Some(names));
    (model.calibrating_rows, model.input) = (rows, Input::Probabilities);
    let other = ScoreSpec::Entmax(EntmaxScore { gamma: Gamma::SPARSEMAX });
    model.tuning = Some(TuningRecord {
        tuning: Tuning::Valid,
        alpha: alpha(0.1),
        choice: Choice::of(vec![
            Candidate::new(other, f64::INFINITY, 3.0),
            Candidate::new(score, 0.1 + 0.2, 1.7),
        ])
        .unwrap(),
        n: 2,
        rows: RowSet::new(vec![u64::MAX, 3]),
    });
    model
}

fn every_score() -> Vec<ScoreSpec> {
    let draws = [Draw::Conservative, Draw::Seeded(0), Draw::Seeded(u64::MAX)];
    let mut scores =
        vec![ScoreSpec::InvProb(InvProbScore), ScoreSpec::TopK(TopKScore), ScoreSpec::Margin(MarginScore)];
    for gamma in [1.0, 1.1, 1.5, 2.0, 16.0] {
        scores.push(ScoreSpec::Entmax(EntmaxScore { gamma: Gamma::new(gamma).unwrap() }));
    }
    for draw in draws {
        scores.push(ScoreSpec::Aps(ApsScore { draw }));
        scores.push(ScoreSpec::Saps(SapsScore { lambda: Lambda::new(0.1 + 0.2).unwrap(), draw }));
        for penalty in [Penalty::Randomized, Penalty::Fixed] {
            scores.push(ScoreSpec::Raps(RapsScore {
                lambda: Lambda::new(1e-300).unwrap(),
                k_reg: u32::MAX,
                penalty,
                draw,
            }));
        }
    }
    scores
}

#[test]
fn a_model_survives_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.json");
    let model = model();
    model.write(&path, Overwrite::Refuse).unwrap();
    assert_eq!(Model::read(&path).unwrap(), model);
    assert!(matches!(model.write(&path, Overwrite::Refuse).unwrap_err().problem(), Problem::Exists));
}

#[test]
fn every_score_survives_with_its_parameters() {
    for score in every_score() {
        // A score that every one of them can give.
        let scores = SortedScores::new(vec![1.0; 9]).unwrap();
        let model = Model::new(&Calibration::from_scores(score, 3, scores).unwrap(), &[alpha(0.1)], None);
        assert_eq!(Model::from_json(&model.to_json().unwrap()).unwrap(), model, "{score}");
    }
}

/// What a file may hold is written down for people and for programs.
#[test]
fn every_score_is_documented() {
    let (page, schema) = (
        include_str!("../../../docs/calibration-file.md"),
        include_str!("../../../docs/calibration-file.schema.json"),
    );
    for name in ScoreSpec::names() {
        assert!(page.contains(&format!("`{name}`")), "docs/calibration-file.md has no {name}");
        assert!(schema.contains(&format!("\"{name}\"")), "docs/calibration-file.schema.json has no {name}");
    }
}

#[test]
fn a_model_without_scores_knows_its_levels_alone() {
    let mut bare = model();
    bare.evidence = None;
    let bare = Model::from_json(&bare.to_json().unwrap()).unwrap();
    assert_eq!(
        *bare.at(alpha(0.1)).unwrap().thresholds(),
        Thresholds::One(model().levels[0].threshold().unwrap())
    );
    let message = bare.level(alpha(0.2)).unwrap_err().to_string();
    assert!(message.contains("0.1, 0.05, 0.001") && message.contains("0.2"), "{message}");
    assert!(bare.calibration().is_none());
    assert_eq!(model().level(alpha(0.2)).unwrap().level(), Some(Level::new(41, alpha(0.2))));
}

#[test]
fn rows_that_calibrated_or_tuned_are_known() {
    let model = Model::from_json(&model().to_json().unwrap()).unwrap();
    let seen = |row: u64| model.rows().iter().any(|rows| rows.contains(row));
    assert!(seen(0) && seen(u64::MAX) && seen(3) && !seen(4));
}

/// A file as the first version had it: without a checksum, so that what contradicts itself is seen for itself.
fn first_version() -> Value {
    let mut file: Value = serde_json::from_str(&model().to_json().unwrap()).unwrap();
    file["version"] = json!(1);
    for later in ["checksum", "input"] {
        file.as_object_mut().unwrap().remove(later);
    }
    file["calibrating_rows"] = file["calibrating_rows"]["once"].take();
    file["tuning"]["rows"] = file["tuning"]["rows"]["once"].take();
    file
}

#[test]
fn the_first_version_is_still_read() {
    let read = Model::from_json(&first_version().to_string()).unwrap();
    assert_eq!((read.input, &read.levels), (Input::Logits, &model().levels));
    assert!(read.rows().iter().any(|rows| rows.contains(3)));
}

/// Whoever takes the checksum away and writes 1 for 2 has not made a file of the first version.
#[test]
fn the_first_version_has_none_of_the_seconds_fields() {
    let second: Value = serde_json::from_str(&model().to_json().unwrap()).unwrap();
    for field in ["checksum", "input", "calibrating_rows"] {
        refused(|file| file[field] = second[field].clone(), "fields of version 2");
    }
    refused(|file| file["tuning"]["rows"] = second["tuning"]["rows"].clone(), "fields of version 2");
}

#[test]
fn a_mark_before_the_file_is_no_part_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.json");
    let text = format!("\u{feff}{}", model().to_json().unwrap());
    assert_eq!(Model::from_json(&text).unwrap(), model());
    std::fs::write(&path, &text).unwrap();
    assert_eq!(Model::read(&path).unwrap(), model());
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(&path, wide).unwrap();
    assert!(matches!(Model::read(&path).unwrap_err().problem(), Problem::Utf16));
}

/// One change to a sound file, and a word its error must have.
fn refused(change: impl FnOnce(&mut Value), word: &str) {
    let mut file = first_version();
    change(&mut file);
    let message = Model::from_json(&file.to_string()).expect_err(word).to_string();
    assert!(message.contains(word), "{message} does not say {word}");
}

#[test]
fn other_files_and_versions_are_refused_by_name() {
    refused(|file| file["format"] = json!("onnx"), "onnx");
    refused(|file| file["version"] = json!(3), "version is 3");
    refused(|file| file["version"] = json!(2), "checksum is missing");
    refused(|file| file["arithmetic"] = json!(99), "arithmetic version 99");
    refused(|file| file["row_hash"] = json!("md5"), "md5");
    refused(|file| file["extra"] = json!(1), "extra");
    refused(|file| file.as_object_mut().unwrap().remove("levels").map(drop).unwrap(), "levels");
    for text in ["", "{", "[]", "null", "\u{0}", "{\"format\": 3}", "{\"version\": 1}"] {
        assert!(matches!(Model::from_json(text), Err(Problem::Model(_))), "{text}");
    }
}

#[test]
fn what_contradicts_itself_is_refused() {
    refused(|file| file["n"] = json!(40), "40 rows give 37");
    refused(|file| file["scores"] = json!("AAAAAAAAAAA="), "1 scores of 41");
    refused(|file| file["levels"][0]["threshold"] = json!(2.5), "the score of its rank");
    refused(|file| file["levels"][0]["rank"] = json!(39), "rank 39");
    refused(|file| file["levels"][2]["rank"] = json!(41), "rank 41");
    refused(|file| file["levels"][0]["alpha"] = json!(0.05), "rank");
    refused(|file| file["levels"][1] = file["levels"][0].clone(), "twice");
    refused(|file| file["levels"] = json!([]), "no levels");
    refused(|file| file["levels"][0]["threshold"] = json!("nan"), "nan");
    refused(|file| file["levels"][0]["alpha"] = json!(1.5), "alpha");
    refused(|file| file["classes"] = json!(4), "3 class names for 4 classes");
    refused(|file| file["class_names"] = json!(["a", "a", "b"]), "twice");
    refused(|file| file["scores"] = json!("!"), "scores are damaged");
    refused(|file| file["scores"] = json!("AAAA"), "whole number");
    refused(|file| file["calibrating_rows"] = json!("AAAA"), "calibrating_rows");
    refused(|file| file["tuning"]["chosen"] = json!(0), "smallest");
    refused(|file| file["tuning"]["chosen"] = json!(7), "smallest");
    refused(|file| file["tuning"]["candidates"] = json!([]), "at least one candidate");
    refused(|file| file["tuning"]["candidates"][1]["score"]["gamma"] = json!(1.4), "not the score");
    refused(|file| file["tuning"]["n"] = json!(1), "more rows");
}

#[test]
fn scores_out_of_order_are_refused() {
    use base64::Engine;
    let engine = base64::engine::general_purpose::STANDARD;
    for (scores, word) in
        [(vec![2.0, 1.0], "ascending"), (vec![1.0, f64::NAN], "not a number"), (vec![-0.0], "minus zero")]
    {
        let bytes: Vec<u8> = scores.iter().flat_map(|score: &f64| score.to_le_bytes()).collect();
        refused(|file| file["scores"] = json!(engine.encode(bytes)), word);
    }
}

/// White space is nobody's business; anything else is seen.
#[test]
fn a_file_that_was_edited_is_told_by_its_checksum() {
    let text = model().to_json().unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(Model::from_json(&file.to_string()).unwrap(), model(), "the same contents on one line");
    for (from, to) in
        [("\"cat\"", "\"cow\""), ("\"never\"", "\"allowed\""), ("\"probabilities\"", "\"logits\"")]
    {
        assert!(text.contains(from));
        let message = Model::from_json(&text.replace(from, to)).unwrap_err().to_string();
        assert!(message.contains("checksum"), "{message}");
    }
}

/// A file without scores must not be taken for another score's, nor with a threshold that no score is.
#[test]
fn thresholds_that_the_score_cannot_give_are_refused() {
    let bare = |score: Value, threshold: Value| {
        move |file: &mut Value| {
            let object = file.as_object_mut().unwrap();
            object.remove("scores");
            object.remove("tuning");
            file["score"] = score;
            file["levels"] = json!([{ "alpha": 0.1, "rank": 38, "threshold": threshold }]);
        }
    };
    let sparsemax = json!({ "name": "sparsemax", "gamma": 2.0 });
    for threshold in [json!(-9.0), json!("-inf"), json!(-0.0)] {
        refused(bare(sparsemax.clone(), threshold), "cannot give");
    }
    refused(bare(json!({ "name": "inv_prob" }), json!(1.5)), "inv_prob cannot give");
    refused(bare(json!({ "name": "margin" }), json!(-1.5)), "margin cannot give");
    refused(bare(json!({ "name": "top_k" }), json!(0.5)), "top_k cannot give");
    refused(bare(json!({ "name": "saps", "lambda": 0.1, "draw": "zero" }), json!(0.5)), "U = 0");
}

#[test]
fn scores_must_be_spelled_out() {
    refused(|file| file["score"]["name"] = json!("sharpmax"), "sharpmax");
    refused(|file| file["score"] = json!({ "name": "entmax" }), "lacks a parameter");
    refused(|file| file["score"] = json!({ "name": "lac" }), "lacks a parameter");
    refused(|file| file["score"] = json!({ "name": "aps" }), "lacks a parameter");
    refused(|file| file["score"] = json!({ "name": "top_k", "draw": "zero" }), "takes no draw");
    refused(
        |file| {
            file["score"] = json!({ "name": "aps", "draw": { "seeded": { "scheme": "mt19937", "seed": 1 } } })
        },
        "mt19937",
    );
}

#[test]
fn thresholds_alone_must_still_be_in_order() {
    let mut bare = model();
    bare.evidence = None;
    bare.levels[0].thresholds = Thresholds::One(100.0);
    assert!(bare.to_json().unwrap_err().to_string().contains("smaller threshold"));
}

#[test]
fn a_cut_off_file_is_refused_everywhere() {
    let text = model().to_json().unwrap();
    for end in (0..text.len() - 1).filter(|&end| text.is_char_boundary(end)) {
        assert!(Model::from_json(&text[..end]).is_err(), "cut at {end}");
    }
}

proptest! {
    /// Any double that can be a score comes back to the bit.
    #[test]
    fn numbers_keep_their_bits(bits in prop::collection::vec(0..f64::INFINITY.to_bits(), 1..50), level in 1u32..1000) {
        let scores = SortedScores::new(bits.into_iter().map(f64::from_bits).collect()).unwrap();
        let calibration = Calibration::from_scores(ScoreSpec::default(), 10, scores.clone()).unwrap();
        let model = Model::new(&calibration, &[alpha(f64::from(level) / 1001.0)], None);
        let back = Model::from_json(&model.to_json().unwrap()).unwrap();
        let bits = |scores: &SortedScores| scores.as_slice().iter().map(|s| s.to_bits()).collect::<Vec<_>>();
        prop_assert_eq!(bits(scores_of(&back)), bits(&scores));
        let q = |model: &Model| model.levels[0].threshold().unwrap().to_bits();
        prop_assert_eq!(q(&back), q(&model));
        prop_assert_eq!(back.levels[0].level(), model.levels[0].level());
    }
}

/// The documentation's example is a file that reads, and its keys are those that are written.
#[test]
fn the_documented_file_is_one() {
    let page = include_str!("../../../docs/calibration-file.md");
    let example = page.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
    let documented = Model::from_json(example).unwrap();
    assert_eq!(scores_of(&documented).as_slice(), [0.0, 0.0, 0.5, 1.5]);
    let written: Value = serde_json::from_str(&documented.to_json().unwrap()).unwrap();
    assert_eq!(written, serde_json::from_str::<Value>(example).unwrap());
    let schema: Value =
        serde_json::from_str(include_str!("../../../docs/calibration-file.schema.json")).unwrap();
    let full: Value = serde_json::from_str(&model().to_json().unwrap()).unwrap();
    for key in full.as_object().unwrap().keys() {
        assert!(!schema["properties"][key].is_null(), "the schema lacks {key}");
        assert!(page.contains(&format!("| `{key}` |")), "the page lacks {key}");
    }
}
