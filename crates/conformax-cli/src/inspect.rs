//! `conformax inspect`: what is in a calibration file or in data.

mod data;
mod model;

use std::io::BufRead;
use std::path::Path;

use clap::Args;
use conformax_io::is_calibration;

use crate::args::DataArgs;
use crate::console::Console;
use crate::failure::Failure;
use crate::interrupt;
use crate::model::Loaded;

/// Show what is in a calibration file or in data.
///
/// Of data: shape, type, classes, accuracy, values that are not finite, and a fingerprint that is the same in every
/// format. Of a calibration file (.json): the score, its levels and how it came about.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  conformax inspect model.json
  conformax inspect cal.npz
  ssh server cat model.json | conformax inspect -
  conformax inspect --logits z.npy --labels y.npy --json")]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    data: DataArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &InspectArgs, console: &mut Console<'_>) -> Result<(), Failure> {
    match &args.data.data[..] {
        [only] if is_calibration_file(only)? => {
            let loaded = Loaded::read(only)?;
            if !args.data.is_plain() {
                let what =
                    "is a calibration file, of which flags on how to read data say nothing: leave them out";
                return Err(Failure::of_file(only, what));
            }
            model::print(&loaded, args.json, console)
        }
        _ => data::print(&args.data, args.json, console),
    }
}

/// By its name, or by what standard input begins with, which stays there to be read.
fn is_calibration_file(path: &Path) -> Result<bool, Failure> {
    if path != Path::new("-") {
        return Ok(path.extension().is_some_and(|end| end.eq_ignore_ascii_case("json")));
    }
    let begins = interrupt::opening(|| std::io::stdin().lock().fill_buf().map(is_calibration))?;
    Ok(begins.map_err(|error| conformax_io::Error::new(path, error))?)
}
