//! Compiled programs on disk, so that only the first process on a machine compiles them.
//!
//! They lie in `$CONFORMAX_CACHE`, else in `conformax` under `$XDG_CACHE_HOME` or `~/.cache`. A file is named after
//! everything that its content depends on, so nothing is ever stale; a folder that cannot be written is done without.

use std::path::{Path, PathBuf};

/// The program that `key` names, compiled by `compile` where it is not on disk yet.
pub(crate) fn cached<E>(key: &str, compile: impl FnOnce() -> Result<Vec<u8>, E>) -> Result<Vec<u8>, E> {
    cached_in(folder(), key, compile)
}

fn cached_in<E>(
    folder: Option<PathBuf>,
    key: &str,
    compile: impl FnOnce() -> Result<Vec<u8>, E>,
) -> Result<Vec<u8>, E> {
    let path = folder.map(|folder| folder.join(format!("{}.cubin", name_of(key))));
    if let Some(program) = path.as_deref().and_then(|path| std::fs::read(path).ok()) {
        return Ok(program);
    }
    let program = compile()?;
    if let Some(path) = path {
        // Compiling again is all that a full or read-only disk costs.
        let _ = write(&path, &program);
    }
    Ok(program)
}

/// Whole or not at all: other processes may be reading, or writing the same.
fn write(path: &Path, program: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let unfinished = path.with_extension(format!("{}.part", std::process::id()));
    std::fs::write(&unfinished, program)?;
    std::fs::rename(&unfinished, path)
}

fn folder() -> Option<PathBuf> {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    of("CONFORMAX_CACHE")
        .or_else(|| of("XDG_CACHE_HOME").map(|folder| folder.join("conformax")))
        .or_else(|| of("HOME").map(|home| home.join(".cache").join("conformax")))
}

/// 128 bits of FNV-1a, in hexadecimal.
fn name_of(key: &str) -> String {
    let start = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
    let hash =
        key.bytes().fold(start, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul((1 << 88) + 0x13b));
    format!("{hash:032x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiled(folder: &Path, key: &str, program: &[u8]) -> Vec<u8> {
        cached_in(Some(folder.to_path_buf()), key, || Ok::<_, ()>(program.to_vec())).unwrap()
    }

    #[test]
    fn compiles_each_program_once() {
        let folder = std::env::temp_dir().join(format!("conformax-cache-{}", std::process::id()));
        assert_eq!(compiled(&folder, "a", b"first"), b"first");
        assert_eq!(compiled(&folder, "a", b"second"), b"first");
        assert_eq!(compiled(&folder, "b", b"second"), b"second");
        assert!(
            std::fs::read_dir(&folder).unwrap().all(|it| it.unwrap().path().extension().unwrap() == "cubin")
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn does_without_a_folder() {
        let file = std::env::temp_dir().join(format!("conformax-no-folder-{}", std::process::id()));
        std::fs::write(&file, "").unwrap();
        assert_eq!(compiled(&file, "a", b"program"), b"program");
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn names_are_of_the_known_hash() {
        assert_eq!(name_of(""), "6c62272e07bb014262b821756295c58d");
        assert_ne!(name_of("a"), name_of("b"));
    }
}
