//! CIFAR-10 and CIFAR-100 in their binary version.
//!
//! A record is one label byte (CIFAR-100: the coarse label, then the fine one) and 3 × 32 × 32 bytes of red, green
//! and blue planes. A file is records end to end, without a header.

use std::path::{Path, PathBuf};

use super::error::{Error, InFile, Problem, Result};
use super::images::{Images, Pixels};
use super::{Dataset, Inputs, Parts, class_names};

const SHAPE: [usize; 3] = [3, 32, 32];
const PIXELS: usize = 3 * 32 * 32;

/// What differs between the two.
pub(crate) struct Layout {
    classes: usize,
    /// Bytes before the pixels; the last one is the label.
    label_bytes: usize,
    names: &'static str,
    train: Train,
    test: &'static str,
}

enum Train {
    /// `data_batch_1.bin`, `data_batch_2.bin` and on.
    Numbered,
    One(&'static str),
}

pub(crate) const CIFAR10: Layout = Layout {
    classes: 10,
    label_bytes: 1,
    names: "batches.meta.txt",
    train: Train::Numbered,
    test: "test_batch.bin",
};

pub(crate) const CIFAR100: Layout = Layout {
    classes: 100,
    label_bytes: 2,
    names: "fine_label_names.txt",
    train: Train::One("train.bin"),
    test: "test.bin",
};

pub(crate) fn read(folder: &Path, layout: &Layout) -> Result<Dataset> {
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    let train_files = match layout.train {
        Train::Numbered => numbered(folder)?,
        Train::One(name) => vec![folder.join(name)],
    };
    for file in train_files {
        layout.append(&file, &mut pixels, &mut labels)?;
    }
    let train = labels.len();
    let test = folder.join(layout.test);
    if test.try_exists().in_file(&test)? {
        layout.append(&test, &mut pixels, &mut labels)?;
    }
    Ok(Dataset {
        inputs: Inputs::Images(Images::Memory(Pixels::new(pixels, SHAPE))),
        class_names: class_names::from_list(&folder.join(layout.names), layout.classes)?,
        parts: Parts::in_sequence(train, 0, labels.len() - train),
        labels,
    })
}

/// The numbered files, which must count from 1 without a gap: a missing one would be a fifth of the data.
fn numbered(folder: &Path) -> Result<Vec<PathBuf>> {
    let present = |number: usize| folder.join(format!("data_batch_{number}.bin"));
    let mut highest = 1;
    for entry in std::fs::read_dir(folder).in_file(folder)? {
        let name = entry.in_file(folder)?.file_name();
        let name = name.to_string_lossy();
        let number = name.strip_prefix("data_batch_").and_then(|rest| rest.strip_suffix(".bin"));
        highest = highest.max(number.and_then(|number| number.parse().ok()).unwrap_or(0));
    }
    Ok((1..=highest).map(present).collect())
}

impl Layout {
    fn append(&self, path: &Path, pixels: &mut Vec<u8>, labels: &mut Vec<u32>) -> Result<()> {
        let bytes = std::fs::read(path).in_file(path)?;
        let record = self.label_bytes + PIXELS;
        if !bytes.len().is_multiple_of(record) {
            return Err(Error::new(path, Problem::PartialRecord { record, found: bytes.len() }));
        }
        if bytes.is_empty() {
            return Err(Error::new(path, Problem::Missing("images")));
        }
        for (place, record) in bytes.chunks_exact(record).enumerate() {
            let (label, image) = record.split_at(self.label_bytes);
            let label = u32::from(label[self.label_bytes - 1]);
            labels.push(class_names::check(path, place, label, self.classes)?);
            pixels.extend_from_slice(image);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(labels: &[u8], fill: u8) -> Vec<u8> {
        [labels.to_vec(), vec![fill; PIXELS]].concat()
    }

    #[test]
    fn reads_batches_in_order_then_the_test_file() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: Vec<u8>| std::fs::write(folder.path().join(name), bytes).unwrap();
        write("data_batch_2.bin", record(&[7], 2));
        write("data_batch_1.bin", [record(&[3], 0), record(&[9], 1)].concat());
        write("test_batch.bin", record(&[0], 3));
        let data = read(folder.path(), &CIFAR10).unwrap();
        assert_eq!(data.labels, [3, 9, 7, 0]);
        assert_eq!(data.parts, Parts::in_sequence(3, 0, 1));
        assert_eq!(data.class_names[4], "4");
        let Inputs::Images(Images::Memory(pixels)) = &data.inputs else { panic!("not in memory") };
        for row in 0..4 {
            assert_eq!(pixels.row(row), vec![row as u8; PIXELS]);
        }
    }

    #[test]
    fn takes_the_fine_label_and_its_name() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("train.bin"), record(&[19, 99], 0)).unwrap();
        let names: String = (0..100).map(|class| format!("name {class}\n")).collect();
        std::fs::write(folder.path().join("fine_label_names.txt"), names).unwrap();
        let data = read(folder.path(), &CIFAR100).unwrap();
        assert_eq!((data.labels, data.class_names[99].as_str()), (vec![99], "name 99"));
        assert_eq!(data.parts.test, [0; 0]);
    }

    #[test]
    fn refuses_damaged_folders_by_file_and_record() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
        let message = || read(folder.path(), &CIFAR10).unwrap_err().to_string();
        assert!(message().contains("data_batch_1.bin: "), "{}", message());
        write("data_batch_1.bin", &record(&[3], 0)[..3000]);
        let wanted = "data_batch_1.bin: 3000 bytes are not a whole number of records of 3073 bytes";
        assert!(message().ends_with(wanted), "{}", message());
        write("data_batch_1.bin", &[]);
        assert!(message().ends_with("data_batch_1.bin: holds no images"), "{}", message());
        write("data_batch_1.bin", &[record(&[3], 0), record(&[10], 0)].concat());
        assert!(
            message().ends_with("data_batch_1.bin: record 1: label 10 is outside 0..10"),
            "{}",
            message()
        );
        write("data_batch_1.bin", &record(&[3], 0));
        write("data_batch_3.bin", &record(&[3], 0));
        assert!(message().contains("data_batch_2.bin: "), "a gap: {}", message());
    }
}
