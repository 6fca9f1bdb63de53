//! `model.safetensors` → the parameters of a model, each checked by name, type and shape before any is replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use burn::tensor::DType;
use burn::tensor::Element;
use burn::tensor::backend::Backend;
use burn_store::{ModuleSnapshot, ModuleStore, PyTorchToBurnAdapter, SafetensorsStore, TensorSnapshot};

use super::Error;
use super::architecture::Architecture;
use super::parameters::{Parameter, parameters};
use super::{INDEX, WEIGHTS};

/// Replaces every parameter of the backbone, and of the head if it is wanted, by the folder's.
pub(super) fn fill<B: Backend, M: ModuleSnapshot<B>>(
    model: &mut M,
    architecture: Architecture,
    folder: &Path,
    head: Head,
) -> Result<(), Error> {
    let (path, tensors) = read(folder)?;
    let mut file = File::new(&path, tensors, architecture);
    let tensors = parameters(model, head)
        .into_iter()
        .map(|parameter| file.take(parameter, B::FloatElem::dtype()))
        .collect::<Result<Vec<_>, Error>>()?;
    file.check_rest()?;
    let result = model.apply(tensors, None, Some(Box::new(PyTorchToBurnAdapter)), false);
    match result.errors.first() {
        Some(error) => Err(damaged(&path, error)),
        None => Ok(()),
    }
}

/// What becomes of the head that a checkpoint may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// It is left out.
    New,
    /// It is loaded.
    Own,
}

/// All tensors of a folder, and the file that names them: the one, or the index of several.
fn read(folder: &Path) -> Result<(PathBuf, BTreeMap<String, TensorSnapshot>), Error> {
    let mut tensors = BTreeMap::new();
    for path in files(folder)? {
        // Read whole and not mapped: a file that shrinks meanwhile must be an error, not a signal.
        let bytes = std::fs::read(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
        let mut store = SafetensorsStore::from_bytes(Some(bytes));
        tensors.extend(store.get_all_snapshots().map_err(|error| damaged(&path, error))?.clone());
    }
    let index = folder.join(INDEX);
    let path = if index.is_file() { index } else { folder.join(WEIGHTS) };
    Ok((path, tensors))
}

/// The weights' files, those of an index in the order of their names.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    /// `model.safetensors.index.json`: which file each tensor is in.
    #[derive(serde::Deserialize)]
    struct Index {
        weight_map: BTreeMap<String, String>,
    }
    let path = folder.join(INDEX);
    if !path.is_file() {
        return Ok(vec![folder.join(WEIGHTS)]);
    }
    let bytes = std::fs::read(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
    let index: Index = serde_json::from_slice(&bytes)
        .map_err(|error| Error::Config { path: path.clone(), problem: error.to_string() })?;
    let names: BTreeSet<String> = index.weight_map.into_values().collect();
    match names.iter().find(|name| Path::new(name).file_name().is_none_or(|file| file != name.as_str())) {
        Some(name) => {
            Err(Error::Config { path, problem: format!("{name} is not the name of a file beside it") })
        }
        None => Ok(names.iter().map(|name| folder.join(name)).collect()),
    }
}

/// The tensors of a checkpoint that no parameter has taken yet.
struct File<'a> {
    path: &'a Path,
    architecture: Architecture,
    /// `bert.` where the backbone is part of another model.
    prefix: String,
    tensors: BTreeMap<String, TensorSnapshot>,
}

impl<'a> File<'a> {
    fn new(path: &'a Path, tensors: BTreeMap<String, TensorSnapshot>, architecture: Architecture) -> Self {
        let prefix = format!("{}.", architecture.name());
        let inside = tensors.keys().any(|name| name.starts_with(&prefix));
        Self { path, architecture, prefix: if inside { prefix } else { String::new() }, tensors }
    }

    fn take(&mut self, parameter: Parameter, dtype: DType) -> Result<TensorSnapshot, Error> {
        // A head is beside the backbone, not part of it.
        let tensor = match parameter.path.strip_prefix("head.") {
            Some(part) => format!("classifier.{part}"),
            None => format!("{}{}", self.prefix, self.architecture.file_name(&parameter.path)),
        };
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

/// BERT's first checkpoints, `bert-base-uncased` among them, came from TensorFlow and kept its names for
/// normalisations.
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
