//! Requests in JSON: whatever comes is read or refused, and what is read has sets and takes labels.

use conformax::{Alpha, Calibration, Logits, ScoreSpec, SortedScores, Stream, StreamOptions};
use conformax_io::{ClassNames, JsonLabel, JsonRow, JsonRows, Model};

const CLASSES: usize = 3;
const MOST: usize = 64;

/// Reads `bytes` as the body of a request for sets, as one that brings labels and, line by line, as the input of
/// `watch`.
pub fn read_request(bytes: &[u8]) {
    let scores = SortedScores::new(vec![0.0, 0.5, 1.0, 2.0]).expect("scores");
    let calibration = Calibration::from_scores(ScoreSpec::default(), CLASSES, scores).expect("a calibration");
    let alpha = Alpha::new(0.25).expect("a level");
    let names = ClassNames::new(["cat", "dog", "owl"].map(str::to_owned).to_vec()).expect("names");
    let model = Model::new(&calibration, &[alpha], Some(names));
    let rows = JsonRows::new(&model);
    let mut stream = model.stream(None, StreamOptions::default()).expect("a stream");
    if let Ok(read) = rows.read_request(bytes, MOST) {
        assert!(read.len() <= MOST);
        assert!(read.iter().all(|row| row.label.is_none()), "labels come by themselves");
        read.into_iter().for_each(|row| tell(&mut stream, &row));
    }
    for JsonLabel { name, label } in JsonLabel::read_request(bytes, MOST).unwrap_or_default() {
        if let Ok(label) = rows.label(&label) {
            stream.update(&name, label).expect("a class of the model");
        }
    }
    for line in bytes.split(|byte| *byte == b'\n').take(MOST) {
        if let Ok(row) = rows.read(line) {
            tell(&mut stream, &row);
        }
    }
    let again = Stream::from_bytes(&stream.to_bytes()).expect("a stream is read as it was written");
    assert_eq!(again, stream);
}

fn tell(stream: &mut Stream<ScoreSpec>, row: &JsonRow) {
    let name = row.name().unwrap_or_default();
    if let Some(logits) = &row.logits {
        assert_eq!(logits.len(), CLASSES);
        let rows = Logits::new(logits, CLASSES).expect("a whole row");
        // Infinities and NaN are refused by whoever computes with them.
        if let Ok(sets) = stream.predict(rows, &[&name]) {
            assert_eq!(sets.len(), 1);
        }
    }
    if let Some(label) = row.label {
        assert!((label as usize) < CLASSES);
        stream.update(&name, label).expect("a class of the model");
    }
}
