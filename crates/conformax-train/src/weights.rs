//! `model.safetensors`: the best weights, under PyTorch's names and in its layout.

use burn::tensor::backend::Backend;
use burn_store::{
    BurnToPyTorchAdapter, ModuleSnapshot, PyTorchToBurnAdapter, SafetensorsStore, SafetensorsStoreError,
};

use crate::error::Error;
use crate::model::Classifier;
use crate::run_folder::RunFolder;

/// The file's name in a run's folder.
pub(crate) const FILE: &str = "model.safetensors";

/// Writes the weights of a model that is not being trained: its running statistics are settled.
pub(crate) fn save<B: Backend>(model: &Classifier<B>, folder: &RunFolder) -> Result<(), Error> {
    // One entry of metadata, the one PyTorch's readers ask for: Burn's own three come out in any order, and with them
    // the bytes of two equal models would differ.
    let mut store = SafetensorsStore::from_bytes(None)
        .clear_metadata()
        .metadata("format", "pt")
        .with_to_adapter(BurnToPyTorchAdapter);
    let bytes = save_into(model, &mut store).and_then(|()| store.get_bytes());
    folder.write(FILE, &bytes.map_err(|error| folder.damaged(FILE, error))?)
}

/// Replaces all weights of `model` by those in the folder.
pub(crate) fn load<B: Backend>(model: &mut Classifier<B>, folder: &RunFolder) -> Result<(), Error> {
    let bytes =
        folder.read(FILE)?.ok_or_else(|| folder.damaged(FILE, "is missing, though the run has weights"))?;
    let mut store = SafetensorsStore::from_bytes(Some(bytes)).with_from_adapter(PyTorchToBurnAdapter);
    load_from(model, &mut store).map_err(|error| folder.damaged(FILE, error))
}

// The variant's name is no part of a tensor's, so each is saved by itself.
fn save_into<B: Backend>(
    model: &Classifier<B>,
    store: &mut SafetensorsStore,
) -> Result<(), SafetensorsStoreError> {
    match model {
        Classifier::Cnn(model) => model.save_into(store),
        Classifier::Bert(model) => model.save_into(store),
        Classifier::Vit(model) => model.save_into(store),
    }
}

fn load_from<B: Backend>(
    model: &mut Classifier<B>,
    store: &mut SafetensorsStore,
) -> Result<(), SafetensorsStoreError> {
    match model {
        Classifier::Cnn(model) => model.load_from(store),
        Classifier::Bert(model) => model.load_from(store),
        Classifier::Vit(model) => model.load_from(store),
    }
    .map(|_| ())
}
