//! `conformax split`: rows that calibrate and rows that test, apart for good.

use std::path::{Path, PathBuf};

use clap::Args;
use conformax::{split, split_stratified};
use conformax_io::{Block, DataColumns, DataWriter, Format, LabelUse, Output, Source, printable};
use serde::Serialize;

use crate::args::{DataArgs, Files, overwrite};
use crate::blocks::{count_rows, for_each_block};
use crate::console::Console;
use crate::failure::Failure;
use crate::json;
use crate::numbers::{count, rows};
use crate::table::{Align, table, text};

/// Divide rows at random into files, one per fraction.
///
/// The same seed gives the same split everywhere. Parts are written in the format of their names, any that is read,
/// with the labels and every other column that has one value per row.
#[derive(Args, Clone, Debug)]
// Names after those of the outputs are taken for data, so data may be missing where clap looks for it.
#[command(mut_arg("data", |data| data.required_unless_present_any(["logits", "output"])))]
#[command(after_help = "\
Examples:
  conformax split data.npz --fractions 0.4,0.6 -o cal.npz test.npz
  conformax split data.csv --keep id -o cal.csv test.parquet
  conformax split --logits z.npy --labels y.npy --stratify --seed 7 -o cal.npz test.npz")]
pub(crate) struct SplitArgs {
    #[command(flatten)]
    data: DataArgs,
    /// How much goes into each file; must sum to 1.
    #[arg(long, value_name = "F,F,…", value_delimiter = ',', default_values_t = [0.4, 0.6])]
    fractions: Vec<f64>,
    /// Divide the rows of each label in the same proportions.
    #[arg(long)]
    stratify: bool,
    /// Seed of the split.
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Files to write, one per fraction (names after those are DATA): .npz, .parquet, .arrow, .csv, .tsv, .jsonl,
    /// .safetensors or .npy.
    #[arg(long, short, value_name = "FILE", num_args = 1.., required = true)]
    output: Vec<PathBuf>,
    /// Replace outputs where they exist.
    #[arg(long)]
    force: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Part<'a> {
    output: &'a Path,
    rows: usize,
}

pub(crate) fn run(args: &SplitArgs, console: &mut Console<'_>) -> Result<(), Failure> {
    let args = &args.with_data_in_place();
    check_outputs(args)?;
    let labels = if args.stratify { LabelUse::Required } else { LabelUse::IfPresent };
    let source = args.data.open_with(labels, |options| options.keep_others = true)?;
    let (source, parts) = divide(args, source, console)?;
    check_parts(args, &parts)?;
    let mut writers = open_writers(args, &source, &parts)?;
    for_each_block(source, "splitting", console, |block, _| {
        for (writer, part) in writers.iter_mut().zip(&parts) {
            writer.write(block, &rows_in(block, part))?;
        }
        Ok(())
    })?;
    writers.into_iter().try_for_each(DataWriter::finish)?;
    let parts: Vec<Part<'_>> =
        args.output.iter().zip(&parts).map(|(output, part)| Part { output, rows: part.len() }).collect();
    print(&parts, args, console).map_err(|failure| failure.after_writing(&args.output))
}

fn print(parts: &[Part<'_>], args: &SplitArgs, console: &mut Console<'_>) -> Result<(), Failure> {
    if args.json {
        return json::print(&parts, console);
    }
    let mut table = table(&[("file", Align::Left), ("rows", Align::Right)]);
    for part in parts {
        let output = printable(&part.output.to_string_lossy()).to_string();
        table.add_row([output, count(part.rows as u64)]);
    }
    Ok(console.out().write_all(text(&table).as_bytes())?)
}

impl SplitArgs {
    pub(crate) fn files(&self) -> Files {
        let args = self.with_data_in_place();
        Files { read: args.data.files(), written: args.output }
    }

    /// `-o` takes every name that follows it; those beyond one per fraction are the data, where no other is named.
    fn with_data_in_place(&self) -> Self {
        let mut args = self.clone();
        if args.data.is_nothing() {
            let outputs = args.output.len().min(args.fractions.len());
            args.data.data = args.output.split_off(outputs);
        }
        args
    }
}

fn check_outputs(args: &SplitArgs) -> Result<(), Failure> {
    if args.data.is_nothing() {
        return Err(Failure::error("no data is named; give DATA, or --logits FILE"));
    }
    if args.output.len() != args.fractions.len() {
        return Err(Failure::error(format!(
            "there are {} fractions but {} outputs; name one file per fraction",
            args.fractions.len(),
            args.output.len()
        )));
    }
    if let Some(other) = args.output.iter().find(|path| Format::of_name(path).is_none()) {
        return Err(Failure::error(format!(
            "{}: its name says no format; end it in .npz, .parquet, .csv or another",
            printable(&other.to_string_lossy())
        )));
    }
    let places: Vec<PathBuf> = args.output.iter().map(|path| place_of(path)).collect();
    if let Some(place) = (1..places.len()).find(|place| places[..*place].contains(&places[*place])) {
        return Err(Failure::of_file(&args.output[place], "is named as an output twice"));
    }
    // Dropped at once: whether they can be written is worth knowing before rows are counted.
    for path in &args.output {
        Output::create(path, overwrite(args.force))?;
    }
    Ok(())
}

/// Where a file is or will be, however its name is spelled and whatever links lead there.
fn place_of(path: &Path) -> PathBuf {
    let there = path.canonicalize().ok();
    there.unwrap_or_else(|| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize();
        folder.map_or_else(|_| path.to_owned(), |folder| folder.join(path.file_name().unwrap_or_default()))
    })
}

/// Which rows go where, and the source at its first row again.
fn divide(
    args: &SplitArgs,
    source: Source,
    console: &mut Console<'_>,
) -> Result<(Source, Vec<Vec<usize>>), Failure> {
    if !args.stratify {
        let (source, n) = count_rows(source, console)?;
        let n = usize::try_from(n).map_err(Failure::error)?;
        return Ok((source, split(n, &args.fractions, args.seed)?));
    }
    let mut labels = Vec::new();
    let mut source = for_each_block(source, "reading labels", console, |block, _| {
        labels.extend_from_slice(block.labels.as_deref().expect("labels were required of the source"));
        Ok(())
    })?;
    source.rewind()?;
    Ok((source, split_stratified(&labels, &args.fractions, args.seed)?))
}

/// A file without rows is one that nothing else here reads.
fn check_parts(args: &SplitArgs, parts: &[Vec<usize>]) -> Result<(), Failure> {
    let Some(empty) = parts.iter().position(Vec::is_empty) else { return Ok(()) };
    let n = parts.iter().map(Vec::len).sum::<usize>();
    let what = format!(
        "would hold no rows: the fraction {} of {} leaves none; give more rows or a larger fraction",
        args.fractions[empty],
        rows(n as u64)
    );
    Err(Failure::of_file(&args.output[empty], what))
}

fn open_writers(args: &SplitArgs, source: &Source, parts: &[Vec<usize>]) -> Result<Vec<DataWriter>, Failure> {
    let open = |(path, part): (&PathBuf, &Vec<usize>)| {
        let columns = DataColumns::of(source, part.len() as u64);
        Ok(DataWriter::create(path, overwrite(args.force), &columns)?)
    };
    args.output.iter().zip(parts).map(open).collect()
}

/// The rows of a part, ascending, that lie in a block, counted from the block's first.
pub(crate) fn rows_in(block: &Block, part: &[usize]) -> Vec<usize> {
    let first = block.first_row as usize;
    let start = part.partition_point(|row| *row < first);
    let inside = part[start..].iter().take_while(|row| **row < first + block.rows());
    inside.map(|row| row - first).collect()
}
