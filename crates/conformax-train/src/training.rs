//! `train`: a config and a folder in, weights, logits and a card out.
//!
//! A step is a function of the weights, the moments, the seed and its own number: the backend is reseeded before it,
//! and its batch is asked for by number. So it does not matter how often a run was stopped on the way.

mod adamw;
mod checkpointing;
mod evaluation;
mod looping;
mod observer;
mod progress;
mod schedule;
pub(crate) mod setting_up;

use std::path::Path;
use std::sync::Arc;

use burn::module::AutodiffModule;
use conformax_io::Overwrite;

use crate::backend::{Cpu, Device, TrainingBackend};
use crate::card::{Card, Hashes, Rows};
use crate::config::Config;
use crate::data::{Examples, Part, Plan};
use crate::error::Result;
use crate::export::export;
use crate::run_folder::RunFolder;
use crate::weights;

pub(crate) use adamw::AdamW;
pub use adamw::Decayed;
pub(crate) use evaluation::each_batch;
pub use observer::{Observer, StepPart, Unobserved};
pub use progress::{Best, Ending};
pub use schedule::{Decay, Schedule};

use looping::Training;
use progress::Progress;

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The card, as it is in the folder too.
    pub card: Card,
}

/// Trains what `config` asks for into `folder`, from its last checkpoint if it has one. Relative paths in the config
/// start at `paths_from`.
///
/// ```no_run
/// use std::path::Path;
/// use conformax_train::{Config, Device, RunFolder, Unobserved, train};
///
/// let file = Path::new("configs/cifar10-cnn.toml");
/// let config = Config::read(file)?;
/// let (folder, _) = RunFolder::open(Path::new("run"), &config)?;
/// let outcome = train(&config, Path::new("configs"), &folder, Device::Cpu, &mut Unobserved)?;
/// println!("test accuracy {}", outcome.card.test_accuracy);
/// # Ok::<(), conformax_train::Error>(())
/// ```
pub fn train(
    config: &Config,
    paths_from: &Path,
    folder: &RunFolder,
    device: Device,
    observer: &mut dyn Observer,
) -> Result<Outcome> {
    match device {
        Device::Cpu => train_on::<Cpu>(config, paths_from, folder, device, &Default::default(), observer),
        #[cfg(feature = "tch")]
        Device::Cuda(number) => {
            let gpu = crate::backend::gpu(number)?;
            train_on::<crate::backend::Cuda>(config, paths_from, folder, device, &gpu, observer)
        }
        #[cfg(not(feature = "tch"))]
        Device::Cuda(number) => Err(crate::backend::no_gpu(number)),
    }
}

fn train_on<B: TrainingBackend>(
    config: &Config,
    paths_from: &Path,
    folder: &RunFolder,
    name: Device,
    device: &B::Device,
    observer: &mut dyn Observer,
) -> Result<Outcome> {
    let located = config.clone().located(paths_from);
    let (examples, hashes) = setting_up::examples(&located)?;
    let examples = Arc::new(examples);
    let mut training = Training::<B>::start(&located, examples.clone(), folder, device)?;
    training.run(observer)?;
    let (mut model, progress) = (training.model.valid(), training.progress);
    weights::load(&mut model, folder)?;
    let plan = Plan::evaluation(examples.clone(), Part::Test, config.training.batch_size)?;
    let (rows, file) = (plan.rows() as f64, folder.file("test.npz"));
    let correct = export(&model, plan, &examples.class_names, (&file, Overwrite::Replace), device, observer)?;
    let card = card(config, name, &examples, hashes, progress, correct as f64 / rows, folder)?;
    folder.write("card.md", card.markdown().as_bytes())?;
    folder.write("card.json", &card.json())?;
    Ok(Outcome { card })
}

fn card(
    config: &Config,
    device: Device,
    examples: &Examples,
    hashes: Hashes,
    progress: Progress,
    test_accuracy: f64,
    folder: &RunFolder,
) -> Result<Card> {
    let unfinished = || folder.damaged("progress.json", "says that the run ended and not how");
    let parts = &examples.parts;
    Ok(Card {
        version: env!("CARGO_PKG_VERSION"),
        commit: option_env!("CONFORMAX_COMMIT"),
        hashes,
        device: device.to_string(),
        config: config.clone(),
        class_names: examples.class_names.clone(),
        rows: Rows { train: parts.train.len(), validation: parts.validation.len(), test: parts.test.len() },
        test_accuracy,
        best: progress.best.ok_or_else(unfinished)?,
        ending: progress.ending.ok_or_else(unfinished)?,
        steps: progress.step,
        steps_per_second: progress.step as f64 / progress.seconds,
        curve: progress.curve,
    })
}
