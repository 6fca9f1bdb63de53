//! Thresholds by label, cluster, group, weight and loss against an independent oracle. See `fixtures/golden/README.md`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use crate::common::entmax;
use crate::common::npy::golden;
use conformax::{
    AdaptiveLevel, Alarm, Alpha, Calibration, Calibrator, CoverageLaw, EntmaxScore, Evaluator, GroupTally,
    LabelShift, Level, Logits, Loss, Predictor, Promise, Ranks, Scheme, Taxonomy, Thresholds, Tuner, Verdict,
    label_weights, pac_rank,
};
use serde_json::Value;

/// A number, or an infinity written as text.
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| value.as_str().unwrap().parse().unwrap())
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

fn integers(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|value| value.as_u64().unwrap() as u32).collect()
}

fn methods() -> (Value, Rows) {
    let file = serde_json::from_str(&std::fs::read_to_string(golden("methods.json")).unwrap()).unwrap();
    let rows = Rows::read(&file);
    (file, rows)
}

/// The rows of the file.
struct Rows {
    logits: Vec<f64>,
    labels: Vec<u32>,
    groups: Vec<u32>,
    weights: Vec<f64>,
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
            weights: numbers(&file["row_weight"]),
            group_names,
            classes,
            n_cal: file["n_cal"].as_u64().unwrap() as usize,
        }
    }

    fn all(&self) -> Logits<'_, f64> {
        let logits = Logits::new(&self.logits, self.classes).unwrap().with_groups(&self.groups).unwrap();
        logits.with_weights(&self.weights).unwrap()
    }

    fn calibrating(&self) -> Logits<'_, f64> {
        self.all().rows(0..self.n_cal)
    }

    fn test(&self) -> Logits<'_, f64> {
        self.all().rows(self.n_cal..self.labels.len())
    }

    fn calibrated(&self, gamma: f64, scheme: Scheme) -> Calibration<EntmaxScore> {
        let mut calibrator = Calibrator::new(entmax(gamma), self.classes).unwrap().under(scheme).unwrap();
        calibrator.extend(self.calibrating().labelled(&self.labels[..self.n_cal]).unwrap()).unwrap();
        calibrator.finish().unwrap()
    }
}

/// The sets of a case, labels ascending.
fn assert_sets(name: &str, model: &Predictor<EntmaxScore>, test: Logits<'_, f64>, case: &Value) {
    let sets = model.predict(test).unwrap();
    let wanted = case["sets"].as_array().unwrap();
    assert_eq!(sets.len(), wanted.len(), "{name}");
    for (row, (set, wanted)) in sets.iter().zip(wanted).enumerate() {
        let mut set = set.to_vec();
        set.sort_unstable();
        assert_eq!(set, integers(wanted), "{name}, row {row}");
    }
}

/// Whether p-values say the same as sets.
fn assert_dual(name: &str, calibration: &Calibration<EntmaxScore>, alpha: Alpha, test: Logits<'_, f64>) {
    let (sets, p_values) =
        (calibration.at(alpha).0.predict(test).unwrap(), calibration.p_values(test).unwrap());
    for (set, p_values) in sets.iter().zip(p_values.chunks(test.classes())) {
        for (label, p) in (0..).zip(p_values) {
            assert_eq!(p.in_set(alpha), set.contains(&label), "{name}, label {label}");
        }
    }
}

#[test]
fn thresholds_and_sets_by_class_cluster_and_group_are_those_of_the_oracle() {
    let (file, rows) = methods();
    let mut compared = 0;
    for case in file["cases"].as_array().unwrap() {
        let taxonomy = match case["method"].as_str().unwrap() {
            "by_class" => Taxonomy::Label,
            "by_cluster" => {
                Taxonomy::Cluster(integers(&file["cluster_of_label"]).into_iter().map(Some).collect())
            }
            "by_group" => Taxonomy::Group(rows.group_names.len()),
            _ => continue,
        };
        let name = format!("{}, gamma {}, alpha {}", case["method"], case["gamma"], case["alpha"]);
        let alpha: Alpha = case["alpha"].as_str().unwrap().parse().unwrap();
        let calibration = rows.calibrated(number(&case["gamma"]), Scheme::Groups(taxonomy));
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
            other => panic!("{name}: {other:?}"),
        }
        assert_sets(&name, &model, rows.test(), case);
        assert_dual(&name, &calibration, alpha, rows.test());
        compared += 1;
    }
    assert_eq!(compared, 27, "by class, cluster and group, at three indices and three levels");
}

#[test]
fn thresholds_and_sets_by_weight_are_those_of_the_oracle() {
    let (file, rows) = methods();
    let mut compared = 0;
    for case in file["cases"].as_array().unwrap() {
        let scheme = match case["method"].as_str().unwrap() {
            "row_weights" => Scheme::RowWeights,
            "label_weights" => Scheme::LabelWeights(numbers(&file["label_weight"])),
            _ => continue,
        };
        let name = format!("{}, gamma {}, alpha {}", case["method"], case["gamma"], case["alpha"]);
        let alpha: Alpha = case["alpha"].as_str().unwrap().parse().unwrap();
        let calibration = rows.calibrated(number(&case["gamma"]), scheme);
        let (model, promise) = calibration.at(alpha);
        assert_eq!(promise, Promise::Weighted { alpha, n: rows.n_cal as u64 });
        let found: Vec<f64> = match model.thresholds() {
            Thresholds::ByWeight(rule) => {
                rows.weights[rows.n_cal..].iter().map(|weight| rule.threshold(*weight)).collect()
            }
            Thresholds::PerLabel(thresholds) => thresholds.clone(),
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(found, numbers(&case["threshold"]), "{name}");
        assert_sets(&name, &model, rows.test(), case);
        assert_dual(&name, &calibration, alpha, rows.test());
        compared += 1;
    }
    assert_eq!(compared, 18, "weights of rows and of labels, at three indices and three levels");
}

/// Labels that stand too far down score infinity, and classes of no cluster go by the rows of all.
#[test]
fn p_values_say_what_sets_say_with_ranks_and_with_classes_of_no_cluster() {
    let (_, rows) = methods();
    let clusters = [Some(0), None, Some(1), Some(0), None, Some(1), Some(0), Some(1)];
    let by = |gamma, taxonomy| Calibrator::new(entmax(gamma), rows.classes).unwrap().by(taxonomy).unwrap();
    for gamma in [1.0, 1.5, 2.0] {
        // The first classes may not stand far down, and so many of their rows do that their thresholds are infinite.
        let ranks = Ranks::new((1..=rows.classes as u32).collect()).unwrap();
        for (name, calibrator) in [
            ("ranks", by(gamma, Taxonomy::Label).with_ranks(ranks).unwrap()),
            ("no cluster", by(gamma, Taxonomy::Cluster(clusters.to_vec()))),
        ] {
            let mut calibrator = calibrator;
            let labels = &rows.labels[..rows.n_cal];
            calibrator.extend(rows.calibrating().labelled(labels).unwrap()).unwrap();
            let calibration = calibrator.finish().unwrap();
            for alpha in ["0.05", "0.1", "0.25", "0.5"] {
                let name = format!("{name}, gamma {gamma}, alpha {alpha}");
                assert_dual(&name, &calibration, alpha.parse().unwrap(), rows.test());
            }
        }
    }
}

#[test]
fn equal_weights_and_equal_severity_are_split_conformal_to_the_bit() {
    let (_, mut rows) = methods();
    for weight in [0.1, 1.0, 7.0] {
        rows.weights = vec![weight; rows.labels.len()];
        for gamma in [1.0, 1.3, 1.5, 2.0] {
            for alpha in ["0.02", "0.05", "0.1", "0.25"] {
                let alpha: Alpha = alpha.parse().unwrap();
                let wanted =
                    rows.calibrated(gamma, Scheme::default()).at(alpha).0.predict(rows.test()).unwrap();
                let schemes = [
                    Scheme::RowWeights,
                    Scheme::LabelWeights(vec![weight; rows.classes]),
                    Scheme::Risk(Loss::severity(vec![1.0; rows.classes]).unwrap()),
                ];
                for scheme in schemes {
                    let found =
                        rows.calibrated(gamma, scheme.clone()).at(alpha).0.predict(rows.test()).unwrap();
                    assert_eq!(found, wanted, "{weight} {gamma} {alpha} {scheme:?}");
                }
            }
        }
    }
}

#[test]
fn risk_thresholds_and_sets_are_those_of_the_oracle() {
    let (file, rows) = methods();
    let costs: Vec<f64> = file["cost"].as_array().unwrap().iter().flat_map(numbers).collect();
    let mut compared = 0;
    for case in file["cases"].as_array().unwrap() {
        let loss = match case["method"].as_str().unwrap() {
            "severity_risk" => Loss::severity(numbers(&file["severity"])).unwrap(),
            "cost_risk" => Loss::cost(costs.clone(), rows.classes).unwrap(),
            _ => continue,
        };
        let name = format!("{}, gamma {}, alpha {}", case["method"], case["gamma"], case["alpha"]);
        let alpha: Alpha = case["alpha"].as_str().unwrap().parse().unwrap();
        let calibration = rows.calibrated(number(&case["gamma"]), Scheme::Risk(loss.clone()));
        let (model, promise) = calibration.at(alpha);
        assert_eq!(promise, Promise::Risk { alpha, n: rows.n_cal as u64 });
        assert_eq!(*model.thresholds(), Thresholds::One(number(&case["threshold"])), "{name}");
        assert_sets(&name, &model, rows.test(), case);
        assert!(calibration.p_values(rows.test()).is_err());
        // What the evaluator measures is the mean over the sets.
        let labels = &rows.labels[rows.n_cal..];
        let sets = model.predict(rows.test()).unwrap();
        let total: f64 = sets.iter().zip(labels).map(|(set, label)| loss.of(set, *label)).sum();
        let mut evaluator = Evaluator::new(vec![model], rows.classes).unwrap().losing(loss).unwrap();
        evaluator.extend(rows.test().labelled(labels).unwrap()).unwrap();
        assert_eq!(evaluator.finish().unwrap().losses, [total / labels.len() as f64], "{name}");
        compared += 1;
    }
    assert_eq!(compared, 18, "severity and cost, at three indices and three levels");
}

#[test]
fn ranks_over_calibration_rows_are_those_of_the_oracle() {
    let (file, _) = methods();
    let cases = file["pac"].as_array().unwrap();
    assert_eq!(cases.len(), 60);
    for case in cases {
        let (n, alpha) = (case["n"].as_u64().unwrap(), Alpha::new(number(&case["alpha"])).unwrap());
        assert_eq!(pac_rank(n, alpha, number(&case["delta"])).unwrap(), case["rank"].as_u64(), "{case}");
    }
}

#[test]
fn estimated_weights_of_labels_are_those_of_the_oracle() {
    let (file, rows) = methods();
    let shift = &file["label_shift"];
    let target: Vec<f64> = integers(&shift["target_rows"])
        .into_iter()
        .flat_map(|row| rows.logits[row as usize * rows.classes..][..rows.classes].to_vec())
        .collect();
    let target = Logits::new(&target, rows.classes).unwrap();
    let source = rows.calibrating().labelled(&rows.labels[..rows.n_cal]).unwrap();
    for (method, wanted, error) in
        [(LabelShift::Em, "em_weights", 1e-9), (LabelShift::Bbse, "bbse_weights", 1e-12)]
    {
        let found = label_weights(source, target, method).unwrap();
        for (found, wanted) in found.iter().zip(numbers(&shift[wanted])) {
            assert!((found - wanted).abs() <= error, "{method:?}: {found} for {wanted}");
        }
    }
}

#[test]
fn groups_are_counted_apart() {
    let (_, rows) = methods();
    let labels = &rows.labels[rows.n_cal..];
    let alpha = Alpha::new(0.1).unwrap();
    let (model, _) = rows.calibrated(1.5, Scheme::Groups(Taxonomy::Group(rows.group_names.len()))).at(alpha);
    let sets = model.predict(rows.test()).unwrap();
    let count = rows.group_names.len();
    let mut evaluator =
        Evaluator::new(vec![model], rows.classes).unwrap().by(Taxonomy::Group(count)).unwrap();
    evaluator.extend(rows.test().labelled(labels).unwrap()).unwrap();
    let found = evaluator.finish().unwrap();
    for (group, tally) in found.groups[0].iter().enumerate() {
        let of_group = (0..labels.len()).filter(|row| rows.groups[rows.n_cal + row] as usize == group);
        let of_group: Vec<(u32, &[u32])> =
            of_group.map(|row| (labels[row], sets.get(row).unwrap())).collect();
        assert_eq!(tally.n, of_group.len() as u64);
        assert_eq!(tally.covered, of_group.iter().filter(|(label, set)| set.contains(label)).count() as u64);
        assert_eq!(tally.labels, of_group.iter().map(|(_, set)| set.len() as u64).sum::<u64>());
    }
    assert_eq!(found.groups[0].iter().map(|tally| tally.n).sum::<u64>(), labels.len() as u64);
}

/// The chance that at most so many of `n` rows are covered, each with probability `share`.
fn binomial_cdf(covered: u64, n: u64, share: f64) -> f64 {
    let (mut term, mut sum) = ((0..n).map(|_| 1.0 - share).product::<f64>(), 0.0);
    for count in 0..=covered {
        sum += term;
        term *= (n - count) as f64 / (count + 1) as f64 * share / (1.0 - share);
    }
    sum
}

/// All groups together are found short by chance once in a thousand times, so each of a hundred once in a hundred
/// thousand.
#[test]
fn the_gates_level_is_shared_out_over_the_groups() {
    let (n, alpha) = (200, Alpha::new(0.1).unwrap());
    let level = Level::new(99, alpha);
    let law = CoverageLaw::at_level(99, alpha);
    let own = |covered| law.cdf_of_count(covered, n);
    let plain = |covered| binomial_cdf(covered, n, alpha.confidence());
    for groups in [1, 100] {
        let tally = |covered| {
            let mut tally = GroupTally::default();
            (tally.n, tally.covered) = (n, covered);
            tally
        };
        let by_law = |covered| tally(covered).verdict(level, 1.0, groups);
        let by_level = |covered| tally(covered).shortfall(alpha, groups);
        let chance = 0.001 / groups as f64;
        let check = |judge: &dyn Fn(u64) -> Verdict, cdf: &dyn Fn(u64) -> f64| {
            let most = (0..n).rev().find(|covered| judge(*covered) != Verdict::AsPromised).unwrap();
            assert_eq!(judge(most), Verdict::TooLow(most + 1), "{groups} groups");
            assert!(cdf(most) <= chance && chance < cdf(most + 1), "{groups} groups: {most}");
        };
        check(&by_law, &own);
        check(&by_level, &plain);
    }
}

#[test]
fn selection_on_all_rows_gives_the_sets_of_the_oracle() {
    let (file, rows) = methods();
    let (mut compared, mut decided) = (0, 0);
    for case in
        file["cases"].as_array().unwrap().iter().filter(|case| case["method"] == "selected_on_all_rows")
    {
        let alpha: Alpha = case["alpha"].as_str().unwrap().parse().unwrap();
        let n = case["n"].as_u64().unwrap() as usize;
        let grid: Vec<EntmaxScore> = numbers(&case["gammas"]).into_iter().map(entmax).collect();
        let calibrating = rows.all().rows(0..n);
        let mut tuner = Tuner::new(grid, rows.classes, alpha).unwrap();
        let calibrating = calibrating.labelled(&rows.labels[..n]).unwrap();
        tuner.extend(calibrating).unwrap();
        let mut pairs = tuner.finish_selecting().unwrap();
        pairs.extend(calibrating).unwrap();
        let (selection, _) = pairs.finish().unwrap();
        assert_sets(&format!("selection at {alpha}"), &selection.predictor(), rows.test(), case);
        for (row, chosen) in case["chosen_per_label"].as_array().unwrap().iter().enumerate() {
            for (label, chosen) in (0..).zip(integers(chosen)) {
                let one = rows.test().rows(row..row + 1);
                let wins = selection.winners(one.labelled(&[label]).unwrap()).unwrap();
                assert_eq!(wins.iter().sum::<u64>(), 1);
                assert_eq!(wins[chosen as usize], 1, "selection at {alpha}, row {row}, label {label}");
                decided += 1;
            }
        }
        compared += 1;
    }
    assert_eq!((compared, decided), (3, 3 * 24 * rows.classes));
}

#[test]
fn levels_and_capital_of_a_stream_are_those_of_the_oracle() {
    let (file, rows) = methods();
    let (stream, alarm) = (&file["stream"], &file["alarm"]);
    let target = Alpha::new(number(&stream["alpha"])).unwrap();
    let calibration = rows.calibrated(number(&stream["gamma"]), Scheme::default());
    let scores = numbers(&stream["scores"]);
    let p_values: Vec<f64> =
        scores.iter().map(|score| calibration.groups()[0].p_value(*score).value()).collect();
    assert_eq!(p_values, numbers(&stream["p_values"]));
    for (name, step, decay, error) in
        [("constant_step_0.05", 0.05, None, 0.0), ("decaying_step", 0.2, Some(0.6), 1e-13)]
    {
        let mut level = AdaptiveLevel::new(target, step, decay).unwrap();
        let missed = integers(&stream[name]["missed"]);
        for (row, (p, wanted)) in p_values.iter().zip(numbers(&stream[name]["level"])).enumerate() {
            assert!(
                (level.level() - wanted).abs() <= error,
                "{name}, row {row}: {} for {wanted}",
                level.level()
            );
            assert_eq!(level.update(*p), missed[row] == 1, "{name}, row {row}");
        }
    }
    let mut betting = Alarm::new(calibration.groups()[0].as_slice(), number(&alarm["jump"]), 0).unwrap();
    let draws = numbers(&alarm["u"]);
    for (row, (score, wanted)) in scores.iter().zip(numbers(&alarm["capital"])).enumerate() {
        betting.update(*score, Some(draws[row])).unwrap();
        let off = (betting.capital() / wanted - 1.0).abs();
        assert!(off < 1e-10, "row {row}: {} for {wanted}", betting.capital());
    }
}
