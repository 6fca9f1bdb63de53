//! Makes a data file larger than memory from a small one, for `scripts/big-files`.
//!
//! `big_file LOGITS.npy LABELS.npy TILES FORMAT OUTPUT` repeats the rows TILES times as `f32`. Each repetition is
//! shifted by a constant of its own, which changes no set but makes every row a different one. FORMAT is `npy` (C
//! order), `fortran`, `npz` (deflated) or `parquet` (one row group); the first two write `OUTPUT.labels.npy` beside.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conformax_io::{Block, Data, LabelUse, Source, SourceOptions};
use parquet::data_type::{FloatType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [logits, labels, tiles, format, output] = &args[..] else {
        return Err("usage: big_file LOGITS.npy LABELS.npy TILES FORMAT OUTPUT".into());
    };
    let tile = Tile::read(logits.into(), labels.into())?;
    let (tiles, path) = (tiles.parse()?, PathBuf::from(output));
    match format.as_str() {
        "npy" => tile.write_npy(tiles, &path),
        "fortran" => tile.write_fortran(tiles, &path),
        "npz" => tile.write_npz(tiles, &path),
        "parquet" => tile.write_parquet(tiles, &path),
        other => Err(format!("`{other}` is not npy, fortran, npz or parquet").into()),
    }
}

/// The rows that are repeated.
struct Tile {
    logits: Vec<f32>,
    labels: Vec<u32>,
    classes: usize,
}

impl Tile {
    fn read(logits: PathBuf, labels: PathBuf) -> Outcome<Self> {
        let options = SourceOptions { labels: LabelUse::Required, ..SourceOptions::default() };
        let mut source = Source::open(&Data::Pair { logits, labels: Some(labels) }, &options)?;
        let mut tile = Self { logits: Vec::new(), labels: Vec::new(), classes: source.classes() };
        let mut block = Block::default();
        while source.read(&mut block)? {
            let values = (0..block.logits.len()).filter_map(|index| block.logits.get(index));
            tile.logits.extend(values.map(|value| value as f32));
            tile.labels.extend(block.labels.as_deref().unwrap_or_default());
        }
        Ok(tile)
    }

    fn rows(&self) -> usize {
        self.labels.len()
    }

    fn shifted(&self, tile: usize) -> Vec<f32> {
        self.logits.iter().map(|value| value + shift(tile)).collect()
    }

    fn logits_header(&self, tiles: usize, fortran: bool) -> Vec<u8> {
        header("<f4", fortran, &format!("{}, {}", self.rows() * tiles, self.classes))
    }

    fn write_labels(&self, tiles: usize, out: &mut impl Write) -> Outcome<()> {
        out.write_all(&header("<u4", false, &format!("{},", self.rows() * tiles)))?;
        let bytes: Vec<u8> = self.labels.iter().flat_map(|label| label.to_le_bytes()).collect();
        (0..tiles).try_for_each(|_| out.write_all(&bytes))?;
        Ok(())
    }

    fn write_labels_beside(&self, tiles: usize, path: &Path) -> Outcome<()> {
        let mut name = path.as_os_str().to_owned();
        name.push(".labels.npy");
        self.write_labels(tiles, &mut BufWriter::new(File::create(name)?))
    }

    fn write_rows(&self, tiles: usize, out: &mut impl Write) -> Outcome<()> {
        for tile in 0..tiles {
            out.write_all(&bytes(self.shifted(tile)))?;
        }
        Ok(())
    }

    fn write_npy(&self, tiles: usize, path: &Path) -> Outcome<()> {
        let mut out = BufWriter::new(File::create(path)?);
        out.write_all(&self.logits_header(tiles, false))?;
        self.write_rows(tiles, &mut out)?;
        out.flush()?;
        self.write_labels_beside(tiles, path)
    }

    fn write_fortran(&self, tiles: usize, path: &Path) -> Outcome<()> {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
        out.write_all(&self.logits_header(tiles, true))?;
        for class in 0..self.classes {
            let column: Vec<f32> = self.logits.iter().skip(class).step_by(self.classes).copied().collect();
            for tile in 0..tiles {
                out.write_all(&bytes(column.iter().map(|value| value + shift(tile)).collect()))?;
            }
        }
        out.flush()?;
        self.write_labels_beside(tiles, path)
    }

    fn write_npz(&self, tiles: usize, path: &Path) -> Outcome<()> {
        let mut zip = zip::ZipWriter::new(BufWriter::new(File::create(path)?));
        let deflated = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Deflated)
            .compression_level(Some(1))
            .large_file(true);
        zip.start_file("labels.npy", deflated)?;
        self.write_labels(tiles, &mut zip)?;
        zip.start_file("logits.npy", deflated)?;
        zip.write_all(&self.logits_header(tiles, false))?;
        self.write_rows(tiles, &mut zip)?;
        zip.finish()?.flush()?;
        Ok(())
    }

    /// Column by column, since a row group written row by row is held in memory until it is whole.
    fn write_parquet(&self, tiles: usize, path: &Path) -> Outcome<()> {
        let schema = Arc::new(parse_message_type(
            "message data {
                required int64 labels;
                required group logits (LIST) { repeated group list { required float element; } }
            }",
        )?);
        let properties = Arc::new(WriterProperties::builder().set_dictionary_enabled(false).build());
        let mut file = SerializedFileWriter::new(File::create(path)?, schema, properties)?;
        let mut group = file.next_row_group()?;
        let labels: Vec<i64> = self.labels.iter().map(|label| i64::from(*label)).collect();
        if let Some(mut column) = group.next_column()? {
            for _ in 0..tiles {
                column.typed::<Int64Type>().write_batch(&labels, None, None)?;
            }
            column.close()?;
        }
        // Every element is there; the first of a row begins a new list.
        let present = vec![1; self.logits.len()];
        let within: Vec<i16> =
            (0..self.logits.len()).map(|index| i16::from(!index.is_multiple_of(self.classes))).collect();
        if let Some(mut column) = group.next_column()? {
            for tile in 0..tiles {
                let values = self.shifted(tile);
                column.typed::<FloatType>().write_batch(&values, Some(&present), Some(&within))?;
            }
            column.close()?;
        }
        group.close()?;
        file.close()?;
        Ok(())
    }
}

/// A constant of the repetition, exact beside logits of ordinary size.
fn shift(tile: usize) -> f32 {
    tile as f32 / 1024.0
}

fn bytes(values: Vec<f32>) -> Vec<u8> {
    values.into_iter().flat_map(f32::to_le_bytes).collect()
}

fn header(descr: &str, fortran: bool, shape: &str) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({shape}), }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes
}
