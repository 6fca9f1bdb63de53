//! `conformax study`: every procedure on every benchmark, and a report of what was found.

mod folder;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use conformax_io::{LIKE_PROBABILITIES, printable};
use conformax_report::{File, Options, render, render_conditional};
use conformax_study::{
    AbsentBenchmark, BenchmarkSummary, ConditionalResults, Kind, Progress, Results, RunOptions, Stage, Study,
    Verdict, conditional_csv, results_csv,
};
use indicatif::ProgressBar;

use crate::args::folder;
use crate::console::Console;
use crate::failure::Failure;
use crate::interrupt;
use crate::numbers::count;
use crate::study::folder::RESULTS_CSV;

pub(crate) use crate::study::folder::StudyFolder;

/// Compare procedures over benchmarks, levels and random splits, and write a report.
///
/// Without a file it runs the paper's protocol on four real benchmarks; `conditional` asks what coverage for every
/// class costs, and what keeps it when the shares of the classes change. The folder then holds results.csv and
/// results.json, report/index.html to look at, and its figures and tables as files.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  conformax study
  conformax study conditional -o conditional
  conformax study mine.toml -o mine

A study in TOML needs nothing but its data; docs/studies.md has the rest.")]
pub(crate) struct StudyArgs {
    /// A study in TOML, or the name of one that is built in: paper or conditional.
    #[arg(value_name = "STUDY", default_value = "paper")]
    study: PathBuf,
    /// Folder for the results and the report.
    #[arg(long, short, value_name = "FOLDER", default_value = "study", value_parser = folder())]
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
    let study = match args.study.to_str() {
        Some("paper") => Study::paper(),
        Some("conditional") => Study::conditional(),
        _ => Study::read(&args.study)?,
    };
    let folder = StudyFolder::open(&args.output, args.force)?;
    let bar = StageBar(console.stages());
    let run = RunOptions { benchmarks: args.benchmarks.clone() };
    let options = Options {
        #[cfg(feature = "png")]
        png: args.png,
        conditional_beside: has_conditional_beside(&args.output),
    };
    let found = match study.kind {
        Kind::Procedures => Found::of(study.run(&run, &bar)?, &options)?,
        Kind::Conditional => Found::of_conditional(study.run_conditional(&run, &bar)?, &options)?,
    };
    bar.0.finish_and_clear();
    interrupt::check()?;
    for absent in &found.absent {
        console.warn(format_args!(
            "{} is not part of this run: {}, or --benchmarks FOLDER",
            absent.title, absent.advice
        ));
    }
    for title in &found.doubtful {
        console.warn(format_args!(
            "the rows of {title} {LIKE_PROBABILITIES}; give input = \"probabilities\" under its name in the study if \
             that is what they are"
        ));
    }
    found.write(folder, &args.output, console)
}

/// Whether the page of the conditional study lies where a page in this folder would look for it.
fn has_conditional_beside(folder: &Path) -> bool {
    let page = Path::new("conditional/report/index.html");
    let own = std::path::absolute(folder);
    own.is_ok_and(|own| own.parent().is_some_and(|parent| parent.join(page).is_file()))
}

/// What a study's folder is to hold, and what is said of it.
pub(crate) struct Found {
    absent: Vec<AbsentBenchmark>,
    /// Titles of benchmarks whose numbers may be no logits.
    doubtful: Vec<String>,
    csv: String,
    json: Vec<u8>,
    files: Vec<File>,
    summary: String,
}

impl Found {
    pub(crate) fn of(results: Results, options: &Options) -> Result<Self, Failure> {
        Ok(Self {
            csv: results_csv(&results),
            json: serde_json::to_vec_pretty(&results)?,
            files: render(&results, options),
            summary: summary(&results),
            doubtful: doubtful(&results.benchmarks),
            absent: results.absent,
        })
    }

    fn of_conditional(results: ConditionalResults, options: &Options) -> Result<Self, Failure> {
        Ok(Self {
            csv: conditional_csv(&results),
            json: serde_json::to_vec_pretty(&results)?,
            files: render_conditional(&results, options),
            summary: format!(
                "{} records over {} benchmarks in {:.1} s",
                count((results.records.len() + results.shift.len()) as u64),
                results.benchmarks.len(),
                results.provenance.duration_seconds
            ),
            doubtful: doubtful(&results.benchmarks),
            absent: results.absent,
        })
    }

    /// Fills the folder at `path` and says where the page is.
    pub(crate) fn write(
        self,
        mut folder: StudyFolder,
        path: &Path,
        console: &mut Console<'_>,
    ) -> Result<(), Failure> {
        folder.write(RESULTS_CSV, self.csv.as_bytes())?;
        for file in self.files {
            interrupt::check()?;
            folder.write(&file.path, &file.bytes)?;
        }
        folder.finish(&self.json)?;
        let page = path.join("report/index.html");
        writeln!(console.out(), "{}", printable(&page.to_string_lossy()))?;
        console.note(self.summary);
        Ok(())
    }
}

fn doubtful(benchmarks: &[BenchmarkSummary]) -> Vec<String> {
    benchmarks
        .iter()
        .filter(|benchmark| benchmark.doubtful)
        .map(|benchmark| benchmark.title.clone())
        .collect()
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
            Stage::Split(number) => format!("{benchmark}: split {}", number + 1),
        };
        self.0.set_message(printable(&message).to_string());
    }

    fn stop(&self) -> bool {
        interrupt::check().is_err()
    }
}

fn summary(results: &Results) -> String {
    let reproduced = results.claims.iter().filter(|claim| claim.verdict == Verdict::Reproduced).count();
    let claims = of_claims(reproduced, results.claims.len());
    let took = results.provenance.duration_seconds;
    let records = count((results.records.len() + results.tuned.len()) as u64);
    let benchmarks = match results.benchmarks.len() {
        1 => "1 benchmark".to_owned(),
        more => format!("{more} benchmarks"),
    };
    format!("{records} records over {benchmarks} in {took:.1} s{claims}")
}

/// How many of the paper's claims held, and what that was judged on.
fn of_claims(reproduced: usize, claims: usize) -> String {
    match claims {
        0 => String::new(),
        _ => format!(
            "; {reproduced} of the paper's {claims} claims reproduced on these rows, with classifiers that are not \
             the paper's"
        ),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn claims_are_of_these_rows_and_classifiers() {
        let wanted = "; 9 of the paper's 21 claims reproduced on these rows, with classifiers that are not the paper's";
        assert_eq!(super::of_claims(9, 21), wanted);
        assert_eq!(super::of_claims(0, 0), "", "a study of one's own has no claims of the paper");
    }
}
