//! A made-up study in which every sentence of the paper is plainly true, and what the claims make of it.

use super::table::{CLAIMS, IMAGENET, NEWSGROUPS};
use super::*;
use crate::paper::{ENTMAX, INV_PROB, LOG_MARGIN, OPT_ENTMAX, RAPS, SPARSEMAX};
use crate::results::{BenchmarkSummary, Stratum, Verdict};

const BENCHMARKS: [&str; 4] = ["cifar10", "cifar100", IMAGENET, NEWSGROUPS];
const LEVELS: [f64; 3] = [0.01, 0.05, 0.1];
const SPLITS: u64 = 6;

/// Splits lie this little apart: any difference below is clear.
fn jitter(split: u64) -> f64 {
    (split as f64 - 2.5) * 1e-6
}

fn average_size(benchmark: &str, procedure: &str, alpha: f64) -> f64 {
    let times = match procedure {
        OPT_ENTMAX => 1.0,
        INV_PROB => 1.02,
        ENTMAX => 1.05,
        LOG_MARGIN if benchmark == IMAGENET => 1.5,
        LOG_MARGIN => 1.06,
        RAPS => 1.3,
        // Larger than the others, most so at high confidence.
        _ => 1.4 + 0.02 / alpha,
    };
    times * 0.2 / alpha
}

fn singleton_ratio(benchmark: &str, procedure: &str, alpha: f64) -> f64 {
    if benchmark == NEWSGROUPS && alpha == 0.01 {
        return 0.0;
    }
    match procedure {
        RAPS => 0.0,
        LOG_MARGIN => 0.6,
        ENTMAX | SPARSEMAX => 0.2,
        _ => 0.5,
    }
}

/// How far the coverage of sets of a size lies from 1 − α.
fn deviation(procedure: &str) -> f64 {
    if procedure == LOG_MARGIN { 0.001 } else { 0.005 }
}

fn record(benchmark: &str, procedure: &str, alpha: f64, split: u64) -> Record {
    let singleton_ratio = singleton_ratio(benchmark, procedure, alpha);
    let task = BENCHMARKS.iter().position(|name| *name == benchmark).unwrap_or(0);
    let small = if [INV_PROB, LOG_MARGIN, OPT_ENTMAX].contains(&procedure) { 300 } else { 20 };
    let stratum = |from, to, n| Stratum {
        from,
        to,
        n,
        coverage: Some(1.0 - alpha - deviation(procedure) + jitter(split)),
    };
    Record {
        benchmark: benchmark.to_owned(),
        procedure: procedure.to_owned(),
        alpha,
        split,
        n_cal: 400,
        n_test: 600,
        coverage: 1.0 - alpha + jitter(split),
        average_size: average_size(benchmark, procedure, alpha) + jitter(split),
        singleton_ratio,
        singleton_coverage: (singleton_ratio > 0.0).then_some(1.0 - alpha + jitter(split)),
        gamma: (procedure == OPT_ENTMAX).then(|| 1.1 + alpha + task as f64 / 10.0),
        sscv: 0.01 + alpha + jitter(split),
        strata: vec![stratum(0, 1, small / 2), stratum(2, 3, small / 2), stratum(4, 10, 600 - small)],
        ..Record::default()
    }
}

fn judged(change: impl Fn(&mut Record)) -> Vec<Claim> {
    let mut records = Vec::new();
    for benchmark in BENCHMARKS {
        for procedure in PROCEDURES {
            for alpha in LEVELS {
                records.extend((0..SPLITS).map(|split| record(benchmark, procedure, alpha, split)));
            }
        }
    }
    records.iter_mut().for_each(change);
    let results = Results {
        benchmarks: BENCHMARKS
            .map(|name| BenchmarkSummary {
                name: name.to_owned(),
                ships: true,
                ..BenchmarkSummary::default()
            })
            .to_vec(),
        procedures: PROCEDURES.map(str::to_owned).to_vec(),
        levels: LEVELS.to_vec(),
        ..Results::default()
    };
    judge_claims(&results, &records, &Influences::new())
}

/// What is subtracted from what in each claim's first comparison: a reader checks these against the sentences.
const FIRST: [(&str, usize, &str); 21] = [
    ("coverage-close", 72, "coverage: 0.01 − |InvProb − 0.99|"),
    ("two-smallest", 12, "average size: 1.5-entmax − InvProb"),
    ("opt-entmax-newsgroups", 3, "average size: InvProb − opt-entmax"),
    ("both-dominate-raps", 24, "average size: RAPS − InvProb"),
    ("entmax-competitive", 12, "average size: 1.1 × opt-entmax − 1.5-entmax"),
    ("log-margin-competitive", 9, "average size: 1.1 × opt-entmax − log-margin"),
    ("log-margin-imagenet", 3, "average size: log-margin − 1.1 × opt-entmax"),
    ("sparsemax-larger", 60, "average size: sparsemax − InvProb"),
    (
        "sparsemax-high-confidence",
        4,
        "average size: sparsemax over others at 0.01 − sparsemax over others at 0.1",
    ),
    ("gamma-level", 4, "chosen γ: at 0.01 − at 0.1"),
    ("gamma-task", 18, "chosen γ: cifar10 − cifar100"),
    ("singletons-differ", 11, "singleton ratio: log-margin − RAPS"),
    ("raps-fewest-singletons", 55, "singleton ratio: InvProb − RAPS"),
    ("log-margin-most-singletons", 55, "singleton ratio: log-margin − InvProb"),
    ("singletons-at-one-percent", 9, "singleton ratio: InvProb − 0.001"),
    ("no-singletons-newsgroups", 6, "singleton ratio: 0.001 − InvProb"),
    ("singletons-covered", 55, "coverage of singletons: 0.05 − |InvProb − 0.99|"),
    ("log-margin-adaptive", 15, "|coverage − 0.9| of sets of 0 to 1: InvProb − log-margin"),
    ("strata-improve", 6, "SSCV: InvProb at 0.1 − InvProb at 0.01"),
    ("three-reach-coverage", 9, "coverage of sets of 0 to 1: 0.02 − |InvProb − 0.99|"),
    ("three-small-sets", 9, "share of sets of at most 3: InvProb − RAPS"),
];

#[test]
fn every_sentence_is_reproduced_where_the_paper_is_right() {
    let claims = judged(|_| ());
    assert_eq!(claims.len(), FIRST.len());
    for ((claim, sentence), (id, comparisons, first)) in claims.iter().zip(&CLAIMS).zip(FIRST) {
        assert_eq!((claim.id.as_str(), claim.evidence.len()), (id, comparisons));
        assert_eq!(claim.evidence[0].quantity, first, "{id}");
        // Every comparison is won, so a claim with its sides swapped would lose every one.
        assert!(claim.evidence.iter().all(|one| one.verdict == Verdict::Reproduced), "{id}: {}", claim.found);
        let wanted = match sentence.comparison.can_be_refuted() {
            true => Verdict::Reproduced,
            false => Verdict::Irrefutable,
        };
        assert_eq!(claim.verdict, wanted, "{id}");
    }
}

#[test]
fn only_differences_without_a_sign_cannot_be_refuted() {
    let claims = judged(|_| ());
    let irrefutable: Vec<&str> = claims
        .iter()
        .filter(|claim| claim.verdict == Verdict::Irrefutable)
        .map(|claim| claim.id.as_str())
        .collect();
    assert_eq!(irrefutable, ["gamma-level", "gamma-task", "singletons-differ"]);
    for claim in claims.iter().filter(|claim| claim.verdict == Verdict::Irrefutable) {
        assert!(claim.rule.contains("not counted as reproduced"), "{}", claim.rule);
    }
}

/// A made-up fault and the claims that it must refute.
type Fault = (&'static [&'static str], fn(&mut Record));

#[test]
fn a_sentence_is_refuted_where_its_numbers_are_the_other_way() {
    let faults: [Fault; 12] = [
        (&["coverage-close"], |r| r.coverage -= 0.03),
        (&["singletons-covered"], |r| r.singleton_coverage = r.singleton_coverage.map(|c| c - 0.2)),
        // The larger of the two is above every other procedure.
        (&["two-smallest", "both-dominate-raps", "opt-entmax-newsgroups"], |r| {
            if r.procedure == OPT_ENTMAX || r.procedure == INV_PROB {
                r.average_size *= if r.procedure == OPT_ENTMAX { 9.0 } else { 8.0 };
            }
        }),
        (&["entmax-competitive", "log-margin-competitive"], |r| {
            if r.procedure == ENTMAX || r.procedure == LOG_MARGIN {
                r.average_size *= 2.0;
            }
        }),
        (&["log-margin-imagenet"], |r| {
            if r.procedure == LOG_MARGIN {
                r.average_size /= 2.0;
            }
        }),
        (&["sparsemax-larger", "sparsemax-high-confidence"], |r| {
            if r.procedure == SPARSEMAX {
                r.average_size = 0.01 + jitter(r.split);
            }
        }),
        (&["raps-fewest-singletons", "no-singletons-newsgroups"], |r| {
            r.singleton_ratio = if r.procedure == RAPS { 0.9 } else { 0.1 };
        }),
        (&["log-margin-most-singletons", "singletons-at-one-percent"], |r| {
            r.singleton_ratio =
                if [ENTMAX, SPARSEMAX, RAPS].contains(&r.procedure.as_str()) { 0.5 } else { 0.0 };
        }),
        (&["log-margin-adaptive"], |r| {
            let far = if r.procedure == LOG_MARGIN { 0.1 } else { 0.0 };
            r.strata.iter_mut().for_each(|s| s.coverage = s.coverage.map(|c| c - far));
        }),
        (&["three-reach-coverage"], |r| {
            r.strata.iter_mut().for_each(|s| s.coverage = s.coverage.map(|c| c - 0.1));
        }),
        (&["strata-improve"], |r| r.sscv = 1.0 - r.sscv),
        (&["three-small-sets"], |r| r.strata.iter_mut().for_each(|s| s.n = 600 - s.n)),
    ];
    let mut refuted: Vec<&str> = Vec::new();
    for (ids, fault) in faults {
        let claims = judged(fault);
        for id in ids {
            let claim = claims.iter().find(|claim| claim.id == *id).unwrap();
            assert_eq!(claim.verdict, Verdict::NotReproduced, "{id}: {}", claim.found);
        }
        refuted.extend(ids);
    }
    // All that can be.
    let can_be = CLAIMS.iter().filter(|sentence| sentence.comparison.can_be_refuted()).count();
    assert_eq!((refuted.len(), can_be), (18, 18));
}

#[test]
fn one_level_leaves_nothing_to_compare_between_levels() {
    let records: Vec<Record> = BENCHMARKS
        .iter()
        .flat_map(|benchmark| PROCEDURES.map(|procedure| record(benchmark, procedure, 0.1, 0)))
        .collect();
    let influences = Influences::new();
    let court = Court::new(BENCHMARKS.to_vec(), PROCEDURES.to_vec(), vec![0.1], &records, &influences);
    let of = |id: &str| CLAIMS.iter().find(|sentence| sentence.id == id).unwrap().judge(&court);
    for id in ["sparsemax-high-confidence", "gamma-level", "strata-improve"] {
        let claim = of(id);
        assert_eq!((claim.verdict, claim.evidence.len()), (Verdict::Undecided, 0), "{id}");
        assert_eq!(claim.found, "nothing to compare in this study");
    }
}
