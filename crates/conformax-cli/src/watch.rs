//! `conformax watch`: rows and labels as they come, sets as they are asked for.

mod input;
mod state;

use std::path::PathBuf;

use clap::Args;
use conformax::{Feedback, Logits, ScoreSpec, Stream};
use conformax_io::{ClassNames, JsonRow, JsonRows, RowFault};
use serde::Serialize;
use serde_json::Value;

use self::input::{Input, Line};
use self::state::StateFile;
use crate::args::{Files, StreamArgs};
use crate::calibrate::LooksLikeProbabilities;
use crate::console::Console;
use crate::failure::Failure;
use crate::model::Loaded;
use crate::numbers::{count, labels, rows};

/// Give rows their sets as they come, and learn from their labels.
///
/// Reads JSON Lines: `{"logits": [...]}` with an `id` and a `label` where they are known, or `{"id": 7, "label": 2}`
/// when a label comes later; a row without an id has its number for one. Every line is answered with a line, at once.
/// Labels move the level, so that misses come at the rate asked for whatever happens, and raise an alarm when rows stop
/// being like those that calibrated.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tail -n +1 -f rows.jsonl | conformax watch model.json - --state watch.state
  conformax watch model.json rows.jsonl --fixed --stop-on-alarm
  conformax watch model.json rows.jsonl --step 0.05 --window 5000

Exit codes: 0 the input ended, 1 the alarm rose (--stop-on-alarm), 2 could not run or was interrupted.")]
pub(crate) struct WatchArgs {
    /// Calibration file that `calibrate` or `tune` wrote.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// JSON Lines; `-` is standard input.
    #[arg(value_name = "INPUT", default_value = "-")]
    input: PathBuf,
    /// File to take the stream up from, where it is there, and to leave it in: the same lines give the same answers
    /// wherever they are divided between runs. A run that is killed leaves it at most 1,000 lines behind its answers.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// End with exit code 1 when the alarm rises.
    #[arg(long)]
    stop_on_alarm: bool,
    #[command(flatten)]
    stream: StreamArgs,
}

/// Lines that are answered at most before the stream is left in its file. Rows may come for days without a pause.
const MOST_AHEAD: u64 = 1_000;

impl WatchArgs {
    pub(crate) fn files(&self) -> Files {
        Files {
            read: vec![self.model.clone(), self.input.clone()],
            written: self.state.iter().cloned().collect(),
        }
    }
}

pub(crate) fn run(args: &WatchArgs, console: &mut Console<'_>) -> Result<(), Failure> {
    if [&args.model, &args.input].iter().all(|path| path.as_os_str() == "-") {
        return Err(Failure::error(
            "standard input cannot be both the calibration file and the rows; name a file for one of them",
        ));
    }
    let model = Loaded::read(&args.model)?;
    let fresh = model.stream(args.stream.alpha(), args.stream.options())?;
    let mut state = StateFile::open(args.state.as_deref())?;
    let mut watch = Watch {
        stream: state.read(fresh, console)?,
        rows: JsonRows::new(&model.model),
        names: model.model.names.clone(),
        doubtful: None,
        stop_on_alarm: args.stop_on_alarm,
    };
    let mut input = Input::open(&args.input)?;
    let status = console.status();
    let mut ahead = 0;
    let (mut is_read, mut doubt) = (true, LooksLikeProbabilities::with_model());
    let outcome = loop {
        let line = input.next(|| {
            ahead = 0;
            state.write(&watch.stream)
        });
        match line {
            Err(failure) => break Err(failure),
            Ok(Line::End) => break Ok(()),
            Ok(Line::Text { row, bytes }) => match watch.answer(&bytes) {
                Ok((answer, alarm)) => {
                    if let Some(doubtful) = watch.doubtful {
                        status.suspend(|| doubt.look_at(doubtful, console));
                    }
                    if is_read {
                        is_read = status.suspend(|| print(&answer, console))?;
                    }
                    ahead += 1;
                    if ahead >= MOST_AHEAD {
                        ahead = 0;
                        state.write(&watch.stream)?;
                    }
                    status.set_message(watch.told());
                    if let Some(alarm) = alarm {
                        status.suspend(|| console.warn(&alarm));
                        if watch.stop_on_alarm {
                            break Err(Failure::No(alarm));
                        }
                    }
                    // Without answers to read, what is left of the run is the alarm that is waited for.
                    if !is_read && !watch.stop_on_alarm {
                        break Err(Failure::OutputClosed);
                    }
                }
                Err(fault) => break Err(input.failure(row, fault)),
            },
        }
    };
    status.finish_and_clear();
    state.write(&watch.stream)?;
    match outcome {
        Err(Failure::Interrupted) => {
            Err(Failure::error(format!("interrupted after {}; what was answered stands", watch.told())))
        }
        Err(other) => Err(other),
        Ok(()) => {
            console.note(watch.told());
            Ok(())
        }
    }
}

/// Prints an answer, and whether anybody is left who reads them.
fn print(answer: &str, console: &mut Console<'_>) -> Result<bool, Failure> {
    let printed = writeln!(console.out(), "{answer}").and_then(|()| console.out().flush());
    match printed.map_err(Failure::from) {
        Err(Failure::OutputClosed) => Ok(false),
        other => other.map(|()| true),
    }
}

struct Watch {
    stream: Stream<ScoreSpec>,
    rows: JsonRows,
    names: Option<ClassNames>,
    /// Whether the last row looked like probabilities.
    doubtful: Option<bool>,
    stop_on_alarm: bool,
}

/// What a line is answered with.
#[derive(Serialize)]
struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<u64>,
    id: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<f64>,
    #[serde(flatten)]
    label: Option<Told>,
}

/// What became of a label.
#[derive(Serialize)]
struct Told {
    label: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    covered: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_capital: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ignored: Option<&'static str>,
}

impl Watch {
    /// The line that answers a line, and what to say where the alarm rose.
    fn answer(&mut self, line: &[u8]) -> Result<(String, Option<String>), RowFault> {
        let read = self.rows.read(line)?;
        let answer = match (&read.logits, read.name(), read.label) {
            (Some(logits), _, _) => self.predict(&read, logits)?,
            (None, Some(_), Some(_)) => {
                Answer { row: None, id: Value::Null, labels: None, size: None, level: None, label: None }
            }
            (None, ..) => {
                let found = "neither".to_owned();
                let wanted = "`logits`, or `id` and `label`";
                return Err(conformax_io::Problem::Dtype { what: "a row", wanted, found }.into());
            }
        };
        let id = match (read.id.clone(), answer.row) {
            (Some(id), _) => id,
            (None, row) => row.into(),
        };
        let (told, alarm) = match read.label {
            None => (None, None),
            Some(label) => {
                let name = read.name().unwrap_or_else(|| answer.row.unwrap_or_default().to_string());
                let (told, alarm) = self.update(&name, label)?;
                (Some(told), alarm)
            }
        };
        let answer = Answer { id, label: told, ..answer };
        let text = serde_json::to_string(&answer).expect("answers are text and finite numbers");
        Ok((text, alarm))
    }

    fn predict(&mut self, read: &JsonRow, logits: &[f64]) -> Result<Answer, RowFault> {
        let (row, level) = (self.stream.status().predicted, self.stream.level());
        let name = read.name().unwrap_or_else(|| row.to_string());
        if read.id.is_none() && self.stream.waits(&name) {
            let found = format!("none, and {name} is the id of another that waits");
            let wanted = "an id, where other rows have numbers for ids";
            return Err(conformax_io::Problem::Dtype { what: "a row", wanted, found }.into());
        }
        self.doubtful = Some(read.doubtful);
        let groups = read.group.map(|group| [group]);
        let rows = Logits::new(logits, logits.len()).and_then(|logits| match &groups {
            Some(groups) => logits.with_groups(groups),
            None => Ok(logits),
        });
        let sets = rows.and_then(|logits| self.stream.predict(logits, &[&name])).map_err(of_core)?;
        let set = sets.get(0).unwrap_or_default();
        let shown = set.iter().map(|label| self.shown(*label)).collect();
        let id = Value::Null;
        Ok(Answer {
            row: Some(row),
            id,
            labels: Some(shown),
            size: Some(set.len()),
            level: Some(level),
            label: None,
        })
    }

    fn update(&mut self, name: &str, label: u32) -> Result<(Told, Option<String>), RowFault> {
        let feedback = self.stream.update(name, label).map_err(of_core)?;
        let told =
            Told { label: self.shown(label), covered: None, p_value: None, log_capital: None, ignored: None };
        Ok(match feedback {
            Feedback::Counted { covered, p_value, rose } => {
                let log_capital = Some(self.stream.status().log_capital);
                let told = Told { covered: Some(covered), p_value: Some(p_value), log_capital, ..told };
                (told, rose.then(|| self.alarm()))
            }
            Feedback::Repeated => (Told { ignored: Some("the row has had its label"), ..told }, None),
            Feedback::Unknown => (Told { ignored: Some("no such row waits for a label"), ..told }, None),
        })
    }

    fn shown(&self, label: u32) -> Value {
        match self.names.as_ref().and_then(|names| names.name(label)) {
            Some(name) => name.into(),
            None => label.into(),
        }
    }

    fn alarm(&self) -> String {
        format!(
            "the alarm rose after {}: rows are no longer like those that calibrated, or a chance of 1 in {} \
             came true; find out what changed, and calibrate again",
            labels(self.stream.labelled()),
            (1.0 / self.stream.options().delta.value()).round()
        )
    }

    fn told(&self) -> String {
        let status = self.stream.status();
        let share = |covered: u64, of: u64| match of {
            0 => "no label yet".to_owned(),
            of => format!("coverage {:.4} over {}", covered as f64 / of as f64, labels(of)),
        };
        let alarm = match status.raised_at {
            Some(at) => format!("alarm rose at label {}", count(at)),
            None => format!("no alarm (log capital {:.2})", status.log_capital),
        };
        format!(
            "{}, {}, level {:.4}, {alarm}",
            rows(status.predicted),
            share(status.covered, status.labelled),
            status.level
        )
    }
}

/// A fault of the arithmetic, which counts rows from the one it was given.
fn of_core(error: conformax::Error) -> RowFault {
    use conformax::Error;
    use conformax_io::Problem;
    match error {
        Error::Logit { class, value, .. } => {
            RowFault { problem: Problem::NotALogit(value), class: Some(class) }
        }
        Error::AllMasked { .. } => Problem::AllMasked.into(),
        other => Problem::from(other).into(),
    }
}
