//! Levels: how often a set may miss the true label.

use clap::Args;
use conformax::Alpha;

/// Levels, of which one is always meant: 0.1 unless given.
#[derive(Args, Clone, Debug)]
pub(crate) struct LevelArgs {
    /// How often a set may miss the true label; repeat it for several levels [default: 0.1].
    #[arg(long, value_name = "A", value_delimiter = ',', value_parser = level)]
    alpha: Vec<Alpha>,
    /// How often a set must hold the true label; another way to write --alpha.
    #[arg(long, value_name = "C", value_delimiter = ',', value_parser = confidence)]
    confidence: Vec<Alpha>,
}

impl LevelArgs {
    /// The levels in the order given, each once.
    pub(crate) fn alphas(&self) -> Vec<Alpha> {
        let given = distinct(&self.alpha, &self.confidence);
        if given.is_empty() { vec![Alpha::new(0.1).expect("lies between 0 and 1")] } else { given }
    }
}

/// Levels, or those of the model where none is given.
#[derive(Args, Clone, Debug)]
pub(crate) struct OptionalLevelArgs {
    /// How often a set may miss the true label; repeat it for several levels [default: the model's].
    #[arg(long, value_name = "A", value_delimiter = ',', value_parser = level)]
    alpha: Vec<Alpha>,
    /// How often a set must hold the true label; another way to write --alpha.
    #[arg(long, value_name = "C", value_delimiter = ',', value_parser = confidence)]
    confidence: Vec<Alpha>,
}

impl OptionalLevelArgs {
    /// The levels in the order given, each once; none where none was given.
    pub(crate) fn alphas(&self) -> Vec<Alpha> {
        distinct(&self.alpha, &self.confidence)
    }
}

/// The levels of both lists in the order given, each once.
pub(crate) fn distinct(alpha: &[Alpha], confidence: &[Alpha]) -> Vec<Alpha> {
    let mut levels: Vec<Alpha> = Vec::new();
    for level in alpha.iter().chain(confidence) {
        if !levels.contains(level) {
            levels.push(*level);
        }
    }
    levels
}

/// A level such as `0.1`. Files keep levels as numbers, so one that no double tells apart is refused here and not after
/// the work.
pub(crate) fn level(text: &str) -> Result<Alpha, String> {
    let level: Alpha = text.parse().map_err(|error: conformax::Error| error.to_string())?;
    match Alpha::new(level.value()) == Ok(level) {
        true => Ok(level),
        false => Err(format!("alpha must be a decimal that a double holds, got {level}")),
    }
}

/// The level of a confidence such as `0.9`.
pub(crate) fn confidence(text: &str) -> Result<Alpha, conformax::Error> {
    let value = text.trim().parse().map_err(|_| conformax::Error::Decimal(text.to_owned()))?;
    Alpha::from_confidence(value)
}

/// The probability of `--pac`, which is no alpha: a message must not call it so.
pub(crate) fn delta(text: &str) -> Result<Alpha, String> {
    level(text).map_err(|_| format!("wanted a probability between 0 and 1, such as 0.05, got {text}"))
}
