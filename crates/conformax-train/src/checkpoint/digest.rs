//! The SHA-256 of a checkpoint's weights, which says later which ones they were.

use std::fmt::Write;
use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::Error;
use super::tensors::files;

/// Over the files of the weights, one after the other, in hexadecimal digits.
pub(crate) fn digest(folder: &Path) -> Result<String, Error> {
    let mut sum = Sha256::new();
    for path in files(folder)? {
        let read = |source| Error::Read { path: path.clone(), source };
        let mut file = std::fs::File::open(&path).map_err(read)?;
        let mut chunk = vec![0; 1 << 20];
        loop {
            let read = file.read(&mut chunk).map_err(read)?;
            if read == 0 {
                break;
            }
            sum.update(&chunk[..read]);
        }
    }
    Ok(hexadecimal(&sum.finalize()))
}

/// Two digits a byte.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes all that is written");
        text
    })
}
