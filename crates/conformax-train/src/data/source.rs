//! `Source`: which files hold the data, and in which format.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::InFile;
use super::news_text::Remove;
use super::{Dataset, Result, cifar, csv_text, idx, image_folder, newsgroups};

/// A data set on disk, as a configuration names it: `format = "cifar10"`, `path = "…"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "format", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Source {
    /// CIFAR-10, binary version: `data_batch_1.bin` and on, `test_batch.bin`, names in `batches.meta.txt`.
    Cifar10 {
        /// The folder.
        path: PathBuf,
    },
    /// CIFAR-100, binary version, with the fine labels: `train.bin`, `test.bin`, names in `fine_label_names.txt`.
    Cifar100 {
        /// The folder.
        path: PathBuf,
    },
    /// MNIST and its relatives: `train-images-idx3-ubyte`, `train-labels-idx1-ubyte` and the same with `t10k`,
    /// plain or with `.gz`.
    Idx {
        /// The folder.
        path: PathBuf,
    },
    /// One folder of PNG or JPEG images per class, under `train` and the folders of the other parts, or directly
    /// under the path. Names that start with a dot are not data.
    ImageFolder {
        /// The folder.
        path: PathBuf,
        /// The folder of the validation part within it, if it is there.
        #[serde(default = "val")]
        validation: String,
        /// The folder of the test part within it, if it is there; where it is the validation folder too, it is
        /// for testing.
        #[serde(default = "test")]
        test: String,
    },
    /// 20 Newsgroups: one folder of documents per group, under `20news-bydate-train` and `20news-bydate-test`, or
    /// directly under the path.
    Newsgroups {
        /// The folder.
        path: PathBuf,
        /// What to take out of each document; everything unless told otherwise.
        #[serde(default = "Remove::all")]
        remove: Vec<Remove>,
    },
    /// Tables with a column of texts and a column of labels.
    Csv {
        /// The file of the training part, or of all rows.
        train: PathBuf,
        /// The file of the validation part.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        validation: Option<PathBuf>,
        /// The file of the test part.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        test: Option<PathBuf>,
        /// The column of texts.
        #[serde(default = "text")]
        text: String,
        /// The column of labels.
        #[serde(default = "label")]
        label: String,
    },
}

impl Source {
    /// What lies at a path, told by the names of files: a table, or a folder in one of the formats.
    pub fn at(path: &Path) -> Result<Self> {
        let path = path.to_owned();
        let metadata = std::fs::metadata(&path).in_file(&path)?;
        if metadata.is_file() {
            return Ok(Self::Csv { train: path, validation: None, test: None, text: text(), label: label() });
        }
        let holds = |names: &[&str]| names.iter().any(|name| path.join(name).exists());
        let idx = ["train-images-idx3-ubyte", "t10k-images-idx3-ubyte"];
        let packed = idx.map(|name| format!("{name}.gz"));
        Ok(if holds(&["test_batch.bin", "data_batch_1.bin"]) {
            Self::Cifar10 { path }
        } else if holds(&["test.bin", "train.bin"]) {
            Self::Cifar100 { path }
        } else if holds(&idx) || holds(&packed.each_ref().map(String::as_str)) {
            Self::Idx { path }
        } else if holds(&["20news-bydate-train"]) || !image_folder::has_images(&path)? {
            Self::Newsgroups { path, remove: Remove::all() }
        } else {
            Self::ImageFolder { path, validation: val(), test: test() }
        })
    }

    /// Reads everything but the pixels of image folders, whose files are opened when a batch needs them.
    pub fn read(&self) -> Result<Dataset> {
        match self {
            Self::Cifar10 { path } => cifar::read(path, &cifar::CIFAR10),
            Self::Cifar100 { path } => cifar::read(path, &cifar::CIFAR100),
            Self::Idx { path } => idx::read(path),
            Self::ImageFolder { path, validation, test } => image_folder::read(path, validation, test),
            Self::Newsgroups { path, remove } => newsgroups::read(path, remove),
            Self::Csv { train, validation, test, text, label } => {
                let files = [Some(train.as_path()), validation.as_deref(), test.as_deref()];
                csv_text::read(files, text, label)
            }
        }
    }
}

fn val() -> String {
    "val".to_owned()
}

fn test() -> String {
    "test".to_owned()
}

fn text() -> String {
    "text".to_owned()
}

fn label() -> String {
    "label".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_their_files() {
        let name = |files: &[&str]| {
            let folder = tempfile::tempdir().unwrap();
            for file in files {
                let path = folder.path().join(file);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, "").unwrap();
            }
            let path =
                if files == ["rows.csv"] { folder.path().join("rows.csv") } else { folder.path().to_owned() };
            let source = serde_json::to_value(Source::at(&path).unwrap()).unwrap();
            source["format"].as_str().unwrap().to_owned()
        };
        assert_eq!(name(&["test_batch.bin"]), "cifar10");
        assert_eq!(name(&["train.bin", "test.bin"]), "cifar100");
        assert_eq!(name(&["t10k-images-idx3-ubyte.gz"]), "idx");
        assert_eq!(name(&["20news-bydate-train/sci.med/1"]), "newsgroups");
        assert_eq!(name(&["sci.med/1"]), "newsgroups");
        assert_eq!(name(&["cat/1.JPEG"]), "image-folder");
        assert_eq!(name(&["train/cat/1.png", "val/cat/2.png"]), "image-folder");
        assert_eq!(name(&["rows.csv"]), "csv");
    }
}
