//! `conformax calibrate`: held-out rows in, a calibration file out.

use clap::Args;
use conformax::{Calibration, CalibrationScores, Level, Masked, Score, ScoreSpec};
use conformax_io::{LabelUse, Model, Output, RowSet, Source, row_fingerprints};
use serde::Serialize;

use crate::args::{DataArgs, LevelArgs, MaskedChoice, OutputArgs, ScoreArgs};
use crate::blocks::{for_each_block, with_logits};
use crate::console::Console;
use crate::failure::Failure;
use crate::json;
use crate::model;
use crate::numbers::{count, or_dash, range, rows, shown};
use crate::proportion::CONFIDENCE;
use crate::table::{Align, table, text};

/// Calibrate on held-out logits and labels, and write a calibration file.
///
/// The rows must be ones the classifier was not trained on. Prints the threshold, the temperature at which the
/// activation's support is the set, and the interval that coverage on new rows will lie in.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  conformax calibrate cal.npz -o model.json
  conformax calibrate cal.parquet --score raps --k-reg 5 --alpha 0.1 --alpha 0.05 -o model.json
  conformax calibrate --logits z.npy --labels y.npy --gamma 2 --confidence 0.9 -o model.json
  python scores.py | conformax calibrate - --input probabilities -o model.json")]
pub(crate) struct CalibrateArgs {
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    score: ScoreArgs,
    #[command(flatten)]
    levels: LevelArgs,
    /// What a logit of minus infinity means.
    #[arg(long, value_name = "POLICY", default_value = "allowed")]
    masked: MaskedChoice,
    /// Leave the calibration scores out of the file: smaller, but no p-values and no new levels later.
    #[arg(long)]
    thresholds_only: bool,
    #[command(flatten)]
    output: OutputArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &CalibrateArgs, console: &mut Console<'_>) -> Result<(), Failure> {
    let score = args.score.spec()?;
    let masked = args.masked.into();
    let output = Output::create(&args.output.output, args.output.overwrite())?;
    let source = args.data.open(LabelUse::Required)?;
    let (classes, names) = (source.classes(), source.names().cloned());
    let read = Calibrating::read(source, score, masked, console)?;
    let scores = CalibrationScores::new(read.scores)?;
    let calibration = Calibration::from_scores(score, scores, masked);
    let mut model = Model::new(&calibration, &args.levels.alphas(), classes, names, RowSet::new(read.rows));
    if args.thresholds_only {
        model.scores = None;
    }
    warn_of_few_rows(&model.levels, console)?;
    note_thresholds_of_zero(&model, console)?;
    print(&model, args.json, console)?;
    model::write(&model, output)?;
    console.note(format_args!("wrote {}", args.output.output.display()))
}

/// What is kept of the calibration rows: their scores and names, not their logits.
struct Calibrating {
    scores: Vec<f64>,
    rows: Vec<u64>,
}

impl Calibrating {
    fn read(
        source: Source,
        score: ScoreSpec,
        masked: Masked,
        console: &mut Console<'_>,
    ) -> Result<Self, Failure> {
        let mut all = Self { scores: Vec::new(), rows: Vec::new() };
        let mut names = Vec::new();
        for_each_block(source, "calibrating", console, |block, _| {
            let labels = block.labels.as_deref().expect("labels were required of the source");
            let ((), scored) = rayon::join(
                || row_fingerprints(block, &mut names),
                || with_logits!(block, logits => Calibration::new(score, logits, labels, masked)),
            );
            all.scores.extend_from_slice(scored?.scores().as_slice());
            all.rows.extend_from_slice(&names);
            Ok(())
        })?;
        Ok(all)
    }
}

/// Levels that so few rows cannot reach give sets with every label.
pub(crate) fn warn_of_few_rows(levels: &[Level], console: &mut Console<'_>) -> Result<(), Failure> {
    for level in levels {
        if let Some(wanted) = level.rows_wanted() {
            console.warn(format_args!(
                "{} cannot reach alpha = {}: every set will hold every label; calibrate on at least {}, or ask \
                 for a larger alpha",
                rows(level.n),
                level.alpha,
                rows(wanted)
            ))?;
        }
    }
    Ok(())
}

/// A classifier that is right often enough by itself leaves nothing for the sets to do.
pub(crate) fn note_thresholds_of_zero(model: &Model, console: &mut Console<'_>) -> Result<(), Failure> {
    let zero = |level: &&Level| level.threshold == 0.0 && model.score.gamma().is_some();
    for level in model.levels.iter().filter(zero) {
        console.note(format_args!(
            "alpha = {}: the top label alone is right often enough; sets hold it and its ties, and coverage is the \
             accuracy, which may lie above the interval",
            level.alpha
        ))?;
    }
    Ok(())
}

/// A level as it is shown.
#[derive(Serialize)]
pub(crate) struct ShownLevel {
    alpha: f64,
    #[serde(serialize_with = "json::number")]
    threshold: f64,
    #[serde(serialize_with = "json::optional_number")]
    temperature: Option<f64>,
    #[serde(serialize_with = "json::optional_number")]
    odds_ratio: Option<f64>,
    rank: Option<u64>,
    n: u64,
    coverage_interval: Option<(f64, f64)>,
}

impl ShownLevel {
    /// The levels of a model.
    pub(crate) fn all(model: &Model) -> Vec<Self> {
        let law_holds = model::law_holds(model);
        model.levels.iter().map(|level| Self::new(model.score, *level, law_holds)).collect()
    }

    fn new(score: ScoreSpec, level: Level, law_holds: bool) -> Self {
        Self {
            alpha: level.alpha.value(),
            threshold: level.threshold,
            temperature: score.temperature(level.threshold),
            odds_ratio: (score.name() == "log_margin").then(|| odds_ratio(level.threshold)),
            rank: level.rank,
            n: level.n,
            coverage_interval: law_holds.then(|| level.law().interval(CONFIDENCE)),
        }
    }
}

/// `e^threshold`, by the library's own exponential so that its bits are the same everywhere.
fn odds_ratio(threshold: f64) -> f64 {
    match conformax::softmax(&[threshold, 0.0]) {
        Ok(p) => p[0] / p[1],
        Err(_) => f64::INFINITY,
    }
}

#[derive(Serialize)]
struct Printed {
    score: String,
    n: u64,
    levels: Vec<ShownLevel>,
}

fn print(model: &Model, as_json: bool, console: &mut Console<'_>) -> Result<(), Failure> {
    let (score, n, levels) = (model.score.to_string(), model.n, ShownLevel::all(model));
    if as_json {
        return json::print(&Printed { score, n, levels }, console);
    }
    writeln!(console.out(), "{score}, calibrated on {}\n\n{}", rows(n), level_table(&levels).trim_end())?;
    Ok(())
}

/// Thresholds with what they mean: a temperature, or for log-margin an odds ratio, where there is one.
pub(crate) fn level_table(levels: &[ShownLevel]) -> String {
    let has_odds = levels.iter().any(|level| level.odds_ratio.is_some());
    let has_temperature = !has_odds && levels.iter().any(|level| level.temperature.is_some());
    let interval = format!("coverage will lie in ({} %)", CONFIDENCE * 100.0);
    let mut headings = vec![("alpha", Align::Right), ("threshold", Align::Right)];
    headings.extend(has_temperature.then_some(("temperature β", Align::Right)));
    headings.extend(has_odds.then_some(("odds ratio", Align::Right)));
    headings.extend([("rank", Align::Right), ("n", Align::Right), (interval.as_str(), Align::Right)]);
    let mut table = table(&headings);
    for level in levels {
        let mut cells = vec![level.alpha.to_string(), shown(level.threshold)];
        cells.extend(has_temperature.then(|| or_dash(level.temperature.map(shown))));
        cells.extend(has_odds.then(|| or_dash(level.odds_ratio.map(shown))));
        let interval = or_dash(level.coverage_interval.map(range));
        cells.extend([or_dash(level.rank.map(count)), count(level.n), interval]);
        table.add_row(cells);
    }
    text(&table)
}
