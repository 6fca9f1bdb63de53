//! Images in one folder per class, as ImageNet is laid out.

use std::path::{Path, PathBuf};

use super::error::{Error, Problem, Result};
use super::folder::{ClassFolders, subfolder};
use super::images::Images;
use super::{Dataset, Inputs, Parts};

/// The classes are those of the training part, ordered by name.
pub(crate) fn read(path: &Path, validation: &str, test: &str) -> Result<Dataset> {
    let train = ClassFolders::list(&subfolder(path, "train").unwrap_or_else(|| path.to_owned()))?;
    let divided = train.path != path;
    let part = |name: &str| subfolder(path, name).filter(|_| divided);
    let class_names = train.names();
    let mut rows = train.labelled(&class_names)?;
    let mut append = |folder: Option<PathBuf>| -> Result<usize> {
        let Some(folder) = folder else { return Ok(0) };
        let more = ClassFolders::list(&folder)?.labelled(&class_names)?;
        let count = more.len();
        rows.extend(more);
        Ok(count)
    };
    let validation_rows = append(part(validation).filter(|_| validation != test))?;
    let test_rows = append(part(test))?;
    let (files, labels): (Vec<PathBuf>, Vec<u32>) = rows.into_iter().unzip();
    files.iter().try_for_each(|file| check_name(file))?;
    Ok(Dataset {
        parts: Parts::in_sequence(files.len() - validation_rows - test_rows, validation_rows, test_rows),
        inputs: Inputs::Images(Images::Files(files)),
        labels,
        class_names,
    })
}

/// Whether the first file of the first class is named like an image.
pub(crate) fn has_images(path: &Path) -> Result<bool> {
    let classes = ClassFolders::list(&subfolder(path, "train").unwrap_or_else(|| path.to_owned()))?;
    let first = classes.classes.first().and_then(|(_, files)| files.first());
    Ok(first.is_some_and(|file| check_name(file).is_ok()))
}

/// Says at once what would otherwise fail in the middle of an epoch.
fn check_name(file: &Path) -> Result<()> {
    let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if ["png", "jpg", "jpeg"].iter().any(|known| extension.eq_ignore_ascii_case(known)) {
        return Ok(());
    }
    Err(Error::new(file, Problem::Unexpected("among images, and named neither .png nor .jpg nor .jpeg")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(root: &Path, files: &[&str]) {
        for file in files {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
    }

    #[test]
    fn reads_the_parts_that_are_there() {
        let root = tempfile::tempdir().unwrap();
        touch(root.path(), &["train/cat/1.png", "train/dog/2.JPEG", "train/dog/1.jpg", "val/dog/9.png"]);
        let data = read(root.path(), "val", "test").unwrap();
        assert_eq!((data.labels.as_slice(), data.parts), (&[0, 1, 1, 1][..], Parts::in_sequence(3, 1, 0)));
        assert_eq!(data.class_names, ["cat", "dog"]);
        let as_test = read(root.path(), "val", "val").unwrap();
        assert_eq!(as_test.parts, Parts::in_sequence(3, 0, 1));
    }

    #[test]
    fn classes_may_lie_directly_under_the_path() {
        let root = tempfile::tempdir().unwrap();
        touch(root.path(), &["cat/1.png", "test/1.png", "val/1.png"]);
        let data = read(root.path(), "val", "test").unwrap();
        assert_eq!(data.class_names, ["cat", "test", "val"]);
        assert_eq!(data.parts, Parts::in_sequence(3, 0, 0));
    }

    #[test]
    fn refuses_files_that_are_no_images() {
        let root = tempfile::tempdir().unwrap();
        touch(root.path(), &["cat/1.png", "cat/notes.txt"]);
        let error = read(root.path(), "val", "test").unwrap_err().to_string();
        assert!(error.contains("cat/notes.txt: among images, and named neither"), "{error}");
    }
}
