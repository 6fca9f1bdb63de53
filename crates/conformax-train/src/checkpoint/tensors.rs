//! `model.safetensors` → the parameters of a model, each checked by name, type and shape before any is replaced.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use burn::tensor::DType;
use burn::tensor::Element;
use burn::tensor::backend::Backend;
use burn_store::{ModuleSnapshot, ModuleStore, PyTorchToBurnAdapter, SafetensorsStore, TensorSnapshot};

use super::Error;
use super::architecture::Architecture;
use super::parameters::{Parameter, backbone_parameters};

/// Replaces every parameter of the backbone by the file's.
pub(super) fn fill<B: Backend, M: ModuleSnapshot<B>>(
    model: &mut M,
    architecture: Architecture,
    path: &Path,
) -> Result<(), Error> {
    let mut file = File::open(path, architecture)?;
    let tensors = backbone_parameters(model)
        .into_iter()
        .map(|parameter| file.take(parameter, B::FloatElem::dtype()))
        .collect::<Result<Vec<_>, Error>>()?;
    file.check_rest()?;
    let result = model.apply(tensors, None, Some(Box::new(PyTorchToBurnAdapter)), false);
    match result.errors.first() {
        Some(error) => Err(damaged(path, error)),
        None => Ok(()),
    }
}

/// The tensors of a file that no parameter has taken yet.
struct File<'a> {
    path: &'a Path,
    architecture: Architecture,
    /// `bert.` where the backbone is part of another model.
    prefix: String,
    tensors: BTreeMap<String, TensorSnapshot>,
}

impl<'a> File<'a> {
    /// Read whole and not mapped: a file that shrinks meanwhile must be an error, not a signal.
    fn open(path: &'a Path, architecture: Architecture) -> Result<Self, Error> {
        let bytes = std::fs::read(path).map_err(|source| Error::Read { path: path.into(), source })?;
        let mut store = SafetensorsStore::from_bytes(Some(bytes));
        let tensors = store.get_all_snapshots().map_err(|error| damaged(path, error))?.clone();
        let prefix = format!("{}.", architecture.name());
        let inside = tensors.keys().any(|name| name.starts_with(&prefix));
        Ok(Self { path, architecture, prefix: if inside { prefix } else { String::new() }, tensors })
    }

    fn take(&mut self, parameter: Parameter, dtype: DType) -> Result<TensorSnapshot, Error> {
        let tensor = format!("{}{}", self.prefix, self.architecture.file_name(&parameter.path));
        let stored = self
            .tensors
            .remove(&tensor)
            .or_else(|| self.tensors.remove(&first_spelling(&tensor)))
            .ok_or_else(|| Error::Missing { path: self.path.into(), tensor: tensor.clone() })?;
        if !matches!(stored.dtype, DType::F32 | DType::F16 | DType::BF16) {
            return Err(Error::Type { path: self.path.into(), tensor, found: format!("{:?}", stored.dtype) });
        }
        if stored.shape.to_vec() != parameter.file_shape {
            let (found, wanted) = (stored.shape.to_vec(), parameter.file_shape);
            return Err(Error::Shape { path: self.path.into(), tensor, found, wanted });
        }
        Ok(converted(&stored, parameter.path, dtype))
    }

    fn check_rest(&self) -> Result<(), Error> {
        let known = |name: &str| self.architecture.left_out(name.strip_prefix(&self.prefix).unwrap_or(name));
        match self.tensors.keys().find(|name| !known(name)) {
            Some(tensor) => Err(Error::Unknown {
                path: self.path.into(),
                tensor: tensor.clone(),
                model: self.architecture.name(),
            }),
            None => Ok(()),
        }
    }
}

/// BERT's first checkpoints, `bert-base-uncased` among them, came from TensorFlow and kept its names for normalisations.
fn first_spelling(tensor: &str) -> String {
    tensor.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
}

/// The same numbers in the backend's type, under our path. They are copied when the model takes them, one at a time.
fn converted(stored: &TensorSnapshot, path: String, dtype: DType) -> TensorSnapshot {
    let read = stored.clone_data_fn();
    TensorSnapshot::from_closure(
        Rc::new(move || Ok(read()?.convert_dtype(dtype))),
        dtype,
        stored.shape.clone(),
        path.split('.').map(String::from).collect(),
        Vec::new(),
        stored.tensor_id.unwrap_or_default(),
    )
}

fn damaged(path: &Path, problem: impl std::fmt::Display) -> Error {
    Error::Damaged { path: path.into(), problem: problem.to_string() }
}
