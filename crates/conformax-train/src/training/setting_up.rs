//! What a run needs before its first step: rows, and a model with its first weights.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Tensor;
use burn::tensor::backend::Backend;

use crate::checkpoint;
use crate::config::{Backbone, Config, ModelConfig};
use crate::data::Examples;
use crate::error::{Error, Result};
use crate::model::Classifier;
use crate::model::bert::BertConfig;
use crate::model::cnn::CnnConfig;
use crate::model::vit::VitConfig;

/// Reads, divides and prepares the rows, and checks that the config can be met with them.
pub(super) fn examples(config: &Config) -> Result<Examples> {
    let examples = config.data.read()?.split(&config.split)?.prepare(&config.preparation())?;
    if config.training.patience.is_some() && examples.parts.validation.is_empty() {
        let message = "needs validation rows; set split.validation".to_owned();
        return Err(Error::Config { key: "training.patience", message });
    }
    Ok(examples)
}

/// The model with its first weights, which depend on the config's seed and checkpoint alone.
pub(super) fn model<B: Backend>(
    config: &Config,
    examples: &Examples,
    device: &B::Device,
) -> Result<Classifier<B>> {
    B::seed(device, super::looping::seed_of(config.seed, "weights", 0));
    let classes = examples.classes();
    let model = match &config.model {
        ModelConfig::Cnn(cnn) => Classifier::Cnn(cnn.init(image_shape(cnn, examples)?, classes, device)),
        ModelConfig::Bert(model) => {
            check_texts(&BertConfig::read(&model.checkpoint)?, config.tokens.max_length, examples)?;
            Classifier::Bert(checkpoint::load_bert(&model.checkpoint, classes, device)?)
        }
        ModelConfig::Vit(model) => {
            check_images(&VitConfig::read(&model.checkpoint)?, examples)?;
            Classifier::Vit(checkpoint::load_vit(&model.checkpoint, classes, device)?)
        }
    };
    // Burn draws a weight when it is first asked for. Asking now, in order, keeps the draws apart from those of a step.
    model.visit(&mut Draw);
    Ok(model)
}

/// Takes from training what the config says should stay.
pub(super) fn freeze<B: Backend>(model: Classifier<B>, config: &ModelConfig) -> Classifier<B> {
    let frozen = match config {
        ModelConfig::Cnn(_) => false,
        ModelConfig::Bert(model) | ModelConfig::Vit(model) => model.backbone == Backbone::Frozen,
    };
    match model {
        Classifier::Bert(bert) if frozen => Classifier::Bert(bert.freeze_backbone()),
        Classifier::Vit(vit) if frozen => Classifier::Vit(vit.freeze_backbone()),
        Classifier::Cnn(_) | Classifier::Bert(_) | Classifier::Vit(_) => model,
    }
}

fn image_shape(cnn: &CnnConfig, examples: &Examples) -> Result<[usize; 3]> {
    let shape = examples.input_shape().expect("rows were prepared as images for this model");
    let smallest = cnn.smallest_side();
    if shape[1].min(shape[2]) < smallest {
        let (height, width) = (shape[1], shape[2]);
        let message = format!(
            "has {} stages, which need images of {smallest}×{smallest} or more, got {height}×{width}",
            cnn.channels.len()
        );
        return Err(Error::Config { key: "model.channels", message });
    }
    Ok(shape)
}

/// A token or a place that the model has no weights for.
fn check_texts(bert: &BertConfig, max_length: usize, examples: &Examples) -> Result<()> {
    let most = bert.max_position_embeddings;
    if max_length > most {
        let message =
            format!("must be at most {most}, as many places as the checkpoint has, got {max_length}");
        return Err(Error::Config { key: "tokens.max_length", message });
    }
    let (known, used) = (bert.vocab_size, examples.vocabulary().unwrap_or(0));
    if used > known {
        let message = format!("has a tokenizer of {used} tokens and weights for {known}");
        return Err(Error::Config { key: "model.checkpoint", message });
    }
    Ok(())
}

/// Images of another size than the model cuts into patches.
fn check_images(vit: &VitConfig, examples: &Examples) -> Result<()> {
    let wanted = [vit.num_channels, vit.image_size, vit.image_size];
    let found = examples.input_shape().expect("rows were prepared as images for this model");
    if found != wanted {
        let message = format!("must make images of the checkpoint's shape {wanted:?}, got {found:?}");
        return Err(Error::Config { key: "images.resize", message });
    }
    Ok(())
}

struct Draw;

impl<B: Backend> ModuleVisitor<B> for Draw {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
        let _ = param.val();
    }
}
