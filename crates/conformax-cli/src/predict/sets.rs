//! From a block of logits to the columns of its sets.

use conformax::{Calibration, Empty, PredictionSets, Predictor, ScoreSpec, predict_each};
use conformax_io::{Block, KeptLevel, PValues, SetRows, SetsWriter};

use super::PredictArgs;
use crate::blocks::{BlockError, with_logits};
use crate::failure::Failure;
use crate::model::Loaded;

/// Which p-values are written.
#[derive(Clone, Copy, PartialEq)]
enum Wanted {
    OfSet,
    OfAll,
}

/// Everything a block is put through.
pub(super) struct Columns {
    models: Vec<Predictor<ScoreSpec>>,
    alphas: Option<Vec<f64>>,
    probabilities: bool,
    p_values: Option<(Wanted, Calibration<ScoreSpec>)>,
}

impl Columns {
    pub(super) fn new(args: &PredictArgs, model: &Loaded, levels: &[KeptLevel]) -> Result<Self, Failure> {
        let empty = if args.non_empty { Empty::TopLabel } else { Empty::Allowed };
        let wanted = match (args.p_values, args.all_p_values) {
            (true, _) => Some(Wanted::OfSet),
            (_, true) => Some(Wanted::OfAll),
            (false, false) => None,
        };
        Ok(Self {
            models: model.predictors(levels, empty),
            alphas: (levels.len() > 1).then(|| levels.iter().map(|kept| kept.alpha().value()).collect()),
            probabilities: args.probabilities,
            p_values: wanted.map(|wanted| Ok::<_, Failure>((wanted, model.calibration()?))).transpose()?,
        })
    }

    pub(super) fn predict(&self, block: &Block) -> Result<Sets, conformax::Error> {
        let by_level: Vec<(PredictionSets, Vec<f64>)> = if self.probabilities {
            let each = self.models.iter();
            each.map(|model| with_logits!(block, logits => model.predict_probabilities(logits)))
                .collect::<Result<_, _>>()?
        } else {
            let sets = with_logits!(block, logits => predict_each(&self.models, logits))?;
            sets.into_iter().map(|sets| (sets, Vec::new())).collect()
        };
        let mut sets = Sets::by_row(&by_level, block.rows());
        if let Some((wanted, calibration)) = &self.p_values {
            let all = with_logits!(block, logits => calibration.p_values(logits))?;
            let value = |row: usize, label: usize| all[row * block.classes + label].value();
            sets.p_values = match wanted {
                Wanted::OfAll => all.iter().map(|p| p.value()).collect(),
                Wanted::OfSet => {
                    sets.entries(self.models.len()).map(|(row, label)| value(row, label)).collect()
                }
            };
        }
        Ok(sets)
    }
}

/// The sets of a block: row after row and, within a row, level after level.
pub(super) struct Sets {
    offsets: Vec<usize>,
    labels: Vec<u32>,
    probabilities: Vec<f64>,
    p_values: Vec<f64>,
}

impl Sets {
    fn by_row(by_level: &[(PredictionSets, Vec<f64>)], rows: usize) -> Self {
        let mut all =
            Self { offsets: vec![0], labels: Vec::new(), probabilities: Vec::new(), p_values: Vec::new() };
        for row in 0..rows {
            for (sets, probabilities) in by_level {
                all.labels.extend_from_slice(sets.get(row).unwrap_or_default());
                if !probabilities.is_empty() {
                    let range = sets.offsets()[row]..sets.offsets()[row + 1];
                    all.probabilities.extend_from_slice(&probabilities[range]);
                }
                all.offsets.push(all.labels.len());
            }
        }
        all
    }

    /// Row and label of everything in a set.
    fn entries(&self, levels: usize) -> impl Iterator<Item = (usize, usize)> {
        self.offsets.windows(2).enumerate().flat_map(move |(set, ends)| {
            self.labels[ends[0]..ends[1]].iter().map(move |label| (set / levels, *label as usize))
        })
    }

    pub(super) fn write(
        &self,
        columns: &Columns,
        block: &Block,
        writer: &mut SetsWriter,
    ) -> Result<(), BlockError> {
        let p_values = columns.p_values.as_ref().map(|(wanted, _)| match wanted {
            Wanted::OfSet => PValues::OfSet(&self.p_values),
            Wanted::OfAll => PValues::OfAll(&self.p_values),
        });
        writer.write(&SetRows {
            first_row: block.first_row,
            keep: &block.keep,
            offsets: &self.offsets,
            labels: &self.labels,
            probabilities: columns.probabilities.then_some(&self.probabilities[..]),
            p_values,
            alphas: columns.alphas.as_deref(),
        })?;
        Ok(())
    }
}
