//! `config.json` → a model's sizes, and the checks that it describes the model we have.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Error;
use super::architecture::Architecture;

/// Keys whose other values would make another model of the same tensors, with the one value we compute.
const FIXED: [(&str, &str); 2] = [("hidden_act", "gelu"), ("position_embedding_type", "absolute")];

/// What a config calls its model, if anything.
pub(super) fn model_type(path: &Path) -> Result<Option<String>, Error> {
    Ok(value(path)?.get("model_type").and_then(Value::as_str).map(str::to_owned))
}

/// A file of JSON.
pub(super) fn value(path: &Path) -> Result<Value, Error> {
    let bytes = std::fs::read(path).map_err(|source| Error::Read { path: path.into(), source })?;
    serde_json::from_slice(&bytes).map_err(|error| problem(path, error.to_string()))
}

/// Reads a config and refuses one of another architecture or with parts this crate does not have.
pub(super) fn read<C: DeserializeOwned>(path: &Path, architecture: Architecture) -> Result<C, Error> {
    let value = value(path)?;
    let model = value.get("model_type").and_then(Value::as_str);
    if model != Some(architecture.name()) {
        let found = model.unwrap_or("not given");
        return Err(problem(path, format!("model_type is {found}, wanted {}", architecture.name())));
    }
    for (key, wanted) in FIXED {
        match value.get(key) {
            Some(found) if found.as_str() != Some(wanted) => {
                return Err(problem(path, format!("{key} is {found}, only \"{wanted}\" is supported")));
            }
            Some(_) | None => {}
        }
    }
    for (key, wanted) in [("is_decoder", false), ("qkv_bias", true)] {
        if value.get(key).is_some_and(|found| found.as_bool() != Some(wanted)) {
            return Err(problem(path, format!("{key} is {}, only {wanted} is supported", value[key])));
        }
    }
    serde_json::from_value(value).map_err(|error| problem(path, error.to_string()))
}

/// What every encoder asks of its sizes and rates; its heads share the features equally.
pub(super) fn check(
    path: &Path,
    sizes: &[(&str, usize)],
    rates: &[(&str, f64)],
    features: usize,
    heads: usize,
) -> Result<(), Error> {
    check_sizes(path, sizes)?;
    check_rates(path, rates)?;
    check_division(path, ("hidden_size", features), ("num_attention_heads", heads))
}

/// No size may be 0.
fn check_sizes(path: &Path, sizes: &[(&str, usize)]) -> Result<(), Error> {
    match sizes.iter().find(|(_, size)| *size == 0) {
        Some((name, _)) => Err(problem(path, format!("{name} is 0"))),
        None => Ok(()),
    }
}

/// A rate drops some and keeps some.
fn check_rates(path: &Path, rates: &[(&str, f64)]) -> Result<(), Error> {
    match rates.iter().find(|(_, rate)| !(0.0..1.0).contains(rate)) {
        Some((name, rate)) => {
            Err(problem(path, format!("{name} is {rate}, wanted 0 or more and less than 1")))
        }
        None => Ok(()),
    }
}

/// `whole` must be a multiple of `part`, which is not 0.
pub(super) fn check_division(path: &Path, whole: (&str, usize), part: (&str, usize)) -> Result<(), Error> {
    if whole.1.is_multiple_of(part.1) {
        return Ok(());
    }
    Err(problem(path, format!("{} {} is not a multiple of {} {}", whole.0, whole.1, part.0, part.1)))
}

pub(super) fn problem(path: &Path, problem: String) -> Error {
    Error::Config { path: path.into(), problem }
}
