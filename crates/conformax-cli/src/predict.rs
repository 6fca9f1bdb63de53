//! `conformax predict`: logits in, prediction sets out.

mod sets;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};

use clap::{Args, ValueEnum};
use conformax_io::{Format, LabelUse, SetColumns, SetsWriter, Source, SourceOptions};

use self::sets::Columns;
use crate::args::{DataArgs, Files, OptionalLevelArgs, overwrite};
use crate::blocks::for_each_block;
use crate::calibrate::{LooksLikeProbabilities, warn_of_few_rows};
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
    /// Calibration file that `calibrate` or `tune` wrote; `-` is standard input.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    levels: OptionalLevelArgs,
    /// File to write: .parquet, .arrow, .jsonl or .csv [default: JSON Lines to standard output].
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Format on standard output [default: jsonl].
    #[arg(long, value_name = "FORMAT")]
    format: Option<PipeFormat>,
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

impl PredictArgs {
    pub(crate) fn files(&self) -> Files {
        let read = self.data.files().into_iter().chain([self.model.clone()]).collect();
        Files { read, written: self.output.iter().cloned().collect() }
    }

    /// The file to write; `-` is standard output, as nothing is.
    fn file(&self) -> Option<&Path> {
        let is_standard = |path: &Path| ["-", "/dev/stdout"].iter().any(|name| path == Path::new(name));
        self.output.as_deref().filter(|path| !is_standard(path))
    }
}

pub(crate) fn run(args: &PredictArgs, console: &mut Console<'_>) -> Result<(), Failure> {
    if let (Some(path), Some(_)) = (args.file(), args.format) {
        return Err(Failure::of_file(
            path,
            "the name of a file says its format; --format is for standard output",
        ));
    }
    let model = Loaded::read(&args.model)?;
    let levels = model.levels(&args.levels.alphas())?;
    let source = model.open(&args.data, LabelUse::Ignored, |options| adjust(args, options))?;
    let columns = Columns::new(args, &model, &levels)?;
    let (mut writer, pipe) = open_output(args, &source, levels.len())?;
    warn_of_few_rows(&model.model, &levels, console);
    let mut written = 0;
    let mut doubt = LooksLikeProbabilities::with_model();
    for_each_block(source, "predicting", console, |block, console| {
        doubt.look_at(block.doubtful, console);
        let sets = match (columns.predict(block), &pipe) {
            (Err(error), Some(pipe)) => {
                // A pipe has no whole that could be spoilt: the sets of the rows before the bad one are good.
                let good = block.first(error.row().unwrap_or(0) as usize);
                if good.rows() > 0 {
                    columns.predict(&good)?.write(&columns, &good, &mut writer)?;
                    pipe.drain(console)?;
                }
                return Err(error.into());
            }
            (sets, _) => sets?,
        };
        sets.write(&columns, block, &mut writer)?;
        written += block.rows() as u64;
        if let Some(pipe) = &pipe {
            pipe.drain(console)?;
        }
        Ok(())
    })?;
    writer.finish()?;
    match (args.file(), pipe) {
        (Some(path), _) => {
            console.note(format_args!("wrote sets of {} to {}", rows(written), path.display()));
            Ok(())
        }
        (None, Some(pipe)) => pipe.drain(console),
        (None, None) => Ok(()),
    }
}

fn adjust(args: &PredictArgs, options: &mut SourceOptions) {
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
    match args.file() {
        Some(path) => Ok((SetsWriter::create(path, overwrite(args.force), &columns)?, None)),
        None => {
            let (sender, receiver) = channel();
            let writer = SetsWriter::to_pipe(
                Box::new(PipeEnd(sender)),
                args.format.unwrap_or(PipeFormat::Jsonl).into(),
                &columns,
            )?;
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
