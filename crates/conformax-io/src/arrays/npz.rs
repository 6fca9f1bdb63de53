//! NumPy's `.npz`: a zip of `.npy` arrays, stored or deflated.
//!
//! The zip crate reads the directory; the entries are then read side by side, each at its own position, because a zip
//! reader gives out one entry at a time and labels would have to be held whole.

use std::collections::HashSet;
use std::io::{self, Read};
use std::path::Path;

use flate2::Crc;
use flate2::read::DeflateDecoder;
use zip::{CompressionMethod, ZipArchive};

use crate::arrays::array::{Matrix, Payload, Vector};
use crate::arrays::arrays_reader::{ArraysReader, read_names};
use crate::arrays::npy;
use crate::arrays::npy_header::Header;
use crate::error::{Error, InFile, Problem, Result};
use crate::reading::positioned::{PositionedFile, Section};
use crate::reading::reader::{CLASS_NAMES, Wanted};

pub(crate) fn open(file: &PositionedFile, wanted: &Wanted) -> Result<ArraysReader> {
    let path = file.path();
    let directory = Directory::read(file)?;
    let present: Vec<&str> = directory.entries.iter().map(|entry| entry.name.as_str()).collect();
    let columns = wanted.columns(&present).in_file(path)?;
    let entry = |column: usize| &directory.entries[column];
    let logits = directory.matrix(entry(columns.logits))?;
    let labels = columns.label.map(|column| directory.vector(entry(column), "labels")).transpose()?;
    let mut keep = Vec::new();
    for &column in &columns.keep {
        keep.push((entry(column).name.clone(), directory.vector(entry(column), "kept columns")?));
    }
    for &column in columns.others.iter().filter(|_| wanted.keep_others) {
        // What has not one value per row is about something else.
        if let Ok(vector) = directory.vector(entry(column), "kept columns")
            && vector.rows() == logits.shape().rows
        {
            keep.push((entry(column).name.clone(), vector));
        }
    }
    let names = match CLASS_NAMES.iter().find_map(|name| directory.find(name)) {
        Some(entry) => Some(read_names(directory.vector(entry, "class names")?, logits.shape().classes)?),
        None => None,
    };
    ArraysReader::new(logits, labels, keep, names, path)
}

struct Directory {
    file: PositionedFile,
    entries: Vec<Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    name: String,
    start: u64,
    stored_len: u64,
    len: u64,
    crc: u32,
    deflated: bool,
}

/// Deflate cannot pack tighter than this, so an entry that claims more lies about its length.
const TIGHTEST: u64 = 1032;

impl Directory {
    fn read(file: &PositionedFile) -> Result<Self> {
        let path = file.path();
        let damaged = |what: String| Error::new(path, Problem::Damaged { format: "an npz file", what });
        let mut archive =
            ZipArchive::new(io::BufReader::new(file.whole())).map_err(|error| damaged(error.to_string()))?;
        each_name_once(file, archive.central_directory_start())?;
        let mut entries = Vec::new();
        for index in 0..archive.len() {
            let entry = archive.by_index_raw(index).map_err(|error| damaged(error.to_string()))?;
            let name = entry.name().map_err(|error| damaged(error.to_string()))?.into_owned();
            let Some(name) = name.strip_suffix(".npy").map(str::to_owned) else { continue };
            let deflated = match entry.compression() {
                CompressionMethod::Stored => false,
                CompressionMethod::Deflated => true,
                other => {
                    let problem = Problem::Compressed(other.to_string().to_lowercase());
                    return Err(Error::new(path, problem).in_column(&name));
                }
            };
            if entry.encrypted() {
                return Err(damaged(format!("`{name}` is encrypted")));
            }
            let start = entry.data_start().ok_or_else(|| damaged(format!("`{name}` has no place")))?;
            let (stored_len, len, crc) = (entry.compressed_size(), entry.size(), entry.crc32());
            entries.push(Entry { name, start, stored_len, len, crc, deflated });
        }
        Ok(Self { file: file.clone(), entries })
    }

    fn find(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    fn matrix(&self, entry: &Entry) -> Result<Matrix> {
        let (header, payload) = self.payload(entry).map_err(|error| error.in_column(&entry.name))?;
        npy::matrix(&header, payload)
    }

    fn vector(&self, entry: &Entry, what: &'static str) -> Result<Vector> {
        let (header, payload) = self.payload(entry).map_err(|error| error.in_column(&entry.name))?;
        npy::vector(&header, payload, what)
    }

    fn payload(&self, entry: &Entry) -> Result<(Header, Payload)> {
        let path = self.file.path();
        let section = self.file.section(entry.start, entry.stored_len)?;
        if !entry.deflated {
            return stored(section, entry, path);
        }
        let most = entry.stored_len.saturating_mul(TIGHTEST);
        if entry.len > most {
            return Err(Error::new(path, Problem::Truncated { wanted: entry.len, found: most }));
        }
        let inflated = DeflateDecoder::new(io::BufReader::with_capacity(1 << 18, section));
        npy::from_entry(Box::new(checked(inflated, entry.crc)), entry.len, path)
    }
}

/// Refuses a name that the directory has twice: which of the two is read would depend on the program.
fn each_name_once(file: &PositionedFile, mut at: u64) -> Result<()> {
    const RECORD: u64 = 46;
    let mut names = HashSet::new();
    while at + RECORD <= file.len() {
        let mut record = [0; RECORD as usize];
        file.read_exact_at(&mut record, at)?;
        if !record.starts_with(b"PK\x01\x02") {
            break;
        }
        let length = |place: usize| u16::from_le_bytes([record[place], record[place + 1]]);
        let mut name = vec![0; length(28).into()];
        file.read_exact_at(&mut name, at + RECORD)?;
        at += RECORD + u64::from(length(28)) + u64::from(length(30)) + u64::from(length(32));
        if let Some(name) = names.replace(name) {
            let name = String::from_utf8_lossy(&name);
            let name = name.strip_suffix(".npy").unwrap_or(&name);
            return Err(Error::new(file.path(), Problem::ColumnTwice(name.to_owned())));
        }
    }
    Ok(())
}

/// A stored entry is a slice of the file. Column-major logits are read in place, out of order, so their checksum is
/// not looked at; everything else passes by in order and is checked.
fn stored(section: Section, entry: &Entry, path: &Path) -> Result<(Header, Payload)> {
    if entry.len != entry.stored_len {
        return Err(Error::new(path, Problem::Truncated { wanted: entry.len, found: entry.stored_len }));
    }
    let header = Header::read(&mut section.clone(), path)?;
    if header.fortran {
        let data = section.after(header.len)?;
        header.check_len(data.len(), path)?;
        return Ok((header, Payload::File(data)));
    }
    npy::from_entry(Box::new(checked(section, entry.crc)), entry.len, path)
}

fn checked<R: Read>(inner: R, crc: u32) -> Checked<R> {
    Checked { inner, sum: Crc::new(), wanted: crc }
}

/// Compares the checksum of what passed by with the directory's, at the end.
struct Checked<R> {
    inner: R,
    sum: Crc,
    wanted: u32,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.sum.update(&buffer[..read]);
        if read == 0 && !buffer.is_empty() && self.sum.sum() != self.wanted {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the checksum does not match: the file is damaged",
            ));
        }
        Ok(read)
    }
}
