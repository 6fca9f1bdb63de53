//! `conformax calibrate`: held-out rows in, a calibration file out.

use std::path::Path;

use clap::Args;
use conformax::{Calibrator, Masked, Remember, ScoreSpec, SearchStep, ThresholdSearch};
use conformax_io::{Block, KeptLevel, LabelUse, Model, Output, Part, PartOf, Source};
use serde::Serialize;

use crate::args::{DataArgs, LevelArgs, MaskedChoice, OutputArgs, ScoreArgs};
use crate::blocks::{for_each_block, in_block, with_logits};
use crate::console::Console;
use crate::failure::Failure;
use crate::json;
use crate::model;
use crate::numbers::{CONFIDENCE, count, or_dash, range, rows, shown};
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
  python scores.py | conformax calibrate - --input probabilities -o model.json
  conformax calibrate shard7.parquet --partial -o part7   # then: conformax merge part* -o model.json")]
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
    /// Keep thresholds and no scores: a small file and constant memory, but no p-values and no new levels later. Files are
    /// read a few times over.
    #[arg(long)]
    thresholds_only: bool,
    /// Write what these rows gave, to be put together with others by `merge`.
    #[arg(long, conflicts_with_all = ["thresholds_only", "json"])]
    partial: bool,
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
    let (classes, names, alphas) = (source.classes(), source.names().cloned(), args.levels.alphas());
    let mut model = if args.thresholds_only && !source.is_once_only() {
        let search = ThresholdSearch::new(score, classes, &alphas)?.with_masked(masked);
        let found = search_thresholds(source, search.remembering(Remember::Rows), console)?;
        Model::of_thresholds(found, classes, masked, names)
    } else {
        let calibrator = calibrator(score, classes, masked)?;
        let calibrator = read_all(source, calibrator, console)?;
        if args.partial {
            let of = PartOf::Calibration(calibrator);
            Part { of, names, input: args.data.input(), alphas }.write(output)?;
            return console.note(format_args!("wrote {}", args.output.output.display()));
        }
        let mut model = Model::new(&calibrator.finish()?, &alphas, names);
        if args.thresholds_only {
            model.scores = None;
        }
        model
    };
    model.input = args.data.input();
    finish(&model, output, args.json, console)
}

/// A calibrator that remembers its rows, as files do.
pub(crate) fn calibrator(
    score: ScoreSpec,
    classes: usize,
    masked: Masked,
) -> Result<Calibrator<ScoreSpec>, conformax::Error> {
    Ok(Calibrator::new(score, classes)?.with_masked(masked).remembering(Remember::Rows))
}

/// Writes the model, and then shows it: whoever closes the pipe early still has the file.
pub(crate) fn finish(
    model: &Model,
    output: Output,
    as_json: bool,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let path = output.path().to_owned();
    warn_of_model(model, console)?;
    model::write(model, output)?;
    if is_standard_output(&path) {
        return Ok(());
    }
    print(model, as_json, console).map_err(|failure| failure.after_writing(&[&path]))?;
    console.note(format_args!("wrote {}", path.display()))
}

/// Whether a file that is written there leaves no room for a table.
pub(crate) fn is_standard_output(path: &Path) -> bool {
    path.as_os_str() == "-" || path == Path::new("/dev/stdout")
}

/// What a person should know of a model before using it.
pub(crate) fn warn_of_model(model: &Model, console: &mut Console<'_>) -> Result<(), Failure> {
    warn_of_few_rows(&model.levels, console)?;
    warn_of_impossible_labels(model, console)?;
    note_thresholds_of_zero(model, console)
}

fn labels(block: &Block) -> &[u32] {
    block.labels.as_deref().expect("labels were required of the source")
}

fn read_all(
    source: Source,
    mut calibrator: Calibrator<ScoreSpec>,
    console: &mut Console<'_>,
) -> Result<Calibrator<ScoreSpec>, Failure> {
    let mut doubt = LooksLikeProbabilities::new(&source);
    for_each_block(source, "calibrating", console, |block, console| {
        doubt.look_at(block, console)?;
        let before = calibrator.n();
        with_logits!(block, logits => calibrator.extend(logits.labelled(labels(block))?))
            .map_err(|error| in_block(error, before))?;
        Ok(())
    })?;
    Ok(calibrator)
}

/// Reads the rows as often as it takes.
fn search_thresholds(
    mut source: Source,
    mut search: ThresholdSearch<ScoreSpec>,
    console: &mut Console<'_>,
) -> Result<conformax::FoundThresholds<ScoreSpec>, Failure> {
    let mut doubt = LooksLikeProbabilities::new(&source);
    loop {
        source = for_each_block(source, "calibrating", console, |block, console| {
            doubt.look_at(block, console)?;
            let before = search.n();
            with_logits!(block, logits => search.extend(logits.labelled(labels(block))?))
                .map_err(|error| in_block(error, before))?;
            Ok(())
        })?;
        match search.finish_pass()? {
            SearchStep::Done(found) => return Ok(found),
            SearchStep::Again(next) => search = next,
        }
        source.rewind()?;
    }
}

/// Says so once where numbers that are said to be logits look like probabilities.
pub(crate) struct LooksLikeProbabilities {
    wanted: bool,
    what_to_do: &'static str,
}

impl LooksLikeProbabilities {
    /// How far from one a sum of rounded probabilities may be.
    const ROUNDING: f64 = 1e-2;

    /// Of rows that calibrate.
    pub(crate) fn new(source: &Source) -> Self {
        let what_to_do = "give --input probabilities if that is what they are";
        Self { wanted: source.input() == conformax_io::Input::Logits && source.classes() > 1, what_to_do }
    }

    /// Of rows that are held against a model.
    pub(crate) fn with_model(source: &Source) -> Self {
        let what_to_do = "if that is what they are, give the logits, as the model was calibrated on, or calibrate \
                          again with --input probabilities";
        Self { what_to_do, ..Self::new(source) }
    }

    pub(crate) fn look_at(&mut self, block: &Block, console: &mut Console<'_>) -> Result<(), Failure> {
        if !std::mem::take(&mut self.wanted) {
            return Ok(());
        }
        const ROWS: usize = 100;
        let value = |index| block.logits.get(index).expect("a block holds whole rows");
        let is_one = |row: usize| {
            let range = row * block.classes..(row + 1) * block.classes;
            let sum: f64 = range.clone().map(value).sum();
            range.map(value).all(|value| (0.0..=1.0).contains(&value)) && (sum - 1.0).abs() < Self::ROUNDING
        };
        match block.rows() > 0 && (0..block.rows().min(ROWS)).all(is_one) {
            true => console.warn(format_args!(
                "these rows are not negative and sum to 1, as probabilities do, and are taken for logits; {}",
                self.what_to_do
            )),
            false => Ok(()),
        }
    }
}

/// Levels that so few rows cannot reach give sets with every label.
pub(crate) fn warn_of_few_rows(levels: &[KeptLevel], console: &mut Console<'_>) -> Result<(), Failure> {
    for level in levels.iter().map(|kept| kept.level) {
        if let Some(wanted) = level.rows_wanted() {
            console.warn(format_args!(
                "{} cannot reach alpha = {}: every set will hold every label; calibrate on at least {}, or ask \
                 for a larger alpha",
                rows(level.n()),
                level.alpha(),
                rows(wanted)
            ))?;
        }
    }
    Ok(())
}

/// True labels of probability zero score infinity; where too many do, so does the threshold.
fn warn_of_impossible_labels(model: &Model, console: &mut Console<'_>) -> Result<(), Failure> {
    let infinite = |kept: &&KeptLevel| kept.level.rank().is_some() && kept.threshold == f64::INFINITY;
    for kept in model.levels.iter().filter(infinite) {
        let how_many = model.scores.as_ref().map_or("too many".to_owned(), |scores| {
            format!("{} of {}", count(scores.ties(f64::INFINITY)), count(scores.n()))
        });
        console.warn(format_args!(
            "alpha = {}: {how_many} true labels have logit -inf or a gap beyond all numbers, so the threshold is \
             infinite and every set will hold every label; correct those rows, or ask for a larger alpha",
            kept.level.alpha()
        ))?;
    }
    Ok(())
}

/// A classifier that is right often enough by itself leaves nothing for the sets to do.
fn note_thresholds_of_zero(model: &Model, console: &mut Console<'_>) -> Result<(), Failure> {
    for kept in model.levels.iter().filter(|kept| top_label_is_enough(model, kept)) {
        console.note(format_args!(
            "alpha = {}: the top label alone is right often enough; sets hold it and its ties, and coverage is the \
             accuracy, which may lie above the interval",
            kept.level.alpha()
        ))?;
    }
    Ok(())
}

/// Whether the classifier is right so often that the threshold is 0 and sets hold the top label alone.
pub(crate) fn top_label_is_enough(model: &Model, kept: &KeptLevel) -> bool {
    kept.threshold == 0.0 && model.score.gamma().is_some()
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
        model.levels.iter().map(|kept| Self::new(model, kept)).collect()
    }

    fn new(model: &Model, kept: &KeptLevel) -> Self {
        let (score, KeptLevel { level, threshold }) = (model.score, *kept);
        let law = kept.thresholds().law(level);
        Self {
            alpha: level.alpha().value(),
            threshold,
            temperature: score.temperature(threshold),
            odds_ratio: (score.name() == "log_margin").then(|| odds_ratio(threshold)),
            rank: level.rank(),
            n: level.n(),
            coverage_interval: model
                .law_holds()
                .then(|| law.interval(CONFIDENCE).expect("a confidence is a probability")),
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
