//! `conformax merge`: what shards, processes or machines gave, put together.

use std::path::{Path, PathBuf};

use clap::Args;
use conformax_io::{Error, Model, Output, Part, PartOf, Problem};

use crate::args::{Files, overwrite};
use crate::calibrate;
use crate::console::Console;
use crate::evaluate::{self, JudgingArgs};
use crate::failure::Failure;
use crate::interrupt;
use crate::numbers::parts;

/// Put together what `calibrate --partial` or `evaluate --partial` wrote, in any order.
///
/// The result is the same, to the byte, as that of all rows in one run.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  conformax merge part* -o model.json
  conformax merge part* --expect-coverage")]
pub(crate) struct MergeArgs {
    /// Files that `calibrate --partial` or `evaluate --partial` wrote; `-` is standard input.
    #[arg(value_name = "PART", required = true)]
    parts: Vec<PathBuf>,
    /// Calibration file to write, where the parts are of a calibration.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the output where it exists.
    #[arg(long, requires = "output")]
    force: bool,
    /// Leave the calibration scores out of the file: smaller, but no p-values and no new levels later.
    #[arg(long, requires = "output")]
    thresholds_only: bool,
    #[command(flatten)]
    judging: JudgingArgs,
}

impl MergeArgs {
    pub(crate) fn files(&self) -> Files {
        Files { read: self.parts.clone(), written: self.output.iter().cloned().collect() }
    }
}

pub(crate) fn run(args: &MergeArgs, console: &mut Console<'_>) -> Result<(), Failure> {
    let output =
        args.output.as_deref().map(|path| Output::create(path, overwrite(args.force))).transpose()?;
    let Part { of, names, input, alphas, settings, .. } = whole(&args.parts)?;
    match (of, output) {
        (PartOf::Calibration(_), _) if args.judging.expect_coverage || args.judging.allow_seen => {
            Err(Failure::error(
                "these are parts of a calibration, which has no coverage to judge: leave out --expect-coverage and \
                 --allow-seen, and give them to `evaluate`",
            ))
        }
        (PartOf::Calibration(calibrating), Some(output)) => {
            let mut model = calibrate::model_of(calibrating, &alphas, names, settings)?;
            model.input = input;
            calibrate::warn_of_model(&model, None, console);
            if args.thresholds_only {
                model.evidence = None;
            }
            calibrate::finish(&model, output, args.judging.json, console)
        }
        (PartOf::Calibration(_), None) => Err(Failure::error(
            "these are parts of a calibration: name the calibration file to write with -o",
        )),
        (PartOf::Evaluation { .. }, Some(_)) => Err(Failure::error(
            "these are parts of an evaluation, which is shown and not written: leave out -o",
        )),
        (PartOf::Evaluation { evaluator, model }, None) => {
            let problem = |problem: Problem| Error::new(&args.parts[0], problem);
            let model = Model::from_json(&model).map_err(problem)?;
            let levels = alphas.iter().map(|alpha| model.level(*alpha)).collect::<Result<Vec<_>, _>>();
            let levels = levels.map_err(problem)?;
            let data = parts(args.parts.len() as u64);
            let groups = (settings.beside.column, settings.beside.groups);
            // Parts do not know what file it came from, and the order of the parts may not show.
            let name = Path::new("the parts' model");
            evaluate::judge((name, &model), &levels, (evaluator, groups), &data, &args.judging, console)
        }
    }
}

/// All parts put together, each of them once.
fn whole(paths: &[PathBuf]) -> Result<Part, Failure> {
    let mut whole: Option<Part> = None;
    let mut before: Vec<(u64, &PathBuf)> = Vec::new();
    for path in paths {
        let named = path.clone();
        let part = interrupt::opening(move || Part::read(&named))??;
        // Whatever it is called, a part that is there already would count its rows twice.
        let sum = part.fingerprint().map_err(|problem| Error::new(path, problem))?;
        if let Some((_, other)) = before.iter().find(|(other, _)| *other == sum) {
            return Err(Error::new(path, Problem::PartTwice(other.display().to_string())).into());
        }
        before.push((sum, path));
        match &mut whole {
            None => whole = Some(part),
            Some(whole) => whole.merge(part).map_err(|problem| Error::new(path, problem))?,
        }
    }
    Ok(whole.expect("at least one part is required"))
}
