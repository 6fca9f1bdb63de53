//! Made-up results in the shape of a real study's: four benchmarks, six procedures, ten levels, five splits.

use conformax::{
    Alpha, CoverageLaw, EntmaxScore, Gamma, Logits, Parameters, Predictor, Row, Score, ScoreSpec, Thresholds,
};
use conformax_study::paper::PROCEDURES;
use conformax_study::{
    Answer, BenchmarkSummary, Claim, CoverageBand, Evidence, ExampleRow, ExampleRule, ExampleScore, Examples,
    GammaSize, Means, Paired, Provenance, Record, Results, RowKind, SplitSummary, Spread, Stratum,
    TuningComparison, TuningWay, Verdict, Way,
};

const BENCHMARKS: [(&str, &str, u64, u64, f64); 4] = [
    ("cifar10", "CIFAR-10", 10_000, 10, 0.856),
    ("cifar100", "CIFAR-100", 10_000, 100, 0.859),
    ("imagenet5k", "ImageNet-5k", 5_000, 1_000, 0.781),
    ("newsgroups", "20 Newsgroups", 3_769, 20, 0.738),
];
const SPLITS: u64 = 5;
/// Of them all rows choose on the first.
const ALL_ROWS_SPLITS: u64 = 2;

/// A number in [−1, 1] that depends on its place alone.
fn jitter(parts: &[u64]) -> f64 {
    let mut h = 0x9e37_79b9_7f4a_7c15_u64;
    for part in parts {
        h = (h ^ part).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        h ^= h >> 29;
    }
    (h >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

pub fn results() -> Results {
    let levels: Vec<f64> = (1..=10).map(|i| f64::from(i) / 100.0).collect();
    let mut results = Results {
        study: "paper".to_owned(),
        provenance: Provenance {
            version: "0.1.0".to_owned(),
            arithmetic_version: 1,
            draw_scheme: "splitmix64-chain-1".to_owned(),
            seed: 0,
            splits: SPLITS,
            claim_splits: 100,
            machine: "Linux x86_64".to_owned(),
            threads: 2,
            duration_seconds: 9.5,
        },
        procedures: PROCEDURES.map(str::to_owned).to_vec(),
        levels: levels.clone(),
        ..Results::default()
    };
    for (b, (name, title, rows, classes, accuracy)) in BENCHMARKS.into_iter().enumerate() {
        let (n_cal, n_test) = (rows * 2 / 5, rows - rows * 2 / 5);
        let splits = (0..SPLITS).map(|split| SplitSummary {
            split,
            n_cal,
            n_test,
            calibration_accuracy: accuracy + 0.004 * jitter(&[b as u64, split, 1]),
            test_accuracy: accuracy + 0.003 * jitter(&[b as u64, split, 2]),
        });
        results.benchmarks.push(BenchmarkSummary {
            name: name.to_owned(),
            title: title.to_owned(),
            rows,
            classes,
            dtype: "f32".to_owned(),
            accuracy,
            fingerprint: format!("{:016x}", 0x1234_5678_9abc_u64 * (b as u64 + 1)),
            doubtful: false,
            ships: true,
            splits: splits.collect(),
        });
        for (p, procedure) in PROCEDURES.into_iter().enumerate() {
            for &alpha in &levels {
                let records: Vec<Record> = (0..SPLITS)
                    .map(|split| record((b, name, n_cal, n_test, classes), (p, procedure), alpha, split))
                    .collect();
                if matches!(procedure, "RAPS" | "opt-entmax") {
                    results.tuned.extend(records[..ALL_ROWS_SPLITS as usize].iter().map(|record| Record {
                        procedure: Way::AllRows.named(procedure),
                        n_cal,
                        n_tune: 0,
                        average_size: 0.96 * record.average_size,
                        ..record.clone()
                    }));
                }
                results.means.push(means(&records));
                results.records.extend(records);
            }
        }
        bands(&mut results, name, n_cal, n_test);
        gammas(&mut results, b, name);
        tuning(&mut results, b, name);
        results.examples.push(examples(b, name, classes as usize));
    }
    results.claims = claims();
    results
}

fn size_of(b: usize, p: usize, alpha: f64, classes: u64) -> f64 {
    let steep = [0.6, 0.75, 1.15, 0.9][b] + [0.0, 0.12, 0.1, 0.06, 0.3, 0.02][p];
    (0.93 * (0.12 / alpha).powf(steep)).min(classes as f64 * 0.9)
}

fn record(
    (b, name, n_cal, n_test, classes): (usize, &str, u64, u64, u64),
    (p, procedure): (usize, &str),
    alpha: f64,
    split: u64,
) -> Record {
    let noise = |salt| jitter(&[b as u64, (p / 2) as u64, (alpha * 1000.0) as u64, split, salt]);
    let is_tuned = matches!(procedure, "RAPS" | "opt-entmax");
    let average_size = size_of(b, p, alpha, classes) * (1.0 + 0.03 * noise(1));
    let covered = ((1.0 - alpha + 0.004 * noise(2)) * n_test as f64).round();
    let singleton_ratio = (0.95 - 9.0 * (0.1 - alpha) * (1.0 + 0.15 * p as f64)).max(0.0);
    let starts = [0, 2, 4, 7, 11];
    let ends = [1, 3, 6, 10, classes];
    let mut left = n_test;
    let strata = starts
        .iter()
        .zip(ends)
        .enumerate()
        .map(|(i, (&from, to))| {
            let n = if i == 4 { left } else { (left as f64 * 0.6).round() as u64 };
            left -= n;
            let coverage = (1.0 - alpha - 0.04 * i as f64).max(0.3);
            let coverage = (n > 0).then(|| (coverage * n as f64).round() / n as f64);
            Stratum { from, to, n, coverage }
        })
        .collect();
    Record {
        benchmark: name.to_owned(),
        procedure: procedure.to_owned(),
        alpha,
        split,
        n_cal: if is_tuned { (n_cal * 3).div_ceil(5) } else { n_cal },
        n_tune: if is_tuned { n_cal - (n_cal * 3).div_ceil(5) } else { 0 },
        n_test,
        threshold: 1.0 / alpha,
        gamma: match procedure {
            "log-margin" => Some(1.0),
            "1.5-entmax" => Some(1.5),
            "sparsemax" => Some(2.0),
            "opt-entmax" => Some(1.1 + 0.1 * (split % 3) as f64),
            _ => None,
        },
        lambda: (procedure == "RAPS").then_some(0.01),
        k_reg: (procedure == "RAPS").then_some(5),
        coverage: covered / n_test as f64,
        average_size,
        singleton_ratio,
        singleton_coverage: (singleton_ratio > 0.0).then_some((1.0 - alpha * 0.8).min(1.0)),
        empty_ratio: if alpha > 0.08 { 0.01 } else { 0.0 },
        sscv: (0.05 + 0.06 * p as f64 + 0.02 * noise(3)).abs(),
        covgap: 0.03 + 0.002 * noise(4),
        strata,
    }
}

fn spread(values: impl Iterator<Item = f64>) -> Spread {
    let values: Vec<f64> = values.collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let deviation = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    Spread { mean, deviation, splits: values.len() as u64 }
}

fn means(records: &[Record]) -> Means {
    let of = |read: fn(&Record) -> f64| spread(records.iter().map(read));
    let right: Vec<f64> = records.iter().filter_map(|record| record.singleton_coverage).collect();
    Means {
        benchmark: records[0].benchmark.clone(),
        procedure: records[0].procedure.clone(),
        alpha: records[0].alpha,
        coverage: of(|r| r.coverage),
        average_size: of(|r| r.average_size),
        singleton_ratio: of(|r| r.singleton_ratio),
        singleton_coverage: (!right.is_empty()).then(|| spread(right.into_iter())),
        empty_ratio: of(|r| r.empty_ratio),
        sscv: of(|r| r.sscv),
        covgap: of(|r| r.covgap),
    }
}

fn bands(results: &mut Results, name: &str, n_cal: u64, n_test: u64) {
    let tuned = ["RAPS", "opt-entmax"];
    for &alpha in &results.levels {
        for is_tuned in [false, true] {
            let n_cal = if is_tuned { (n_cal * 3).div_ceil(5) } else { n_cal };
            let law = CoverageLaw::at_level(n_cal, Alpha::new(alpha).unwrap());
            let (low, high) = law.interval_of_rows(0.95, n_test).unwrap();
            results.bands.push(CoverageBand {
                benchmark: name.to_owned(),
                alpha,
                procedures: PROCEDURES
                    .into_iter()
                    .filter(|p| tuned.contains(p) == is_tuned)
                    .map(str::to_owned)
                    .collect(),
                n_cal,
                n_test,
                probability: 0.95,
                mean: law.mean(),
                low,
                high,
            });
        }
    }
}

fn gammas(results: &mut Results, b: usize, name: &str) {
    let size = |gamma: f64, alpha: f64, split| {
        let best = 1.2 + 0.15 * b as f64;
        (0.1 / alpha).powf(0.9)
            * (1.0 + 0.8 * (gamma - best).powi(2))
            * (1.0 + 0.02 * jitter(&[b as u64, split]))
    };
    let at = |gamma: f64, alpha, split| GammaSize {
        benchmark: name.to_owned(),
        gamma,
        alpha,
        split,
        average_size: size(gamma, alpha, split),
    };
    for split in 0..SPLITS {
        for alpha in [0.01, 0.02, 0.05, 0.1] {
            results.gamma_on_tuning.extend((11..20).map(|g| at(f64::from(g) / 10.0, alpha, split)));
        }
        if name == "imagenet5k" {
            for alpha in results.levels.clone() {
                results.gamma_on_test.extend((10..=20).map(|g| at(f64::from(g) / 10.0, alpha, split)));
            }
        }
    }
}

fn tuning(results: &mut Results, b: usize, name: &str) {
    for procedure in ["RAPS", "opt-entmax"] {
        for &alpha in &results.levels {
            let around = |mean: f64| Spread { mean, deviation: 0.006, splits: 100 };
            let loss = 0.001 + 0.0006 * b as f64;
            results.tuning.push(TuningComparison {
                benchmark: name.to_owned(),
                procedure: procedure.to_owned(),
                alpha,
                promised: 1.0 - alpha,
                valid_coverage: around(1.0 - alpha),
                paper_coverage: around(1.0 - alpha - loss),
                coverage_difference: Paired { mean: -loss, standard_error: 0.0003, splits: 100 },
                valid_size: around(1.5),
                paper_size: around(1.49),
                size_difference: Paired { mean: -0.01, standard_error: 0.002, splits: 100 },
            });
            let size = size_of(b, if procedure == "RAPS" { 1 } else { 5 }, alpha, 1000);
            let ways = [(Way::Split, 1.0, 0.0), (Way::Paper, 0.95, -loss), (Way::AllRows, 0.96, 0.0005)];
            results.tuning_ways.extend(ways.map(|(way, factor, excess)| TuningWay {
                benchmark: name.to_owned(),
                procedure: procedure.to_owned(),
                alpha,
                way,
                coverage: Spread { splits: ALL_ROWS_SPLITS, ..around(1.0 - alpha + excess) },
                average_size: Spread { splits: ALL_ROWS_SPLITS, ..around(size * factor) },
            }));
        }
    }
}

/// Three rows of each kind, as the library answers about them; the last level of RAPS has full sets. What all rows
/// choose goes by the score of `opt-entmax`.
fn examples(b: usize, name: &str, classes: usize) -> Examples {
    let named = |name: &str| ScoreSpec::named(name, Parameters::default()).unwrap();
    let entmax = |gamma: f64| ScoreSpec::Entmax(EntmaxScore { gamma: Gamma::new(gamma).unwrap() });
    let specs =
        [named("inv_prob"), named("raps"), named("log_margin"), entmax(1.5), named("sparsemax"), entmax(1.3)];
    let threshold = |procedure: usize, level: usize| match procedure {
        1 if level == 0 => f64::INFINITY,
        0 | 1 => 1.0 - 0.06 * (level + 1) as f64,
        _ => 6.0 / (level + 1) as f64 * (1.0 + 0.4 * procedure as f64),
    };
    let levels = 0..10;
    let of_procedure = [0, 1, 2, 3, 4, 5, 5];
    let row = |place: usize| {
        let logits: Vec<f32> =
            (0..classes).map(|class| 6.0 * jitter(&[b as u64, place as u64, class as u64]) as f32).collect();
        let row = Row::new(&logits).unwrap();
        let mut labels: Vec<u32> = (0..classes as u32).collect();
        labels.sort_by(|x, y| row.logit(*y).total_cmp(&row.logit(*x)));
        labels.truncate(24);
        let kind = [RowKind::Easy, RowKind::Ambiguous, RowKind::Wrong][place / 3];
        let answer = |procedure: usize, level: usize| {
            let model = Predictor::new(specs[procedure], Thresholds::One(threshold(procedure, level)));
            let (sets, masses) = model.predict_probabilities(Logits::new(&logits, classes).unwrap()).unwrap();
            let set = sets.get(0).unwrap();
            let kept = set.iter().copied().zip(masses).filter(|(label, _)| labels.contains(label));
            let (labels, probabilities) = kept.unzip();
            Answer { size: set.len() as u64, labels, probabilities }
        };
        ExampleRow {
            row: 1_000 + place as u64,
            kind,
            truth: labels[if kind == RowKind::Wrong { 3 } else { 0 }],
            names: labels.iter().map(|label| format!("class <{label}>")).collect(),
            logits: labels.iter().map(|label| Some(row.logit(*label))).collect(),
            scores: specs
                .iter()
                .map(|spec| labels.iter().map(|label| Some(spec.score(row, *label))).collect())
                .collect(),
            answers: of_procedure
                .iter()
                .map(|score| levels.clone().map(|level| answer(*score, level)).collect())
                .collect(),
            labels,
        }
    };
    let rule = |score: usize, level: usize| {
        let threshold = Some(threshold(score, level)).filter(|threshold| threshold.is_finite());
        ExampleRule { score, threshold, is_a_choice: false }
    };
    Examples {
        benchmark: name.to_owned(),
        procedures: PROCEDURES
            .into_iter()
            .map(str::to_owned)
            .chain([Way::AllRows.named("opt-entmax")])
            .collect(),
        scores: specs
            .iter()
            .map(|spec| ExampleScore { name: spec.name().to_owned(), gamma: spec.gamma().map(|g| g.value()) })
            .collect(),
        rules: of_procedure
            .iter()
            .map(|score| levels.clone().map(|level| rule(*score, level)).collect())
            .collect(),
        rows: (0..9).map(row).collect(),
    }
}

fn claims() -> Vec<Claim> {
    let verdicts = [Verdict::Reproduced, Verdict::NotReproduced, Verdict::Undecided];
    let claim = |i: usize| Claim {
        id: format!("claim-number-{i}"),
        sentence: format!(
            "Statement {i}: one procedure has smaller sets than another on every benchmark & level <all>."
        ),
        place: "Section 4.2, average set size".to_owned(),
        rule: "Reproduced where every comparison is positive by more than 3 standard errors.".to_owned(),
        found: "Positive in 12 of 16 comparisons; not clear in 4.".to_owned(),
        verdict: verdicts[i % 3],
        evidence: vec![Evidence {
            benchmark: "cifar10".to_owned(),
            alpha: 0.1,
            quantity: "average size: RAPS − opt-entmax".to_owned(),
            first: 1.2,
            second: 1.1,
            difference: Paired { mean: 0.1, standard_error: 0.01, splits: 100 },
            verdict: verdicts[i % 3],
        }],
    };
    (0..12).map(claim).collect()
}
