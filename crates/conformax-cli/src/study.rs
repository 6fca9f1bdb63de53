//! `conformax study`: every procedure on every benchmark, and a report of what was found.

mod folder;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use conformax_io::printable;
use conformax_report::{Options, render};
use conformax_study::{Progress, Results, RunOptions, Stage, Study, Verdict, results_csv};
use indicatif::ProgressBar;

use crate::console::Console;
use crate::failure::Failure;
use crate::interrupt;
use crate::numbers::count;
use crate::study::folder::RESULTS_CSV;

pub(crate) use crate::study::folder::StudyFolder;

/// Compare procedures over benchmarks, levels and random splits, and write a report.
///
/// Without a file it runs the paper's protocol on four real benchmarks. The folder then holds results.csv and
/// results.json, report/index.html to look at, and its figures and tables as files.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  conformax study
  conformax study mine.toml -o mine

A study in TOML needs nothing but its data; docs/studies.md has the rest.")]
pub(crate) struct StudyArgs {
    /// A study in TOML [default: the paper's protocol, built in].
    #[arg(value_name = "FILE")]
    study: Option<PathBuf>,
    /// Folder for the results and the report.
    #[arg(long, short, value_name = "FOLDER", default_value = "study")]
    output: PathBuf,
    /// Replace results that are there already.
    #[arg(long)]
    force: bool,
    /// Figures as PNG too.
    #[cfg(feature = "png")]
    #[arg(long)]
    png: bool,
    /// Folder with benchmarks that are not built in: NAME-logits.npy and NAME-labels.npy.
    #[arg(long, value_name = "FOLDER")]
    benchmarks: Option<PathBuf>,
}

pub(crate) fn run(args: &StudyArgs, console: &mut Console<'_>) -> Result<(), Failure> {
    let study = args.study.as_deref().map_or_else(|| Ok(Study::paper()), Study::read)?;
    let folder = StudyFolder::open(&args.output, args.force)?;
    let bar = StageBar(console.stages());
    let results = study.run(&RunOptions { benchmarks: args.benchmarks.clone() }, &bar)?;
    bar.0.finish_and_clear();
    interrupt::check()?;
    for absent in &results.absent {
        console.warn(format_args!("{} is not part of this run: {}", absent.title, absent.advice))?;
    }
    let options = Options {
        #[cfg(feature = "png")]
        png: args.png,
    };
    write_report(&results, folder, &args.output, &options, console)
}

/// Fills the folder at `path` and says where the page is.
pub(crate) fn write_report(
    results: &Results,
    mut folder: StudyFolder,
    path: &Path,
    options: &Options,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    folder.write(RESULTS_CSV, results_csv(results).as_bytes())?;
    for file in render(results, options) {
        interrupt::check()?;
        folder.write(&file.path, &file.bytes)?;
    }
    folder.finish(&serde_json::to_vec_pretty(results)?)?;
    let page = path.join("report/index.html");
    writeln!(console.out(), "{}", printable(&page.to_string_lossy()))?;
    console.note(summary(results))
}

/// The bar moves once per stage of a benchmark.
pub(crate) struct StageBar(pub(crate) ProgressBar);

impl Progress for StageBar {
    fn begin(&self, benchmark: &str, stages: usize) {
        self.0.inc_length(stages as u64);
        self.0.set_message(printable(benchmark).to_string());
    }

    fn end(&self, benchmark: &str, stage: &Stage, _took: Duration) {
        self.0.inc(1);
        let message = match stage {
            Stage::Sorted => format!("{benchmark}: labels ranked"),
            Stage::Tuned(procedure) => format!("{benchmark}: {procedure} tuned"),
            Stage::Judged(procedure) => format!("{benchmark}: {procedure} judged"),
            Stage::Swept => format!("{benchmark}: sizes for every gamma"),
        };
        self.0.set_message(printable(&message).to_string());
    }

    fn stop(&self) -> bool {
        interrupt::check().is_err()
    }
}

fn summary(results: &Results) -> String {
    let claims = results.claims.len();
    let reproduced = results.claims.iter().filter(|claim| claim.verdict == Verdict::Reproduced).count();
    let took = results.provenance.duration_seconds;
    let records = count(results.records.len() as u64);
    let claims = match claims {
        0 => String::new(),
        _ => format!(
            "; {reproduced} of the paper's {claims} claims reproduced on these rows, with classifiers that are not \
             the paper's"
        ),
    };
    let benchmarks = match results.benchmarks.len() {
        1 => "1 benchmark".to_owned(),
        more => format!("{more} benchmarks"),
    };
    format!("{records} records over {benchmarks} in {took:.1} s{claims}")
}
