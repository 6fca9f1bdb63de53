//! Data as safetensors: a JSON header with names, types and places, then the tensors; class names are in its metadata.
//!
//! The header comes first and says where everything is, so the crate's writer would want every tensor at once.

use std::io::Write;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::{DataColumns, Encode, Sink, finish, sink};
use crate::data::values::{ByteOrder, each_dtype};
use crate::error::{InFile, Problem, Result};
use crate::writing::columns::{keep_rows, write_numbers};
use crate::writing::output::Overwrite;
use crate::{Block, CellType, Cells, Dtype, NamedCells};

pub(super) struct SafetensorsData {
    sink: Sink,
    labels: Vec<Option<i64>>,
    keep: Vec<NamedCells>,
}

impl SafetensorsData {
    pub(super) fn new(path: &Path, overwrite: Overwrite, columns: &DataColumns) -> Result<Self> {
        columns.check_names(&["logits", "labels", "__metadata__"]).in_file(path)?;
        let header = header(columns).in_file(path)?;
        let mut sink = sink(path, overwrite)?;
        sink.write_all(&(header.len() as u64).to_le_bytes()).in_file(path)?;
        sink.write_all(header.as_bytes()).in_file(path)?;
        Ok(Self { sink, labels: Vec::new(), keep: Vec::new() })
    }

    fn write_rest(&mut self) -> Result<()> {
        let path = self.sink.get_ref().path().to_owned();
        let labels = Cells::Int(std::mem::take(&mut self.labels));
        write_numbers(&mut self.sink, &labels).in_file(&path)?;
        for column in &self.keep {
            write_numbers(&mut self.sink, &column.cells)
                .in_file(&path)
                .map_err(|error| error.in_column(&column.name))?;
        }
        Ok(())
    }
}

impl Encode for SafetensorsData {
    fn write(&mut self, block: &Block, rows: &[usize]) -> std::result::Result<(), Problem> {
        for &row in rows {
            let range = row * block.classes..(row + 1) * block.classes;
            let bytes: &[u8] = each_dtype!(&block.logits, v => bytemuck::cast_slice(&v[range]));
            self.sink.write_all(bytes)?;
        }
        let labels = block.labels.iter().flat_map(|labels| rows.iter().map(|&row| Some(labels[row].into())));
        self.labels.extend(labels);
        keep_rows(&mut self.keep, block, rows);
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.write_rest()?;
        finish(self.sink)
    }
}

/// Tensors one after another, in the order they are written.
fn header(columns: &DataColumns) -> std::result::Result<String, Problem> {
    // Everything is written in the machine's order, and the format has one.
    if ByteOrder::NATIVE == ByteOrder::Big {
        return Err(Problem::FeatureOff("safetensors"));
    }
    let mut tensors = Map::new();
    let mut end = 0;
    let mut add = |name: &str, dtype: &str, size: usize, shape: &[u64]| {
        let start = end;
        end += shape.iter().product::<u64>() * size as u64;
        let tensor = json!({ "dtype": dtype, "shape": shape, "data_offsets": [start, end] });
        tensors.insert(name.to_owned(), tensor);
    };
    let dtype = match columns.dtype {
        Dtype::F16 => "F16",
        Dtype::Bf16 => "BF16",
        Dtype::F32 => "F32",
        Dtype::F64 => "F64",
    };
    add("logits", dtype, columns.dtype.size(), &[columns.rows, columns.classes as u64]);
    if columns.labels {
        add("labels", "I64", 8, &[columns.rows]);
    }
    for (name, cells) in &columns.keep {
        let (dtype, size) = match cells {
            CellType::Bool => ("BOOL", 1),
            CellType::Int => ("I64", 8),
            CellType::UInt => ("U64", 8),
            CellType::Float => ("F64", 8),
            CellType::Text => return Err(Problem::TextInSafetensors(name.clone())),
        };
        add(name, dtype, size, &[columns.rows]);
    }
    if let Some(names) = &columns.names {
        let list = Value::from(names.as_slice()).to_string();
        tensors.insert("__metadata__".to_owned(), json!({ "class_names": list }));
    }
    let mut text = Value::Object(tensors).to_string();
    // The format wants the tensors aligned.
    while !(text.len() + 8).is_multiple_of(8) {
        text.push(' ');
    }
    Ok(text)
}
