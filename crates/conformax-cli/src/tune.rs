//! `conformax tune`: choose gamma or RAPS's parameters on some rows, calibrate the choice on the others.
//!
//! The data are read three times: every candidate's scores on the tuning rows, then its set sizes there, then the
//! winner's scores on the calibrating rows, which no choice has seen. With `--rows all` every row does both, in two
//! passes: scores, then pairs of rows and labels around each threshold.

mod grid;
mod shown;

use clap::{Args, ValueEnum};
use conformax::{Alpha, Draw, Masked, Remember, ScoreSpec, Tuner, Tuning, TuningSplit};
use conformax_io::{Block, LabelUse, Model, Output, SelectionRecord, Source, TuningRecord, Values};

use crate::args::{DataArgs, Files, MaskedChoice, OutputArgs, confidence, level};
use crate::blocks::{count_rows, for_each_block, in_block, with_logits};
use crate::calibrate::{LooksLikeProbabilities, calibrator, warn_of_model};
use crate::console::Console;
use crate::failure::Failure;
use crate::model;
use crate::split::rows_in;

/// Choose the parameters that give the smallest sets, and calibrate the choice on rows it has not seen.
///
/// Part of the rows choose and never calibrate; the others calibrate the choice, so the guarantee stays exact. With
/// --rows all every row does both: sets are smaller and steadier, coverage is still at least 1 - alpha exactly, and it
/// follows no law; p-values and other levels cannot be had.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  conformax tune cal.npz --alpha 0.1 -o model.json
  conformax tune cal.npz --alpha 0.1 --grid 1.2,1.5,2 -o model.json
  conformax tune cal.npz --alpha 0.1 --rows all -o model.json
  conformax tune cal.npz --alpha 0.1 --over raps --grid 0.01:1,0.01:5,0.1:5 -o model.json")]
pub(crate) struct TuneArgs {
    #[command(flatten)]
    data: DataArgs,
    /// How often a set may miss the true label [default: 0.1].
    #[arg(long, value_name = "A", conflicts_with = "confidence", value_parser = level)]
    alpha: Option<Alpha>,
    /// How often a set must hold the true label; another way to write --alpha.
    #[arg(long, value_name = "C", value_parser = confidence)]
    confidence: Option<Alpha>,
    /// What to choose: the index of the entmax family, or lambda and k_reg of RAPS.
    #[arg(long, value_name = "WHAT", default_value = "gamma")]
    over: Over,
    /// Candidates: GAMMA,… or LAMBDA:K_REG,… [default: 1.1 to 1.9, or 0.001 to 1 with 1 to 50].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    grid: Vec<String>,
    /// Which rows choose: some, and the others calibrate, or all, which then calibrate too.
    #[arg(long, value_name = "ROWS", default_value = "split")]
    rows: RowsChoice,
    /// Share of the rows that choose with --rows split [default: 0.4].
    #[arg(long, value_name = "F")]
    tuning_fraction: Option<f64>,
    /// Seed of the division into rows that choose and rows that calibrate, and of RAPS's random draws.
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
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

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum RowsChoice {
    Split,
    All,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Over {
    Gamma,
    Raps,
}

impl TuneArgs {
    pub(crate) fn files(&self) -> Files {
        Files { read: self.data.files(), written: vec![self.output.output.clone()] }
    }
}

pub(crate) fn run(args: &TuneArgs, console: &mut Console<'_>) -> Result<(), Failure> {
    expect_consistent(args)?;
    let output = Output::create(&args.output.output, args.output.overwrite())?;
    let alpha = match args.alpha.or(args.confidence) {
        Some(alpha) => alpha,
        None => Alpha::new(0.1)?,
    };
    let masked = args.masked.into();
    let (source, n) = count_rows(args.data.open(LabelUse::Required)?, console)?;
    let (classes, names) = (source.classes(), source.names().cloned());
    let grid = grid::candidates(args.over, &args.grid, classes, Draw::Seeded(args.seed))?;
    let (mut model, infinite) = match args.rows {
        RowsChoice::Split => {
            let n = usize::try_from(n).map_err(Failure::error)?;
            let fraction = args.tuning_fraction.unwrap_or(TuningSplit::FRACTION);
            let split = TuningSplit::new(n, fraction, args.seed)?;
            let (source, record) = choose(grid, source, &split.tuning, (alpha, masked), console)?;
            let mut calibrator = calibrator(*record.choice.score(), classes, masked)?;
            for_rows(source, &split.calibrating, "calibrating", console, |block| {
                let before = calibrator.n();
                let extended =
                    with_logits!(block, logits => calibrator.extend(logits.labelled(labels(block))?));
                extended.map_err(|error| in_block(error, before))
            })?;
            let mut model = Model::new(&calibrator.finish()?, &[alpha], names);
            model.tuning = Some(record);
            (model, None)
        }
        RowsChoice::All => {
            let (record, infinite) = select(grid, source, (alpha, masked), console)?;
            (Model::of_selection(record, names), Some(infinite))
        }
    };
    model.input = args.data.input();
    warn_of_model(&model, infinite, console);
    if args.thresholds_only {
        model.evidence = None;
    }
    let is_standard = output.is_standard();
    model::write(&model, output)?;
    if is_standard {
        return Ok(());
    }
    let path = &args.output.output;
    shown::print(&model, args.json, console).map_err(|failure| failure.after_writing(&[path]))?;
    console.note(format_args!("wrote {}", path.display()));
    Ok(())
}

/// With `--rows all` there is no share of the rows, and no score is kept that could be left out.
fn expect_consistent(args: &TuneArgs) -> Result<(), Failure> {
    let refused = match args.rows {
        RowsChoice::All if args.tuning_fraction.is_some() => {
            "--tuning-fraction is of --rows split: with all rows none \
             are set aside; leave out one of them"
        }
        RowsChoice::All if args.thresholds_only => {
            "--thresholds-only leaves out calibration scores, and --rows all \
             keeps none: leave it out"
        }
        RowsChoice::All | RowsChoice::Split => return Ok(()),
    };
    Err(Failure::error(refused))
}

/// Scores all rows under every candidate, and counts the pairs around their thresholds; beside the selection it says
/// how many true labels score infinity under the candidate that leads.
fn select(
    grid: Vec<ScoreSpec>,
    source: Source,
    (alpha, masked): (Alpha, Masked),
    console: &mut Console<'_>,
) -> Result<(SelectionRecord, u64), Failure> {
    let (mut source, tuner) = score(grid, source, None, (alpha, masked), console)?;
    source.rewind()?;
    let infinite = tuner.infinite();
    let mut pairs = tuner.finish_selecting()?;
    for_each_block(source, "counting pairs", console, |block, _| {
        let before = pairs.n();
        let extended = with_logits!(block, logits => pairs.extend(logits.labelled(labels(block))?));
        Ok(extended.map_err(|error| in_block(error, before))?)
    })?;
    let (selection, wins) = pairs.finish()?;
    let infinite = infinite[selection.leader()];
    Ok((SelectionRecord { selection, wins: Some(wins) }, infinite))
}

/// Judges every candidate on the tuning rows alone; the source comes back at its first row.
fn choose(
    grid: Vec<ScoreSpec>,
    source: Source,
    tuning: &[usize],
    (alpha, masked): (Alpha, Masked),
    console: &mut Console<'_>,
) -> Result<(Source, TuningRecord), Failure> {
    let (mut source, tuner) = score(grid, source, Some(tuning), (alpha, masked), console)?;
    source.rewind()?;
    let mut sizes = tuner.finish()?;
    let mut source = for_rows(source, tuning, "measuring sets", console, |block| {
        let before = sizes.n();
        with_logits!(block, logits => sizes.extend(logits)).map_err(|error| in_block(error, before))
    })?;
    source.rewind()?;
    let (n, rows) = (sizes.n(), sizes.rows().clone());
    Ok((source, TuningRecord { tuning: Tuning::Valid, alpha, choice: sizes.finish()?, n, rows }))
}

/// The true labels' scores under every candidate, on some rows or on all.
fn score(
    grid: Vec<ScoreSpec>,
    source: Source,
    wanted: Option<&[usize]>,
    (alpha, masked): (Alpha, Masked),
    console: &mut Console<'_>,
) -> Result<(Source, Tuner<ScoreSpec>), Failure> {
    let tuner = Tuner::new(grid, source.classes(), alpha)?;
    let mut tuner = tuner.with_masked(masked).remembering(Remember::Rows);
    let mut doubtful = None;
    let mut extend = |block: &Block| {
        doubtful.get_or_insert(block.doubtful);
        let before = tuner.n();
        let extended = with_logits!(block, logits => tuner.extend(logits.labelled(labels(block))?));
        extended.map_err(|error| in_block(error, before))
    };
    let what = "scoring candidates";
    let source = match wanted {
        Some(rows) => for_rows(source, rows, what, console, extend)?,
        None => for_each_block(source, what, console, |block, _| Ok(extend(block)?))?,
    };
    LooksLikeProbabilities::new().look_at(doubtful == Some(true), console);
    Ok((source, tuner))
}

pub(crate) fn labels(block: &Block) -> &[u32] {
    block.labels.as_deref().expect("labels were required of the source")
}

/// Calls `work` with the wanted rows of each block, as a block of their own.
fn for_rows(
    source: Source,
    wanted: &[usize],
    what: &str,
    console: &mut Console<'_>,
    mut work: impl FnMut(&Block) -> Result<(), conformax::Error>,
) -> Result<Source, Failure> {
    for_each_block(source, what, console, |block, _| {
        let inside = rows_in(block, wanted);
        if inside.is_empty() {
            return Ok(());
        }
        work(&gather(block, &inside)).map_err(|error| {
            let place = error.row().map_or(0, |row| row as usize);
            error.offset_rows((inside[place] - place) as u64)
        })?;
        Ok(())
    })
}

/// Some rows of a block as a block of their own, with what came beside them.
fn gather(block: &Block, rows: &[usize]) -> Block {
    let mut logits = Values::new(block.logits.dtype());
    rows.iter().for_each(|row| logits.extend_rows(&block.logits, block.classes, *row..row + 1));
    let labels = labels(block);
    let labels = Some(rows.iter().map(|row| labels[*row]).collect());
    let groups = block.groups.as_ref().map(|groups| rows.iter().map(|row| groups[*row]).collect());
    let weights = block.weights.as_ref().map(|weights| rows.iter().map(|row| weights[*row]).collect());
    let Block { classes, known_groups, doubtful, .. } = *block;
    Block { classes, logits, labels, groups, known_groups, weights, doubtful, ..Block::default() }
}
