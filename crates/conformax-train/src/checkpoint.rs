//! Weights from a Hugging Face folder: `config.json` and `model.safetensors`, or the files that
//! `model.safetensors.index.json` names, become a model with a new head or with its own.
//!
//! Every parameter of the backbone must be in the file, in the shape the config gives it, and everything in the file
//! must be either one of them or on the short list of what a classifier has no use for (`Architecture::left_out`).
//! Half-precision weights are widened.

mod architecture;
mod config;
mod digest;
mod error;
mod labels;
mod parameters;
mod preprocessing;
mod tensors;

use std::path::Path;

use burn::tensor::backend::Backend;

use crate::model::bert::{Bert, BertConfig};
use crate::model::vit::{Vit, VitConfig};

use architecture::Architecture;
pub(crate) use digest::{digest, hexadecimal};
pub use error::Error;
use labels::labels;
pub(crate) use preprocessing::preprocessing;
use tensors::Head;

/// The model's sizes, in a checkpoint's folder.
const CONFIG: &str = "config.json";
/// The weights, beside it.
const WEIGHTS: &str = "model.safetensors";
/// Where the weights are in several files, which tensor is in which.
const INDEX: &str = "model.safetensors.index.json";

/// A classifier of somebody else's.
#[derive(Debug)]
pub struct Pretrained<B: Backend> {
    /// The model with its own head.
    pub model: PretrainedModel<B>,
    /// What its logits stand for, in their order.
    pub labels: Vec<String>,
}

/// The kinds of it, with their sizes.
#[derive(Debug)]
pub enum PretrainedModel<B: Backend> {
    /// For texts.
    Bert(Bert<B>, BertConfig),
    /// For images.
    Vit(Vit<B>, VitConfig),
}

/// Which model a folder holds.
pub(crate) fn kind(folder: &Path) -> Result<Kind, Error> {
    let path = folder.join(CONFIG);
    match config::model_type(&path)?.as_deref() {
        Some("bert") => Ok(Kind::Bert),
        Some("vit") => Ok(Kind::Vit),
        other => {
            let problem = format!("model_type is {}, wanted bert or vit", other.unwrap_or("not given"));
            Err(Error::Config { path, problem })
        }
    }
}

/// What a folder's `config.json` calls its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bert,
    Vit,
}

/// A model with the folder's weights, its head included.
pub fn load_with_head<B: Backend>(folder: &Path, device: &B::Device) -> Result<Pretrained<B>, Error> {
    let labels = labels(&folder.join(CONFIG))?;
    let model = match kind(folder)? {
        Kind::Bert => {
            let config = BertConfig::read(folder)?;
            let mut model = config.init(labels.len(), device);
            tensors::fill(&mut model, Architecture::Bert, folder, Head::Own)?;
            PretrainedModel::Bert(model, config)
        }
        Kind::Vit => {
            let config = VitConfig::read(folder)?;
            let mut model = config.init(labels.len(), device);
            tensors::fill(&mut model, Architecture::Vit, folder, Head::Own)?;
            PretrainedModel::Vit(model, config)
        }
    };
    Ok(Pretrained { model, labels })
}

impl BertConfig {
    /// Reads the `config.json` of a checkpoint's folder and checks that this crate's BERT is the model it describes.
    pub fn read(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(CONFIG);
        let config: Self = config::read(&path, Architecture::Bert)?;
        let (features, heads) = (config.hidden_size, config.num_attention_heads);
        config::check(&path, &config.sizes(), &config.rates(), features, heads)?;
        Ok(config)
    }
}

impl VitConfig {
    /// Reads the `config.json` of a checkpoint's folder and checks that this crate's ViT is the model it describes.
    pub fn read(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(CONFIG);
        let config: Self = config::read(&path, Architecture::Vit)?;
        let (features, heads) = (config.hidden_size, config.num_attention_heads);
        config::check(&path, &config.sizes(), &config.rates(), features, heads)?;
        config::check_division(&path, ("image_size", config.image_size), ("patch_size", config.patch_size))?;
        Ok(config)
    }
}

/// A BERT with the folder's weights and a new head, drawn from the backend's generator.
///
/// Takes checkpoints of a bare encoder, whose names start at `embeddings`, and of one inside another model, whose names
/// start with `bert.`; the old head is left out.
pub fn load_bert<B: Backend>(folder: &Path, classes: usize, device: &B::Device) -> Result<Bert<B>, Error> {
    let mut model = BertConfig::read(folder)?.init(classes, device);
    tensors::fill(&mut model, Architecture::Bert, folder, Head::New)?;
    draw_now(&model.head);
    Ok(model)
}

/// A ViT with the folder's weights and a new head, drawn from the backend's generator.
///
/// Takes names that start at `embeddings` or with `vit.`; the old head is left out.
pub fn load_vit<B: Backend>(folder: &Path, classes: usize, device: &B::Device) -> Result<Vit<B>, Error> {
    let mut model = VitConfig::read(folder)?.init(classes, device);
    tensors::fill(&mut model, Architecture::Vit, folder, Head::New)?;
    draw_now(&model.head);
    Ok(model)
}

/// Burn draws a weight when it is first used; by then the caller may have reseeded the generator.
fn draw_now<B: Backend>(head: &burn_nn::Linear<B>) {
    head.weight.val();
}
