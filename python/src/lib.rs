//! `conformax._conformax`: the core's functions over NumPy buffers.
//!
//! Conversions and nothing else. Every function here borrows its arrays, releases the interpreter, calls the core
//! and maps its error; names, defaults, data frames and scikit-learn's manners are Python's, under `lib/`.

mod activation;
mod array;
mod calibration;
mod command;
mod cuda;
mod error;
mod evaluate;
mod extend;
mod floats;
mod law;
mod memory;
mod partial;
mod predict;
mod probabilities;
mod score;
mod stream;
mod study;
mod tune;
mod work;

/// The compiled half of `conformax`; import the names from there.
#[pyo3::pymodule]
mod _conformax {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::activation::{entmax, entmax_backward, entmax_gamma_derivative, entmax_loss};
    #[pymodule_export]
    use crate::calibration::{Calibration, Calibrator, Rule, row_fingerprints};
    #[pymodule_export]
    use crate::command::run_command;
    #[pymodule_export]
    use crate::cuda::{
        CudaRows, cuda_compile_all, cuda_entmax, cuda_entmax_backward, cuda_entmax_loss,
        cuda_entmax_loss_backward, cuda_problem,
    };
    #[pymodule_export]
    use crate::evaluate::{Evaluator, evaluate};
    #[pymodule_export]
    use crate::law::{
        conformal_rank, coverage_interval, label_weights, outlook, pac_rank, rows_for_precision, rows_needed,
        split, tuning_split,
    };
    #[pymodule_export]
    use crate::partial::Partial;
    #[pymodule_export]
    use crate::predict::{predict, predict_probabilities};
    #[pymodule_export]
    use crate::probabilities::{logarithms, set_probabilities};
    #[pymodule_export]
    use crate::score::{Score, score_all, score_labels};
    #[pymodule_export]
    use crate::stream::{AdaptiveLevel, Alarm, Stream};
    #[pymodule_export]
    use crate::study::{compare, run_study};
    #[pymodule_export]
    use crate::tune::{select, tune};

    /// Panics that become Python exceptions print nothing here; the exception carries the message.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        conformax_io::hush_caught_panics();
        module.add("GRID_GAMMAS", conformax::GRID_GAMMAS)?;
        module.add("GRID_LAMBDAS", conformax::GRID_LAMBDAS)?;
        module.add("GRID_K_REGS", conformax::GRID_K_REGS)
    }

    /// Version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
    /// Version of the arithmetic; rows scored under the same one have the same bits.
    #[pymodule_export]
    const ARITHMETIC_VERSION: u32 = conformax::ARITHMETIC_VERSION;
    /// The usual share of the rows that choose.
    #[pymodule_export]
    const TUNING_FRACTION: f64 = conformax::TuningSplit::FRACTION;
}
