//! `conformax predict`: logits in, prediction sets out.

use std::io::Write;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};

use clap::{Args, ValueEnum};
use conformax::{Calibrated, Calibration, Empty, Level, PredictionSets, ScoreSpec, predict_each};
use conformax_io::{
    Block, Format, LabelUse, PValues, SetColumns, SetRows, SetsWriter, Source, SourceOptions,
};

use crate::args::{DataArgs, OptionalLevelArgs, overwrite};
use crate::blocks::{BlockError, for_each_block, with_logits};
use crate::calibrate::warn_of_few_rows;
use crate::console::Console;
use crate::failure::Failure;
use crate::model::Loaded;
use crate::numbers::rows;

/// Give every row of logits its prediction set; labels are not needed.
///
/// Sets are written as Parquet, Arrow, JSON Lines or CSV, by the name of the output, or as JSON Lines to standard
/// output.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  conformax predict model.json test.npz -o sets.parquet
  conformax predict model.json test.csv --keep id --probabilities -o sets.csv
  conformax predict model.json shards/ --alpha 0.1 --alpha 0.05 -o sets.arrow
  tail -n +1 -f scores.jsonl | conformax predict model.json - | jq .labels")]
pub(crate) struct PredictArgs {
    /// Calibration file that `calibrate` or `tune` wrote.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    levels: OptionalLevelArgs,
    /// File to write: .parquet, .arrow, .jsonl or .csv [default: JSON Lines to standard output].
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Format on standard output.
    #[arg(long, value_name = "FORMAT", default_value = "jsonl", conflicts_with = "output")]
    format: PipeFormat,
    /// Replace the output where it exists.
    #[arg(long)]
    force: bool,
    /// Add the probability of each label in the set.
    #[arg(long)]
    probabilities: bool,
    /// Add the p-value of each label in the set: the alpha at which it leaves.
    #[arg(long)]
    p_values: bool,
    /// Add the p-values of all labels, in the order of the classes.
    #[arg(long, conflicts_with = "p_values")]
    all_p_values: bool,
    /// Columns of the data to carry over to the output.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    keep: Vec<String>,
    /// Put the top label into a set that would be empty.
    #[arg(long)]
    non_empty: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PipeFormat {
    Jsonl,
    Csv,
}

impl From<PipeFormat> for Format {
    fn from(format: PipeFormat) -> Self {
        match format {
            PipeFormat::Jsonl => Self::JsonLines,
            PipeFormat::Csv => Self::Csv,
        }
    }
}

/// P-values take sixteen bytes for each logit of two or four, so blocks are smaller where they are wanted.
const BLOCK_BYTES_WITH_P_VALUES: usize = 1 << 20;

pub(crate) fn run(args: &PredictArgs, console: &mut Console<'_>) -> Result<(), Failure> {
    let model = Loaded::read(&args.model)?;
    let levels = model.levels(&args.levels.alphas())?;
    let source = model.open(&args.data, LabelUse::Ignored, |options| adjust(args, options))?;
    let predictor = Predictor::new(args, &model, &levels)?;
    let (mut writer, pipe) = open_output(args, &source, levels.len())?;
    warn_of_few_rows(&levels, console)?;
    let mut written = 0;
    for_each_block(source, "predicting", console, |block, console| {
        predictor.predict(block)?.write(&predictor, block, &mut writer)?;
        written += block.rows() as u64;
        if let Some(pipe) = &pipe {
            pipe.drain(console)?;
        }
        Ok(())
    })?;
    writer.finish()?;
    match (&args.output, pipe) {
        (Some(path), _) => {
            console.note(format_args!("wrote sets of {} to {}", rows(written), path.display()))
        }
        (None, Some(pipe)) => pipe.drain(console),
        (None, None) => Ok(()),
    }
}

fn adjust(args: &PredictArgs, options: &mut SourceOptions) {
    options.keep.clone_from(&args.keep);
    if args.p_values || args.all_p_values {
        options.block_bytes = BLOCK_BYTES_WITH_P_VALUES;
    }
}

fn open_output(
    args: &PredictArgs,
    source: &Source,
    levels: usize,
) -> Result<(SetsWriter, Option<Pipe>), Failure> {
    let columns = SetColumns {
        keep: source.kept().map(|(name, cells)| (name.to_owned(), cells)).collect(),
        names: source.names().cloned(),
        probabilities: args.probabilities,
        p_values: args.p_values || args.all_p_values,
        alpha: levels > 1,
    };
    match &args.output {
        Some(path) => Ok((SetsWriter::create(path, overwrite(args.force), &columns)?, None)),
        None => {
            let (sender, receiver) = channel();
            let writer = SetsWriter::to_pipe(Box::new(PipeEnd(sender)), args.format.into(), &columns)?;
            Ok((writer, Some(Pipe(receiver))))
        }
    }
}

/// What the writer of sets wrote, on its way to standard output. The writer keeps its end, so it cannot borrow
/// the stream itself.
struct Pipe(Receiver<Vec<u8>>);

impl Pipe {
    fn drain(&self, console: &mut Console<'_>) -> Result<(), Failure> {
        for bytes in self.0.try_iter() {
            console.out().write_all(&bytes)?;
        }
        Ok(console.out().flush()?)
    }
}

struct PipeEnd(Sender<Vec<u8>>);

impl Write for PipeEnd {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.send(bytes.to_vec()).map_err(|_| std::io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Which p-values are written.
#[derive(Clone, Copy, PartialEq)]
enum Wanted {
    OfSet,
    OfAll,
}

/// Everything a block is put through.
struct Predictor {
    models: Vec<Calibrated<ScoreSpec>>,
    alphas: Option<Vec<f64>>,
    probabilities: bool,
    p_values: Option<(Wanted, Calibration<ScoreSpec>)>,
}

impl Predictor {
    fn new(args: &PredictArgs, model: &Loaded, levels: &[Level]) -> Result<Self, Failure> {
        let empty = if args.non_empty { Empty::TopLabel } else { Empty::Allowed };
        let wanted = match (args.p_values, args.all_p_values) {
            (true, _) => Some(Wanted::OfSet),
            (_, true) => Some(Wanted::OfAll),
            (false, false) => None,
        };
        Ok(Self {
            models: model.predictors(levels, empty),
            alphas: (levels.len() > 1).then(|| levels.iter().map(|level| level.alpha.value()).collect()),
            probabilities: args.probabilities,
            p_values: wanted.map(|wanted| Ok::<_, Failure>((wanted, model.calibration()?))).transpose()?,
        })
    }

    fn predict(&self, block: &Block) -> Result<Sets, conformax::Error> {
        let by_level: Vec<(PredictionSets, Vec<f64>)> = if self.probabilities {
            let each = self.models.iter();
            each.map(|model| with_logits!(block, logits => model.predict_probabilities(logits)))
                .collect::<Result<_, _>>()?
        } else {
            let sets = with_logits!(block, logits => predict_each(&self.models, logits))?;
            sets.into_iter().map(|sets| (sets, Vec::new())).collect()
        };
        let mut sets = Sets::by_row(&by_level, block.rows());
        if let Some((wanted, calibration)) = &self.p_values {
            let all = with_logits!(block, logits => calibration.p_values(logits))?;
            let value = |row: usize, label: usize| all[row * block.classes + label].value();
            sets.p_values = match wanted {
                Wanted::OfAll => all.iter().map(|p| p.value()).collect(),
                Wanted::OfSet => {
                    sets.entries(self.models.len()).map(|(row, label)| value(row, label)).collect()
                }
            };
        }
        Ok(sets)
    }
}

/// The sets of a block: row after row and, within a row, level after level.
struct Sets {
    offsets: Vec<usize>,
    labels: Vec<u32>,
    probabilities: Vec<f64>,
    p_values: Vec<f64>,
}

impl Sets {
    fn by_row(by_level: &[(PredictionSets, Vec<f64>)], rows: usize) -> Self {
        let mut all =
            Self { offsets: vec![0], labels: Vec::new(), probabilities: Vec::new(), p_values: Vec::new() };
        for row in 0..rows {
            for (sets, probabilities) in by_level {
                all.labels.extend_from_slice(sets.get(row));
                if !probabilities.is_empty() {
                    let range = sets.offsets()[row]..sets.offsets()[row + 1];
                    all.probabilities.extend_from_slice(&probabilities[range]);
                }
                all.offsets.push(all.labels.len());
            }
        }
        all
    }

    /// Row and label of everything in a set.
    fn entries(&self, levels: usize) -> impl Iterator<Item = (usize, usize)> {
        self.offsets.windows(2).enumerate().flat_map(move |(set, ends)| {
            self.labels[ends[0]..ends[1]].iter().map(move |label| (set / levels, *label as usize))
        })
    }

    fn write(&self, predictor: &Predictor, block: &Block, writer: &mut SetsWriter) -> Result<(), BlockError> {
        let p_values = predictor.p_values.as_ref().map(|(wanted, _)| match wanted {
            Wanted::OfSet => PValues::OfSet(&self.p_values),
            Wanted::OfAll => PValues::OfAll(&self.p_values),
        });
        writer.write(&SetRows {
            first_row: block.first_row,
            keep: &block.keep,
            offsets: &self.offsets,
            labels: &self.labels,
            probabilities: predictor.probabilities.then_some(&self.probabilities[..]),
            p_values,
            alphas: predictor.alphas.as_deref(),
        })?;
        Ok(())
    }
}
