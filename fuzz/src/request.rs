//! Requests in JSON and as Arrow tables: whatever comes is read or refused, and what is read has sets and takes labels.

use std::sync::Arc;

use conformax::{
    Alpha, Calibration, EntmaxScore, Logit, Logits, Predictor, ScoreSpec, SortedScores, Stream,
    StreamOptions, Thresholds,
};
use conformax_io::{
    Block, ClassNames, Data, JsonLabel, JsonRow, JsonRows, LabelUse, Model, Source, SourceOptions, Values,
};

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

/// Reads `bytes` as the table of a request for sets: in memory, with its ids where it has some, and inflated up to a
/// bound. Whatever it is cut into, its rows are the same.
pub fn read_table(bytes: &[u8]) {
    let table = Data::InMemory { name: "rows.arrow".into(), bytes: Arc::new(bytes.to_vec()) };
    for keep in [vec!["id".to_owned()], Vec::new()] {
        let rows =
            |block_bytes| rows_of(&table, &SourceOptions { keep: keep.clone(), block_bytes, ..in_request() });
        assert_eq!(rows(64), rows(1 << 20), "the size of the blocks makes a difference");
    }
}

fn in_request() -> SourceOptions {
    SourceOptions { labels: LabelUse::Ignored, most_inflated: Some(1 << 20), ..SourceOptions::default() }
}

/// How many rows a table has; `None` where it is refused.
fn rows_of(table: &Data, options: &SourceOptions) -> Option<u64> {
    let mut source = Source::open(table, options).ok()?;
    let (mut block, mut rows) = (Block::default(), 0);
    while source.read(&mut block).ok()? {
        assert_eq!(block.first_row, rows);
        assert!(block.keep.iter().all(|kept| kept.cells.len() == block.rows()));
        rows += block.rows() as u64;
        match &block.logits {
            Values::F16(logits) => expect_sets(logits, block.classes),
            Values::Bf16(logits) => expect_sets(logits, block.classes),
            Values::F32(logits) => expect_sets(logits, block.classes),
            Values::F64(logits) => expect_sets(logits, block.classes),
        }
    }
    Some(rows)
}

/// Sets, or an error that names the row.
fn expect_sets<T: Logit>(logits: &[T], classes: usize) {
    let predictor = Predictor::new(EntmaxScore::default(), Thresholds::One(1.5));
    match Logits::new(logits, classes).and_then(|rows| predictor.predict(rows)) {
        Ok(sets) => assert_eq!(sets.len() * classes, logits.len()),
        Err(error) => assert!(error.row().is_some(), "{error}"),
    }
}
