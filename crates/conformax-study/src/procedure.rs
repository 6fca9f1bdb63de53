//! `Procedure`: a score under the name it is printed by, or several of which each split chooses one.

use conformax::{Draw, ScoreSpec};

/// A conformal procedure of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct Procedure {
    /// The name in tables and figures.
    pub name: String,
    /// Its score.
    pub choice: ProcedureScore,
}

/// One score, or candidates.
#[derive(Clone, Debug, PartialEq)]
pub enum ProcedureScore {
    /// This one.
    Fixed(ScoreSpec),
    /// The one with the smallest sets on rows kept for tuning; ties go to the first.
    Tuned(Vec<ScoreSpec>),
}

impl Procedure {
    /// The candidates that make sense for so many classes: RAPS leaves `k_reg` ranks unpunished, so a `k_reg`
    /// that reaches every class would make λ idle.
    pub(crate) fn for_classes(&self, classes: usize) -> Self {
        let choice = match &self.choice {
            ProcedureScore::Fixed(score) => ProcedureScore::Fixed(*score),
            ProcedureScore::Tuned(candidates) => ProcedureScore::Tuned(
                candidates.iter().filter(|score| score.fits(classes)).copied().collect(),
            ),
        };
        Self { name: self.name.clone(), choice }
    }

    /// Makes randomised scores take their draws from elsewhere.
    pub(crate) fn draw_from(&mut self, draw: Draw) {
        let scores = match &mut self.choice {
            ProcedureScore::Fixed(score) => std::slice::from_mut(score),
            ProcedureScore::Tuned(candidates) => candidates,
        };
        scores.iter_mut().for_each(|score| *score = score.with_draw(draw));
    }

    /// The scores it may use.
    pub(crate) fn scores(&self) -> &[ScoreSpec] {
        match &self.choice {
            ProcedureScore::Fixed(score) => std::slice::from_ref(score),
            ProcedureScore::Tuned(candidates) => candidates,
        }
    }

    /// Whether splits choose among candidates.
    pub fn is_tuned(&self) -> bool {
        matches!(self.choice, ProcedureScore::Tuned(_))
    }
}
