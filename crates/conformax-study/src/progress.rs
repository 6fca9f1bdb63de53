//! `Progress`: how a study tells that it is moving, without printing anything itself, and is told to stop.

use std::time::Duration;

pub use crate::evaluation::Stage;

/// Told what happens while a study runs, from any thread.
pub trait Progress: Sync {
    /// The benchmark's rows are here and so many stages lie ahead.
    fn begin(&self, benchmark: &str, stages: usize) {
        let _ = (benchmark, stages);
    }

    /// A stage of a benchmark ended and took so long.
    fn end(&self, benchmark: &str, stage: &Stage, took: Duration) {
        let _ = (benchmark, stage, took);
    }

    /// Whether nobody wants the results any more. It is asked row by row, and the run then ends with
    /// [`Error::Stopped`](crate::Error::Stopped).
    fn stop(&self) -> bool {
        false
    }
}

/// Silence.
impl Progress for () {}
