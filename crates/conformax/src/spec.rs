//! `ScoreSpec`: the closed list of scores and their parameters, for choosing one by name.
//!
//! Names live at the edges (flags, files, Python); inside, a score is a type. Turning one into the other is the
//! `match` below, without a wildcard, so that the compiler lists what a new score still needs.

use std::fmt;

use crate::{
    ApsScore, Draw, EntmaxScore, Error, Gamma, InvProbScore, Logit, MarginScore, Penalty, RapsScore, Result,
    Row, SapsScore, Score, TopKScore,
};

/// Every name a score is printed with.
pub(crate) const NAMES: [&str; 9] =
    ["entmax", "log_margin", "sparsemax", "inv_prob", "aps", "raps", "saps", "top_k", "margin"];

/// One of the scores of this crate, with its parameters. It is a score itself.
///
/// ```
/// use conformax::{Parameters, Row, Score, ScoreSpec};
/// let spec = ScoreSpec::named("lac", Parameters::default())?; // an alias
/// assert_eq!(spec.name(), "inv_prob");
/// assert_eq!(spec.score(Row::new(&[0.0_f32, 0.0])?, 0), 0.5);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ScoreSpec {
    /// γ-entmax; log-margin and sparsemax are members of the family.
    Entmax(EntmaxScore),
    /// One minus the softmax probability.
    InvProb(InvProbScore),
    /// Adaptive prediction sets.
    Aps(ApsScore),
    /// Regularised adaptive prediction sets.
    Raps(RapsScore),
    /// Sorted adaptive prediction sets.
    Saps(SapsScore),
    /// The rank.
    TopK(TopKScore),
    /// The lead of the best other label.
    Margin(MarginScore),
}

/// Parameters that a name may be given; what the score has no use for must be absent.
///
/// ```
/// use conformax::{Parameters, ScoreSpec};
/// let parameters = Parameters { gamma: Some(1.3), ..Parameters::default() };
/// assert_eq!(ScoreSpec::named("entmax", parameters)?.to_string(), "entmax(gamma=1.3)");
/// assert!(ScoreSpec::named("inv_prob", parameters).is_err());
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parameters {
    /// Index of the entmax family; 1.5 if absent.
    pub gamma: Option<f64>,
    /// Penalty of RAPS (0.01 if absent) or weight of SAPS (0.1 if absent).
    pub lambda: Option<f64>,
    /// Ranks that RAPS leaves unpunished; 5 if absent.
    pub k_reg: Option<u32>,
    /// Whether RAPS's own penalty is part of its random term.
    pub penalty: Option<Penalty>,
    /// The uniform draw of APS, RAPS and SAPS; seeded with 0 if absent. Other scores ignore it.
    pub draw: Option<Draw>,
}

impl ScoreSpec {
    /// The score of this name or alias, with hyphens or underscores and in any case.
    ///
    /// ```
    /// # use conformax::{Gamma, Parameters, ScoreSpec};
    /// let spec = ScoreSpec::named("log-margin", Parameters::default())?;
    /// assert_eq!(spec.gamma(), Some(Gamma::SOFTMAX));
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn named(name: &str, parameters: Parameters) -> Result<Self> {
        let canonical = name.trim().to_ascii_lowercase().replace('-', "_");
        let draw = parameters.draw.unwrap_or_default();
        let entmax = |gamma| Self::Entmax(EntmaxScore { gamma });
        let spec = match canonical.as_str() {
            "entmax" => entmax(parameters.gamma.map_or(Ok(Gamma::ENTMAX15), Gamma::new)?),
            "entmax15" => entmax(Gamma::ENTMAX15),
            "sparsemax" => entmax(Gamma::SPARSEMAX),
            "log_margin" | "logmargin" => entmax(Gamma::SOFTMAX),
            "inv_prob" | "invprob" | "lac" | "thr" => Self::InvProb(InvProbScore),
            "aps" => Self::Aps(ApsScore { draw }),
            "raps" => {
                let default = RapsScore::default();
                let lambda = parameters.lambda.unwrap_or(default.lambda);
                let k_reg = parameters.k_reg.unwrap_or(default.k_reg);
                Self::Raps(
                    RapsScore { lambda, k_reg, penalty: parameters.penalty.unwrap_or_default(), draw }
                        .checked()?,
                )
            }
            "saps" => {
                let lambda = parameters.lambda.unwrap_or(SapsScore::default().lambda);
                Self::Saps(SapsScore { lambda, draw }.checked()?)
            }
            "top_k" | "topk" => Self::TopK(TopKScore),
            "margin" => Self::Margin(MarginScore),
            _ => return Err(Error::UnknownScore(name.to_owned())),
        };
        spec.refuse_foreign(&canonical, parameters)?;
        Ok(spec)
    }

    /// A parameter that would be ignored is more likely a mistake than a wish.
    fn refuse_foreign(self, name: &str, parameters: Parameters) -> Result<()> {
        let absent = |name, got: Option<f64>| match got {
            Some(got) => Err(Error::Parameter { name, wanted: "absent for this score", got }),
            None => Ok(()),
        };
        if name != "entmax" {
            // "sparsemax with gamma 2" says the same thing twice, which is no contradiction.
            absent("gamma", parameters.gamma.filter(|gamma| self.gamma().map(Gamma::value) != Some(*gamma)))?;
        }
        if !matches!(self, Self::Raps(_)) {
            absent("k_reg", parameters.k_reg.map(f64::from))?;
        }
        if !matches!(self, Self::Raps(_) | Self::Saps(_)) {
            absent("lambda", parameters.lambda)?;
        }
        Ok(())
    }

    /// The name as it is printed everywhere.
    ///
    /// ```
    /// # use conformax::{EntmaxScore, Gamma, ScoreSpec};
    /// assert_eq!(ScoreSpec::Entmax(EntmaxScore { gamma: Gamma::SPARSEMAX }).name(), "sparsemax");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Self::Entmax(EntmaxScore { gamma: Gamma::SOFTMAX }) => "log_margin",
            Self::Entmax(EntmaxScore { gamma: Gamma::SPARSEMAX }) => "sparsemax",
            Self::Entmax(_) => "entmax",
            Self::InvProb(_) => "inv_prob",
            Self::Aps(_) => "aps",
            Self::Raps(_) => "raps",
            Self::Saps(_) => "saps",
            Self::TopK(_) => "top_k",
            Self::Margin(_) => "margin",
        }
    }

    /// Index of the family, for its members.
    ///
    /// ```
    /// # use conformax::{InvProbScore, ScoreSpec};
    /// assert_eq!(ScoreSpec::InvProb(InvProbScore).gamma(), None);
    /// ```
    pub fn gamma(self) -> Option<Gamma> {
        match self {
            Self::Entmax(EntmaxScore { gamma }) => Some(gamma),
            Self::InvProb(_)
            | Self::Aps(_)
            | Self::Raps(_)
            | Self::Saps(_)
            | Self::TopK(_)
            | Self::Margin(_) => None,
        }
    }

    /// The draw of a randomised score.
    ///
    /// ```
    /// # use conformax::{ApsScore, Draw, ScoreSpec};
    /// assert_eq!(ScoreSpec::Aps(ApsScore::default()).draw(), Some(Draw::Seeded(0)));
    /// ```
    pub fn draw(self) -> Option<Draw> {
        match self {
            Self::Aps(ApsScore { draw })
            | Self::Raps(RapsScore { draw, .. })
            | Self::Saps(SapsScore { draw, .. }) => Some(draw),
            Self::Entmax(_) | Self::InvProb(_) | Self::TopK(_) | Self::Margin(_) => None,
        }
    }
}

impl Default for ScoreSpec {
    fn default() -> Self {
        Self::Entmax(EntmaxScore::default())
    }
}

impl fmt::Display for ScoreSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Entmax(EntmaxScore { gamma }) if self.name() == "entmax" => write!(f, "(gamma={gamma})"),
            Self::Raps(RapsScore { lambda, k_reg, .. }) => write!(f, "(lambda={lambda}, k_reg={k_reg})"),
            Self::Saps(SapsScore { lambda, .. }) => write!(f, "(lambda={lambda})"),
            Self::Entmax(_) | Self::InvProb(_) | Self::Aps(_) | Self::TopK(_) | Self::Margin(_) => Ok(()),
        }
    }
}

/// Calls the same method of whichever score it is.
macro_rules! delegate {
    ($spec:expr, $score:ident => $call:expr) => {
        match $spec {
            ScoreSpec::Entmax($score) => $call,
            ScoreSpec::InvProb($score) => $call,
            ScoreSpec::Aps($score) => $call,
            ScoreSpec::Raps($score) => $call,
            ScoreSpec::Saps($score) => $call,
            ScoreSpec::TopK($score) => $call,
            ScoreSpec::Margin($score) => $call,
        }
    };
}

impl Score for ScoreSpec {
    #[inline]
    fn score<T: Logit>(&self, row: Row<'_, T>, label: u32) -> f64 {
        delegate!(self, score => score.score(row, label))
    }

    fn score_all<T: Logit>(&self, row: Row<'_, T>, out: &mut [f64]) {
        delegate!(self, score => score.score_all(row, out));
    }

    #[inline]
    fn set_into<T: Logit>(&self, row: Row<'_, T>, threshold: f64, out: &mut Vec<u32>) {
        delegate!(self, score => score.set_into(row, threshold, out));
    }

    fn gamma(&self) -> Option<Gamma> {
        delegate!(self, score => Score::gamma(score))
    }

    fn scored_set_into<T: Logit>(
        &self,
        row: Row<'_, T>,
        threshold: f64,
        labels: &mut Vec<u32>,
        scores: &mut Vec<f64>,
    ) {
        delegate!(self, score => score.scored_set_into(row, threshold, labels, scores));
    }

    fn temperature(&self, threshold: f64) -> Option<f64> {
        delegate!(self, score => score.temperature(threshold))
    }

    fn probabilities_into<T: Logit>(&self, row: Row<'_, T>, set: &[u32], threshold: f64, out: &mut Vec<f64>) {
        delegate!(self, score => score.probabilities_into(row, set, threshold, out));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_printed_name_reads_back() {
        for name in NAMES {
            assert_eq!(ScoreSpec::named(name, Parameters::default()).unwrap().name(), name);
        }
    }

    #[test]
    fn aliases_are_accepted_and_never_printed() {
        for (alias, name) in [
            ("lac", "inv_prob"),
            ("thr", "inv_prob"),
            ("entmax15", "entmax"),
            ("Log-Margin", "log_margin"),
            ("topk", "top_k"),
        ] {
            assert_eq!(ScoreSpec::named(alias, Parameters::default()).unwrap().name(), name);
        }
    }

    #[test]
    fn unknown_names_are_told_what_there_is() {
        let message = ScoreSpec::named("softmax", Parameters::default()).unwrap_err().to_string();
        assert!(message.contains("\"softmax\"") && message.contains("log_margin"), "{message}");
    }

    #[test]
    fn refuses_parameters_the_score_would_ignore() {
        let gamma = Parameters { gamma: Some(1.2), ..Parameters::default() };
        for name in ["sparsemax", "entmax15", "inv_prob", "raps"] {
            assert!(ScoreSpec::named(name, gamma).is_err(), "{name}");
        }
        assert!(ScoreSpec::named("sparsemax", Parameters { gamma: Some(2.0), ..gamma }).is_ok());
        let k_reg = Parameters { k_reg: Some(3), ..Parameters::default() };
        assert!(ScoreSpec::named("saps", k_reg).is_err() && ScoreSpec::named("raps", k_reg).is_ok());
        let lambda = Parameters { lambda: Some(-0.1), ..Parameters::default() };
        assert!(ScoreSpec::named("raps", lambda).is_err() && ScoreSpec::named("entmax", lambda).is_err());
    }
}
