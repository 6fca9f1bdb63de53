//! Rows of a benchmark for a reader to try procedures on, with the library's own answers about them.
//!
//! They are test rows of the first split, so no procedure has calibrated on them, and a rule takes them that knows
//! nothing of any procedure: how far the true label's logit lies ahead of all others.

use conformax::{Logit, Logits, Predictor, Row, Score, ScoreSpec};

use crate::benchmark::{Benchmark, Wide};
use crate::error::Result;
use crate::evaluation::{Evaluation, Outcome};
use crate::procedure::Procedure;
use crate::results::{Answer, ExampleRow, ExampleRule, ExampleScore, Examples, RowKind, Way};
use crate::splits::Split;

/// Labels listed of a row, from the top; the true one is always among them.
const LISTED: usize = 24;

/// Where rows are taken: at these shares of the rows whose true label is ahead, ordered by its lead, and of the others.
const TAKEN: [(RowKind, [f64; 3]); 3] = [
    (RowKind::Easy, [0.5, 0.7, 0.9]),
    (RowKind::Ambiguous, [0.02, 0.05, 0.08]),
    (RowKind::Wrong, [0.25, 0.5, 0.75]),
];

/// A procedure as the first split calibrated it: its name, and what predicts at each level.
type Tried = (String, Vec<Predictor<ScoreSpec>>);

/// The examples of a benchmark, answered as the first split calibrated its procedures: those of the study, and then the
/// tuned ones once more where all rows choose.
pub(crate) fn examples_of(
    benchmark: &Benchmark,
    split: &Split,
    procedures: &[Procedure],
    evaluation: &Evaluation,
) -> Result<Examples> {
    let named = || procedures.iter().zip(&evaluation.procedures);
    let plain = named().map(|(procedure, found)| {
        let first = found.outcomes.first().into_iter().flatten();
        (procedure.name.clone(), first.map(Outcome::predictor).collect())
    });
    let all_rows = named().filter(|(_, found)| !found.all_rows_first.is_empty());
    let all_rows = all_rows
        .map(|(procedure, found)| (Way::AllRows.named(&procedure.name), found.all_rows_first.clone()));
    let tried: Vec<Tried> = plain.chain(all_rows).collect();
    match &benchmark.logits {
        Wide::F32(values) => answered(benchmark, Logits::new(values, benchmark.classes)?, split, tried),
        Wide::F64(values) => answered(benchmark, Logits::new(values, benchmark.classes)?, split, tried),
    }
}

fn answered<T: Logit>(
    benchmark: &Benchmark,
    logits: Logits<'_, T>,
    split: &Split,
    tried: Vec<Tried>,
) -> Result<Examples> {
    let (procedures, predictors): (Vec<String>, Vec<Vec<Predictor<ScoreSpec>>>) = tried.into_iter().unzip();
    let mut specs: Vec<ScoreSpec> = Vec::new();
    for predictor in predictors.iter().flatten() {
        if !specs.contains(predictor.score()) {
            specs.push(*predictor.score());
        }
    }
    let rule = |predictor: &Predictor<ScoreSpec>| ExampleRule {
        score: specs.iter().position(|spec| spec == predictor.score()).expect("it was listed above"),
        threshold: predictor
            .thresholds()
            .as_slice()
            .first()
            .copied()
            .filter(|threshold| threshold.is_finite()),
        is_a_choice: predictor.is_a_choice(),
    };
    let rows = choose(logits, &benchmark.labels, split)?.into_iter().map(|(kind, row)| {
        let of = logits.row(row)?;
        let truth = benchmark.labels[row];
        let labels = listed(of, truth);
        let finite = |value: f64| value.is_finite().then_some(value);
        let one = logits.rows(row..row + 1);
        let answer = |predictor: &Predictor<ScoreSpec>| -> Result<Answer> {
            let (sets, probabilities) = predictor.predict_probabilities(one)?;
            let set = sets.get(0).unwrap_or_default();
            let shown = set.iter().zip(probabilities).filter(|(label, _)| labels.contains(label));
            let (labels, probabilities) = shown.unzip();
            Ok(Answer { size: set.len() as u64, labels, probabilities })
        };
        let answers = predictors.iter().map(|levels| levels.iter().map(answer).collect());
        Ok(ExampleRow {
            row: row as u64,
            kind,
            truth,
            logits: labels.iter().map(|label| finite(of.logit(*label))).collect(),
            scores: specs
                .iter()
                .map(|spec| labels.iter().map(|label| finite(spec.score(of, *label))).collect())
                .collect(),
            answers: answers.collect::<Result<_>>()?,
            names: labels.iter().map(|label| benchmark.class_name(*label)).collect(),
            labels,
        })
    });
    Ok(Examples {
        benchmark: benchmark.name.clone(),
        procedures,
        scores: specs
            .iter()
            .map(|spec| ExampleScore { name: spec.name().to_owned(), gamma: spec.gamma().map(|g| g.value()) })
            .collect(),
        rules: predictors.iter().map(|levels| levels.iter().map(rule).collect()).collect(),
        rows: rows.collect::<Result<_>>()?,
    })
}

/// The rows taken, each once, with the kind it is taken for.
fn choose<T: Logit>(logits: Logits<'_, T>, labels: &[u32], split: &Split) -> Result<Vec<(RowKind, usize)>> {
    let mut leads = Vec::with_capacity(split.test.len());
    for row in split.test.iter().map(|row| *row as usize) {
        leads.push((lead(logits.row(row)?, labels[row]), row));
    }
    leads.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (wrong, right) = leads.split_at(leads.partition_point(|(lead, _)| *lead < 0.0));
    let mut chosen: Vec<(RowKind, usize)> = Vec::new();
    for (kind, shares) in TAKEN {
        let pool = if kind == RowKind::Wrong { wrong } else { right };
        for share in shares {
            let Some((_, row)) = pool.get((share * pool.len() as f64) as usize) else { continue };
            if chosen.iter().all(|(_, other)| other != row) {
                chosen.push((kind, *row));
            }
        }
    }
    Ok(chosen)
}

/// How far the true label's logit lies ahead of the largest of the others; below zero where it does not.
fn lead<T: Logit>(row: Row<'_, T>, truth: u32) -> f64 {
    let others = (0..row.classes() as u32).filter(|label| *label != truth);
    row.logit(truth) - others.map(|label| row.logit(label)).fold(f64::NEG_INFINITY, f64::max)
}

/// The labels with the largest logits, best first, and the true one.
fn listed<T: Logit>(row: Row<'_, T>, truth: u32) -> Vec<u32> {
    let mut labels: Vec<u32> = (0..row.classes() as u32).collect();
    labels.sort_by(|a, b| row.logit(*b).total_cmp(&row.logit(*a)));
    let is_far = labels.iter().skip(LISTED).any(|label| *label == truth);
    labels.truncate(LISTED);
    labels.extend(is_far.then_some(truth));
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(values: &[f32], labels: &[u32]) -> Vec<(RowKind, usize)> {
        let classes = values.len() / labels.len();
        let split = Split::new(labels.len(), 0.2, 0.4, 0).unwrap();
        choose(Logits::new(values, classes).unwrap(), labels, &split).unwrap()
    }

    #[test]
    fn takes_rows_by_their_lead_and_none_twice() {
        // Row i leads by i − 50, so every row below 50 is wrong.
        let values: Vec<f32> = (0..200).flat_map(|row| [row as f32 - 50.0, 0.0]).collect();
        let rows = chosen(&values, &[0; 200]);
        assert_eq!(rows.len(), 9);
        for (kind, row) in rows {
            let fits = match kind {
                RowKind::Easy => row > 110,
                RowKind::Ambiguous => (50..75).contains(&row),
                RowKind::Wrong => row < 50,
            };
            assert!(fits, "{kind:?}: row {row}");
        }
    }

    #[test]
    fn takes_what_there_is_of_few_rows() {
        assert_eq!(chosen(&[1.0, 0.0, 1.0, 0.0, 1.0, 0.0], &[0, 0, 0]).len(), 2);
        let rows =
            chosen(&[f32::NEG_INFINITY, 0.0, f32::NEG_INFINITY, 0.0, 0.0, f32::NEG_INFINITY], &[0, 0, 1]);
        assert!(rows.iter().all(|(kind, _)| *kind == RowKind::Wrong), "{rows:?}");
    }

    #[test]
    fn lists_the_top_and_the_true_label() {
        let values: Vec<f32> = (0..100).map(|label| label as f32).collect();
        let labels = listed(Row::new(&values).unwrap(), 7);
        assert_eq!((labels.len(), labels[0], labels[LISTED]), (LISTED + 1, 99, 7));
        assert_eq!(listed(Row::new(&values[..3]).unwrap(), 0), [2, 1, 0]);
    }
}
