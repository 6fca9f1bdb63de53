//! Safetensors: a JSON header with names, types and places, then the tensors.
//!
//! Class names are looked for in the header's `__metadata__` as a JSON array under `class_names` or `classes`.

use std::path::Path;

use safetensors::Dtype as TensorType;
use safetensors::tensor::{Metadata, TensorInfo};
use serde::de::IgnoredAny;

use crate::arrays::array::{Element, Matrix, NUMBERS, Order, Payload, Vector};
use crate::arrays::arrays_reader::ArraysReader;
use crate::data::class_names::from_json;
use crate::data::json_pairs::JsonPairs;
use crate::data::values::ByteOrder;
use crate::error::{Error, InFile, Problem, Result};
use crate::reading::positioned::PositionedFile;
use crate::reading::reader::{CLASS_NAMES, Wanted};
use crate::{ClassNames, Dtype};

/// The format's own limit on its header.
const LONGEST_HEADER: u64 = 100_000_000;

pub(crate) fn open(file: &PositionedFile, wanted: &Wanted) -> Result<ArraysReader> {
    let path = file.path();
    let tensors = Tensors::read(file)?;
    let infos = tensors.infos();
    let present: Vec<&str> = infos.iter().map(|(name, _)| name.as_str()).collect();
    let columns = wanted.columns(&present).in_file(path)?;
    let logits = tensors.matrix(infos[columns.logits].1)?;
    let vector = |column: usize| tensors.vector(infos[column].1);
    let labels = columns.label.map(vector).transpose()?;
    let mut keep = Vec::new();
    for &column in &columns.keep {
        keep.push((infos[column].0.clone(), vector(column)?));
    }
    for &column in columns.others.iter().filter(|_| wanted.keep_others) {
        // What has not one value per row is about something else.
        if let Ok(vector) = vector(column)
            && vector.rows() == logits.shape().rows
        {
            keep.push((infos[column].0.clone(), vector));
        }
    }
    let names = tensors.names(path)?;
    ArraysReader::new(logits, labels, keep, names, path)
}

struct Tensors<'a> {
    file: &'a PositionedFile,
    metadata: Metadata,
    data_start: u64,
}

impl<'a> Tensors<'a> {
    fn read(file: &'a PositionedFile) -> Result<Self> {
        let path = file.path();
        let damaged =
            |what: String| Error::new(path, Problem::Damaged { format: "a safetensors file", what });
        let mut length = [0; 8];
        file.read_exact_at(&mut length, 0)?;
        let length = u64::from_le_bytes(length);
        if length > LONGEST_HEADER {
            return Err(damaged(format!("its header claims {length} bytes")));
        }
        file.section(8, length)?;
        let mut header = vec![0; length as usize];
        file.read_exact_at(&mut header, 8)?;
        let pairs: Option<JsonPairs<IgnoredAny>> = serde_json::from_slice(&header).ok();
        if let Some(twice) = pairs.as_ref().and_then(JsonPairs::repeated) {
            return Err(Error::new(path, Problem::ColumnTwice(twice.to_owned())));
        }
        let metadata: Metadata =
            serde_json::from_slice(&header).map_err(|error| damaged(error.to_string()))?;
        Ok(Self { file, metadata, data_start: 8 + length })
    }

    /// The tensors in the order of their bytes: that of a hash map would change from run to run.
    fn infos(&self) -> Vec<(String, &TensorInfo)> {
        let mut infos: Vec<(String, &TensorInfo)> = self.metadata.tensors().into_iter().collect();
        infos.sort_by(|(a, first), (b, second)| (first.data_offsets, a).cmp(&(second.data_offsets, b)));
        infos
    }

    /// The bytes of a tensor, which must be as many as its shape and type ask for.
    fn payload(&self, info: &TensorInfo, len: Option<u64>) -> Result<Payload> {
        let (start, end) = (info.data_offsets.0 as u64, info.data_offsets.1 as u64);
        let found = end.saturating_sub(start);
        if len != Some(found) {
            let wanted = len.unwrap_or(u64::MAX);
            return Err(Error::new(self.file.path(), Problem::Truncated { wanted, found }));
        }
        Ok(Payload::File(self.file.section(self.data_start.saturating_add(start), found)?))
    }

    fn matrix(&self, info: &TensorInfo) -> Result<Matrix> {
        let path = self.file.path();
        let &[rows, classes] = info.shape.as_slice() else {
            let found = format!("{:?}", info.shape);
            return Err(Error::new(
                path,
                Problem::Shape { what: "logits", wanted: "(rows, classes)", found },
            ));
        };
        let wrong = || {
            let (wanted, found) = (NUMBERS, info.dtype.to_string());
            Error::new(path, Problem::Dtype { what: "logits", wanted, found })
        };
        let element = element(info.dtype).ok_or_else(wrong)?;
        let rows = rows as u64;
        let len = rows.checked_mul(classes as u64).and_then(|len| len.checked_mul(element.size() as u64));
        let payload = self.payload(info, len)?;
        Matrix::of_numbers(payload, element, rows, classes, ByteOrder::Little, Order::RowMajor)
            .unwrap_or_else(|| Err(wrong()))
    }

    fn vector(&self, info: &TensorInfo) -> Result<Vector> {
        let path = self.file.path();
        let &([rows] | [rows, 1]) = info.shape.as_slice() else {
            let found = format!("{:?}", info.shape);
            return Err(Error::new(path, Problem::Shape { what: "labels", wanted: "(rows,)", found }));
        };
        let Some(element) = element(info.dtype) else {
            let (wanted, found) = ("integers", info.dtype.to_string());
            return Err(Error::new(path, Problem::Dtype { what: "labels", wanted, found }));
        };
        let payload = self.payload(info, (rows as u64).checked_mul(element.size() as u64))?;
        Ok(Vector::new(payload, element, ByteOrder::Little, rows as u64))
    }

    fn names(&self, path: &Path) -> Result<Option<ClassNames>> {
        let Some(notes) = self.metadata.metadata() else { return Ok(None) };
        let names = CLASS_NAMES.iter().find_map(|key| Some((*key, notes.get(*key)?)));
        let names = names.map(|(key, text)| from_json(key, text)).transpose().in_file(path)?.flatten();
        names.map(ClassNames::new).transpose().in_file(path)
    }
}

fn element(tensor: TensorType) -> Option<Element> {
    Some(match tensor {
        TensorType::BOOL => Element::Bool,
        TensorType::U8 => Element::Int { size: 1, signed: false },
        TensorType::I8 => Element::Int { size: 1, signed: true },
        TensorType::U16 => Element::Int { size: 2, signed: false },
        TensorType::I16 => Element::Int { size: 2, signed: true },
        TensorType::U32 => Element::Int { size: 4, signed: false },
        TensorType::I32 => Element::Int { size: 4, signed: true },
        TensorType::U64 => Element::Int { size: 8, signed: false },
        TensorType::I64 => Element::Int { size: 8, signed: true },
        TensorType::F16 => Element::Float(Dtype::F16),
        TensorType::BF16 => Element::Float(Dtype::Bf16),
        TensorType::F32 => Element::Float(Dtype::F32),
        TensorType::F64 => Element::Float(Dtype::F64),
        _ => return None,
    })
}
