//! The law of coverage as a table: every procedure, on rows that tie and rows that do not, against Beta-Binomial.
//!
//! `cargo run --release --example law -- quick | long [full]` prints Markdown: with `full` one line per setting, and
//! one per procedure and kind of row. It exits with 1 where a promise is broken. The verdicts are made by the very code
//! of `tests/coverage.rs`.

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

use conformax::{Alpha, EntmaxScore, Gamma, ScoreSpec, Tuning};

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
    /// Whether rows were drawn anew for each split, rather than shuffled.
    fresh: bool,
}

impl Line {
    fn promise(&self) -> Promise {
        Promise::of(&self.procedure, self.trial.pool)
    }

    fn kept(&self) -> bool {
        self.verdict.is_some_and(|verdict| self.promise().kept(&verdict))
    }
}

/// Levels that are judged together.
struct Job {
    procedure: Procedure,
    pool: Pool,
    n: usize,
    levels: Vec<f64>,
    fresh: bool,
}

impl Job {
    /// 1.5-entmax where nothing ties: taken to more fresh rows than there is time for with every procedure.
    fn is_flagship(&self) -> bool {
        let entmax15 = ScoreSpec::Entmax(EntmaxScore { gamma: Gamma::ENTMAX15 });
        matches!(self.procedure, Procedure::Plain(score) if score == entmax15) && self.pool == Pool::TieFree
    }

    fn trial(&self, level: f64) -> Trial {
        Trial::new(self.pool, self.n, level).expect("levels of the table lie between 0 and 1")
    }

    /// Scores to compute with fresh rows: what a level costs.
    fn cost(&self, level: f64) -> usize {
        let Trial { n, m, alpha, .. } = self.trial(level);
        splits_wanted(n as u64, m as u64, alpha) * (n + m) * self.procedure.grid().len()
    }

    fn judge(&self, seed: u64) -> Vec<Line> {
        let trials: Vec<Trial> = self.levels.iter().map(|level| self.trial(*level)).collect();
        let verdicts = if self.fresh {
            trials.iter().map(|trial| trial.run(&self.procedure, seed)).collect()
        } else {
            let levels: Vec<Alpha> = trials.iter().map(|trial| trial.alpha).collect();
            trials[0].run_shuffled(&self.procedure, &levels, seed)
        };
        let verdicts: Vec<Verdict> = verdicts.unwrap_or_default();
        let line = |(place, trial): (usize, Trial)| {
            let verdict = verdicts.get(place).copied();
            Line { procedure: self.procedure.clone(), trial, verdict, fresh: self.fresh }
        };
        trials.into_iter().enumerate().map(line).collect()
    }
}

fn main() -> io::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (budget, shuffled) = match arguments.first().map_or("quick", String::as_str) {
        "quick" => (1_000_000, false),
        "long" => (60_000_000, true),
        _ => {
            writeln!(io::stderr(), "usage: law [quick | long] [full]")?;
            return Ok(ExitCode::from(2));
        }
    };
    let lines = judge(&jobs(budget, shuffled));
    let mut out = io::stdout().lock();
    if arguments.iter().any(|argument| argument == "full") {
        print_settings(&mut out, &lines)?;
        writeln!(out)?;
    }
    print_summary(&mut out, &lines)?;
    Ok(ExitCode::from(u8::from(!lines.iter().all(Line::kept))))
}

/// Fresh rows wherever that costs no more than the budget, and shuffled ones elsewhere if asked for: at n = 5,000 the
/// level 0.5 takes 270,000 splits of 10,001 rows each. The paper's tuning looks at the calibrating rows, so its rows
/// are fresh or it is left out; a tuned score depends on the level, so levels are shuffled together for plain scores
/// alone.
fn jobs(budget: usize, shuffled: bool) -> Vec<Job> {
    let tuned = [Tuning::Valid, Tuning::Paper]
        .into_iter()
        .flat_map(|tuning| [Procedure::OptEntmax(tuning), Procedure::OptRaps(tuning)]);
    let mut jobs = Vec::new();
    for procedure in Procedure::plain().into_iter().chain(tuned) {
        for (pool, n) in POOLS.into_iter().flat_map(|pool| SIZES.map(|n| (pool, n))) {
            let job = |levels, fresh| Job { procedure: procedure.clone(), pool, n, levels, fresh };
            let mut all = job(LEVELS.to_vec(), false);
            let budget = if all.is_flagship() { 100 * budget } else { budget };
            let (fresh, dear): (Vec<f64>, Vec<f64>) =
                LEVELS.into_iter().partition(|level| all.cost(*level) <= budget);
            jobs.extend(fresh.into_iter().map(|level| job(vec![level], true)));
            let shuffles = shuffled && Promise::of(&procedure, pool) != Promise::Nothing;
            match procedure {
                _ if !shuffles || dear.is_empty() => {}
                Procedure::Plain(_) => {
                    all.levels = dear;
                    jobs.push(all);
                }
                _ => jobs.extend(dear.into_iter().map(|level| job(vec![level], false))),
            }
        }
    }
    jobs
}

/// The lines of every job, on every core; a job's seed is its place, so the table is the same on any number.
fn judge(jobs: &[Job]) -> Vec<Line> {
    let next = AtomicUsize::new(0);
    let lines: Vec<Mutex<Vec<Line>>> = jobs.iter().map(|_| Mutex::default()).collect();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, |cores| cores.get()) {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(place) else { break };
                    // Far from the seeds of `tests/coverage.rs`, so that the table is evidence of its own.
                    *lines[place].lock().expect("no judge panics") = job.judge(1_000_000 + place as u64);
                    if (place + 1).is_multiple_of(20) {
                        // Progress is a courtesy: a closed stderr does not matter.
                        let _ = writeln!(io::stderr(), "{} of {}", place + 1, jobs.len());
                    }
                }
            });
        }
    });
    lines.into_iter().flat_map(|lines| lines.into_inner().expect("no judge panics")).collect()
}

fn print_settings(out: &mut impl Write, lines: &[Line]) -> io::Result<()> {
    writeln!(
        out,
        "| procedure | rows | n | alpha | splits | coverage | law | over r − 1 | over r + 1 | verdict | splits of |"
    )?;
    writeln!(out, "|---|---|--:|--:|--:|--:|--:|--:|--:|---|---|")?;
    for line in lines {
        let Line { procedure, trial, verdict: Some(verdict), fresh } = line else { continue };
        let Verdict { splits, mean, law_mean, below, above, .. } = verdict;
        let Trial { pool, n, alpha, .. } = trial;
        let word = line.promise().word(std::slice::from_ref(verdict));
        write!(out, "| {procedure} | {pool} | {n} | {alpha} | {splits} | {mean:.4} | {law_mean:.4} ")?;
        let rows = if *fresh { "fresh rows" } else { "shuffled rows" };
        writeln!(out, "| {below:.0} | {above:.0} | {word} | {rows} |")?;
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
