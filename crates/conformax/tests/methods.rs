//! Thresholds by label, cluster and group against an independent oracle. See `fixtures/golden/README.md`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;

use common::entmax;
use common::npy::golden;
use conformax::{Alpha, Calibrator, Logits, Promise, Taxonomy, Thresholds};
use serde_json::Value;

/// A number, or an infinity written as text.
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| value.as_str().unwrap().parse().unwrap())
}

fn integers(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|value| value.as_u64().unwrap() as u32).collect()
}

/// The rows of the file.
struct Rows {
    logits: Vec<f64>,
    labels: Vec<u32>,
    groups: Vec<u32>,
    group_names: Vec<String>,
    classes: usize,
    n_cal: usize,
}

impl Rows {
    fn read(file: &Value) -> Self {
        let rows = file["logits"].as_array().unwrap();
        let classes = rows[0].as_array().unwrap().len();
        let names = file["group"].as_array().unwrap().iter();
        let names: Vec<String> =
            names.map(|name| name.as_str().map_or(name.to_string(), str::to_owned)).collect();
        let mut group_names = names.clone();
        group_names.sort();
        group_names.dedup();
        let place = |name: &String| group_names.iter().position(|other| other == name).unwrap() as u32;
        Self {
            logits: rows.iter().flat_map(|row| row.as_array().unwrap()).map(number).collect(),
            labels: integers(&file["labels"]),
            groups: names.iter().map(place).collect(),
            group_names,
            classes,
            n_cal: file["n_cal"].as_u64().unwrap() as usize,
        }
    }

    fn all(&self) -> Logits<'_, f64> {
        Logits::new(&self.logits, self.classes).unwrap().with_groups(&self.groups).unwrap()
    }
}

#[test]
fn thresholds_and_sets_by_class_cluster_and_group_are_those_of_the_oracle() {
    let file: Value =
        serde_json::from_str(&std::fs::read_to_string(golden("methods.json")).unwrap()).unwrap();
    let rows = Rows::read(&file);
    let (calibrating, test) =
        (rows.all().rows(0..rows.n_cal), rows.all().rows(rows.n_cal..rows.labels.len()));
    let mut compared = 0;
    for case in file["cases"].as_array().unwrap() {
        let taxonomy = match case["method"].as_str().unwrap() {
            "by_class" => Taxonomy::Label,
            "by_cluster" => Taxonomy::Cluster(integers(&file["cluster_of_label"])),
            "by_group" => Taxonomy::Group(rows.group_names.len()),
            _ => continue,
        };
        let name = format!("{}, gamma {}, alpha {}", case["method"], case["gamma"], case["alpha"]);
        let alpha: Alpha = case["alpha"].as_str().unwrap().parse().unwrap();
        let calibrator = Calibrator::new(entmax(number(&case["gamma"])), rows.classes).unwrap();
        let mut calibrator = calibrator.by(taxonomy).unwrap();
        calibrator.extend(calibrating.labelled(&rows.labels[..rows.n_cal]).unwrap()).unwrap();
        let calibration = calibrator.finish().unwrap();
        let (model, promise) = calibration.at(alpha);
        let wanted: Vec<f64> = match &case["threshold"] {
            Value::Array(values) => values.iter().map(number).collect(),
            Value::Object(by_group) => rows.group_names.iter().map(|name| number(&by_group[name])).collect(),
            other => panic!("{name}: {other}"),
        };
        let found: Vec<f64> = calibration.groups().iter().map(|scores| scores.threshold(alpha)).collect();
        assert_eq!(found, wanted, "{name}");
        let Promise::Groups { levels, .. } = promise else { panic!("{name}: {promise:?}") };
        assert_eq!(levels.iter().map(|level| level.n()).sum::<u64>(), rows.n_cal as u64);
        match model.thresholds() {
            Thresholds::PerLabel(thresholds) => assert_eq!(thresholds.len(), rows.classes),
            Thresholds::PerGroup(thresholds) => assert_eq!(*thresholds, wanted),
            Thresholds::One(_) => panic!("{name}: one threshold for all"),
        }
        let p_values = calibration.p_values(test).unwrap();
        let sets = model.predict(test).unwrap();
        for (row, (set, wanted)) in sets.iter().zip(case["sets"].as_array().unwrap()).enumerate() {
            let mut set = set.to_vec();
            set.sort_unstable();
            assert_eq!(set, integers(wanted), "{name}, row {row}");
            for label in 0..rows.classes {
                let inside = p_values[row * rows.classes + label].in_set(alpha);
                assert_eq!(
                    inside,
                    set.contains(&(label as u32)),
                    "{name}, p-value of row {row}, label {label}"
                );
            }
        }
        compared += 1;
    }
    assert_eq!(compared, COMPARED);
}

/// By class, cluster and group, at three indices and several levels.
const COMPARED: usize = 27;
