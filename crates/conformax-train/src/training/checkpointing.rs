//! `checkpoint-N.mpk`: weights and AdamW's moments after N steps, to the bit.
//!
//! The file is written first and `progress.json`, which names it, afterwards: whenever a run is killed, the progress on
//! disk has its checkpoint.

use burn::module::Module;
use burn::record::{FullPrecisionSettings, NamedMpkBytesRecorder, Recorder};
use burn::tensor::backend::AutodiffBackend;

use super::adamw::Moments;
use super::progress::Progress;
use crate::error::Result;
use crate::model::Classifier;
use crate::run_folder::RunFolder;

type Records = NamedMpkBytesRecorder<FullPrecisionSettings>;

/// What a step changes: there are no moments before the first.
type State<B> = (Classifier<B>, Option<Moments<<B as AutodiffBackend>::InnerBackend>>);

/// Writes weights, moments and progress, and removes the checkpoint before them.
pub(super) fn save<B: AutodiffBackend>(
    model: &Classifier<B>,
    moments: &Option<Moments<B::InnerBackend>>,
    progress: &mut Progress,
    folder: &RunFolder,
) -> Result<()> {
    let name = format!("checkpoint-{}.mpk", progress.step);
    let record = (model.clone().into_record(), moments.clone().map(Moments::<B>::from_inner));
    let bytes = Recorder::<B>::record(&Records::default(), record, ());
    folder.write(&name, &bytes.map_err(|error| folder.damaged(&name, error))?)?;
    let before = std::mem::replace(&mut progress.checkpoint, name);
    progress.write(folder)?;
    if !before.is_empty() && before != progress.checkpoint {
        // A file that stays behind takes room and does no harm.
        let _ = std::fs::remove_file(folder.file(&before));
    }
    Ok(())
}

/// Reads the weights and moments that go with `progress`.
pub(super) fn load<B: AutodiffBackend>(
    model: Classifier<B>,
    progress: &Progress,
    folder: &RunFolder,
    device: &B::Device,
) -> Result<State<B>> {
    let name = progress.checkpoint.as_str();
    let bytes =
        folder.read(name)?.ok_or_else(|| folder.damaged(name, "is missing, and progress.json names it"))?;
    let (weights, moments): (_, Option<Moments<B>>) = Recorder::<B>::load(&Records::default(), bytes, device)
        .map_err(|error| folder.damaged(name, error))?;
    Ok((model.load_record(weights), moments.map(Moments::inner)))
}
