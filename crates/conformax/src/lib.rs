//! Prediction sets with a coverage guarantee, from the logits of any trained classifier.
//!
//! A label is in the set exactly when temperature-scaled γ-entmax gives it non-zero probability, and split
//! conformal calibration picks the temperature. One number calibrated on held-out rows buys a set, sparse
//! probabilities over the set, and a guarantee: whatever the model and the data, if calibration and test rows
//! are exchangeable, the true label is in the set with probability at least `1 − α`.
//!
//! ```
//! use conformax::{Alpha, EntmaxScore, Gamma, Logits, Strata, calibrate, evaluate};
//!
//! let classes = 3;
//! let cal = [3.0_f32, 1.0, 0.0, 0.5, 2.0, 1.5, 1.0, 0.0, 4.0, 2.0, 2.5, 0.0];
//! let cal_labels = [0, 2, 2, 0];
//! let score = EntmaxScore { gamma: Gamma::new(1.5)? };
//! let model = calibrate(score, Logits::new(&cal, classes)?, &cal_labels, Alpha::new(0.2)?)?;
//!
//! let test = Logits::new(&[2.0_f32, 1.75, -1.0, 0.0, 5.0, 1.0], classes)?;
//! let sets = model.predict(test)?;
//! assert_eq!(sets.get(0), [0, 1]);
//! assert_eq!(sets.get(1), [1]);
//! let metrics = evaluate(&sets, &[1, 1], model.level().alpha, &Strata::default())?;
//! assert_eq!(metrics.coverage, 1.0);
//! # Ok::<(), conformax::Error>(())
//! ```
//!
//! The road: [`Logits`] → [`Score`] → [`Calibration`] → [`PredictionSets`] → [`Metrics`]. Numbers in, numbers
//! out: no files, no clock, no global state. The same input gives the same bits on every CPU and any number of
//! threads.
//!
//! # Features
//! - `rayon` (default): rows in parallel.
//! - `half` (default): `f16` and `bf16` logits.
//! - `ndarray`: `ArrayView2` as logits.
//! - `serde`: `Serialize` for results.

mod activation;
mod calibrate;
mod error;
mod kernel;
mod law;
mod logits;
mod metrics;
mod path;
mod predict;
mod random;
mod rows;
mod score;
mod sets;
mod spec;
mod split;
mod tune;
mod units;

pub use activation::{Entmax, Mass, entmax15, entropy, softmax, sparsemax};
pub use calibrate::{
    Calibration, CalibrationScores, Level, PValue, calibrate, conformal_rank, score_all_labels, score_labels,
};
pub use error::{Error, Result};
pub use kernel::ln;
pub use law::{CoverageLaw, rows_for_precision};
pub use logits::{Logit, Logits, Row};
pub use metrics::{Metrics, Strata, Stratum, Tally, evaluate};
pub use path::RegularizationPath;
pub use predict::{Calibrated, Empty, Masked, predict_each};
pub use random::Generator;
pub use score::{
    ApsScore, Draw, EntmaxScore, InvProbScore, MarginScore, Penalty, RankedSoftmax, RapsScore, SapsScore,
    Score, TopKScore,
};
pub use sets::PredictionSets;
pub use spec::{Parameters, ScoreSpec};
pub use split::{TuningSplit, split, split_stratified};
pub use tune::{
    CalibratingRows, Candidate, Tuned, Tuning, TuningRows, average_size, entmax_grid, judging_threshold,
    raps_grid, smallest, tune,
};
pub use units::{Alpha, Gamma};

/// Version of the arithmetic: rows scored under the same version have the same bits. It is stored with every
/// calibration, and sets are refused where it differs.
pub const ARITHMETIC_VERSION: u32 = 1;

/// Name of the scheme by which a randomised score draws from its seed and the row.
pub const DRAW_SCHEME: &str = "splitmix64-chain-1";
