//! How often the alarm rises though nothing changed, and how soon where something did: the table and the figure of
//! `docs/streams.md`.
//!
//!     cargo run --release -p conformax-cli --example stream_alarm > docs/figures/stream-alarm.svg
//!
//! The table goes to standard error. Everything is drawn from seeds, so every run gives the same. A number after `--`
//! is that of the streams, for a look: 500 unless given, and twenty times as many in which nothing changes.
#![allow(clippy::print_stdout, reason = "the figure is the output")]

use std::path::Path;

use conformax::{Alarm, EntmaxScore, Generator, Logits, score_labels};
use conformax_io::{Block, Data, LabelUse, Source, SourceOptions, Values};
use conformax_plot::{Axis, Frame, Marker, Panel, Plot, Point, Series, Sheet, Style};
use conformax_study::BUILT_IN;
use rayon::prelude::*;

/// Calibrating rows, and rows before the change.
const ROWS: [usize; 2] = [500, 500];
/// Streams for each delay, unless another number is given.
const STREAMS: u64 = 500;
/// So many times as many for a rate of false alarms, which is small.
const QUIET: u64 = 20;
/// Capital of 100: at most one false alarm in a hundred streams.
const RISES_AT: f64 = 4.605_170_185_988_092;
/// Quantile of the normal distribution for an interval of 95 %.
const NORMAL: f64 = 1.959_963_984_540_054;

/// The scores of a benchmark's true labels, and which rows there are more of after a change.
struct Scored {
    title: String,
    scores: Vec<f64>,
    /// Rows of the harder half of the classes: the labels shift.
    hard_labels: Vec<usize>,
    /// Rows of the smaller half of the margins between the best two logits: the inputs shift.
    close_calls: Vec<usize>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let styles = [
        Style::plain("labels shift", "#b3442e", "", Marker::Circle),
        Style::plain("inputs shift", "#2f6db3", "", Marker::Square),
        Style::plain("nothing changes", "#5d6570", "4 3", Marker::Diamond),
    ];
    let streams = match std::env::args().nth(1) {
        None => STREAMS,
        Some(given) => given.parse()?,
    };
    eprintln!(
        "| benchmark | labels after the change | false alarms (95 %) | labels shift: delay | risen | inputs shift: delay \
         | risen |\n|---|---:|---:|---:|---:|---:|---:|"
    );
    let mut panels = Vec::new();
    for built_in in BUILT_IN {
        let scored = scored(built_in.title, &read(built_in.name)?)?;
        let (all, length) = ((0..scored.scores.len()).collect::<Vec<usize>>(), scored.length());
        let labels = delays(&scored, &scored.hard_labels, streams)?;
        let inputs = delays(&scored, &scored.close_calls, streams)?;
        let quiet = delays(&scored, &all, QUIET * streams)?;
        let (low, high) = interval(&quiet);
        eprintln!(
            "| {} | {length} | {:.4} ({low:.4} to {high:.4}) | {} | {:.3} | {} | {:.3} |",
            scored.title,
            share(&quiet),
            told(&labels, length),
            share(&labels),
            told(&inputs, length),
            share(&inputs),
        );
        panels.push(panel(&scored.title, length, &[&labels, &inputs, &quiet], &styles));
    }
    let panels: Vec<&Panel> = panels.iter().collect();
    let title = "Share of streams whose alarm has risen, by labels after the change";
    println!("{}", Sheet { title, columns: 2, key: &styles, panels: &panels }.svg());
    Ok(())
}

/// All rows of a benchmark, from the source tree.
fn read(name: &str) -> Result<Block, Box<dyn std::error::Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = [root.join("crates/conformax-study/benchmarks"), root.join("benchmarks")];
    let file = |folder: &Path, what: &str| folder.join(format!("{name}-{what}.npy"));
    let folder = folders.iter().find(|folder| file(folder, "logits").exists());
    let folder = folder.ok_or_else(|| format!("{name} is not in the source tree"))?;
    let data = Data::Pair { logits: file(folder, "logits"), labels: Some(file(folder, "labels")) };
    let whole =
        SourceOptions { labels: LabelUse::Required, block_bytes: usize::MAX, ..SourceOptions::default() };
    let mut block = Block::default();
    Source::open(&data, &whole)?.read(&mut block)?;
    Ok(block)
}

fn scored(title: &str, block: &Block) -> Result<Scored, Box<dyn std::error::Error>> {
    let logits: Vec<f64> = match &block.logits {
        Values::F16(values) => values.iter().map(|value| value.to_f64()).collect(),
        Values::F32(values) => values.iter().map(|value| f64::from(*value)).collect(),
        other => return Err(format!("{title} has logits of type {}", other.dtype()).into()),
    };
    let labels = block.labels.as_deref().ok_or("labels were asked for")?;
    let rows = Logits::new(&logits, block.classes)?;
    let scores = score_labels(&EntmaxScore::default(), rows.labelled(labels)?)?;
    let mut means = vec![(0.0, 0_u32); block.classes];
    for (score, label) in scores.iter().zip(labels) {
        let (sum, count) = &mut means[*label as usize];
        (*sum, *count) = (*sum + score, *count + 1);
    }
    let mean = |label: u32| means[label as usize].0 / f64::from(means[label as usize].1.max(1));
    let margin = |row: usize| {
        let mut sorted = logits[row * block.classes..][..block.classes].to_vec();
        sorted.sort_unstable_by(|a, b| b.total_cmp(a));
        sorted[0] - sorted[1]
    };
    let half = |value: &dyn Fn(usize) -> f64| {
        let mut order: Vec<(f64, usize)> = (0..scores.len()).map(|row| (value(row), row)).collect();
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        order.truncate(order.len() / 2);
        order.into_iter().map(|(_, row)| row).collect()
    };
    Ok(Scored {
        title: title.to_owned(),
        hard_labels: half(&|row| -mean(labels[row])),
        close_calls: half(&margin),
        scores,
    })
}

impl Scored {
    /// Labels after the change, as many as there are in every stream: half of the rows that nothing has seen by then,
    /// less what chance may take of them.
    fn length(&self) -> usize {
        ((self.scores.len() - ROWS[0] - ROWS[1]) / 2 - 100) / 100 * 100
    }
}

/// After how many labels of the changed rows the alarm rose, in each stream; `None` where it never did. One that rose
/// before the change counts as a delay of 0.
fn delays(scored: &Scored, changed: &[usize], streams: u64) -> conformax::Result<Vec<Option<u64>>> {
    let mut is_changed = vec![false; scored.scores.len()];
    changed.iter().for_each(|row| is_changed[*row] = true);
    (0..streams).into_par_iter().map(|stream| delay(scored, &is_changed, stream)).collect()
}

fn delay(scored: &Scored, is_changed: &[bool], stream: u64) -> conformax::Result<Option<u64>> {
    let [calibrating, before] = ROWS;
    let mut order: Vec<usize> = (0..scored.scores.len()).collect();
    Generator::new(stream, "stream").shuffle(&mut order);
    let of = |rows: &[usize]| rows.iter().map(|row| scored.scores[*row]).collect::<Vec<f64>>();
    let mut alarm = Alarm::new(&of(&order[..calibrating]), 0.01, stream)?;
    for score in of(&order[calibrating..calibrating + before]) {
        alarm.update(score, None)?;
    }
    if alarm.highest() >= RISES_AT {
        return Ok(Some(0));
    }
    // Rows that nothing has seen yet, of those there are more of now.
    let fresh = order[calibrating + before..].iter().copied().filter(|row| is_changed[*row]);
    let fresh: Vec<usize> = fresh.take(scored.length()).collect();
    assert_eq!(fresh.len(), scored.length(), "{}: stream {stream} runs out of rows", scored.title);
    for (row, score) in (1..).zip(of(&fresh)) {
        alarm.update(score, None)?;
        if alarm.highest() >= RISES_AT {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

/// The share of streams whose alarm rose.
fn share(delays: &[Option<u64>]) -> f64 {
    delays.iter().flatten().count() as f64 / delays.len() as f64
}

/// Where a share may be that was found in so many streams (Wilson 1927).
fn interval(delays: &[Option<u64>]) -> (f64, f64) {
    let (n, found, square) = (delays.len() as f64, share(delays), NORMAL * NORMAL);
    let middle = found + square / (2.0 * n);
    let half = NORMAL * (found * (1.0 - found) / n + square / (4.0 * n * n)).sqrt();
    ((middle - half) / (1.0 + square / n), (middle + half) / (1.0 + square / n))
}

/// The delay that so large a share of the streams stays within.
fn quantile(delays: &[Option<u64>], share: f64) -> Option<u64> {
    let mut sorted: Vec<u64> = delays.iter().map(|delay| delay.unwrap_or(u64::MAX)).collect();
    sorted.sort_unstable();
    Some(sorted[((sorted.len() - 1) as f64 * share) as usize]).filter(|delay| *delay != u64::MAX)
}

/// `median (9 in 10: …)`.
fn told(delays: &[Option<u64>], length: usize) -> String {
    let at = |share| quantile(delays, share).map_or(format!("over {length}"), |delay| delay.to_string());
    format!("{} (9 in 10: {})", at(0.5), at(0.9))
}

fn panel(title: &str, length: usize, series: &[&Vec<Option<u64>>; 3], styles: &[Style]) -> Panel {
    let x = Axis::even("labels after the change", 0.0, length as f64);
    let mut plot = Plot::new(Frame::PLAIN, &x, &Axis::even("share of streams", 0.0, 1.0));
    for (delays, style) in series.iter().zip(styles) {
        let risen = |by: u64| delays.iter().flatten().filter(|delay| **delay <= by).count() as f64;
        let point = |by: u64| {
            let y = risen(by) / delays.len() as f64;
            Point { x: by as f64, y, spread: (y, y), at: format!("{by} labels"), value: format!("{y:.3}") }
        };
        let points = (0..=100).map(|step| point(step * length as u64 / 100)).collect();
        plot.line(&Series { style, is_procedure: false, points });
    }
    let half = |delays: &[Option<u64>]| match quantile(delays, 0.5) {
        Some(delay) => format!(", in half of them within {delay}"),
        None => String::new(),
    };
    let [labels, inputs, quiet] = series;
    Panel {
        title: title.to_owned(),
        alternative: format!(
            "{title}: within {length} labels the alarm rises in {:.0} % of the streams where labels shift{}, in {:.0} % \
             where inputs shift{}, and in {:.1} % where nothing changes.",
            100.0 * share(labels),
            half(labels),
            100.0 * share(inputs),
            half(inputs),
            100.0 * share(quiet),
        ),
        size: Frame::PLAIN.size(),
        drawing: plot.finish(),
    }
}
