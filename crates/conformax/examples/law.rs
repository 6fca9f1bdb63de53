//! The law of coverage as a table: every procedure, on rows that tie and rows that do not, against Beta-Binomial.
//!
//! `cargo run --release --example law -- quick | large | long [full]` prints
//! Markdown: one line per procedure and kind of row or, with `full`, one per setting. It exits with 1 where a promise
//! is broken. The verdicts are made by the very code of `tests/coverage.rs`.

#[path = "../tests/coverage/pool.rs"]
#[expect(dead_code, reason = "the tests draw from more pools")]
mod pool;
#[path = "../tests/coverage/procedure.rs"]
mod procedure;
#[path = "../tests/coverage/verdict.rs"]
mod verdict;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use conformax::{EntmaxScore, Gamma, ScoreSpec, Tuning};

use pool::Pool;
use procedure::{Procedure, Trial};
use verdict::{Verdict, splits_wanted};

const POOLS: [Pool; 4] = [Pool::TieFree, Pool::Accurate(0.85), Pool::Tied, Pool::Quantised];

/// Calibrating rows; tuned procedures take two thirds as many for tuning besides.
const SIZES: [usize; 6] = [9, 19, 99, 199, 999, 5000];
const LEVELS: [f64; 6] = [0.005, 0.01, 0.05, 0.1, 0.2, 0.5];

/// What a procedure owes on a kind of row.
#[derive(Clone, Copy, PartialEq)]
enum Promise {
    Equality,
    AtLeast,
    /// The paper's tuning: measured for comparison.
    Nothing,
}

impl Promise {
    fn of(procedure: &Procedure, pool: Pool) -> Self {
        match procedure {
            Procedure::OptEntmax(Tuning::Paper) | Procedure::OptRaps(Tuning::Paper) => Self::Nothing,
            _ if procedure.grid().iter().all(|score| pool.is_free_of_ties(*score)) => Self::Equality,
            _ => Self::AtLeast,
        }
    }

    fn kept(self, verdict: &Verdict) -> bool {
        match self {
            Self::Equality => verdict.is_law(),
            Self::AtLeast => verdict.is_at_least_law(),
            Self::Nothing => true,
        }
    }

    /// The verdict in words.
    fn word(self, verdicts: &[Verdict]) -> &'static str {
        match self {
            Self::Equality | Self::AtLeast if !verdicts.iter().all(|verdict| self.kept(verdict)) => "BROKEN",
            Self::Equality => "equal",
            Self::AtLeast => "at least",
            Self::Nothing if verdicts.iter().all(Verdict::is_at_least_law) => "nothing promised",
            Self::Nothing => "below",
        }
    }
}

/// A line of the full table.
struct Line {
    procedure: Procedure,
    trial: Trial,
    verdict: Option<Verdict>,
}

impl Line {
    fn promise(&self) -> Promise {
        Promise::of(&self.procedure, self.trial.pool)
    }

    fn kept(&self) -> bool {
        self.verdict.is_some_and(|verdict| self.promise().kept(&verdict))
    }

    /// 1.5-entmax where nothing ties: taken to more rows and levels than there is time for with every procedure.
    fn is_flagship(&self) -> bool {
        let entmax15 = ScoreSpec::Entmax(EntmaxScore { gamma: Gamma::ENTMAX15 });
        matches!(self.procedure, Procedure::Plain(score) if score == entmax15)
            && self.trial.pool == Pool::TieFree
    }

    /// Scores to compute: what a line costs.
    fn cost(&self) -> usize {
        let Trial { n, m, alpha, .. } = self.trial;
        splits_wanted(n as u64, m as u64, alpha) * (n + m) * self.procedure.grid().len()
    }

    fn judge(&mut self, seed: u64) {
        self.verdict = self.trial.run(&self.procedure, seed).ok();
    }
}

fn main() -> io::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let budget = match arguments.first().map_or("quick", String::as_str) {
        "quick" => 1_000_000,
        "large" => 10_000_000,
        "long" => 60_000_000,
        _ => {
            writeln!(io::stderr(), "usage: law [quick | large | long] [full]")?;
            return Ok(ExitCode::from(2));
        }
    };
    let fewest = if arguments.first().is_some_and(|form| form == "large") { 999 } else { 0 };
    let lines = judge(lines(budget, fewest));
    let mut out = io::stdout().lock();
    if arguments.iter().any(|argument| argument == "full") {
        print_settings(&mut out, &lines)?;
    } else {
        print_summary(&mut out, &lines)?;
    }
    Ok(ExitCode::from(u8::from(!lines.iter().all(Line::kept))))
}

/// Every line of as many rows that costs no more than the budget, without its verdict. At n = 5,000 the level 0.5 takes 270,000 splits
/// of 10,001 rows each, so there the budget ends at small α.
fn lines(budget: usize, fewest: usize) -> Vec<Line> {
    let tuned = [Tuning::Valid, Tuning::Paper]
        .into_iter()
        .flat_map(|tuning| [Procedure::OptEntmax(tuning), Procedure::OptRaps(tuning)]);
    let mut lines = Vec::new();
    for procedure in Procedure::plain().into_iter().chain(tuned) {
        for pool in POOLS {
            for (n, alpha) in SIZES.into_iter().flat_map(|n| LEVELS.map(|alpha| (n, alpha))) {
                let trial = Trial::new(pool, n, alpha).expect("levels of the table lie between 0 and 1");
                let line = Line { procedure: procedure.clone(), trial, verdict: None };
                let budget = if line.is_flagship() { 100 * budget } else { budget };
                lines.extend((n >= fewest && line.cost() <= budget).then_some(line));
            }
        }
    }
    lines
}

/// Fills in the verdicts, on every core; a line's seed is its place, so the table is the same on any number.
fn judge(lines: Vec<Line>) -> Vec<Line> {
    let next = AtomicUsize::new(0);
    let lines: Vec<Mutex<Line>> = lines.into_iter().map(Mutex::new).collect();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, |cores| cores.get()) {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(line) = lines.get(place) else { break };
                    // Far from the seeds of `tests/coverage.rs`, so that the table is evidence of its own.
                    line.lock().expect("no judge panics").judge(1_000_000 + place as u64);
                    if (place + 1).is_multiple_of(100) {
                        // Progress is a courtesy: a closed stderr does not matter.
                        let _ = writeln!(io::stderr(), "{} of {}", place + 1, lines.len());
                    }
                }
            });
        }
    });
    lines.into_iter().map(|line| line.into_inner().expect("no judge panics")).collect()
}

fn print_settings(out: &mut impl Write, lines: &[Line]) -> io::Result<()> {
    writeln!(
        out,
        "| procedure | rows | n | alpha | splits | coverage | law | over r − 1 | over r + 1 | verdict |"
    )?;
    writeln!(out, "|---|---|--:|--:|--:|--:|--:|--:|--:|---|")?;
    for line in lines {
        let Line { procedure, trial, verdict: Some(verdict) } = line else { continue };
        let Verdict { splits, mean, law_mean, below, above, .. } = verdict;
        let Trial { pool, n, alpha, .. } = trial;
        let word = line.promise().word(std::slice::from_ref(verdict));
        write!(out, "| {procedure} | {pool} | {n} | {alpha} | {splits} | {mean:.4} | {law_mean:.4} ")?;
        writeln!(out, "| {below:.0} | {above:.0} | {word} |")?;
    }
    Ok(())
}

fn print_summary(out: &mut impl Write, lines: &[Line]) -> io::Result<()> {
    write!(out, "| procedure | rows | settings | splits | coverage − law, lowest | highest ")?;
    writeln!(out, "| over r − 1, least | over r + 1, least | verdict |")?;
    writeln!(out, "|---|---|--:|--:|--:|--:|--:|--:|---|")?;
    let name = |line: &Line| (line.procedure.to_string(), line.trial.pool.to_string());
    for group in lines.chunk_by(|a, b| name(a) == name(b)) {
        let verdicts: Vec<Verdict> = group.iter().filter_map(|line| line.verdict).collect();
        let least = |of: fn(&Verdict) -> f64| verdicts.iter().map(of).fold(f64::INFINITY, f64::min);
        let (lowest, highest) = (least(|v| v.mean - v.law_mean), -least(|v| v.law_mean - v.mean));
        let (below, above) = (least(|v| v.below), least(|v| v.above));
        let splits: usize = verdicts.iter().map(|verdict| verdict.splits).sum();
        let (procedure, pool) = name(&group[0]);
        let word = group[0].promise().word(&verdicts);
        write!(out, "| {procedure} | {pool} | {} | {splits} ", verdicts.len())?;
        writeln!(out, "| {lowest:+.4} | {highest:+.4} | {below:.0} | {above:.0} | {word} |")?;
    }
    Ok(())
}
