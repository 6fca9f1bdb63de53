//! The footer of a Parquet file, walked through once before the Parquet crate reads it.
//!
//! The crate passes over fields it does not know, and a list of booleans takes no bytes there: a footer of a hundred bytes
//! could keep it counting for hours. Thrift's compact encoding describes itself, so lists longer than what is left are found
//! without knowing what they mean.

use crate::error::{Error, Problem, Result};
use crate::positioned::PositionedFile;

/// Checks the lists of a footer; whatever else is wrong with it is for the Parquet crate to say.
pub(crate) fn check_lists(file: &PositionedFile) -> Result<()> {
    let Some(end) = file.len().checked_sub(8) else { return Ok(()) };
    let mut length = [0; 4];
    file.read_exact_at(&mut length, end)?;
    let length = u32::from_le_bytes(length);
    let Some(start) = end.checked_sub(length.into()) else { return Ok(()) };
    let mut footer = vec![0; length as usize];
    file.read_exact_at(&mut footer, start)?;
    match (Walk { left: &footer }).value(STRUCT, DEEPEST) {
        Err(Stop::TooLong(len)) => {
            let what = format!("a list in its footer claims {len} elements");
            Err(Error::new(file.path(), Problem::Damaged { format: "a Parquet file", what }))
        }
        Ok(()) | Err(Stop::Malformed) => Ok(()),
    }
}

const STRUCT: u8 = 12;
/// The crate gives up at this depth too.
const DEEPEST: u8 = 64;

/// Why a walk ends early.
enum Stop {
    Malformed,
    TooLong(u64),
}

struct Walk<'a> {
    left: &'a [u8],
}

impl Walk<'_> {
    fn value(&mut self, kind: u8, depth: u8) -> std::result::Result<(), Stop> {
        let depth = depth.checked_sub(1).ok_or(Stop::Malformed)?;
        match kind {
            // A boolean is its type.
            1 | 2 => Ok(()),
            3 => self.skip(1),
            4..=6 => self.integer().map(drop),
            7 => self.skip(8),
            8 => {
                let len = self.integer()?;
                self.skip(len)
            }
            9 | 10 => {
                let head = self.byte()?;
                let len = if head >> 4 == 15 { self.integer()? } else { u64::from(head >> 4) };
                self.elements(len, &[head & 15], depth)
            }
            11 => match self.integer()? {
                0 => Ok(()),
                len => {
                    let kinds = self.byte()?;
                    self.elements(len, &[kinds >> 4, kinds & 15], depth)
                }
            },
            STRUCT => self.fields(depth),
            13 => self.skip(16),
            _ => Err(Stop::Malformed),
        }
    }

    fn elements(&mut self, len: u64, kinds: &[u8], depth: u8) -> std::result::Result<(), Stop> {
        if len > self.left.len() as u64 {
            return Err(Stop::TooLong(len));
        }
        for _ in 0..len {
            for &kind in kinds {
                self.value(kind, depth)?;
            }
        }
        Ok(())
    }

    fn fields(&mut self, depth: u8) -> std::result::Result<(), Stop> {
        loop {
            let head = self.byte()?;
            if head & 15 == 0 {
                return Ok(());
            }
            // Without a step from the last field's number, the number itself follows.
            if head >> 4 == 0 {
                self.integer()?;
            }
            self.value(head & 15, depth)?;
        }
    }

    fn byte(&mut self) -> std::result::Result<u8, Stop> {
        let (&byte, left) = self.left.split_first().ok_or(Stop::Malformed)?;
        self.left = left;
        Ok(byte)
    }

    fn skip(&mut self, len: u64) -> std::result::Result<(), Stop> {
        let len = usize::try_from(len).map_err(|_| Stop::Malformed)?;
        self.left = self.left.get(len..).ok_or(Stop::Malformed)?;
        Ok(())
    }

    fn integer(&mut self) -> std::result::Result<u64, Stop> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Stop::Malformed)
    }
}
