//! MNIST's idx files, plain or compressed with gzip.
//!
//! Two zero bytes, the type of the elements (8: unsigned bytes), the number of dimensions, each dimension as a
//! big-endian 32-bit number, then the elements.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::error::{Error, InFile, Problem, Result};
use super::images::{Images, Pixels};
use super::{Dataset, Inputs, Parts, class_names};

const FORMAT: &str = "an idx file";

pub(crate) fn read(folder: &Path) -> Result<Dataset> {
    let Some(train) = Files::find(folder, "train")? else {
        return Err(Error::new(folder, Problem::Missing("train-images-idx3-ubyte, plain or .gz")));
    };
    let (mut images, mut labels) = train.read(None)?;
    let rows = labels.len();
    let classes = labels.iter().max().map_or(0, |last| *last as usize + 1);
    if let Some(test) = Files::find(folder, "t10k")? {
        let (more, more_labels) = test.read(Some((images.shape(), classes)))?;
        images.append(more);
        labels.extend(more_labels);
    }
    Ok(Dataset {
        inputs: Inputs::Images(Images::Memory(images)),
        class_names: class_names::numbers(classes),
        parts: Parts::in_sequence(rows, 0, labels.len() - rows),
        labels,
    })
}

struct Files {
    images: PathBuf,
    labels: PathBuf,
}

impl Files {
    /// The two files of a part, or nothing where there are no images of it.
    fn find(folder: &Path, part: &str) -> Result<Option<Self>> {
        let Some(images) = existing(folder, &format!("{part}-images"), "idx3-ubyte")? else {
            return Ok(None);
        };
        let Some(labels) = existing(folder, &format!("{part}-labels"), "idx1-ubyte")? else {
            return Err(Error::new(images, Problem::Missing("labels: their file is not beside it")));
        };
        Ok(Some(Self { images, labels }))
    }

    /// Images and labels; `expected` are the shape and the number of classes of the training part.
    fn read(&self, expected: Option<([usize; 3], usize)>) -> Result<(Pixels, Vec<u32>)> {
        let ([rows, height, width], pixels) = elements::<3>(&self.images)?;
        let ([count], bytes) = elements::<1>(&self.labels)?;
        if rows != count {
            return Err(Error::new(&self.labels, Problem::RowsDiffer { images: rows, labels: count }));
        }
        if pixels.is_empty() {
            return Err(Error::new(&self.images, Problem::Missing("images")));
        }
        let (shape, classes) = expected.unwrap_or(([1, height, width], usize::MAX));
        if shape != [1, height, width] {
            let [_, wanted_height, wanted_width] = shape;
            let (wanted, found) = (format!("{wanted_height}×{wanted_width}"), format!("{height}×{width}"));
            return Err(Error::new(&self.images, Problem::SizesDiffer { wanted, found }));
        }
        let label =
            |(row, byte): (usize, &u8)| class_names::check(&self.labels, row, u32::from(*byte), classes);
        let labels = bytes.iter().enumerate().map(label).collect::<Result<_>>()?;
        Ok((Pixels::new(pixels, shape), labels))
    }
}

/// The file as MNIST's page names it, or with the dot that unpacking tools leave; plain before compressed.
fn existing(folder: &Path, stem: &str, kind: &str) -> Result<Option<PathBuf>> {
    for end in ["", ".gz"] {
        for separator in ["-", "."] {
            let path = folder.join(format!("{stem}{separator}{kind}{end}"));
            if path.try_exists().in_file(&path)? {
                return Ok(Some(path));
            }
        }
    }
    Ok(None)
}

/// The dimensions and bytes of an array with `N` dimensions.
fn elements<const N: usize>(path: &Path) -> Result<([usize; N], Vec<u8>)> {
    let file = BufReader::new(File::open(path).in_file(path)?);
    if path.extension().is_some_and(|end| end == "gz") {
        return decode(path, MultiGzDecoder::new(file));
    }
    decode(path, file)
}

fn decode<const N: usize>(path: &Path, mut file: impl Read) -> Result<([usize; N], Vec<u8>)> {
    let mut magic = [0; 4];
    file.read_exact(&mut magic).map_err(|error| Error::damaged(path, FORMAT, error))?;
    if magic != [0, 0, 8, N as u8] {
        let what = format!("starts with {magic:?}, wanted [0, 0, 8, {N}]");
        return Err(Error::damaged(path, FORMAT, what));
    }
    let mut dimensions = [0; N];
    for dimension in &mut dimensions {
        let mut bytes = [0; 4];
        file.read_exact(&mut bytes).map_err(|error| Error::damaged(path, FORMAT, error))?;
        *dimension = u32::from_be_bytes(bytes) as usize;
    }
    let wanted = dimensions.iter().try_fold(1u64, |product, size| product.checked_mul(*size as u64));
    let wanted = wanted.ok_or_else(|| Error::damaged(path, FORMAT, "its dimensions overflow"))?;
    // Grows with what is there: the header's word is not taken for the size of an allocation.
    let mut bytes = Vec::new();
    file.take(wanted.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| Error::damaged(path, FORMAT, error))?;
    if bytes.len() as u64 != wanted {
        return Err(Error::new(path, Problem::Length { wanted, found: bytes.len() as u64 }));
    }
    Ok((dimensions, bytes))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn idx(dimensions: &[u32], elements: &[u8]) -> Vec<u8> {
        let header = dimensions.iter().flat_map(|size| size.to_be_bytes());
        [0, 0, 8, dimensions.len() as u8].into_iter().chain(header).chain(elements.iter().copied()).collect()
    }

    fn write(folder: &Path, name: &str, bytes: &[u8]) {
        std::fs::write(folder.join(name), bytes).unwrap();
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn reads_plain_and_compressed_files() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "train-images-idx3-ubyte.gz", &gzip(&idx(&[2, 1, 2], &[1, 2, 3, 4])));
        write(folder.path(), "train-labels-idx1-ubyte", &idx(&[2], &[0, 2]));
        write(folder.path(), "t10k-images.idx3-ubyte", &idx(&[1, 1, 2], &[5, 6]));
        write(folder.path(), "t10k-labels-idx1-ubyte.gz", &gzip(&idx(&[1], &[1])));
        let data = read(folder.path()).unwrap();
        assert_eq!((data.labels, data.class_names.len()), (vec![0, 2, 1], 3));
        assert_eq!(data.parts, Parts::in_sequence(2, 0, 1));
        let Inputs::Images(Images::Memory(pixels)) = &data.inputs else { panic!("not in memory") };
        assert_eq!((pixels.shape(), pixels.row(2)), ([1, 1, 2], &[5, 6][..]));
    }

    #[test]
    fn refuses_damaged_files_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let (images, labels) = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte");
        let message = || read(folder.path()).unwrap_err().to_string();
        assert!(message().ends_with("holds no train-images-idx3-ubyte, plain or .gz"), "{}", message());
        let refuses = |image_bytes: &[u8], label_bytes: &[u8], wanted: &str| {
            write(folder.path(), images, image_bytes);
            write(folder.path(), labels, label_bytes);
            assert!(message().contains(wanted), "{} is not {wanted}", message());
        };
        let (good, good_labels) = (idx(&[1, 1, 2], &[1, 2]), idx(&[1], &[0]));
        refuses(
            &good_labels,
            &good_labels,
            "idx3-ubyte: damaged or not an idx file: starts with [0, 0, 8, 1]",
        );
        refuses(&good[..6], &good_labels, "idx3-ubyte: damaged or not an idx file: failed to fill");
        refuses(&good[..17], &good_labels, "idx3-ubyte: needs 2 bytes, but 1 are there");
        refuses(
            &[good.clone(), vec![0]].concat(),
            &good_labels,
            "idx3-ubyte: needs 2 bytes, but 3 are there",
        );
        refuses(&idx(&[u32::MAX; 3], &[1]), &good_labels, "its dimensions overflow");
        refuses(&idx(&[u32::MAX, u32::MAX, 1], &[1]), &good_labels, "bytes, but 1 are there");
        refuses(&good, &idx(&[2], &[0, 1]), "idx1-ubyte: 2 labels for 1 images");
        refuses(&idx(&[0, 1, 1], &[]), &idx(&[0], &[]), "idx3-ubyte: holds no images");
        write(folder.path(), "t10k-images-idx3-ubyte", &idx(&[1, 2, 1], &[0, 0]));
        refuses(&good, &good_labels, "t10k-images-idx3-ubyte: holds no labels");
        write(folder.path(), "t10k-labels-idx1-ubyte", &idx(&[1], &[1]));
        refuses(&good, &good_labels, "the image is 2×1, the others are 1×2");
        write(folder.path(), "t10k-images-idx3-ubyte", &good);
        refuses(&good, &good_labels, "t10k-labels-idx1-ubyte: record 0: label 1 is outside 0..1");
        let cut = gzip(&idx(&[1, 1, 2], &[1, 2]));
        std::fs::remove_file(folder.path().join(images)).unwrap();
        write(folder.path(), "train-images-idx3-ubyte.gz", &cut[..cut.len() - 9]);
        assert!(message().contains("ubyte.gz: damaged or not an idx file"), "{}", message());
    }
}
