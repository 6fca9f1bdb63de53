//! How Hugging Face names what our models hold.
//!
//! A parameter here is `layers.3.attention.query.weight`; in a BERT file it is
//! `bert.encoder.layer.3.attention.self.query.weight`, or the same without `bert.`.

/// One of the two models that load checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Architecture {
    Bert,
    Vit,
}

impl Architecture {
    /// `model_type` in a config, and the prefix of a backbone inside another model.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bert => "bert",
            Self::Vit => "vit",
        }
    }

    /// What the file calls a parameter of ours, without its prefix.
    pub(super) fn file_name(self, path: &str) -> String {
        let (module, parameter) = path.rsplit_once('.').unwrap_or(("", path));
        // Only normalisations have these; everyone else's are called so already.
        let parameter = match parameter {
            "gamma" => "weight",
            "beta" => "bias",
            other => other,
        };
        let module = match module.strip_prefix("layers.").and_then(|rest| rest.split_once('.')) {
            Some((index, part)) => format!("encoder.layer.{index}.{}", self.layer_part(part)),
            None => self.part(module).into(),
        };
        format!("{module}.{parameter}")
    }

    fn layer_part(self, part: &str) -> &str {
        match (self, part) {
            (Self::Bert, "attention.query") => "attention.self.query",
            (Self::Bert, "attention.key") => "attention.self.key",
            (Self::Bert, "attention.value") => "attention.self.value",
            (Self::Bert, "attention_norm") => "attention.output.LayerNorm",
            (Self::Bert, "outer_norm") => "output.LayerNorm",
            (Self::Vit, "attention.query") => "attention.attention.query",
            (Self::Vit, "attention.key") => "attention.attention.key",
            (Self::Vit, "attention.value") => "attention.attention.value",
            (Self::Vit, "attention_norm") => "layernorm_before",
            (Self::Vit, "outer_norm") => "layernorm_after",
            (_, "attention.output") => "attention.output.dense",
            (_, "inner") => "intermediate.dense",
            (_, "outer") => "output.dense",
            (_, other) => other,
        }
    }

    fn part(self, module: &str) -> &str {
        match (self, module) {
            (Self::Bert, "embeddings.word") => "embeddings.word_embeddings",
            (Self::Bert, "embeddings.position") => "embeddings.position_embeddings",
            (Self::Bert, "embeddings.token_type") => "embeddings.token_type_embeddings",
            (Self::Bert, "embeddings.norm") => "embeddings.LayerNorm",
            (Self::Bert, "pooler") => "pooler.dense",
            (Self::Vit, "embeddings.patches") => "embeddings.patch_embeddings.projection",
            (Self::Vit, "norm") => "layernorm",
            (_, other) => other,
        }
    }

    /// Whether a tensor of the file, its prefix removed, is one that a classifier has no use for: heads of other tasks,
    /// the old head, and the positions 0, 1, 2, … that some versions of `transformers` saved.
    pub(super) fn left_out(self, tensor: &str) -> bool {
        let known: &[&str] = match self {
            Self::Bert => &[
                "embeddings.position_ids",
                "classifier.",
                "cls.predictions.",
                "cls.seq_relationship.",
                "qa_outputs.",
            ],
            // The pooler of the bare encoder, which image classification never calls.
            Self::Vit => &["classifier.", "pooler.dense.", "embeddings.mask_token", "decoder."],
        };
        known.iter().any(|name| if name.ends_with('.') { tensor.starts_with(name) } else { tensor == *name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_published_checkpoints() {
        for (architecture, ours, theirs) in [
            (Architecture::Bert, "embeddings.word.weight", "embeddings.word_embeddings.weight"),
            (Architecture::Bert, "embeddings.norm.gamma", "embeddings.LayerNorm.weight"),
            (
                Architecture::Bert,
                "layers.11.attention.query.bias",
                "encoder.layer.11.attention.self.query.bias",
            ),
            (
                Architecture::Bert,
                "layers.0.attention.output.weight",
                "encoder.layer.0.attention.output.dense.weight",
            ),
            (Architecture::Bert, "layers.0.outer_norm.beta", "encoder.layer.0.output.LayerNorm.bias"),
            (Architecture::Bert, "pooler.bias", "pooler.dense.bias"),
            (Architecture::Vit, "embeddings.cls_token", "embeddings.cls_token"),
            (Architecture::Vit, "layers.2.attention_norm.gamma", "encoder.layer.2.layernorm_before.weight"),
            (Architecture::Vit, "norm.beta", "layernorm.bias"),
        ] {
            assert_eq!(architecture.file_name(ours), theirs);
        }
    }

    #[test]
    fn only_listed_tensors_are_left_out() {
        assert!(Architecture::Bert.left_out("cls.predictions.bias"));
        assert!(Architecture::Bert.left_out("embeddings.position_ids"));
        assert!(!Architecture::Bert.left_out("embeddings.position_ids.weight"));
        assert!(!Architecture::Bert.left_out("encoder.layer.12.output.dense.bias"));
        assert!(
            Architecture::Vit.left_out("pooler.dense.weight")
                && !Architecture::Bert.left_out("pooler.dense.weight")
        );
    }
}
