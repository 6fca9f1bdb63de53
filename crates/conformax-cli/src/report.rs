//! `conformax report`: a page about the user's own logits, in one command.

use std::path::PathBuf;

use clap::Args;
use conformax::{Alpha, conformal_rank};
use conformax_io::LabelUse;
use conformax_report::Options;
use conformax_study::{Results, report_study};

use crate::args::{DataArgs, Files, confidence, folder, level};
use crate::benchmark::read_benchmark;
use crate::console::Console;
use crate::failure::Failure;
use crate::interrupt;
use crate::numbers::rows;
use crate::study::{Found, StageBar, StudyFolder};

/// Write a page about your own logits: sizes, coverage and singletons of every procedure, and rows to try them on.
///
/// The rows are split at random into those that calibrate and those that test, again and again, and the page shows what
/// every procedure makes of them. It is one file that needs no network: nothing leaves this machine. Rows to try are
/// taken by how far the true label leads, not by what a procedure does with them.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  conformax report data.npz -o mine
  conformax report --logits z.npy --labels y.npy --names classes.txt -o mine
  conformax report scores.csv --input probabilities --alpha 0.1,0.05 -o mine")]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    data: DataArgs,
    /// Folder for the page (report/index.html), its figures and tables, and the results.
    #[arg(long, short, value_name = "FOLDER", value_parser = folder())]
    output: PathBuf,
    /// Write into a folder that is not empty, and replace a report that is there already.
    #[arg(long)]
    force: bool,
    /// Figures as PNG too.
    #[cfg(feature = "png")]
    #[arg(long)]
    png: bool,
    /// What the page calls the data [default: the name of its file].
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Levels: how often a set may miss the true label [default: 0.01, 0.02, … 0.1].
    #[arg(long, value_name = "A", value_delimiter = ',', value_parser = level)]
    alpha: Vec<Alpha>,
    /// How often a set must hold the true label; another way to write --alpha.
    #[arg(long, value_name = "C", value_delimiter = ',', value_parser = confidence)]
    confidence: Vec<Alpha>,
    /// Random splits to average over.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(2..=10_000))]
    splits: u64,
    /// Seed of the splits and of randomised scores.
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
}

impl ReportArgs {
    pub(crate) fn files(&self) -> Files {
        let written = ["results.csv", "results.json"].map(|name| self.output.join(name));
        Files { read: self.data.files(), written: written.to_vec() }
    }
}

pub(crate) fn run(args: &ReportArgs, console: &mut Console<'_>) -> Result<(), Failure> {
    let source = args.data.open(LabelUse::Required)?;
    let folder = StudyFolder::open_empty(&args.output, args.force)?;
    let title = args.title.clone().unwrap_or_else(|| args.data.title());
    let benchmark = read_benchmark(source, &title, console)?;
    let levels = crate::args::distinct(&args.alpha, &args.confidence);
    let study = report_study(&title, levels, args.splits as usize, args.seed);
    let bar = StageBar(console.stages());
    let results = study.run_on(&[benchmark], &bar)?;
    bar.0.finish_and_clear();
    interrupt::check()?;
    warn_of_full_sets(&results, study.calibration * (1.0 - study.tuning), console)?;
    let options = Options {
        #[cfg(feature = "png")]
        png: args.png,
        ..Options::default()
    };
    Found::of(results, &options)?.write(folder, &args.output, console)
}

/// Levels that so few rows cannot reach give sets with every label.
fn warn_of_full_sets(results: &Results, calibrating: f64, console: &mut Console<'_>) -> Result<(), Failure> {
    let Some(fewest) = results.records.iter().map(|record| record.n_cal).min() else { return Ok(()) };
    let mut unreachable = Vec::new();
    for level in &results.levels {
        let alpha = Alpha::new(*level)?;
        if conformal_rank(fewest, alpha).is_none() {
            unreachable.push(alpha);
        }
    }
    let Some(least) = unreachable.iter().copied().min_by(|a, b| a.value().total_cmp(&b.value())) else {
        return Ok(());
    };
    let names: Vec<String> = unreachable.iter().map(ToString::to_string).collect();
    let wanted = (((1.0 / least.value()).ceil() - 1.0) / calibrating).ceil();
    console.warn(format_args!(
        "some procedures calibrate on as few as {}, too few for alpha = {}: there their sets hold every label; about {} \
         in all are enough for alpha = {least}",
        rows(fewest),
        names.join(", "),
        rows(wanted as u64),
    ));
    Ok(())
}
