//! Streams: sets at the level of their time, labels late or never, and the same bits wherever a stream is taken up.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use crate::common::data::Data;
use crate::common::entmax;
use conformax::{
    AdaptiveLevel, Alarm, Alpha, Calibration, Calibrator, Error, Feedback, Generator, Logits, Loss, Masked,
    Ranks, Scheme, ScoreSpec, Stream, StreamOptions, Taxonomy,
};

const CLASSES: usize = 12;

fn alpha(value: f64) -> Alpha {
    Alpha::new(value).unwrap()
}

fn data(rows: usize, seed: u64) -> Data {
    Data::new(rows, CLASSES, seed)
}

fn calibrated(scheme: Scheme) -> Calibration<ScoreSpec> {
    let data = data(300, 1);
    let mut calibrator =
        Calibrator::new(ScoreSpec::Entmax(entmax(1.5)), CLASSES).unwrap().under(scheme).unwrap();
    let (groups, weights) = ((0..300).map(|row| row % 3).collect::<Vec<u32>>(), vec![1.0; 300]);
    let rows = data.rows().with_groups(&groups).unwrap().with_weights(&weights).unwrap();
    calibrator.extend(rows.labelled(&data.labels).unwrap()).unwrap();
    calibrator.finish().unwrap()
}

fn by(taxonomy: Taxonomy) -> Calibration<ScoreSpec> {
    calibrated(Scheme::Groups(taxonomy))
}

fn fixed() -> StreamOptions {
    StreamOptions { step: 0.0, decay: None, ..StreamOptions::default() }
}

/// What happens to a stream, one thing after another: predictions, and labels at once, late, twice or for nobody.
fn events(rows: usize) -> Vec<(Option<usize>, Option<usize>)> {
    let mut generator = Generator::new(3, "events");
    let mut events = Vec::new();
    for row in 0..rows {
        events.push((Some(row), None));
        match generator.below(4) {
            0 => {}
            1 => events.push((None, Some(row))),
            2 => events.push((None, Some(row.saturating_sub(7)))),
            _ => events.extend([(None, Some(row)), (None, Some(row / 2)), (None, Some(row + 1_000_000))]),
        }
    }
    events
}

/// Runs events and tells all that can be seen of them.
fn run(
    stream: &mut Stream<ScoreSpec>,
    data: &Data,
    events: &[(Option<usize>, Option<usize>)],
) -> Vec<String> {
    let told = |event: &(Option<usize>, Option<usize>)| match event {
        (Some(row), _) => {
            let groups = [(*row % 3) as u32];
            let logits = data.rows().rows(*row..*row + 1).with_groups(&groups).unwrap();
            let sets = stream.predict(logits, &[&format!("row {row}")]).unwrap();
            format!("{:?} at {:?}", sets.get(0).unwrap(), stream.level().to_bits())
        }
        (None, Some(row)) => {
            let label = data.labels.get(*row).copied().unwrap_or(0);
            format!("{:?} {:?}", stream.update(&format!("row {row}"), label).unwrap(), stream.status())
        }
        (None, None) => unreachable!("nothing happens"),
    };
    events.iter().map(told).collect()
}

#[test]
fn a_stream_taken_up_from_bytes_anywhere_goes_on_with_the_same_bits() {
    let data = data(260, 2);
    let events = events(260);
    let clusters = (0..CLASSES as u32).map(|label| Some(label % 3)).collect();
    let taxonomies = [Taxonomy::All, Taxonomy::Label, Taxonomy::Cluster(clusters), Taxonomy::Group(3)];
    let options =
        [StreamOptions::default(), fixed(), StreamOptions { window: Some(20), ..StreamOptions::default() }];
    for (taxonomy, options) in taxonomies.iter().flat_map(|taxonomy| options.map(|o| (taxonomy, o))) {
        let fresh = Stream::new(by(taxonomy.clone()), alpha(0.1), options).unwrap();
        let mut whole = fresh.clone();
        let wanted = run(&mut whole, &data, &events);
        for cut in (0..events.len()).step_by(37) {
            let mut first = fresh.clone();
            let mut told = run(&mut first, &data, &events[..cut]);
            let bytes = first.to_bytes();
            let mut second = Stream::from_bytes(&bytes).unwrap();
            assert_eq!(second, first, "{taxonomy:?} {options:?} at {cut}");
            assert_eq!(second.to_bytes(), bytes, "{taxonomy:?} {options:?} at {cut}");
            told.extend(run(&mut second, &data, &events[cut..]));
            assert_eq!(told, wanted, "{taxonomy:?} {options:?} at {cut}");
            assert_eq!(second.to_bytes(), whole.to_bytes());
        }
    }
}

#[test]
fn a_label_is_covered_exactly_when_it_is_in_the_set_that_was_given() {
    let data = data(400, 4);
    for step in [0.0, 0.05, 2.0] {
        let options = StreamOptions { step, decay: None, ..StreamOptions::default() };
        let mut stream = Stream::new(by(Taxonomy::Label), alpha(0.2), options).unwrap();
        let mut hits = 0;
        for row in 0..400 {
            let sets = stream.predict(data.rows().rows(row..row + 1), &["now"]).unwrap();
            let Feedback::Counted { covered, .. } = stream.update("now", data.labels[row]).unwrap() else {
                panic!("a row that was just predicted waits")
            };
            assert_eq!(covered, sets.get(0).unwrap().contains(&data.labels[row]), "row {row}, step {step}");
            hits += u64::from(covered);
        }
        assert_eq!(stream.status().covered, hits);
    }
}

/// With a step of 0 it is the model: sets and misses are those of calibration at the level asked for.
#[test]
fn a_fixed_level_gives_the_sets_of_the_model_to_the_bit() {
    let data = data(200, 5);
    for taxonomy in [Taxonomy::All, Taxonomy::Label] {
        for level in [0.1, 0.25, 0.013, 0.3333] {
            let calibration = by(taxonomy.clone());
            let wanted = calibration.at(alpha(level)).0.predict(data.rows()).unwrap();
            let mut stream = Stream::new(calibration, alpha(level), fixed()).unwrap();
            for row in 0..200 {
                let sets = stream.predict(data.rows().rows(row..row + 1), &["now"]).unwrap();
                assert_eq!(sets.get(0), wanted.get(row));
                stream.update("now", data.labels[row]).unwrap();
            }
        }
    }
}

#[test]
fn labels_that_come_late_count_for_the_set_of_their_time() {
    let data = data(50, 6);
    let mut stream = Stream::new(by(Taxonomy::All), alpha(0.5), StreamOptions::default()).unwrap();
    let names: Vec<String> = (0..50).map(|row| row.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let sets = stream.predict(data.rows(), &names).unwrap();
    for row in (0..50).rev() {
        let covered = sets.get(row).unwrap().contains(&data.labels[row]);
        let told = stream.update(names[row], data.labels[row]).unwrap();
        assert!(matches!(told, Feedback::Counted { covered: c, .. } if c == covered), "row {row}: {told:?}");
        assert_eq!(stream.update(names[row], 0).unwrap(), Feedback::Repeated);
    }
    assert_eq!(stream.update("nobody", 0).unwrap(), Feedback::Unknown);
    assert_eq!((stream.status().labelled, stream.status().waiting), (50, 0));
    // A name that is used again stands for its latest row.
    stream.predict(data.rows().rows(0..1), &["0"]).unwrap();
    assert!(matches!(stream.update("0", 1).unwrap(), Feedback::Counted { .. }));
}

#[test]
fn a_window_bounds_what_is_kept() {
    let data = data(1_000, 7);
    let options = StreamOptions { window: Some(50), ..StreamOptions::default() };
    let mut stream = Stream::new(by(Taxonomy::All), alpha(0.1), options).unwrap();
    let mut longest = 0;
    for row in 0..1_000 {
        stream.predict(data.rows().rows(row..row + 1), &[&row.to_string()]).unwrap();
        if row % 2 == 0 {
            stream.update(&row.to_string(), data.labels[row]).unwrap();
        }
        if row >= 500 {
            longest = longest.max(stream.to_bytes().len());
        }
    }
    let status = stream.status();
    assert_eq!((status.waiting, status.recent_labelled, status.recent_predicted), (50, 50, 50));
    assert_eq!((status.labelled, status.forgotten), (500, 450));
    assert_eq!(stream.update("1", 0).unwrap(), Feedback::Unknown);
    // 600 scores of calibration, 50 of the alarm, 50 rows, 512 points.
    assert!(longest < 8 * 300 + 16 * 350 + 50 * (8 * CLASSES + 64) + 50 * 16 + 40 * 520 + 600, "{longest}");
}

#[test]
fn an_alarm_rises_once_and_again_after_it_started_over() {
    let strange = data(400, 8);
    let options = StreamOptions { window: Some(150), ..fixed() };
    let mut stream = Stream::new(by(Taxonomy::All), alpha(0.1), options).unwrap();
    let mut rises = Vec::new();
    for row in 0..400 {
        stream.predict(strange.rows().rows(row..row + 1), &["now"]).unwrap();
        // The last label of the ranking: as strange as this classifier finds any.
        let logits = &strange.logits[row * CLASSES..][..CLASSES];
        let last = (0..CLASSES).min_by(|a, b| logits[*a].total_cmp(&logits[*b])).unwrap();
        if let Feedback::Counted { rose: true, .. } = stream.update("now", last as u32).unwrap() {
            rises.push(row);
        }
    }
    assert_eq!(rises.len(), 3, "{rises:?}");
    for (stretch, row) in rises.iter().enumerate() {
        assert!((150 * stretch..150 * stretch + 60).contains(row), "{rises:?}");
    }
    assert_eq!(stream.status().raised_at, Some(rises[2] as u64 + 1));
}

#[test]
fn impossible_labels_are_missed_at_any_level() {
    let calibration = by(Taxonomy::All).with_masked(Masked::Never);
    let options = StreamOptions { step: 5.0, decay: None, ..StreamOptions::default() };
    let mut stream = Stream::new(calibration, alpha(0.1), options).unwrap();
    let mut row = vec![0.0; CLASSES];
    row[3] = f64::NEG_INFINITY;
    for _ in 0..3 {
        let sets = stream.predict(Logits::new(&row, CLASSES).unwrap(), &["now"]).unwrap();
        assert!(!sets.get(0).unwrap().contains(&3));
        let told = stream.update("now", 3).unwrap();
        assert!(matches!(told, Feedback::Counted { covered: false, p_value: 0.0, .. }), "{told:?}");
    }
    assert!(stream.level() < 0.0);
}

/// Every row has the one label that no set may hold: the level falls without end, and nothing bounds the misses.
#[test]
fn impossible_labels_leave_no_bound() {
    let never = by(Taxonomy::All).with_masked(Masked::Never);
    let mut row = vec![0.0; CLASSES];
    row[3] = f64::NEG_INFINITY;
    for (calibration, misses_all) in [(never, true), (by(Taxonomy::All), false)] {
        let options = StreamOptions { step: 0.05, decay: None, ..StreamOptions::default() };
        let mut stream = Stream::new(calibration, alpha(0.1), options).unwrap();
        for _ in 0..2_000 {
            stream.predict(Logits::new(&row, CLASSES).unwrap(), &["now"]).unwrap();
            stream.update("now", 3).unwrap();
        }
        let missed = 1.0 - stream.status().covered as f64 / 2_000.0;
        assert_eq!(missed == 1.0, misses_all);
        assert!((missed - 0.1).abs() <= stream.bound());
        assert_eq!(stream.bound().is_infinite(), misses_all);
    }
}

/// The oracle's stream, of whose rows it gives the scores of the true labels: a label `s` below the best one of its row
/// scores `s`. The level of each row, its p-value, whether it is missed, and the capital of an alarm with these scores.
#[test]
fn a_stream_over_the_scores_of_the_oracle_is_the_oracles() {
    let text = std::fs::read_to_string(crate::common::npy::golden("methods.json")).unwrap();
    let file: serde_json::Value = serde_json::from_str(&text).unwrap();
    let number = |value: &serde_json::Value| {
        value.as_f64().unwrap_or_else(|| value.as_str().unwrap().parse().unwrap())
    };
    let numbers =
        |value: &serde_json::Value| value.as_array().unwrap().iter().map(number).collect::<Vec<f64>>();
    let labels: Vec<u32> = numbers(&file["labels"]).iter().map(|label| *label as u32).collect();
    let logits: Vec<f64> = file["logits"].as_array().unwrap().iter().flat_map(numbers).collect();
    let (classes, n) = (logits.len() / labels.len(), file["n_cal"].as_u64().unwrap() as usize);
    let rows = Logits::new(&logits, classes).unwrap();
    let oracle = &file["stream"];
    let score = ScoreSpec::Entmax(entmax(number(&oracle["gamma"])));
    let mut calibrator = Calibrator::new(score, classes).unwrap();
    calibrator.extend(rows.rows(0..n).labelled(&labels[..n]).unwrap()).unwrap();
    let calibration = calibrator.finish().unwrap();
    let (scores, p_values) = (numbers(&oracle["scores"]), numbers(&oracle["p_values"]));
    for (name, step, decay, error) in
        [("constant_step_0.05", 0.05, None, 0.0), ("decaying_step", 0.2, Some(0.6), 1e-13)]
    {
        let options = StreamOptions { step, decay, seed: 5, ..StreamOptions::default() };
        let mut stream = Stream::new(calibration.clone(), alpha(number(&oracle["alpha"])), options).unwrap();
        let mut alarm = Alarm::new(calibration.groups()[0].as_slice(), 0.01, 5).unwrap();
        let (levels, missed) = (numbers(&oracle[name]["level"]), numbers(&oracle[name]["missed"]));
        assert_eq!((levels.len(), missed.len()), (scores.len(), scores.len()));
        for (row, score) in scores.iter().enumerate() {
            let off = (stream.level() - levels[row]).abs();
            assert!(off <= error, "{name}, row {row}: {} for {}", stream.level(), levels[row]);
            let mut logits = vec![f64::NEG_INFINITY; classes];
            logits[..2].copy_from_slice(&[*score, 0.0]);
            let sets = stream.predict(Logits::new(&logits, classes).unwrap(), &["now"]).unwrap();
            let told = stream.update("now", 1).unwrap();
            let Feedback::Counted { covered, p_value, .. } = told else { panic!("it waits: {told:?}") };
            assert_eq!((covered, p_value), (missed[row] == 0.0, p_values[row]), "{name}, row {row}");
            assert_eq!(sets.get(0).unwrap().contains(&1), covered, "{name}, row {row}");
            let wanted = alarm.update(*score, None).unwrap();
            assert_eq!(stream.status().log_capital, wanted, "{name}, row {row}");
        }
        let hits = missed.iter().filter(|missed| **missed == 0.0).count() as u64;
        assert_eq!(stream.status().covered, hits);
    }
}

/// Every other label comes a few rows late and some never do: what is averaged over are the last labels and the last
/// sets, whichever they are of, and a window has an edge.
#[test]
fn running_averages_are_those_over_the_last_labels_and_sets() {
    for (window, wanted) in [(Some(7), 7), (Some(1), 1), (None, 1_000)] {
        let rows = if window.is_some() { 60 } else { 2_500 };
        let data = data(rows, 10);
        let options = StreamOptions { window, ..StreamOptions::default() };
        let mut stream = Stream::new(by(Taxonomy::All), alpha(0.2), options).unwrap();
        let (mut sets, mut sizes, mut hits) = (Vec::new(), Vec::new(), Vec::new());
        for row in 0..rows {
            let logits = data.rows().rows(row..row + 1);
            let set = stream.predict(logits, &[&row.to_string()]).unwrap().get(0).unwrap().to_vec();
            sizes.push(set.len() as f64);
            sets.push(set);
            let labelled = match row % 4 {
                0 => Some(row),
                1 => row.checked_sub(6),
                2 => row.checked_sub(1),
                _ => None,
            };
            if let Some(labelled) = labelled {
                let label = data.labels[labelled];
                let told = stream.update(&labelled.to_string(), label).unwrap();
                if let Feedback::Counted { covered, .. } = told {
                    assert_eq!(covered, sets[labelled].contains(&label));
                    hits.push(f64::from(u8::from(covered)));
                }
            }
            let mean = |all: &[f64]| {
                let last = &all[all.len().saturating_sub(wanted)..];
                (!last.is_empty()).then(|| last.iter().sum::<f64>() / last.len() as f64)
            };
            let status = stream.status();
            assert_eq!(status.recent_coverage, mean(&hits), "window {window:?}, row {row}");
            assert_eq!(status.recent_size, mean(&sizes), "window {window:?}, row {row}");
            assert_eq!(status.recent_labelled, hits.len().min(wanted) as u64);
            assert_eq!(status.recent_predicted, sizes.len().min(wanted) as u64);
            if let Some(point) = stream.trace().last().filter(|point| point.labelled == hits.len() as u64) {
                assert_eq!(Some(point.coverage), mean(&hits), "window {window:?}, row {row}");
            }
        }
        assert!(hits.len() > wanted);
    }
}

#[test]
fn largest_ranks_go_into_the_scores_of_labels() {
    let calibration = by(Taxonomy::All).with_ranks(Ranks::new(vec![1; CLASSES]).unwrap()).unwrap();
    let mut stream = Stream::new(calibration, alpha(0.1), fixed()).unwrap();
    let row: Vec<f64> = (0..CLASSES).map(|class| -(class as f64) / 100.0).collect();
    let sets = stream.predict(Logits::new(&row, CLASSES).unwrap(), &["now"]).unwrap();
    assert_eq!(sets.get(0), Some(&[0][..]));
    let told = stream.update("now", 1).unwrap();
    assert!(matches!(told, Feedback::Counted { covered: false, .. }), "{told:?}");
}

#[test]
fn what_cannot_stream_is_refused_with_the_reason() {
    let refused = |calibration: Calibration<ScoreSpec>| {
        Stream::new(calibration, alpha(0.1), StreamOptions::default()).unwrap_err().to_string()
    };
    assert_eq!(
        refused(calibrated(Scheme::RowWeights)),
        "a stream cannot be had with weights of rows or labels"
    );
    let loss = Loss::severity(vec![1.0; CLASSES]).unwrap();
    assert_eq!(refused(calibrated(Scheme::Risk(loss))), "a stream cannot be had with risk control");
    let some = (0..CLASSES as u32).map(|label| (label > 2).then_some(0)).collect();
    assert_eq!(
        refused(by(Taxonomy::Cluster(some))),
        "a stream cannot be had with clusters that leave classes out"
    );
    let none = StreamOptions { window: Some(0), ..fixed() };
    assert!(matches!(
        Stream::new(by(Taxonomy::All), alpha(0.1), none),
        Err(Error::Parameter { name: "window", .. })
    ));
}

#[test]
fn faults_leave_everything_as_it_was() {
    let mut stream = Stream::new(by(Taxonomy::All), alpha(0.1), StreamOptions::default()).unwrap();
    let row = [0.0; CLASSES];
    stream.predict(Logits::new(&row, CLASSES).unwrap(), &["a"]).unwrap();
    let before = stream.to_bytes();
    let wrong = [0.0, f64::NAN];
    assert!(stream.update("a", 12).is_err());
    assert!(stream.predict(Logits::new(&wrong, 2).unwrap(), &["b"]).is_err());
    let mut broken = vec![0.0; 2 * CLASSES];
    broken[CLASSES + 3] = f64::NAN;
    let error = stream.predict(Logits::new(&broken, CLASSES).unwrap(), &["b", "c"]).unwrap_err();
    assert!(matches!(error, Error::Logit { row: 1, class: 3, .. }));
    assert!(stream.predict(Logits::new(&row, CLASSES).unwrap(), &[]).is_err());
    assert_eq!(stream.to_bytes(), before);
}

#[test]
fn bytes_of_levels_and_alarms_go_on_with_the_same_bits_and_damage_is_seen() {
    let mut level = AdaptiveLevel::new(alpha(0.1), 0.2, Some(0.6)).unwrap();
    let mut alarm = Alarm::new(&[1.0, 1.0, 2.0, 3.0], 0.01, 7).unwrap();
    for row in 0..40 {
        let (mut level_again, mut alarm_again) = (
            AdaptiveLevel::from_bytes(&level.to_bytes()).unwrap(),
            Alarm::from_bytes(&alarm.to_bytes()).unwrap(),
        );
        let (p, score) = (f64::from(row % 7) / 7.0, f64::from(row % 5));
        assert_eq!((level_again.update(p), level_again.level()), (level.update(p), level.level()));
        assert_eq!(alarm_again.update(score, None).unwrap(), alarm.update(score, None).unwrap());
        assert_eq!((&level_again, &alarm_again), (&level, &alarm));
    }
    let stream = Stream::new(by(Taxonomy::Label), alpha(0.1), StreamOptions::default()).unwrap().to_bytes();
    for bytes in [level.to_bytes(), alarm.to_bytes(), stream] {
        for place in (0..bytes.len()).step_by(bytes.len() / 50 + 1) {
            let mut damaged = bytes.clone();
            damaged[place] ^= 4;
            assert!(Stream::from_bytes(&damaged).is_err());
            assert!(Alarm::from_bytes(&damaged).is_err() && AdaptiveLevel::from_bytes(&damaged).is_err());
            assert!(Stream::from_bytes(&bytes[..place]).is_err());
        }
    }
}

/// `P(capital ever ≥ 1/δ) ≤ δ`: 10,000 exchangeable streams of 150 rows after 50, at δ = 0.05. Were it exactly δ, more
/// than 570 of them would rise once in a thousand times; these are always the same streams.
#[test]
fn false_alarms_are_as_rare_as_promised() {
    /// Logarithm of 20.
    const LN_20: f64 = 2.995_732_273_553_991;
    let mut risen = 0;
    for run in 0..10_000 {
        let mut generator = Generator::new(run, "exchangeable");
        let mut draw = || generator.below(40) as f64;
        let calibrating: Vec<f64> = (0..50).map(|_| draw()).collect();
        let mut alarm = Alarm::new(&calibrating, 0.01, run).unwrap();
        for _ in 0..150 {
            alarm.update(draw(), None).unwrap();
        }
        risen += u32::from(alarm.highest() >= LN_20);
    }
    assert!(risen <= 500, "{risen} of 10,000");
}
