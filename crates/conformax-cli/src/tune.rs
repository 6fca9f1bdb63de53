//! `conformax tune`: choose gamma or RAPS's parameters on some rows, calibrate the choice on the others.
//!
//! The data are read three times: every candidate's scores on the tuning rows, then its set sizes there, then the
//! winner's scores on the calibrating rows, which no choice has seen.

mod candidates;
mod grid;
mod shown;

use clap::{Args, ValueEnum};
use conformax::{
    Alpha, Calibration, CalibrationScores, Candidate, Draw, Level, Masked, ScoreSpec, Tuning, TuningSplit,
    conformal_rank, judging_threshold, smallest,
};
use conformax_io::{Block, LabelUse, Model, Output, RowSet, Source, TuningRecord, Values, row_fingerprints};

use self::candidates::{add_scores, add_sizes};
use crate::args::{DataArgs, MaskedChoice, OutputArgs, confidence};
use crate::blocks::{count_rows, for_each_block, with_logits};
use crate::calibrate::{note_thresholds_of_zero, warn_of_few_rows};
use crate::console::Console;
use crate::failure::Failure;
use crate::model;
use crate::split::rows_in;

/// Choose the parameters that give the smallest sets, and calibrate the choice on rows it has not seen.
///
/// Part of the rows choose and never calibrate; the others calibrate the choice, so the guarantee stays exact.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  conformax tune cal.npz --alpha 0.1 -o model.json
  conformax tune cal.npz --alpha 0.1 --grid 1.2,1.5,2 -o model.json
  conformax tune cal.npz --alpha 0.1 --over raps --grid 0.01:1,0.01:5,0.1:5 -o model.json")]
pub(crate) struct TuneArgs {
    #[command(flatten)]
    data: DataArgs,
    /// How often a set may miss the true label [default: 0.1].
    #[arg(long, value_name = "A", conflicts_with = "confidence")]
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
    /// Share of the rows that choose; the others calibrate.
    #[arg(long, value_name = "F", default_value_t = 0.4)]
    tuning_fraction: f64,
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

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Over {
    Gamma,
    Raps,
}

pub(crate) fn run(args: &TuneArgs, console: &mut Console<'_>) -> Result<(), Failure> {
    let output = Output::create(&args.output.output, args.output.overwrite())?;
    let alpha = match args.alpha.or(args.confidence) {
        Some(alpha) => alpha,
        None => Alpha::new(0.1)?,
    };
    let masked = args.masked.into();
    let (source, n) = count_rows(args.data.open(LabelUse::Required)?, console)?;
    let (classes, names) = (source.classes(), source.names().cloned());
    let grid = grid::candidates(args.over, &args.grid, classes, Draw::Seeded(args.seed))?;
    let n = usize::try_from(n).map_err(Failure::error)?;
    let split = TuningSplit::new(n, args.tuning_fraction, args.seed)?;
    let (source, record) = choose(&grid, source, &split.tuning, alpha, console)?;
    let score = grid[record.chosen];
    let (scores, calibrating) = calibrate(score, source, &split.calibrating, masked, console)?;
    let calibration = Calibration::from_scores(score, CalibrationScores::new(scores)?, masked);
    let mut model = Model::new(&calibration, &[alpha], classes, names, calibrating);
    model.tuning = Some(record);
    if args.thresholds_only {
        model.scores = None;
    }
    warn_of_few_rows(&model.levels, console)?;
    note_thresholds_of_zero(&model, console)?;
    shown::print(&model, args.json, console)?;
    model::write(&model, output)?;
    console.note(format_args!("wrote {}", args.output.output.display()))
}

/// Judges every candidate on the tuning rows alone; the source comes back at its first row.
fn choose(
    grid: &[ScoreSpec],
    source: Source,
    tuning: &[usize],
    alpha: Alpha,
    console: &mut Console<'_>,
) -> Result<(Source, TuningRecord), Failure> {
    if tuning.is_empty() {
        return Err(conformax::Error::NoTuningRows.into());
    }
    let mut scores = vec![Vec::with_capacity(tuning.len()); grid.len()];
    let (mut seen, mut names) = (Vec::with_capacity(tuning.len()), Vec::new());
    let mut source = for_rows(source, tuning, "scoring candidates", console, |block| {
        row_fingerprints(block, &mut names);
        seen.extend_from_slice(&names);
        add_scores(grid, block, &mut scores)
    })?;
    source.rewind()?;
    let levels: Vec<Level> =
        scores.into_iter().map(|scores| judged(scores, alpha)).collect::<Result<_, _>>()?;
    let mut totals = vec![0u64; grid.len()];
    let mut source = for_rows(source, tuning, "measuring sets", console, |block| {
        add_sizes(grid, &levels, block, &mut totals)
    })?;
    source.rewind()?;
    let n = tuning.len() as u64;
    let sizes: Vec<f64> = totals.iter().map(|total| *total as f64 / n as f64).collect();
    let candidates = grid.iter().zip(&levels).zip(&sizes);
    let candidates = candidates.map(|((score, level), size)| Candidate {
        score: *score,
        threshold: level.threshold,
        average_size: *size,
    });
    let chosen = smallest(&sizes).ok_or(conformax::Error::NoCandidates)?;
    let candidates = candidates.collect();
    let rows = RowSet::new(seen);
    Ok((source, TuningRecord { tuning: Tuning::Valid, alpha, candidates, chosen, n, rows }))
}

fn judged(scores: Vec<f64>, alpha: Alpha) -> Result<Level, conformax::Error> {
    let scores = CalibrationScores::new(scores)?;
    let (n, threshold) = (scores.n(), judging_threshold(&scores, alpha));
    Ok(Level { alpha, n, rank: conformal_rank(n, alpha), threshold })
}

/// The winner's scores on the calibrating rows, and the names of those rows.
fn calibrate(
    score: ScoreSpec,
    source: Source,
    calibrating: &[usize],
    masked: Masked,
    console: &mut Console<'_>,
) -> Result<(Vec<f64>, RowSet), Failure> {
    let mut scores = Vec::with_capacity(calibrating.len());
    let (mut seen, mut names) = (Vec::with_capacity(calibrating.len()), Vec::new());
    for_rows(source, calibrating, "calibrating", console, |block| {
        row_fingerprints(block, &mut names);
        seen.extend_from_slice(&names);
        let labels = labels(block);
        let calibration = with_logits!(block, logits => Calibration::new(score, logits, labels, masked))?;
        scores.extend_from_slice(calibration.scores().as_slice());
        Ok(())
    })?;
    Ok((scores, RowSet::new(seen)))
}

fn labels(block: &Block) -> &[u32] {
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

fn gather(block: &Block, rows: &[usize]) -> Block {
    let mut logits = Values::new(block.logits.dtype());
    rows.iter().for_each(|row| logits.extend_rows(&block.logits, block.classes, *row..row + 1));
    let labels = labels(block);
    let labels = Some(rows.iter().map(|row| labels[*row]).collect());
    Block { classes: block.classes, logits, labels, ..Block::default() }
}
