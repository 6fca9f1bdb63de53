//! What a run needs before its first step: rows, and a model with its first weights.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Tensor;
use burn::tensor::backend::Backend;

use crate::card::Hashes;
use crate::checkpoint;
use crate::config::{Backbone, Config, ModelConfig};
use crate::data::Examples;
use crate::error::{Error, Result};
use crate::model::bert::BertConfig;
use crate::model::cnn::CnnConfig;
use crate::model::vit::VitConfig;
use crate::model::{Classifier, Kernels};

/// Reads, divides and prepares the rows, and checks that the config can be met with them. Says what they were, too.
pub(super) fn examples(config: &Config) -> Result<(Examples, Hashes)> {
    let dataset = config.data.read()?;
    let checkpoint = match &config.model {
        ModelConfig::Cnn(_) => None,
        ModelConfig::Bert(model) | ModelConfig::Vit(model) => Some(checkpoint::digest(&model.checkpoint)?),
    };
    let hashes = Hashes { data: dataset.digest()?, checkpoint };
    let examples = dataset.split(&config.split)?.prepare(&config.preparation())?;
    if config.training.patience.is_some() && examples.parts.validation.is_empty() {
        let message = "needs validation rows; set split.validation".to_owned();
        return Err(Error::Config { key: "training.patience", message });
    }
    Ok((examples, hashes))
}

/// The model with its first weights, which depend on the config's seed and checkpoint alone.
pub(super) fn model<B: Kernels>(
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
            let size = check_images(&VitConfig::read(&model.checkpoint)?, examples)?;
            let vit = checkpoint::load_vit(&model.checkpoint, classes, device)?;
            Classifier::Vit(vit.for_images(size))
        }
    };
    let model = model.with_precision(config.training.precision);
    // Burn draws a weight when it is first asked for. Asking now, in order, keeps the draws apart from those of a step.
    model.visit(&mut Draw);
    Ok(model)
}

/// Takes from training what the config says should stay.
pub(super) fn freeze<B: Kernels>(model: Classifier<B>, config: &ModelConfig) -> Classifier<B> {
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
pub(crate) fn check_texts(bert: &BertConfig, max_length: usize, examples: &Examples) -> Result<()> {
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

/// Height and width of the images, which must be whole patches in the checkpoint's colours.
pub(crate) fn check_images(vit: &VitConfig, examples: &Examples) -> Result<[usize; 2]> {
    let [channels, height, width] =
        examples.input_shape().expect("rows were prepared as images for this model");
    let (wanted, patch) = (vit.num_channels, vit.patch_size);
    let message = if channels != wanted {
        format!("cannot help: the images have {channels} channels, the checkpoint takes {wanted}")
    } else if height % patch != 0 || width % patch != 0 {
        format!("must make images of whole patches of {patch}×{patch} pixels, got {height}×{width}")
    } else {
        return Ok([height, width]);
    };
    Err(Error::Config { key: "images.resize", message })
}

struct Draw;

impl<B: Backend> ModuleVisitor<B> for Draw {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
        let _ = param.val();
    }
}
