//! `Study`: the protocol as data, read from TOML.
//!
//! Everything that can be wrong with a study is found before any work, and said with the line at fault.

use std::path::{Path, PathBuf};

use conformax::{Alpha, Draw, Gamma, Lambda, Parameters, Penalty, ScoreSpec, Strata, TuningSplit};
use conformax_io::Input;
use serde::Deserialize;
use toml::Spanned;

use crate::benchmark::{BUILT_IN, BenchmarkFiles};
use crate::error::{Error, Place, Result};
use crate::procedure::{Procedure, ProcedureScore};

/// Splits of a study that does not say how many: as many as `compare` takes.
const SPLITS: usize = 20;
/// Share of rows for calibration, as the paper has it.
const CALIBRATION: f64 = 0.4;

/// The paper's protocol, the default study.
pub const PAPER: &str = include_str!("../studies/paper.toml");

/// Coverage by class and under label shift, the other study that is built in.
pub const CONDITIONAL: &str = include_str!("../studies/conditional.toml");

/// What a study asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// How procedures compare: [`Study::run`].
    #[default]
    Procedures,
    /// What coverage for every class costs, and what keeps it under label shift: [`Study::run_conditional`].
    Conditional,
}

/// Which procedures run on which benchmarks, at which levels and over which splits.
#[derive(Clone, Debug)]
pub struct Study {
    /// Its name.
    pub name: String,
    /// What it asks.
    pub kind: Kind,
    /// Split `i` uses seed + i; randomised scores use the seed itself.
    pub seed: u64,
    /// Random splits behind each record.
    pub splits: usize,
    /// Random splits behind the paper's claims; the first of them are those above, and means and the comparison of
    /// tunings are over all. 0 in every study but the paper's.
    pub claim_splits: usize,
    /// Share of rows for calibration, the rest tests.
    pub calibration: f64,
    /// Share of the rows for calibration that a tuned procedure keeps for tuning.
    pub tuning: f64,
    /// Miscoverage levels.
    pub levels: Vec<Alpha>,
    /// Set sizes whose coverage is looked at together.
    pub strata: Strata,
    /// γ whose average sizes on test rows are wanted.
    pub sweep: Vec<Gamma>,
    /// What the procedures run on.
    pub benchmarks: Vec<BenchmarkEntry>,
    /// What is compared.
    pub procedures: Vec<Procedure>,
}

/// A benchmark that a study names.
#[derive(Clone, Debug)]
pub struct BenchmarkEntry {
    /// Name in files.
    pub name: String,
    /// Name for people, where one is given.
    pub title: Option<String>,
    /// Where its rows are; `None` for a built-in benchmark, wherever that is.
    pub files: Option<BenchmarkFiles>,
    /// What its numbers are.
    pub input: Input,
    /// The line that names it; `None` where no file does.
    pub(crate) place: Option<Place>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: Option<String>,
    kind: Option<Spanned<Kind>>,
    #[serde(default)]
    seed: u64,
    splits: Option<Spanned<usize>>,
    claim_splits: Option<Spanned<usize>>,
    calibration: Option<Spanned<f64>>,
    tuning: Option<Spanned<f64>>,
    levels: Option<Spanned<Vec<Spanned<f64>>>>,
    strata: Option<Spanned<Vec<u64>>>,
    #[serde(default)]
    sweep: Vec<Spanned<f64>>,
    benchmarks: Vec<WrittenBenchmark>,
    procedures: Option<Vec<WrittenProcedure>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenBenchmark {
    name: Option<Spanned<String>>,
    title: Option<String>,
    path: Option<Spanned<PathBuf>>,
    logits: Option<Spanned<PathBuf>>,
    labels: Option<Spanned<PathBuf>>,
    input: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenProcedure {
    name: Spanned<String>,
    score: Spanned<String>,
    gamma: Option<f64>,
    lambda: Option<f64>,
    k_reg: Option<u32>,
    penalty: Option<Spanned<String>>,
    randomized: Option<bool>,
    tune: Option<Spanned<Grid>>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Grid {
    gamma: Option<Vec<f64>>,
    lambda: Option<Vec<f64>>,
    k_reg: Option<Vec<u32>>,
}

impl Written {
    /// A key that says something about procedures or how they are judged.
    fn only_for_procedures(&self) -> Option<&'static str> {
        let keys = [
            ("procedures", self.procedures.is_some()),
            ("sweep", !self.sweep.is_empty()),
            ("strata", self.strata.is_some()),
            ("claim_splits", self.claim_splits.is_some()),
        ];
        keys.into_iter().find(|(_, is_there)| *is_there).map(|(key, _)| key)
    }
}

impl Study {
    /// The paper's study on the four benchmarks that ship.
    ///
    /// ```
    /// let study = conformax_study::Study::paper();
    /// assert_eq!((study.levels.len(), study.splits, study.procedures.len()), (10, 5, 6));
    /// ```
    pub fn paper() -> Self {
        Self::parse(PAPER, "studies/paper.toml", Path::new(".")).expect("the built-in study is sound")
    }

    /// The conditional study on the four benchmarks that ship.
    pub fn conditional() -> Self {
        Self::parse(CONDITIONAL, "studies/conditional.toml", Path::new("."))
            .expect("the built-in study is sound")
    }

    /// The same with another seed, which randomised scores share.
    pub(crate) fn seeded_paper(seed: u64) -> Self {
        let mut study = Self::paper();
        study.seed = seed;
        for procedure in &mut study.procedures {
            procedure.draw_from(Draw::Seeded(seed));
        }
        study
    }

    /// Reads a study from a file; relative paths in it start at its folder.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| Error::Unreadable { path: path.to_owned(), source })?;
        Self::parse(&text, &path.display().to_string(), path.parent().unwrap_or(Path::new(".")))
    }

    /// Reads a study from text; `file` is what errors call it, relative paths start at `folder`.
    pub fn parse(text: &str, file: &str, folder: &Path) -> Result<Self> {
        let at = |offset: usize| Place::of(file, text, offset);
        let written: Written = toml::from_str(text).map_err(|error| {
            at(error.span().map_or(0, |span| span.start)).fault(error.message().to_owned())
        })?;
        let claims = written.claim_splits.as_ref().map_or(0, |splits| splits.span().start);
        let name =
            Path::new(file).file_stem().map_or("study".into(), |stem| stem.to_string_lossy().into_owned());
        let study = Reader { at: &at, folder }.study(written, name)?;
        if study.claim_splits > 0 && text != PAPER && !study.has_the_papers_parts() {
            return Err(at(claims).fault(
                "claim_splits is for the paper's claims, which are about its six procedures on the benchmarks that \
                 ship: leave it out, splits is enough",
            ));
        }
        Ok(study)
    }

    /// Whether the paper's claims are about what this study runs.
    fn has_the_papers_parts(&self) -> bool {
        let built_in = self.benchmarks.iter().all(|benchmark| benchmark.files.is_none());
        built_in && self.procedures == Self::seeded_paper(self.seed).procedures
    }
}

/// Turns what is written into what is meant, and knows which line to blame.
struct Reader<'a> {
    at: &'a dyn Fn(usize) -> Place,
    folder: &'a Path,
}

impl Reader<'_> {
    fn fault<T>(&self, of: &Spanned<T>, message: impl ToString) -> Error {
        (self.at)(of.span().start).fault(message.to_string())
    }

    fn study(&self, written: Written, name: String) -> Result<Study> {
        let kind = written.kind.as_ref().map_or(Kind::default(), |kind| *kind.get_ref());
        if let (Kind::Conditional, Some(key)) = (kind, written.only_for_procedures()) {
            let at = written.kind.as_ref().expect("the kind was written, or it would be the default");
            return Err(
                self.fault(at, format!("a conditional study has its own procedures: leave out {key}"))
            );
        }
        let splits = written.splits.as_ref().map_or(Ok(SPLITS), |splits| self.positive(splits, "splits"))?;
        let claim_splits = written.claim_splits.as_ref().map_or(0, |splits| *splits.get_ref());
        if let Some(claims) = written.claim_splits.as_ref().filter(|_| (1..splits).contains(&claim_splits)) {
            return Err(self.fault(claims, format!("claim_splits must be 0 or at least splits = {splits}")));
        }
        let sweep = written
            .sweep
            .iter()
            .map(|gamma| Gamma::new(*gamma.get_ref()).map_err(|error| self.fault(gamma, error)));
        let strata = match &written.strata {
            Some(starts) => Strata::new(starts.get_ref()).map_err(|error| self.fault(starts, error))?,
            None => Strata::default(),
        };
        Ok(Study {
            kind,
            seed: written.seed,
            splits,
            claim_splits,
            calibration: self.share(written.calibration.as_ref(), "calibration")?.unwrap_or(CALIBRATION),
            tuning: self.share(written.tuning.as_ref(), "tuning")?.unwrap_or(TuningSplit::FRACTION),
            levels: match &written.levels {
                Some(levels) => self.levels(levels)?,
                None if kind == Kind::Conditional => Study::conditional().levels,
                None => Study::paper().levels,
            },
            strata,
            sweep: sweep.collect::<Result<_>>()?,
            benchmarks: self.unique(
                &written.benchmarks,
                "benchmark",
                |b| self.benchmark_name(b),
                |b, name| self.benchmark(b, name),
            )?,
            procedures: match &written.procedures {
                Some(procedures) => self.unique(
                    procedures,
                    "procedure",
                    |p| Ok(p.name.clone()),
                    |p, _| self.procedure(p, Draw::Seeded(written.seed)),
                )?,
                None => Study::seeded_paper(written.seed).procedures,
            },
            name: written.name.unwrap_or(name),
        })
    }

    fn levels(&self, written: &Spanned<Vec<Spanned<f64>>>) -> Result<Vec<Alpha>> {
        if written.get_ref().is_empty() {
            return Err(self.fault(written, "there must be a level"));
        }
        let mut levels = Vec::new();
        for alpha in written.get_ref() {
            let level = Alpha::new(*alpha.get_ref()).map_err(|error| self.fault(alpha, error))?;
            if levels.contains(&level) {
                return Err(self.fault(alpha, format!("the level {level} is there twice")));
            }
            levels.push(level);
        }
        Ok(levels)
    }

    fn positive(&self, count: &Spanned<usize>, name: &str) -> Result<usize> {
        match *count.get_ref() {
            0 => Err(self.fault(count, format!("{name} must be at least 1"))),
            count => Ok(count),
        }
    }

    fn share(&self, share: Option<&Spanned<f64>>, name: &str) -> Result<Option<f64>> {
        let Some(share) = share else { return Ok(None) };
        let inside = *share.get_ref() > 0.0 && *share.get_ref() < 1.0;
        let fault = || format!("{name} must lie strictly between 0 and 1, got {}", share.get_ref());
        if inside { Ok(Some(*share.get_ref())) } else { Err(self.fault(share, fault())) }
    }

    fn unique<W, T>(
        &self,
        written: &[W],
        what: &str,
        name: impl Fn(&W) -> Result<Spanned<String>>,
        read: impl Fn(&W, &Spanned<String>) -> Result<T>,
    ) -> Result<Vec<T>> {
        if written.is_empty() {
            return Err((self.at)(0).fault(format!("there must be a {what}")));
        }
        let names = written.iter().map(name).collect::<Result<Vec<_>>>()?;
        for (place, name) in names.iter().enumerate() {
            if names[..place].iter().any(|earlier| earlier.get_ref() == name.get_ref()) {
                return Err(self.fault(name, format!("the {what} {:?} is there twice", name.get_ref())));
            }
        }
        written.iter().zip(&names).map(|(entry, name)| read(entry, name)).collect()
    }

    /// The name that is written, or that of its file without an ending.
    fn benchmark_name(&self, written: &WrittenBenchmark) -> Result<Spanned<String>> {
        if let Some(name) = &written.name {
            return Ok(name.clone());
        }
        let Some(file) = written.path.as_ref().or(written.logits.as_ref()) else {
            return Err((self.at)(0).fault("a benchmark needs a name, a path, or logits and labels"));
        };
        let stem = file.get_ref().file_stem().unwrap_or(file.get_ref().as_os_str());
        Ok(Spanned::new(file.span(), stem.to_string_lossy().into_owned()))
    }

    fn benchmark(&self, written: &WrittenBenchmark, spanned: &Spanned<String>) -> Result<BenchmarkEntry> {
        let name = spanned.get_ref();
        let is_built_in = BUILT_IN.iter().any(|known| known.name == name);
        let existing = |path: &Spanned<PathBuf>| {
            let full = self.folder.join(path.get_ref());
            let missing = || format!("there is no {}", full.display());
            if full.exists() { Ok(full.clone()) } else { Err(self.fault(path, missing())) }
        };
        let files = match (&written.path, &written.logits, &written.labels) {
            (Some(path), None, None) => Some(BenchmarkFiles::at(existing(path)?, name)),
            (None, Some(logits), Some(labels)) => {
                let (logits, labels) = (existing(logits)?, existing(labels)?);
                Some(BenchmarkFiles::Pair { logits, labels, names: None })
            }
            (None, None, None) if is_built_in => None,
            (None, None, None) => {
                let known: Vec<&str> = BUILT_IN.iter().map(|known| known.name).collect();
                let message = format!(
                    "{name:?} is not built in: give its path, or logits and labels (built in: {})",
                    known.join(", ")
                );
                return Err(self.fault(spanned, message));
            }
            _ => return Err(self.fault(spanned, "give either path, or both logits and labels")),
        };
        let place = [&written.path, &written.logits]
            .into_iter()
            .flatten()
            .next()
            .map_or(spanned.span(), Spanned::span);
        let input =
            written.input.as_ref().map_or(Ok(Input::default()), |input| match (&files, input.get_ref()) {
                (None, _) => {
                    Err(self.fault(input, format!("{name} is built in, as logits: leave out input")))
                }
                (Some(_), kind) => Input::named(kind).ok_or_else(|| {
                    let known = "\"logits\", \"probabilities\" or \"log_probabilities\"";
                    self.fault(input, format!("input is {known}, got {kind:?}"))
                }),
            })?;
        let (name, title) = (name.clone(), written.title.clone());
        Ok(BenchmarkEntry { name, title, files, input, place: Some((self.at)(place.start)) })
    }

    fn procedure(&self, written: &WrittenProcedure, draw: Draw) -> Result<Procedure> {
        let penalty = written.penalty.as_ref().map(|penalty| match penalty.get_ref().as_str() {
            "randomized" => Ok(Penalty::Randomized),
            "fixed" => Ok(Penalty::Fixed),
            other => {
                Err(self.fault(penalty, format!("penalty is \"randomized\" or \"fixed\", got {other:?}")))
            }
        });
        let penalty = penalty.transpose()?;
        let fixed = Numbers { gamma: written.gamma, lambda: written.lambda, k_reg: written.k_reg };
        let score = |numbers: Numbers, blame: usize| {
            let made = || {
                let parameters = Parameters {
                    gamma: numbers.gamma.map(Gamma::new).transpose()?,
                    lambda: numbers.lambda.map(Lambda::new).transpose()?,
                    k_reg: numbers.k_reg,
                    penalty,
                    draw: (written.randomized == Some(false)).then_some(Draw::Conservative),
                };
                let spec = ScoreSpec::named(written.score.get_ref(), parameters)?;
                Ok(if parameters.draw.is_some() { spec } else { spec.with_draw(draw) })
            };
            made().map_err(|error: conformax::Error| (self.at)(blame).fault(error.to_string()))
        };
        let choice = match &written.tune {
            None => ProcedureScore::Fixed(score(fixed, written.score.span().start)?),
            Some(grid) => {
                let size = grid.get_ref().size();
                if size > MOST_CANDIDATES {
                    let most =
                        format!("a grid has at most {MOST_CANDIDATES} candidates, this one has {size}");
                    return Err(self.fault(grid, most));
                }
                let candidates = candidates(fixed, grid.get_ref()).into_iter();
                let candidates = candidates.map(|numbers| score(numbers, grid.span().start));
                let candidates = candidates.collect::<Result<Vec<_>>>()?;
                if candidates.is_empty() {
                    return Err(self.fault(grid, "there must be a candidate"));
                }
                ProcedureScore::Tuned(candidates)
            }
        };
        Ok(Procedure { name: written.name.get_ref().clone(), choice })
    }
}

/// Each candidate scores every tuning row. Three short lists multiply to more than memory holds, so they are counted
/// first.
const MOST_CANDIDATES: usize = 10_000;

impl Grid {
    /// How many combinations there are.
    fn size(&self) -> usize {
        fn len<T>(values: &Option<Vec<T>>) -> usize {
            values.as_ref().map_or(1, Vec::len)
        }
        len(&self.gamma).saturating_mul(len(&self.lambda)).saturating_mul(len(&self.k_reg))
    }
}

/// The numbers of a procedure as they were written.
#[derive(Clone, Copy)]
struct Numbers {
    gamma: Option<f64>,
    lambda: Option<f64>,
    k_reg: Option<u32>,
}

/// Every combination of the grid, the last parameter fastest.
fn candidates(fixed: Numbers, grid: &Grid) -> Vec<Numbers> {
    fn axis<T: Copy>(values: &Option<Vec<T>>, fixed: Option<T>) -> Vec<Option<T>> {
        values.as_ref().map_or(vec![fixed], |values| values.iter().copied().map(Some).collect())
    }
    let mut all = Vec::new();
    for gamma in axis(&grid.gamma, fixed.gamma) {
        for lambda in axis(&grid.lambda, fixed.lambda) {
            for k_reg in axis(&grid.k_reg, fixed.k_reg) {
                all.push(Numbers { gamma, lambda, k_reg });
            }
        }
    }
    all
}
