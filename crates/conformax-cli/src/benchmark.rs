//! A user's data as a `Benchmark`: read whole, since a procedure is judged on as many divisions of the rows as there
//! are splits.

use conformax_io::{Block, Source};
use conformax_study::Benchmark;

use crate::blocks::for_each_block;
use crate::calibrate::LooksLikeProbabilities;
use crate::console::Console;
use crate::failure::Failure;
use crate::numbers::rows;

/// Below this one of the three parts that rows are split into is empty.
const FEWEST_ROWS: usize = 6;

/// Reads all rows, under the name that people know them by.
pub(crate) fn read_benchmark(
    source: Source,
    title: &str,
    console: &mut Console<'_>,
) -> Result<Benchmark, Failure> {
    let mut doubt = LooksLikeProbabilities::new();
    let mut whole = Block { classes: source.classes(), doubtful: true, ..Block::default() };
    let mut labels = Vec::new();
    let source = for_each_block(source, "reading", console, |block, console| {
        doubt.look_at(block.doubtful, console);
        whole.doubtful &= block.doubtful;
        whole.logits.extend_rows(&block.logits, block.classes, 0..block.rows());
        labels.extend(block.labels.as_deref().unwrap_or_default());
        Ok(())
    })?;
    let located = |error| source.error_in(&Block::default(), error);
    let benchmark = Benchmark::new("data", title, whole, labels).map_err(located)?;
    if benchmark.rows() < FEWEST_ROWS {
        return Err(Failure::error(format!(
            "{title}: {} cannot be split into some that choose, some that calibrate and some that test: at least \
             {FEWEST_ROWS} are needed, and a few hundred for sets that say something",
            rows(benchmark.rows() as u64)
        )));
    }
    Ok(benchmark.with_names(source.names().cloned()))
}
