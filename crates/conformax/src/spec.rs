//! `ScoreSpec`: the closed list of scores and their parameters, for choosing one by name.
//!
//! Names live at the edges (flags, files, Python); inside, a score is a type. Each score says in its own file what it
//! is called and what it takes ([`Listed`]); the list at the foot of this file is the only other place that knows it.

use std::fmt;

use crate::kernel::math;
#[cfg(test)]
use crate::score::paths::known_however_held;
use crate::score::paths::{Paths, Question, Seal};
use crate::{
    ApsScore, Draw, EntmaxScore, Error, Gamma, InvProbScore, Lambda, Logit, MarginScore, Penalty, RapsScore,
    Result, Row, SapsScore, Score, TopKScore,
};

/// Parameters that a name may be given; what the score has no use for must be absent.
///
/// ```
/// use conformax::{Gamma, Parameters, ScoreSpec};
/// let parameters = Parameters { gamma: Some(Gamma::new(1.3)?), ..Parameters::default() };
/// let spec = ScoreSpec::named("entmax", parameters)?;
/// assert_eq!(spec.to_string(), "entmax(gamma=1.3)");
/// assert_eq!(spec.parameters(), parameters);
/// assert!(ScoreSpec::named("inv_prob", parameters).is_err());
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parameters {
    /// Index of the entmax family; 1.5 if absent.
    pub gamma: Option<Gamma>,
    /// Penalty of RAPS (0.01 if absent) or weight of SAPS (0.1 if absent).
    pub lambda: Option<Lambda>,
    /// Ranks that RAPS leaves unpunished; 5 if absent.
    pub k_reg: Option<u32>,
    /// Whether RAPS's own penalty is part of its random term.
    pub penalty: Option<Penalty>,
    /// The uniform draw of APS, RAPS and SAPS; seeded with 0 if absent.
    pub draw: Option<Draw>,
}

impl Parameters {
    /// A parameter that would be ignored is more likely a mistake than a wish; saying the same thing twice is neither.
    fn expect_taken(self, spec: ScoreSpec) -> Result<()> {
        fn taken<V: PartialEq + fmt::Debug>(
            score: &'static str,
            name: &'static str,
            (given, has): (Option<V>, Option<V>),
            show: impl Fn(V) -> String,
        ) -> Result<()> {
            match given {
                Some(given) if has.as_ref() != Some(&given) => {
                    Err(Error::ForeignParameter { score, name, got: show(given), has: has.map(show) })
                }
                _ => Ok(()),
            }
        }
        let (name, has) = (spec.name(), spec.parameters());
        taken(name, "gamma", (self.gamma, has.gamma), |gamma| gamma.to_string())?;
        taken(name, "lambda", (self.lambda, has.lambda), |lambda| lambda.to_string())?;
        taken(name, "k_reg", (self.k_reg, has.k_reg), |k_reg| k_reg.to_string())?;
        taken(name, "penalty", (self.penalty, has.penalty), |penalty| format!("{penalty:?}").to_lowercase())?;
        taken(name, "draw", (self.draw, has.draw), |draw| format!("{draw:?}").to_lowercase())
    }
}

/// What a score of this crate is called, and what it takes.
pub(crate) trait Listed: Copy {
    /// The names it is printed with; which of them, `name` says.
    const NAMES: &'static [&'static str];
    /// Names it is also known by, which are accepted and never printed.
    const ALIASES: &'static [&'static str] = &[];

    /// The least and the largest finite score there is, rounding included.
    const RANGE: (f64, f64) = (0.0, f64::MAX);

    /// The score of one of these names.
    fn named(name: &str, parameters: &Parameters) -> Result<Self>;

    /// The name as it is printed.
    fn name(&self) -> &'static str {
        Self::NAMES[0]
    }

    /// Everything it takes; `named` makes the same score of it.
    fn parameters(&self) -> Parameters {
        Parameters::default()
    }

    /// The same score with this draw, where it draws.
    #[must_use]
    fn with_draw(self, draw: Draw) -> Self {
        let _ = draw;
        self
    }

    /// The parameters as they are printed behind the name.
    fn shown(&self) -> String {
        String::new()
    }
}

/// Makes the list an enum that is a score itself and forwards to the score it holds.
macro_rules! list {
    ($($(#[$doc:meta])* $variant:ident($score:ident)),+ $(,)?) => {
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
            $($(#[$doc])* $variant($score),)+
        }

        impl ScoreSpec {
            /// Every name a score is printed with.
            pub fn names() -> Vec<&'static str> {
                [$($score::NAMES),+].concat()
            }

            /// The score of this name or alias, with hyphens or underscores and in any case.
            pub fn named(name: &str, parameters: Parameters) -> Result<Self> {
                let wanted = name.trim().to_ascii_lowercase().replace('-', "_");
                $(
                    let known = $score::NAMES.iter().chain($score::ALIASES).find(|known| **known == wanted);
                    if let Some(known) = known {
                        let spec = Self::$variant($score::named(known, &parameters)?);
                        parameters.expect_taken(spec)?;
                        return Ok(spec);
                    }
                )+
                Err(Error::UnknownScore(name.to_owned()))
            }

            /// The name as it is printed everywhere.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant(score) => score.name(),)+ }
            }

            /// Everything the score takes: [`named`](Self::named) with its name makes the same score of it.
            pub fn parameters(self) -> Parameters {
                match self { $(Self::$variant(score) => score.parameters(),)+ }
            }

            /// The same score with this draw, where it draws; else the score as it is.
            #[must_use]
            pub fn with_draw(self, draw: Draw) -> Self {
                match self { $(Self::$variant(score) => Self::$variant(score.with_draw(draw)),)+ }
            }

            fn range(self) -> (f64, f64) {
                match self { $(Self::$variant(_) => $score::RANGE,)+ }
            }

            fn shown(self) -> String {
                match self { $(Self::$variant(score) => score.shown(),)+ }
            }

            /// Puts a question to the score it holds.
            #[inline]
            pub(crate) fn ask<Q: Question>(self, question: Q) -> Q::Answer {
                match self { $(Self::$variant(score) => question.put(&score),)+ }
            }
        }

        impl Score for ScoreSpec {
            #[inline]
            fn score<T: Logit>(&self, row: Row<'_, T>, label: u32) -> f64 {
                match self { $(Self::$variant(score) => score.score(row, label),)+ }
            }

            fn known(&self, _: Seal) -> Option<ScoreSpec> {
                Some(*self)
            }
        }

        #[cfg(test)]
        impl ScoreSpec {
            /// Whether each score of the list, as the type it is, is known for what it is.
            pub(crate) fn types_are_known() -> Vec<(Self, bool)> {
                vec![$({
                    let (score, spec) = ($score::default(), Self::$variant($score::default()));
                    (spec, known_however_held(&score) == Some(spec))
                }),+]
            }
        }

        /// The list is of scores with paths of their own.
        const _: fn() = || {
            fn has_paths<P: Paths>() {}
            $(has_paths::<$score>();)+
        };
    };
}

impl ScoreSpec {
    /// The index of the entmax family, for its members.
    pub fn gamma(self) -> Option<Gamma> {
        self.parameters().gamma
    }

    /// Whether this number can be a score of it, and so a threshold: +∞ always, NaN and −0 never.
    pub fn can_give(self, score: f64) -> bool {
        let (least, most) = self.range();
        let minus_zero = score == 0.0 && score.is_sign_negative();
        (score == f64::INFINITY || (least..=most).contains(&score)) && !minus_zero
    }

    /// The draw of a score that has one.
    pub fn draw(self) -> Option<Draw> {
        self.parameters().draw
    }

    /// The inverse temperature at which the activation's support is the set at this threshold: 0 for full sets, ∞ for
    /// a threshold of 0. `None` for scores that have none: only the entmax family above γ = 1 has.
    pub fn temperature(self, threshold: f64) -> Option<f64> {
        self.gamma().and_then(|gamma| EntmaxScore { gamma }.temperature(threshold))
    }

    /// `e^threshold`, how many times likelier than a label of the set the top label may be, where the score is the
    /// log-margin (γ = 1); `None` for other scores.
    pub fn odds_ratio(self, threshold: f64) -> Option<f64> {
        (self.gamma() == Some(Gamma::SOFTMAX)).then(|| math::exp(threshold))
    }
}

impl Default for ScoreSpec {
    fn default() -> Self {
        Self::Entmax(EntmaxScore::default())
    }
}

impl fmt::Display for ScoreSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shown() {
            nothing if nothing.is_empty() => f.write_str(self.name()),
            parameters => write!(f, "{}({parameters})", self.name()),
        }
    }
}

list! {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn with(change: impl FnOnce(&mut Parameters)) -> Parameters {
        let mut parameters = Parameters::default();
        change(&mut parameters);
        parameters
    }

    #[test]
    fn every_printed_name_reads_back() {
        for name in ScoreSpec::names() {
            let spec = ScoreSpec::named(name, Parameters::default()).unwrap();
            assert_eq!(spec.name(), name);
            assert_eq!(ScoreSpec::named(name, spec.parameters()).unwrap(), spec);
        }
    }

    #[test]
    fn parameters_are_what_the_score_was_made_of() {
        let all = Parameters {
            gamma: Some(Gamma::new(1.3).unwrap()),
            lambda: Some(Lambda::new(0.25).unwrap()),
            k_reg: Some(3),
            penalty: Some(Penalty::Fixed),
            draw: Some(Draw::Conservative),
        };
        let given = |name, parameters| ScoreSpec::named(name, parameters).unwrap();
        let gamma = with(|it| it.gamma = all.gamma);
        assert_eq!(given("entmax", gamma).parameters(), gamma);
        let raps = Parameters { gamma: None, ..all };
        assert_eq!(given("raps", raps).parameters(), raps);
        let saps = Parameters { k_reg: None, penalty: None, ..raps };
        assert_eq!(given("saps", saps).parameters(), saps);
        assert_eq!(given("aps", with(|it| it.draw = all.draw)).draw(), all.draw);
    }

    #[test]
    fn a_draw_is_replaced_where_there_is_one() {
        for name in ScoreSpec::names() {
            let spec = ScoreSpec::named(name, Parameters::default()).unwrap();
            let drawn = spec.with_draw(Draw::Seeded(9));
            assert_eq!(drawn.draw(), spec.draw().map(|_| Draw::Seeded(9)));
            let mut parameters = spec.parameters();
            parameters.draw = drawn.draw();
            assert_eq!(drawn.parameters(), parameters, "nothing else changes");
        }
    }

    #[test]
    fn only_the_log_margin_has_odds() {
        for name in ScoreSpec::names() {
            let odds =
                |threshold| ScoreSpec::named(name, Parameters::default()).unwrap().odds_ratio(threshold);
            let wanted = |odds: f64| (name == "log_margin").then_some(odds);
            assert_eq!([0.0, f64::INFINITY].map(odds), [1.0, f64::INFINITY].map(wanted), "{name}");
            assert!(odds(1.0).is_none_or(|odds| (odds - std::f64::consts::E).abs() < 1e-15));
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
        let gamma = |value| with(|it| it.gamma = Some(Gamma::new(value).unwrap()));
        for name in ["sparsemax", "entmax15", "inv_prob", "raps"] {
            assert!(ScoreSpec::named(name, gamma(1.2)).is_err(), "{name}");
        }
        assert!(ScoreSpec::named("sparsemax", gamma(2.0)).is_ok(), "the same thing twice");
        let k_reg = with(|it| it.k_reg = Some(3));
        assert!(ScoreSpec::named("saps", k_reg).is_err() && ScoreSpec::named("raps", k_reg).is_ok());
        let penalty = with(|it| it.penalty = Some(Penalty::Fixed));
        assert!(ScoreSpec::named("aps", penalty).is_err() && ScoreSpec::named("raps", penalty).is_ok());
        let draw = with(|it| it.draw = Some(Draw::Conservative));
        assert!(ScoreSpec::named("entmax", draw).is_err() && ScoreSpec::named("aps", draw).is_ok());
        let message = ScoreSpec::named("sparsemax", gamma(1.2)).unwrap_err().to_string();
        assert_eq!(message, "the score sparsemax has gamma = 2, got 1.2");
        let message = ScoreSpec::named("top_k", k_reg).unwrap_err().to_string();
        assert_eq!(message, "the score top_k takes no k_reg, got 3");
    }
}
