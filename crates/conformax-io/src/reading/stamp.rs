//! `Stamp`: what tells one state of a file from another without reading it.
//!
//! Blocks read before and after somebody else's write belong to no state the file ever had, and a second pass over
//! another file than the first mixes two data sets. Both would go unnoticed where the bytes happen to make sense.

use std::fs::Metadata;
use std::path::Path;
use std::time::SystemTime;

/// Length, time of the last write and, where there is one, the number that a file keeps under any name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
    identity: Option<(u64, u64)>,
}

impl Stamp {
    /// The stamp of a file; `None` for what is not a plain file, or not there.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let data = std::fs::metadata(path).ok().filter(Metadata::is_file)?;
        Some(Self { len: data.len(), modified: data.modified().ok(), identity: identity(&data) })
    }

    /// What a file keeps under any name, where there is such a number.
    pub(crate) fn identity(&self) -> Option<(u64, u64)> {
        self.identity
    }
}

/// Whether two names lead to one plain file that is there, by links of any kind.
///
/// ```
/// assert!(!conformax_io::is_same_file("no-such-file".as_ref(), "no-such-file".as_ref()));
/// ```
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    let (Some(first), Some(second)) = (Stamp::of(one), Stamp::of(other)) else { return false };
    match (first.identity(), second.identity()) {
        (Some(first), Some(second)) => first == second,
        _ => std::fs::canonicalize(one).ok() == std::fs::canonicalize(other).ok(),
    }
}

#[cfg(unix)]
fn identity(data: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((data.dev(), data.ino()))
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> Option<(u64, u64)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_a_write_and_a_replacement_from_a_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("z.csv");
        std::fs::write(&path, "a,b\n1,2\n").unwrap();
        let before = Stamp::of(&path);
        assert!(before.is_some());
        std::fs::read(&path).unwrap();
        assert_eq!(Stamp::of(&path), before);
        std::fs::write(&path, "a,b\n1,2\n3,4\n").unwrap();
        let longer = Stamp::of(&path);
        assert_ne!(longer, before);
        let other = folder.path().join("other.csv");
        std::fs::write(&other, "a,b\n1,2\n3,5\n").unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert_ne!(Stamp::of(&path), longer);
        assert_eq!(Stamp::of(folder.path()), None);
    }
}
