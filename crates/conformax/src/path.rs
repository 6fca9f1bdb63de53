//! The regularisation path of a row: the inverse temperature at which each label leaves the support.
//!
//! As β grows from 0 the support of `γ-entmax(βz)` shrinks from all labels to the top one. Label `j` leaves at
//! `δ/s_j`, with `s_j` its score, so a calibrated threshold is one point of every row's path.

use crate::score::paths::Paths;
use crate::{EntmaxScore, Logit, Row};

/// Where on the path each label of a row leaves.
///
/// ```
/// use conformax::{EntmaxScore, Gamma, RegularizationPath, Row};
/// let row = Row::new(&[1.0_f32, 0.5, 0.0])?;
/// let path = RegularizationPath::of(EntmaxScore { gamma: Gamma::SPARSEMAX }, row);
/// assert_eq!(path.leaves_at, [f64::INFINITY, 2.0, 1.0 / 1.5]);
/// assert_eq!(path.saturation, 2.0); // from here on all mass is on the top label
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RegularizationPath {
    /// Per label, the β from which on its probability is zero: ∞ for the top label and its ties, 0 for a −∞
    /// logit. At γ = 1 no finite β removes a label.
    pub leaves_at: Vec<f64>,
    /// `β*`, from which on the mass is uniform over the top label and its ties; 0 where nothing else is possible.
    pub saturation: f64,
}

impl RegularizationPath {
    /// The path of a row.
    pub fn of<T: Logit>(score: EntmaxScore, row: Row<'_, T>) -> Self {
        let mut leaves_at = vec![0.0; row.classes()];
        score.score_all(row, &mut leaves_at);
        let mut saturation = 0.0_f64;
        for beta in &mut leaves_at {
            let ahead = *beta > 0.0;
            // δ/∞ is 0 but for δ = ∞, where a masked label is out at once all the same.
            *beta = if *beta == f64::INFINITY { 0.0 } else { score.gamma.delta() / *beta };
            if ahead {
                saturation = saturation.max(*beta);
            }
        }
        Self { leaves_at, saturation }
    }
}
