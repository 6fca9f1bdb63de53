//! `conformax weigh`: how much likelier each label is where the model is going.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use conformax::{LabelShift, Logits, label_weights};
use conformax_io::{Block, Error, LabelUse, Output, Source};
use serde::Serialize;

use crate::args::{DataArgs, Files, OutputArgs};
use crate::blocks::{for_each_block, with_logits};
use crate::calibrate::LooksLikeProbabilities;
use crate::console::Console;
use crate::failure::Failure;
use crate::numbers::{rows, shown};
use crate::table::{Align, table, text};

/// Estimate how much likelier each label is among unlabelled target rows than among the labelled ones.
///
/// What a label looks like must not have changed, only how often it comes. The weights go to `calibrate
/// --label-weights`; as they are estimated, what is then promised holds approximately. EM takes softmax at its word, so
/// it is off where the classifier is over-confident; BBSE needs more rows. All rows are held in memory.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  conformax weigh cal.npz target.npz -o weights.json
  conformax calibrate cal.npz --label-weights weights.json -o model.json")]
pub(crate) struct WeighArgs {
    /// Labelled rows, those that will calibrate; then rows from where the model is going.
    #[command(flatten)]
    data: DataArgs,
    /// By expectation and maximisation on softmax, or by the confusion matrix of the top labels.
    #[arg(long, value_name = "HOW", default_value = "em")]
    method: Method,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
enum Method {
    Em,
    Bbse,
}

#[derive(Serialize)]
struct Weights {
    format: &'static str,
    method: Method,
    estimated: bool,
    rows: u64,
    target_rows: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    class_names: Option<Vec<String>>,
    weights: Vec<f64>,
}

impl WeighArgs {
    pub(crate) fn files(&self) -> Files {
        Files { read: self.data.files(), written: vec![self.output.output.clone()] }
    }
}

pub(crate) fn run(args: &WeighArgs, console: &mut Console<'_>) -> Result<(), Failure> {
    let [labelled, target] = &args.data.data[..] else {
        return Err(Failure::error(
            "wanted two files: labelled rows, and rows from where the model is going",
        ));
    };
    if std::fs::canonicalize(labelled).ok() == std::fs::canonicalize(target).ok() {
        return Err(Failure::error("the labelled rows and those of the target are the same file"));
    }
    let mut output = Output::create(&args.output.output, args.output.overwrite())?;
    let open = |path: &PathBuf, labels| {
        let one = DataArgs { data: vec![path.clone()], ..args.data.clone() };
        one.open(labels)
    };
    let (source, goal) = (open(labelled, LabelUse::Required)?, open(target, LabelUse::Ignored)?);
    if source.classes() != goal.classes() {
        let (wanted, got) = (source.classes(), goal.classes());
        return Err(Error::new(target, conformax::Error::ClassCount { wanted, got }).into());
    }
    if let (Some(wanted), Some(found)) = (source.names(), goal.names()) {
        wanted.expect_same(found).map_err(|problem| Error::new(target, problem))?;
    }
    let names = source.names().map(|names| names.as_slice().to_vec());
    let classes = source.classes();
    let (known, labels) = read(source, "reading labelled rows", console)?;
    let (unknown, _) = read(goal, "reading target rows", console)?;
    let method = match args.method {
        Method::Em => LabelShift::Em,
        Method::Bbse => LabelShift::Bbse,
    };
    let source = Logits::new(&known, classes)?.labelled(&labels)?;
    let weights = label_weights(source, Logits::new(&unknown, classes)?, method)?;
    let written = Weights {
        format: "conformax-weights",
        method: args.method,
        estimated: true,
        rows: labels.len() as u64,
        target_rows: (unknown.len() / classes) as u64,
        class_names: names.clone(),
        weights,
    };
    let (path, is_standard) = (output.path().to_owned(), output.is_standard());
    let text_of = serde_json::to_string_pretty(&written)? + "\n";
    output.write_all(text_of.as_bytes()).map_err(|error| Error::new(&path, error))?;
    output.finish()?;
    if is_standard {
        return Ok(());
    }
    print(&written, console)?;
    console.note(format_args!("wrote {}", path.display()));
    Ok(())
}

/// The rows in memory, as the core's estimates need them.
fn read(source: Source, what: &str, console: &mut Console<'_>) -> Result<(Vec<f64>, Vec<u32>), Failure> {
    let mut doubt = LooksLikeProbabilities::new();
    let (mut logits, mut labels) = (Vec::new(), Vec::new());
    for_each_block(source, what, console, |block: &Block, console| {
        doubt.look_at(block.doubtful, console);
        with_logits!(block, rows => {
            (0..rows.len()).try_for_each(|row| rows.row(row).map(|_| ()))?;
            logits.extend((0..block.logits.len()).filter_map(|index| block.logits.get(index)));
            Ok(())
        })?;
        labels.extend(block.labels.iter().flatten());
        Ok(())
    })?;
    Ok((logits, labels))
}

fn print(weights: &Weights, console: &mut Console<'_>) -> Result<(), Failure> {
    let mut table = table(&[("class", Align::Left), ("weight", Align::Right)]);
    for (class, weight) in weights.weights.iter().enumerate() {
        let name = weights.class_names.as_ref().map_or(class.to_string(), |names| names[class].clone());
        table.add_row([conformax_io::printable(&name).to_string(), shown(*weight)]);
    }
    writeln!(
        console.out(),
        "weights of labels by {}, from {} and {} of the target\n\n{}",
        match weights.method {
            Method::Em => "EM",
            Method::Bbse => "BBSE",
        },
        rows(weights.rows),
        rows(weights.target_rows),
        text(&table).trim_end()
    )?;
    Ok(())
}
