//! 20 Newsgroups: one folder of posts per group.

use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::error::{InFile, Result};
use super::folder::{ClassFolders, subfolder};
use super::news_text::{Remove, strip};
use super::{Dataset, Inputs, Parts};

pub(crate) fn read(path: &Path, remove: &[Remove]) -> Result<Dataset> {
    let divided = subfolder(path, "20news-bydate-train");
    let test = subfolder(path, "20news-bydate-test").filter(|_| divided.is_some());
    let train = ClassFolders::list(&divided.unwrap_or_else(|| path.to_owned()))?;
    let class_names = train.names();
    let mut rows = train.labelled(&class_names)?;
    let train_rows = rows.len();
    if let Some(folder) = test {
        rows.extend(ClassFolders::list(&folder)?.labelled(&class_names)?);
    }
    let (files, labels): (Vec<PathBuf>, Vec<u32>) = rows.into_iter().unzip();
    let texts = files.par_iter().map(|file| Ok(strip(latin1(file)?, remove))).collect::<Result<_>>()?;
    Ok(Dataset {
        inputs: Inputs::Texts(texts),
        parts: Parts::in_sequence(train_rows, 0, labels.len() - train_rows),
        labels,
        class_names,
    })
}

/// Posts of 1993 are ISO 8859-1, in which every byte is the character of its number.
fn latin1(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path).in_file(path)?;
    Ok(bytes.into_iter().map(char::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, file: &str, bytes: &[u8]) {
        let path = root.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    #[test]
    fn reads_both_parts_as_latin_1_without_header_footer_and_quotes() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "20news-bydate-train/sci.space/2", b"From: x\n\nna\xefve\n> no\n\nbye");
        write(root.path(), "20news-bydate-train/alt.atheism/1", b"From: y\n\nfirst");
        write(root.path(), "20news-bydate-test/sci.space/3", b"From: z\n\nlast");
        let data = read(root.path(), &Remove::all()).unwrap();
        assert_eq!(data.inputs, Inputs::Texts(vec!["first".into(), "naïve".into(), "last".into()]));
        assert_eq!((data.labels, data.parts), (vec![0, 1, 1], Parts::in_sequence(2, 0, 1)));
        assert_eq!(data.class_names, ["alt.atheism", "sci.space"]);
    }

    #[test]
    fn groups_may_lie_directly_under_the_path() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "sci.med/1", b"H: 1\n\nbody");
        let data = read(root.path(), &[]).unwrap();
        assert_eq!(data.inputs, Inputs::Texts(vec!["H: 1\n\nbody".into()]));
        assert_eq!(data.parts, Parts::in_sequence(1, 0, 0));
    }

    #[test]
    fn a_folder_among_posts_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("sci.med/drafts")).unwrap();
        let error = read(root.path(), &[]).unwrap_err().to_string();
        assert!(error.contains("sci.med/drafts: "), "{error}");
    }
}
