//! How a stream moves: its level, its alarm, and what it keeps.

use clap::Args;
use conformax::{Alpha, StreamOptions};

use crate::args::{confidence, level};

/// A level that adapts or stays, and the alarm.
#[derive(Args, Clone, Debug)]
pub(crate) struct StreamArgs {
    /// How often a set may miss the true label [default: the model's first].
    #[arg(long, value_name = "A", value_parser = level, conflicts_with = "confidence")]
    alpha: Option<Alpha>,
    /// How often a set must hold the true label; another way to write --alpha.
    #[arg(long, value_name = "C", value_parser = confidence)]
    confidence: Option<Alpha>,
    /// How far the level moves after a label; without --decay always as far [default: 0.2, decaying].
    #[arg(long, value_name = "S", value_parser = step, help_heading = "Stream options")]
    step: Option<f64>,
    /// Rate at which the step decays, between 0 and 1; above one half the level settles where nothing changes
    /// [default: 0.6 where no --step is given].
    #[arg(long, value_name = "D", value_parser = decay, help_heading = "Stream options")]
    decay: Option<f64>,
    /// Keep the level: sets are those of `predict`.
    #[arg(long, conflicts_with_all = ["step", "decay"], help_heading = "Stream options")]
    fixed: bool,
    /// Rows to keep: waiting for labels, averaged over, and compared with by the alarm, which then starts over
    /// [default: 10,000, 1,000 and all].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(help_heading = "Stream options")]
    window: Option<u64>,
    /// How often the alarm may rise though nothing changed [default: 0.01].
    #[arg(long, value_name = "D", value_parser = level, help_heading = "Stream options")]
    delta: Option<Alpha>,
    /// Seed of the draws by which the alarm breaks ties.
    #[arg(long, value_name = "SEED", default_value_t = 0, help_heading = "Stream options")]
    seed: u64,
}

impl StreamArgs {
    /// The level to begin at, where one is given.
    pub(crate) fn alpha(&self) -> Option<Alpha> {
        self.alpha.or(self.confidence)
    }

    pub(crate) fn options(&self) -> StreamOptions {
        let usual = StreamOptions::default();
        let (step, decay) = match (self.step, self.decay) {
            _ if self.fixed => (0.0, None),
            (None, None) => (usual.step, usual.decay),
            (step, decay) => (step.unwrap_or(usual.step), decay),
        };
        let delta = self.delta.unwrap_or(usual.delta);
        StreamOptions { step, decay, window: self.window, delta, seed: self.seed }
    }
}

fn step(text: &str) -> Result<f64, String> {
    number(text, "a finite number of at least 0", |step| (0.0..f64::INFINITY).contains(&step))
}

fn decay(text: &str) -> Result<f64, String> {
    number(text, "above 0 and at most 1", |decay| decay > 0.0 && decay <= 1.0)
}

/// The rules are the stream's own; here they are told of the flag, before a model is read.
fn number(text: &str, wanted: &str, fits: impl Fn(f64) -> bool) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| fits(*number));
    number.ok_or_else(|| format!("it must be {wanted}"))
}
