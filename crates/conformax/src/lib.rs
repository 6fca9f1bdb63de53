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
//! let alpha = Alpha::new(0.2)?;
//! let model = calibrate(score, Logits::new(&cal, classes)?, &cal_labels, alpha)?;
//!
//! let sets = model.predict(Logits::new(&[2.0_f32, 1.75, -1.0, 0.0, 5.0, 1.0], classes)?)?;
//! assert_eq!(sets.get(0), Some(&[0, 1][..]));
//! assert_eq!(sets.get(1), Some(&[1][..]));
//! let metrics = evaluate(&sets, &[1, 1], alpha, &Strata::default())?;
//! assert_eq!(metrics.coverage, 1.0);
//! # Ok::<(), conformax::Error>(())
//! ```
//!
//! The road: [`Logits`] → [`Score`] → [`Calibrator`] → [`Calibration`] → [`Predictor`] → [`PredictionSets`] →
//! [`Evaluator`] → [`Metrics`]. A calibrator, a dealer, a tuner and an evaluator take rows in any blocks, merge with
//! others of their kind and finish to the same bits. Numbers in, numbers out: no files, no clock, no global state. The
//! same input gives the same bits on every CPU and any number of threads.
//!
//! # Features
//! - `rayon` (default): rows in parallel.
//! - `half` (default): `f16` and `bf16` logits.
//! - `ndarray`: `ArrayView2` as logits.
//! - `serde`: `Serialize` for results.

mod activation;
mod bytes;
mod calibrate;
mod calibration;
mod clusters;
mod contest;
mod deal;
mod error;
mod evaluate;
mod fingerprint;
mod kernel;
mod label_scores;
mod label_shift;
mod law;
mod level;
mod logits;
mod metrics;
mod p_values;
mod path;
mod policies;
mod predict;
mod prior;
mod random;
mod ranks;
mod risk;
mod room;
mod row_sizes;
mod rows;
mod scheme;
mod score;
mod select;
mod sets;
mod sorted_scores;
mod spec;
mod split;
mod stream;
mod taxonomy;
mod threshold_search;
mod thresholds;
mod tune;
mod units;
mod weights;

pub use activation::{Entmax, Mass, entmax15, entropy, log_probability, softmax, sparsemax};
pub use calibrate::{Calibrator, Remember, calibrate};
pub use calibration::{Calibration, Evidence};
pub use clusters::{ClusterPlan, cluster_classes};
pub use contest::{Rival, Rivals};
pub use deal::{Choose, Dealer, Dealt};
pub use error::{Error, Result};
pub use evaluate::{Evaluated, Evaluator, GroupTally};
pub use fingerprint::{DataFingerprint, ROW_HASH, RowSet, SeenRows, row_fingerprints};
pub use label_scores::{score_all_labels, score_labels};
pub use label_shift::{LabelShift, label_weights};
pub use law::{CoverageLaw, pac_rank, rows_for_precision};
pub use level::{Level, Promise, conformal_rank};
pub use logits::{Labelled, Logit, Logits, Row};
pub use metrics::{Intervals, LawIs, Metrics, Strata, Stratum, Tally, Verdict, evaluate, interval_of_share};
pub use path::RegularizationPath;
pub use policies::{Empty, Masked};
pub use predict::{Predictor, predict_chunks, predict_each};
pub use prior::Prior;
pub use random::Generator;
pub use ranks::Ranks;
pub use risk::{Loss, LossSteps};
// For `conformax-study`, which asks the same rows hundreds of times. Hidden, because they take it on trust that a call
// comes with the row that was ranked; everybody else asks a `Predictor`.
#[doc(hidden)]
pub use row_sizes::{KnownScores, RankedRow, RowSizes, SizeScratch};
pub use scheme::Scheme;
pub use score::{
    ApsScore, Draw, EntmaxScore, InvProbScore, MarginScore, Penalty, RapsScore, SapsScore, Score, TopKScore,
};
pub use select::{PairCounter, Selection};
pub use sets::{PredictionSets, Sets};
pub use sorted_scores::{PValue, SortedScores};
pub use spec::{Parameters, ScoreSpec};
pub use split::{TuningSplit, split, split_stratified};
pub use stream::{AdaptiveLevel, Alarm, Feedback, Stream, StreamOptions, StreamStatus, TracePoint};
pub use taxonomy::Taxonomy;
pub use threshold_search::{FoundThresholds, SearchStep, ThresholdSearch};
pub use thresholds::Thresholds;
pub use tune::{
    Candidate, Choice, GRID_GAMMAS, GRID_K_REGS, GRID_LAMBDAS, SizeCounter, TuneOn, Tuned, Tuner, Tuning,
    entmax_grid, raps_grid, tune,
};
pub use units::{Alpha, Gamma, Lambda};
pub use weights::{WeightRule, WeightedScores};

/// Version of the arithmetic: rows scored under the same version have the same bits. It is stored with every
/// calibration, and sets are refused where it differs.
pub const ARITHMETIC_VERSION: u32 = 1;

/// Name of the scheme by which a randomised score draws from its seed and the row.
pub const DRAW_SCHEME: &str = "splitmix64-chain-1";
