//! Folders whose subfolders are classes, in the order of their names.

use std::path::{Path, PathBuf};

use super::error::{Error, InFile, Problem, Result};

/// The files of each class folder under one path.
pub(crate) struct ClassFolders {
    pub(crate) path: PathBuf,
    /// Name, folder and files of each class, ordered by name.
    pub(crate) classes: Vec<(String, Vec<PathBuf>)>,
}

impl ClassFolders {
    /// Lists the folders. Names that start with a dot are the system's, not data; anything else out of place is
    /// an error, and so is a class without files.
    pub(crate) fn list(path: &Path) -> Result<Self> {
        let mut classes = Vec::new();
        for (name, folder) in entries(path)? {
            if !folder.is_dir() {
                return Err(Error::new(folder, Problem::Unexpected("a file among the folders of classes")));
            }
            classes.push((name, class_files(&folder)?));
        }
        if classes.is_empty() {
            return Err(Error::new(path, Problem::Missing("folders of classes")));
        }
        Ok(Self { path: path.to_owned(), classes })
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.classes.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Files and labels in the order of classes and of files within a class; `names` are the classes of the
    /// training part.
    pub(crate) fn labelled(self, names: &[String]) -> Result<Vec<(PathBuf, u32)>> {
        let mut rows = Vec::new();
        for (name, files) in self.classes {
            let Ok(label) = names.binary_search(&name) else {
                return Err(Error::new(self.path.join(&name), Problem::UnknownClass(name)));
            };
            rows.extend(files.into_iter().map(|file| (file, label as u32)));
        }
        Ok(rows)
    }
}

fn class_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let files: Vec<PathBuf> = entries(folder)?.into_iter().map(|(_, path)| path).collect();
    if files.is_empty() {
        return Err(Error::new(folder, Problem::Missing("files")));
    }
    Ok(files)
}

/// What a folder holds, by name.
fn entries(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).in_file(folder)? {
        let entry = entry.in_file(folder)?;
        let path = entry.path();
        let name = entry.file_name().into_string().map_err(|_| Error::new(&path, Problem::NotUtf8))?;
        if !name.starts_with('.') {
            found.push((name, path));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// The folder of this name within another, if there is one.
pub(crate) fn subfolder(folder: &Path, name: &str) -> Option<PathBuf> {
    Some(folder.join(name)).filter(|path| path.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_and_files_come_in_the_order_of_their_names() {
        let root = tempfile::tempdir().unwrap();
        for file in ["b/2", "b/10", "a/x", ".git/config"] {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let folders = ClassFolders::list(root.path()).unwrap();
        let names = folders.names();
        assert_eq!(names, ["a", "b"]);
        let rows = folders.labelled(&names).unwrap();
        let short: Vec<_> =
            rows.iter().map(|(path, label)| (path.strip_prefix(&root).unwrap(), *label)).collect();
        assert_eq!(short, [(Path::new("a/x"), 0), (Path::new("b/10"), 1), (Path::new("b/2"), 1)]);
    }

    #[test]
    fn refuses_what_is_out_of_place() {
        let root = tempfile::tempdir().unwrap();
        let message = || ClassFolders::list(root.path()).err().unwrap().to_string();
        assert!(message().ends_with("holds no folders of classes"));
        std::fs::create_dir(root.path().join("empty")).unwrap();
        assert!(message().ends_with("empty: holds no files"), "{}", message());
        std::fs::write(root.path().join("empty/x"), "").unwrap();
        std::fs::write(root.path().join("notes.txt"), "").unwrap();
        assert!(message().ends_with("notes.txt: a file among the folders of classes"), "{}", message());
    }

    #[test]
    fn a_class_only_the_test_part_has_is_refused() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("new")).unwrap();
        std::fs::write(root.path().join("new/x"), "").unwrap();
        let error = ClassFolders::list(root.path()).unwrap().labelled(&["old".to_owned()]).unwrap_err();
        assert!(error.to_string().ends_with("new: class `new` does not occur in the training part"));
    }
}
