//! `Loaded`: a calibration file in use: its levels, its classes held against the data, its predictors.

use std::io::Write;
use std::path::{Path, PathBuf};

use conformax::{Alpha, Calibrated, Calibration, Empty, Level, ScoreSpec, Tuning};
use conformax_io::{ClassNames, Error, LabelUse, Model, Output, Problem, Source, SourceOptions};

use crate::args::DataArgs;
use crate::failure::Failure;

/// A model and the file it was read from.
pub(crate) struct Loaded {
    pub(crate) path: PathBuf,
    pub(crate) model: Model,
}

impl Loaded {
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        Ok(Self { path: path.to_owned(), model: Model::read(path)? })
    }

    /// The levels asked for, or those of the file where none is.
    pub(crate) fn levels(&self, asked: &[Alpha]) -> Result<Vec<Level>, Failure> {
        if asked.is_empty() {
            return Ok(self.model.levels.clone());
        }
        let level = |alpha: &Alpha| self.model.level(*alpha).map_err(|problem| self.error(problem).into());
        asked.iter().map(level).collect()
    }

    /// One predictor per level.
    pub(crate) fn predictors(&self, levels: &[Level], empty: Empty) -> Vec<Calibrated<ScoreSpec>> {
        let predictor = |level: &Level| {
            Calibrated::new(self.model.score, *level).with_masked(self.model.masked).with_empty(empty)
        };
        levels.iter().map(predictor).collect()
    }

    /// The calibration with its scores, which p-values need.
    pub(crate) fn calibration(&self) -> Result<Calibration<ScoreSpec>, Failure> {
        self.model.calibration().ok_or_else(|| {
            let why =
                "it was saved without scores, which p-values need; calibrate again without --thresholds-only";
            self.error(Problem::Model(why.to_owned())).into()
        })
    }

    /// Opens data that must have the model's classes, in their order.
    pub(crate) fn open(
        &self,
        data: &DataArgs,
        labels: LabelUse,
        adjust: impl FnOnce(&mut SourceOptions),
    ) -> Result<Source, Failure> {
        let mut options = data.options(labels, self.names(data)?);
        adjust(&mut options);
        let source = Source::open(&data.data(), &options)?;
        self.model.expect_classes(&source)?;
        Ok(source)
    }

    /// The names the data must have: those of `--names` and of the model, which must agree.
    fn names(&self, data: &DataArgs) -> Result<Option<ClassNames>, Failure> {
        let (given, known) = (data.read_names()?, &self.model.names);
        if let (Some(given), Some(known), Some(path)) = (&given, known, &data.names) {
            known.expect_same(given).map_err(|problem| Error::new(path, problem))?;
        }
        Ok(given.or_else(|| known.clone()))
    }

    fn error(&self, problem: Problem) -> Error {
        Error::new(&self.path, problem)
    }
}

/// Whether coverage follows its law: not where the rows that calibrated also had a say in the parameters.
pub(crate) fn law_holds(model: &Model) -> bool {
    model.tuning.as_ref().is_none_or(|record| record.tuning == Tuning::Valid)
}

/// Writes a model into an output that was opened before the work began.
pub(crate) fn write(model: &Model, mut output: Output) -> Result<(), Failure> {
    let path = output.path().to_owned();
    let text = model.to_json().map_err(|problem| Error::new(&path, problem))?;
    output.write_all(text.as_bytes()).map_err(|error| Error::new(&path, error))?;
    Ok(output.finish()?)
}
