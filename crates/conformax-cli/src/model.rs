//! `Loaded`: a calibration file in use: its levels, its classes held against the data, its predictors.

use std::path::{Path, PathBuf};

use conformax::{Alpha, Calibration, Empty, Predictor, Scheme, ScoreSpec, Stream, StreamOptions, Taxonomy};
use conformax_io::{
    Beside, ClassNames, Error, Input, KeptLevel, LabelUse, Model, Output, Problem, Source, SourceOptions,
};

use crate::args::DataArgs;
use crate::failure::Failure;
use crate::interrupt;

/// A model and the file it was read from.
pub(crate) struct Loaded {
    pub(crate) path: PathBuf,
    pub(crate) model: Model,
}

impl Loaded {
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let named = path.to_owned();
        let model = interrupt::opening(move || Model::read(&named))??;
        Ok(Self { path: path.to_owned(), model })
    }

    /// The levels asked for, or those of the file where none is.
    pub(crate) fn levels(&self, asked: &[Alpha]) -> Result<Vec<KeptLevel>, Failure> {
        if asked.is_empty() {
            return Ok(self.model.levels.clone());
        }
        let level = |alpha: &Alpha| self.model.level(*alpha).map_err(|problem| self.error(problem).into());
        asked.iter().map(level).collect()
    }

    /// One predictor per level.
    pub(crate) fn predictors(&self, levels: &[KeptLevel], empty: Empty) -> Vec<Predictor<ScoreSpec>> {
        levels.iter().map(|level| self.model.predictor(level).with_empty(empty)).collect()
    }

    /// A stream of sets, begun at this level or at the model's first.
    pub(crate) fn stream(
        &self,
        alpha: Option<Alpha>,
        options: StreamOptions,
    ) -> Result<Stream<ScoreSpec>, Failure> {
        self.model.stream(alpha, options).map_err(|problem| self.error(problem).into())
    }

    /// The calibration with its scores, which p-values need.
    pub(crate) fn calibration(&self) -> Result<Calibration<ScoreSpec>, Failure> {
        if let Some(why) = self.model.no_p_values() {
            return Err(Failure::of_file(&self.path, why));
        }
        self.model.calibration().ok_or_else(|| {
            Failure::of_file(
                &self.path,
                "was saved without scores, which p-values need; calibrate again without --thresholds-only",
            )
        })
    }

    /// Opens data that must have the model's classes, in their order, and be of the kind that calibrated it.
    pub(crate) fn open(
        &self,
        data: &DataArgs,
        labels: LabelUse,
        adjust: impl FnOnce(&mut SourceOptions),
    ) -> Result<Source, Failure> {
        let is_stdin = |path: &PathBuf| path.as_os_str() == "-";
        if is_stdin(&self.path) && data.data.iter().chain(&data.logits).any(is_stdin) {
            return Err(Failure::error(
                "standard input is the calibration file, so it cannot be the data too; name a file for one of them",
            ));
        }
        let mut options = data.options(labels, self.names(data)?);
        options.input = self.input(data)?;
        options.prior.clone_from(&self.model.prior);
        let Beside { column, groups, .. } = &self.model.beside;
        match &self.model.scheme {
            Scheme::Groups(Taxonomy::Group(_)) => {
                options.group_column = Some(self.column(column.as_deref(), "groups")?);
                options.group_names = Some(groups.clone());
            }
            Scheme::RowWeights => options.weight_column = Some(self.column(column.as_deref(), "weights")?),
            Scheme::Groups(_) | Scheme::LabelWeights(_) | Scheme::Risk(_) => {}
        }
        adjust(&mut options);
        let data = data.data()?;
        let source = interrupt::opening(move || Source::open(&data, &options))??;
        self.model.expect_classes(&source)?;
        Ok(source)
    }

    /// The column that groups or weights come from; a model that was calibrated from Python may name none.
    fn column(&self, column: Option<&str>, what: &str) -> Result<String, Failure> {
        let name = column.map(str::to_owned);
        name.ok_or_else(|| {
            Failure::of_file(&self.path, format_args!("does not say which column has the {what}"))
        })
    }

    /// What the numbers are: what calibrated the model, and nothing else.
    fn input(&self, data: &DataArgs) -> Result<Input, Failure> {
        let wanted = self.model.input;
        match data.input.map(Input::from) {
            Some(given) if given != wanted => Err(Failure::of_file(
                &self.path,
                format_args!(
                    "was calibrated on {}, and --input says {}; give numbers of the same kind",
                    wanted.name(),
                    given.name()
                ),
            )),
            _ => Ok(wanted),
        }
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

/// Writes a model into an output that was opened before the work began.
pub(crate) fn write(model: &Model, mut output: Output) -> Result<(), Failure> {
    let path = output.path().to_owned();
    model.write_to(&mut output).map_err(|problem| Error::new(&path, problem))?;
    Ok(output.finish()?)
}
