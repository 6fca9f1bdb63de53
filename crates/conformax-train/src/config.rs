//! `Config`: everything that decides how a run comes out, read from TOML and saved beside the weights.
//!
//! What a machine is like (device, threads) is not in it: that may change between two halves of one run.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::data::{Augment, ImageTransform, Preparation, Source, Splitting, Tokenizing};
use crate::error::{Error, Result};
use crate::loss::Loss;
use crate::model::Precision;
use crate::model::cnn::CnnConfig;
use crate::training::{AdamW, Decay, Decayed, Schedule};

/// One run: data, model and how it is trained.
///
/// ```
/// let text = r#"
///     seed = 1
///     data = { format = "cifar10", path = "cifar10" }
///     model = { name = "cnn" }
///     training = { epochs = 30, batch_size = 256, learning_rate = 1e-3 }
/// "#;
/// let config = conformax_train::Config::parse(text, "small.toml")?;
/// assert_eq!(config.training.epochs, 30);
/// # Ok::<(), conformax_train::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Decides initial weights, the order of rows, augmentation and dropout.
    pub seed: u64,
    /// Where rows come from.
    pub data: Source,
    /// Which rows train, validate and test; as the files have it where nothing is said.
    #[serde(default)]
    pub split: Splitting,
    /// How images become numbers.
    #[serde(default)]
    pub images: ImageTransform,
    /// How training images are varied.
    #[serde(default)]
    pub augment: Augment,
    /// How texts become numbers.
    #[serde(default)]
    pub tokens: TokensConfig,
    /// The classifier.
    pub model: ModelConfig,
    /// The loop.
    pub training: TrainingConfig,
}

/// How texts become numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TokensConfig {
    /// Tokens kept of a text, the first and last marker included.
    pub max_length: usize,
}

impl Default for TokensConfig {
    fn default() -> Self {
        Self { max_length: 128 }
    }
}

/// The classifier, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case")]
pub enum ModelConfig {
    /// The paper's convolutional network, from random weights.
    Cnn(CnnConfig),
    /// BERT from a Hugging Face folder, with a new head.
    Bert(PretrainedConfig),
    /// A vision transformer from a Hugging Face folder, with a new head.
    Vit(PretrainedConfig),
}

/// A model that starts from somebody's weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PretrainedConfig {
    /// Folder with `config.json`, `model.safetensors` and, for texts, `tokenizer.json`.
    pub checkpoint: PathBuf,
    /// What happens to those weights.
    #[serde(default)]
    pub backbone: Backbone,
}

/// What happens to the weights that a checkpoint brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backbone {
    /// They are trained with the head.
    #[default]
    Trained,
    /// They stay; the head alone is trained.
    Frozen,
}

/// How the model is trained: AdamW on a [`Loss`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingConfig {
    /// In what numbers matrix products are computed on a GPU.
    #[serde(default)]
    pub precision: Precision,
    /// What is minimised; the cross-entropy where nothing is said.
    #[serde(default = "cross_entropy")]
    pub loss: Loss,
    /// Passes over the training rows, at most.
    pub epochs: u64,
    /// Rows of a step.
    pub batch_size: usize,
    /// AdamW's step size after the warm-up.
    pub learning_rate: f64,
    /// How the step size falls from there.
    #[serde(default)]
    pub decay: Decay,
    /// Share of all steps over which the step size rises to its value.
    #[serde(default)]
    pub warmup: f64,
    /// AdamW's decoupled weight decay.
    #[serde(default = "default_weight_decay")]
    pub weight_decay: f64,
    /// What decays: matrices alone unless told otherwise.
    #[serde(default)]
    pub decayed: Decayed,
    /// Share of a label's weight that is spread evenly over all classes while training.
    #[serde(default)]
    pub label_smoothing: f64,
    /// Largest norm of all gradients together; larger ones are scaled down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip_norm: Option<f32>,
    /// Stop after this many epochs without a lower validation loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience: Option<u64>,
    /// Steps between checkpoints inside an epoch; there is one at the end of each epoch anyway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_every: Option<u64>,
}

fn cross_entropy() -> Loss {
    Loss::CrossEntropy
}

fn default_weight_decay() -> f64 {
    0.01
}

impl Config {
    /// Reads a config from a file.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| Error::Unreadable { path: path.to_owned(), source })?;
        Self::parse(&text, &path.display().to_string())
    }

    /// Reads a config from text; `file` is what errors call it.
    pub fn parse(text: &str, file: &str) -> Result<Self> {
        let config: Self = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let line = text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count();
            let message = error.message().to_owned();
            let text = text.lines().nth(line).unwrap_or_default().trim().to_owned();
            Error::Written { file: file.to_owned(), line: line + 1, text, message }
        })?;
        config.check()?;
        Ok(config)
    }

    /// The same with relative paths starting at `folder`. What is saved beside the weights keeps them as written, so
    /// that a run can be taken up from anywhere.
    pub(crate) fn located(mut self, folder: &Path) -> Self {
        let place = |path: &mut PathBuf| *path = folder.join(&*path);
        match &mut self.data {
            Source::Cifar10 { path }
            | Source::Cifar100 { path }
            | Source::Idx { path }
            | Source::ImageFolder { path, .. }
            | Source::Newsgroups { path, .. } => place(path),
            Source::Csv { train, validation, test, .. } => {
                place(train);
                validation.iter_mut().chain(test).for_each(place);
            }
        }
        if let ModelConfig::Bert(model) | ModelConfig::Vit(model) = &mut self.model {
            place(&mut model.checkpoint);
        }
        self
    }

    /// Everything that can be wrong with the numbers, before any work.
    fn check(&self) -> Result<()> {
        let training = &self.training;
        demand(training.epochs >= 1, "training.epochs", "must be at least 1", training.epochs)?;
        demand(training.batch_size >= 2, "training.batch_size", "must be at least 2", training.batch_size)?;
        let rate = training.learning_rate;
        demand(rate > 0.0 && rate.is_finite(), "training.learning_rate", "must be above 0", rate)?;
        let (warmup, decay) = (training.warmup, training.weight_decay);
        demand((0.0..1.0).contains(&warmup), "training.warmup", "must be a share from 0 to below 1", warmup)?;
        demand(decay >= 0.0 && decay.is_finite(), "training.weight_decay", "must be at least 0", decay)?;
        let smoothing = training.label_smoothing;
        demand(
            (0.0..1.0).contains(&smoothing),
            "training.label_smoothing",
            "must be a share from 0 to below 1",
            smoothing,
        )?;
        let norm = training.clip_norm.unwrap_or(1.0);
        demand(norm > 0.0 && norm.is_finite(), "training.clip_norm", "must be above 0", norm)?;
        let patience = training.patience.unwrap_or(1);
        demand(patience >= 1, "training.patience", "must be at least 1", patience)?;
        let every = training.checkpoint_every.unwrap_or(1);
        demand(every >= 1, "training.checkpoint_every", "must be at least 1", every)?;
        let mixup = self.augment.mixup;
        demand((0.0..=1.0).contains(&mixup), "augment.mixup", "must be from 0, which is off, to 1", mixup)?;
        if let ModelConfig::Bert(_) = &self.model {
            demand(mixup == 0.0, "augment.mixup", "mixes images, and the model takes texts", mixup)?;
        }
        let length = self.tokens.max_length;
        demand(length >= 3, "tokens.max_length", "must leave room for a token between two markers", length)?;
        match &self.model {
            ModelConfig::Cnn(cnn) => check_cnn(cnn),
            ModelConfig::Bert(_) | ModelConfig::Vit(_) => Ok(()),
        }
    }

    /// What turns this run's rows into numbers.
    pub(crate) fn preparation(&self) -> Preparation {
        match &self.model {
            ModelConfig::Cnn(_) | ModelConfig::Vit(_) => Preparation::Images(self.images.clone()),
            ModelConfig::Bert(model) => Preparation::Texts(Tokenizing {
                tokenizer: model.checkpoint.join("tokenizer.json"),
                max_length: self.tokens.max_length,
            }),
        }
    }

    /// What changes the weights.
    pub(crate) fn adamw(&self) -> AdamW {
        let TrainingConfig { weight_decay, decayed, clip_norm, .. } = self.training;
        AdamW { weight_decay, decayed, clip_norm }
    }

    /// The step size over `steps` steps.
    pub(crate) fn schedule(&self, steps: u64) -> Schedule {
        let training = &self.training;
        let warmup = (training.warmup * steps as f64).round() as u64;
        Schedule { peak: training.learning_rate, warmup, steps, decay: training.decay }
    }
}

fn check_cnn(cnn: &CnnConfig) -> Result<()> {
    let channels = &cnn.channels;
    let sound = !channels.is_empty() && channels.iter().all(|channels| *channels > 0);
    demand(
        sound,
        "model.channels",
        "must name at least one stage of at least one channel",
        format!("{channels:?}"),
    )?;
    demand(channels.len() <= 8, "model.channels", "must name at most 8 stages", channels.len())?;
    demand(cnn.hidden >= 1, "model.hidden", "must be at least 1", cnn.hidden)?;
    demand(
        (0.0..1.0).contains(&cnn.dropout),
        "model.dropout",
        "must be a share from 0 to below 1",
        cnn.dropout,
    )
}

fn demand(holds: bool, key: &'static str, wanted: &str, got: impl std::fmt::Display) -> Result<()> {
    match holds {
        true => Ok(()),
        false => Err(Error::Config { key, message: format!("{wanted}, got {got}") }),
    }
}
