//! Reads a data set from end to end and says how large it is, how fast it was read and what its fingerprint is.
//!
//! `cargo run --release -p conformax-io --example scan -- cal.npz`

use std::time::Instant;

use conformax::DataFingerprint;
use conformax_io::{Block, Data, Source, SourceOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let paths = std::env::args_os().skip(1).map(Into::into).collect();
    let start = Instant::now();
    let mut source = Source::open(&Data::Files(paths), &SourceOptions::default())?;
    let (mut block, mut rows) = (Block::default(), 0);
    let mut fingerprint = DataFingerprint::default();
    while source.read(&mut block)? {
        rows += block.rows();
        fingerprint.extend(&block.row_fingerprints());
    }
    let bytes = rows * source.classes() * source.dtype().size();
    let seconds = start.elapsed().as_secs_f64();
    eprintln!("{rows} rows of {} {} classes, fingerprint {fingerprint}", source.classes(), source.dtype());
    eprintln!("{:.0} MB in {seconds:.2} s, {:.0} MB/s", bytes as f64 / 1e6, bytes as f64 / 1e6 / seconds);
    Ok(())
}
