//! A small data set written in every format by code that shares nothing with the readers.
#![allow(dead_code)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{
    ArrayRef, FixedSizeListArray, Int64Array, LargeListArray, ListArray, RecordBatch, StringArray,
    UInt16Array,
};
use arrow_schema::{DataType, Field, Schema};
use conformax::DataFingerprint;
use conformax_io::{Block, Dtype, Values};
use half::{bf16, f16};

/// Logits on a grid that every type down to bfloat16 holds exactly.
pub struct Sample {
    pub rows: usize,
    pub classes: usize,
    pub logits: Vec<f64>,
    pub labels: Vec<u32>,
    pub names: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Write {
    Npy,
    Npz,
    NpzHalf,
    NpzFortran,
    NpzBigEndian,
    Deflated,
    DeflatedFortran,
    Zip64,
    Parquet,
    ParquetFixed,
    Arrow,
    ArrowStream,
    Csv,
    CsvCounting,
    JsonLines,
    Safetensors,
    Bf16Safetensors,
}

impl Write {
    /// Every format that carries labels, the type it comes back as, and whether it carries names.
    pub const ALL: [(Self, Dtype, bool); 16] = [
        (Self::Npz, Dtype::F32, true),
        (Self::NpzHalf, Dtype::F16, false),
        (Self::NpzFortran, Dtype::F64, false),
        (Self::NpzBigEndian, Dtype::F32, true),
        (Self::Deflated, Dtype::F32, true),
        (Self::DeflatedFortran, Dtype::F64, false),
        (Self::Zip64, Dtype::F32, true),
        (Self::Parquet, Dtype::F32, true),
        (Self::ParquetFixed, Dtype::F16, true),
        (Self::Arrow, Dtype::F64, true),
        (Self::ArrowStream, Dtype::F32, true),
        (Self::Csv, Dtype::F64, true),
        (Self::CsvCounting, Dtype::F64, false),
        (Self::JsonLines, Dtype::F64, false),
        (Self::Safetensors, Dtype::F32, true),
        (Self::Bf16Safetensors, Dtype::Bf16, false),
    ];

    pub fn write(self, sample: &Sample, folder: &Path) -> PathBuf {
        let (name, bytes) = match self {
            Self::Npy => ("z.npy", npy("<f4", false, &sample.shape(), &sample.f32_bytes())),
            Self::Npz => ("z.npz", sample.npz("<f4", false, sample.f32_bytes(), false, false)),
            Self::NpzHalf => ("z.npz", sample.npz("<f2", false, sample.f16_bytes(), false, false)),
            Self::NpzFortran => ("z.npz", sample.npz("<f8", true, sample.fortran_bytes(), false, false)),
            Self::NpzBigEndian => {
                ("z.npz", sample.npz(">f4", false, sample.big_endian_bytes(), false, false))
            }
            Self::Deflated => ("z.npz", sample.npz("<f4", false, sample.f32_bytes(), true, false)),
            Self::DeflatedFortran => ("z.npz", sample.npz("<f8", true, sample.fortran_bytes(), true, false)),
            Self::Zip64 => ("z.npz", sample.npz("<f4", false, sample.f32_bytes(), false, true)),
            Self::Parquet => ("z.parquet", sample.parquet(sample.lists())),
            Self::ParquetFixed => ("z.parquet", sample.parquet(sample.fixed_lists())),
            Self::Arrow => ("z.arrow", sample.arrow()),
            Self::ArrowStream => ("z.arrows", sample.arrow_stream()),
            Self::Csv => ("z.csv", sample.csv(true)),
            Self::CsvCounting => ("z.csv", sample.csv(false)),
            Self::JsonLines => ("z.jsonl", sample.json_lines()),
            Self::Safetensors => ("z.safetensors", sample.safetensors("F32", sample.f32_bytes(), true)),
            Self::Bf16Safetensors => {
                ("z.safetensors", sample.safetensors("BF16", sample.bf16_bytes(), false))
            }
        };
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

pub fn npy(descr: &str, fortran: bool, shape: &[usize], data: &[u8]) -> Vec<u8> {
    let sides: String = shape.iter().map(|side| format!("{side},")).collect();
    let order = if fortran { "True" } else { "False" };
    let text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({sides}), }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(data);
    bytes
}

pub fn zip(entries: &[(&str, Vec<u8>)], deflated: bool, large: bool) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let method = if deflated { zip::CompressionMethod::Deflated } else { zip::CompressionMethod::Stored };
    let options = zip::write::SimpleFileOptions::default().compression_method(method).large_file(large);
    for (name, bytes) in entries {
        writer.start_file(*name, options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn utf32(names: &[String], width: usize) -> Vec<u8> {
    let padded = |name: &String| {
        name.chars().map(u32::from).chain(std::iter::repeat(0)).take(width).collect::<Vec<_>>()
    };
    names.iter().flat_map(padded).flat_map(u32::to_le_bytes).collect()
}

impl Sample {
    pub fn new(rows: usize, classes: usize) -> Self {
        let logits = (0..rows * classes)
            .map(|index| ((index * 37 + index / classes) % 101) as f64 / 8.0 - 6.0)
            .collect();
        let labels = (0..rows).map(|row| (row * 5 % classes) as u32).collect();
        let names = (0..classes).map(|class| format!("kläss {class}")).collect();
        Self { rows, classes, logits, labels, names }
    }

    pub fn row(&self, row: usize) -> &[f64] {
        &self.logits[row * self.classes..][..self.classes]
    }

    pub fn fingerprint(&self) -> u64 {
        let block =
            Block { classes: self.classes, logits: Values::F64(self.logits.clone()), ..Block::default() };
        let mut data = DataFingerprint::default();
        data.extend(&block.row_fingerprints());
        data.value()
    }

    pub fn write_pair(&self, folder: &Path, suffix: &str) -> (PathBuf, PathBuf) {
        let logits = folder.join(format!("logits{suffix}.npy"));
        let labels = folder.join(format!("labels{suffix}.npy"));
        std::fs::write(&logits, npy("<f4", false, &self.shape(), &self.f32_bytes())).unwrap();
        let bytes: Vec<u8> = self.labels.iter().map(|&label| label as u8).collect();
        std::fs::write(&labels, npy("|u1", false, &[self.rows], &bytes)).unwrap();
        (logits, labels)
    }

    fn shape(&self) -> [usize; 2] {
        [self.rows, self.classes]
    }

    fn ids(&self) -> Vec<i64> {
        (0..self.rows).map(|row| 1000 + row as i64).collect()
    }

    fn f32_bytes(&self) -> Vec<u8> {
        self.logits.iter().flat_map(|&value| (value as f32).to_le_bytes()).collect()
    }

    fn big_endian_bytes(&self) -> Vec<u8> {
        self.logits.iter().flat_map(|&value| (value as f32).to_be_bytes()).collect()
    }

    fn f16_bytes(&self) -> Vec<u8> {
        self.logits.iter().flat_map(|&value| f16::from_f64(value).to_le_bytes()).collect()
    }

    fn bf16_bytes(&self) -> Vec<u8> {
        self.logits.iter().flat_map(|&value| bf16::from_f64(value).to_le_bytes()).collect()
    }

    fn fortran_bytes(&self) -> Vec<u8> {
        let columns =
            (0..self.classes).flat_map(|class| (0..self.rows).map(move |row| row * self.classes + class));
        columns.flat_map(|index| self.logits[index].to_le_bytes()).collect()
    }

    fn npz(&self, descr: &str, fortran: bool, data: Vec<u8>, deflated: bool, large: bool) -> Vec<u8> {
        let labels: Vec<u8> = self.labels.iter().flat_map(|&label| (label as i16).to_be_bytes()).collect();
        let ids: Vec<u8> = self.ids().iter().flat_map(|id| id.to_le_bytes()).collect();
        let mut entries = vec![
            ("labels.npy", npy(">i2", false, &[self.rows], &labels)),
            ("logits.npy", npy(descr, fortran, &self.shape(), &data)),
            ("id.npy", npy("<i8", false, &[self.rows], &ids)),
        ];
        if descr.ends_with("f4") {
            entries.push(("class_names.npy", npy("<U12", false, &[self.classes], &utf32(&self.names, 12))));
        }
        zip(&entries, deflated, large)
    }

    fn table(&self, logits: ArrayRef) -> RecordBatch {
        let labels: ArrayRef =
            Arc::new(UInt16Array::from_iter_values(self.labels.iter().map(|&label| label as u16)));
        let ids: ArrayRef = Arc::new(Int64Array::from(self.ids()));
        let fields = vec![
            Field::new("id", DataType::Int64, false),
            Field::new("label", DataType::UInt16, false),
            Field::new("logits", logits.data_type().clone(), false),
        ];
        let names = serde_json::to_string(&self.names).unwrap();
        let schema = Schema::new(fields).with_metadata([("class_names".to_owned(), names)].into());
        RecordBatch::try_new(Arc::new(schema), vec![ids, labels, logits]).unwrap()
    }

    fn lists(&self) -> ArrayRef {
        let rows = (0..self.rows).map(|row| Some(self.row(row).iter().map(|&value| Some(value as f32))));
        Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(rows))
    }

    fn large_lists(&self) -> ArrayRef {
        let rows = (0..self.rows).map(|row| Some(self.row(row).iter().map(|&value| Some(value))));
        Arc::new(LargeListArray::from_iter_primitive::<Float64Type, _, _>(rows))
    }

    fn fixed_lists(&self) -> ArrayRef {
        let rows =
            (0..self.rows).map(|row| Some(self.row(row).iter().map(|&value| Some(f16::from_f64(value)))));
        Arc::new(FixedSizeListArray::from_iter_primitive::<Float16Type, _, _>(rows, self.classes as i32))
    }

    fn parquet(&self, logits: ArrayRef) -> Vec<u8> {
        let table = self.table(logits);
        let mut bytes = Vec::new();
        let mut writer = parquet::arrow::ArrowWriter::try_new(&mut bytes, table.schema(), None).unwrap();
        writer.write(&table).unwrap();
        writer.close().unwrap();
        bytes
    }

    fn arrow(&self) -> Vec<u8> {
        let table = self.table(self.large_lists());
        let mut writer = arrow_ipc::writer::FileWriter::try_new(Vec::new(), &table.schema()).unwrap();
        let half = self.rows / 2;
        writer.write(&table.slice(0, half)).unwrap();
        writer.write(&table.slice(half, self.rows - half)).unwrap();
        writer.into_inner().unwrap()
    }

    fn arrow_stream(&self) -> Vec<u8> {
        let table = self.table(self.lists());
        let names = Arc::new(StringArray::from_iter_values(
            self.labels.iter().map(|&label| &self.names[label as usize]),
        ));
        let fields: Vec<_> =
            vec![Field::new("label", DataType::Utf8, false), table.schema().field(2).clone()];
        let schema = Arc::new(Schema::new(fields).with_metadata(table.schema().metadata().clone()));
        let table = RecordBatch::try_new(schema, vec![names, table.column(2).clone()]).unwrap();
        let mut writer = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &table.schema()).unwrap();
        writer.write(&table).unwrap();
        writer.into_inner().unwrap()
    }

    /// With names every label is a name; without, the table is the bare dump of an array.
    fn csv(&self, named: bool) -> Vec<u8> {
        let head: Vec<String> = match named {
            true => self.names.clone(),
            false => (0..self.classes).map(|class| class.to_string()).collect(),
        };
        let mut text = format!("{},label\r\n", head.join(","));
        for row in 0..self.rows {
            let cells: Vec<String> = self.row(row).iter().map(f64::to_string).collect();
            text += &format!("{},{}\r\n", cells.join(","), head[self.labels[row] as usize]);
        }
        text.into_bytes()
    }

    fn json_lines(&self) -> Vec<u8> {
        let line = |row: usize| {
            serde_json::json!({ "logits": self.row(row), "label": self.labels[row], "id": 1000 + row })
                .to_string()
                + "\n"
        };
        (0..self.rows).map(line).collect::<String>().into_bytes()
    }

    fn safetensors(&self, dtype: &str, data: Vec<u8>, named: bool) -> Vec<u8> {
        let labels: Vec<u8> = self.labels.iter().flat_map(|label| label.to_le_bytes()).collect();
        let ids: Vec<u8> = self.ids().iter().flat_map(|id| id.to_le_bytes()).collect();
        let (a, b, c) = (data.len(), data.len() + ids.len(), data.len() + ids.len() + labels.len());
        let mut header = serde_json::json!({
            "logits": { "dtype": dtype, "shape": self.shape(), "data_offsets": [0, a] },
            "id": { "dtype": "I64", "shape": [self.rows], "data_offsets": [a, b] },
            "labels": { "dtype": "U32", "shape": [self.rows], "data_offsets": [b, c] },
        });
        if named {
            header["__metadata__"] =
                serde_json::json!({ "class_names": serde_json::to_string(&self.names).unwrap() });
        }
        let header = header.to_string();
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes.extend(ids);
        bytes.extend(labels);
        bytes
    }
}
