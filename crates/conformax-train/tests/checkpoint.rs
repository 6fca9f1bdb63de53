//! What the loader refuses, and that it says which tensor of which file.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::path::Path;

use burn_flex::Flex;
use conformax_train::checkpoint::{load_bert, load_vit};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView, serialize};
use tempfile::TempDir;

type Tensors = BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>;

/// A copy of a fixture whose tensors and config can be changed.
struct Checkpoint {
    folder: TempDir,
    tensors: Tensors,
    config: serde_json::Value,
}

impl Checkpoint {
    fn of(name: &str) -> Self {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/checkpoints").join(name);
        let bytes = std::fs::read(fixture.join("model.safetensors")).unwrap();
        let tensors = SafeTensors::deserialize(&bytes)
            .unwrap()
            .iter()
            .map(|(name, view)| (name.into(), (view.dtype(), view.shape().to_vec(), view.data().to_vec())))
            .collect();
        let config = serde_json::from_slice(&std::fs::read(fixture.join("config.json")).unwrap()).unwrap();
        Self { folder: tempfile::tempdir().unwrap(), tensors, config }
    }

    fn write(&self) -> &Path {
        let views = self.tensors.iter().map(|(name, (dtype, shape, data))| {
            (name, TensorView::new(*dtype, shape.clone(), data).unwrap())
        });
        let folder = self.folder.path();
        std::fs::write(folder.join("model.safetensors"), serialize(views, None).unwrap()).unwrap();
        std::fs::write(folder.join("config.json"), self.config.to_string()).unwrap();
        folder
    }

    fn bert_error(&self) -> String {
        load_bert::<Flex>(self.write(), 3, &Default::default()).unwrap_err().to_string()
    }

    fn vit_error(&self) -> String {
        load_vit::<Flex>(self.write(), 3, &Default::default()).unwrap_err().to_string()
    }
}

#[track_caller]
fn assert_says(message: &str, parts: &[&str]) {
    assert!(parts.iter().all(|part| message.contains(part)), "{message}");
}

#[test]
fn a_missing_tensor_is_named() {
    let mut checkpoint = Checkpoint::of("bert");
    checkpoint.tensors.remove("bert.encoder.layer.1.attention.self.query.bias").unwrap();
    let parts = ["model.safetensors", "tensor bert.encoder.layer.1.attention.self.query.bias is missing"];
    assert_says(&checkpoint.bert_error(), &parts);
}

#[test]
fn an_unknown_tensor_is_named() {
    let mut checkpoint = Checkpoint::of("vit");
    let norm = checkpoint.tensors["vit.layernorm.bias"].clone();
    checkpoint.tensors.insert("vit.encoder.layer.2.layernorm_after.bias".into(), norm);
    let parts = ["model.safetensors", "vit.encoder.layer.2.layernorm_after.bias is unknown to vit"];
    assert_says(&checkpoint.vit_error(), &parts);
}

#[test]
fn a_wrong_shape_is_told_in_the_order_of_the_file() {
    let mut checkpoint = Checkpoint::of("bert");
    checkpoint.config["intermediate_size"] = 32.into();
    let parts = ["bert.encoder.layer.0.intermediate.dense.weight", "[24, 16]", "[32, 16]"];
    assert_says(&checkpoint.bert_error(), &parts);
}

#[test]
fn integers_are_no_weights() {
    let mut checkpoint = Checkpoint::of("bert");
    checkpoint.tensors.get_mut("bert.pooler.dense.bias").unwrap().0 = Dtype::I32;
    assert_says(&checkpoint.bert_error(), &["bert.pooler.dense.bias", "I32", "wanted F32, F16 or BF16"]);
}

#[test]
fn known_left_overs_and_first_spellings_are_taken() {
    let mut checkpoint = Checkpoint::of("bert");
    checkpoint.tensors.insert("bert.embeddings.position_ids".into(), (Dtype::I64, vec![1, 2], vec![0; 16]));
    checkpoint.tensors.insert("cls.predictions.bias".into(), (Dtype::F32, vec![2], vec![0; 8]));
    let norms: Vec<String> =
        checkpoint.tensors.keys().filter(|name| name.contains("LayerNorm")).cloned().collect();
    assert_eq!(norms.len(), 10);
    for name in norms {
        let tensor = checkpoint.tensors.remove(&name).unwrap();
        let name =
            name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta");
        checkpoint.tensors.insert(name, tensor);
    }
    load_bert::<Flex>(checkpoint.write(), 3, &Default::default()).unwrap();
}

#[test]
fn a_config_of_another_model_is_refused() {
    for (key, value, parts) in [
        ("model_type", "roberta".into(), ["config.json", "model_type is roberta, wanted bert"]),
        ("hidden_act", "relu".into(), ["config.json", "hidden_act is \"relu\""]),
        ("position_embedding_type", "relative_key".into(), ["config.json", "position_embedding_type"]),
        ("num_attention_heads", 3.into(), ["config.json", "hidden_size 16 is not a multiple of"]),
        ("num_hidden_layers", 0.into(), ["config.json", "num_hidden_layers is 0"]),
        ("vocab_size", (-1).into(), ["config.json", "-1"]),
        ("is_decoder", true.into(), ["config.json", "is_decoder is true"]),
        ("hidden_dropout_prob", 1.5.into(), ["config.json", "hidden_dropout_prob is 1.5"]),
    ] {
        let mut checkpoint = Checkpoint::of("bert");
        checkpoint.config[key] = value;
        assert_says(&checkpoint.bert_error(), &parts);
    }
    let mut checkpoint = Checkpoint::of("vit");
    checkpoint.config["patch_size"] = 3.into();
    assert_says(&checkpoint.vit_error(), &["config.json", "image_size 8 is not a multiple of patch_size 3"]);
}

#[test]
fn a_truncated_or_absent_file_is_named() {
    let checkpoint = Checkpoint::of("vit");
    let weights = checkpoint.write().join("model.safetensors");
    let bytes = std::fs::read(&weights).unwrap();
    for length in [0, 7, 100, bytes.len() - 1] {
        std::fs::write(&weights, &bytes[..length]).unwrap();
        let error = load_vit::<Flex>(checkpoint.folder.path(), 3, &Default::default()).unwrap_err();
        assert_says(&error.to_string(), &["model.safetensors", "damaged"]);
    }
    std::fs::remove_file(&weights).unwrap();
    let error = load_vit::<Flex>(checkpoint.folder.path(), 3, &Default::default()).unwrap_err();
    assert_says(&error.to_string(), &["model.safetensors: "]);
}
