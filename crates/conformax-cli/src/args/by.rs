//! What thresholds or counts go by: the class, a column of groups, or clusters of classes in a file.

use std::path::{Path, PathBuf};

use conformax_io::Format;

/// A choice of `--by`.
#[derive(Clone, Debug)]
pub(crate) enum By {
    Class,
    Column(String),
    /// A file with the cluster of each class.
    Clusters(PathBuf),
}

impl By {
    /// As typed. What looks like a file is one, so that one that is not there is not taken for a column.
    pub(crate) fn named(text: &str) -> Result<Self, String> {
        let path = Path::new(text);
        let ending = path.extension().unwrap_or_default();
        let is_text = ["json", "txt"].iter().any(|known| ending.eq_ignore_ascii_case(known));
        let looks_like_one = text.contains('/') || is_text || Format::of_name(path).is_some();
        Ok(match text {
            "" => return Err("wanted `class`, a column or a file".to_owned()),
            "class" => Self::Class,
            _ if looks_like_one || path.is_file() => Self::Clusters(path.to_owned()),
            _ => Self::Column(text.to_owned()),
        })
    }

    /// The file that is read for it.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        match self {
            Self::Clusters(path) => Some(path.clone()),
            Self::Class | Self::Column(_) => None,
        }
    }

    /// The column that is read for it.
    pub(crate) fn column(&self) -> Option<&str> {
        match self {
            Self::Column(name) => Some(name),
            Self::Class | Self::Clusters(_) => None,
        }
    }
}
