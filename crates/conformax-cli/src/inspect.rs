//! `conformax inspect`: what is in a calibration file or in data.

mod data;
mod model;

use clap::Args;

use crate::args::DataArgs;
use crate::console::Console;
use crate::failure::Failure;
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
        [only] if only.extension().is_some_and(|end| end.eq_ignore_ascii_case("json")) => {
            model::print(&Loaded::read(only)?, args.json, console)
        }
        _ => data::print(&args.data, args.json, console),
    }
}
