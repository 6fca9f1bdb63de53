//! Thrift structures of a Parquet file, walked through before the Parquet crate reads them.
//!
//! Needed by `parquet` 59.3.2: its `skip_till_depth` passes over a field it does not know element by element and trusts
//! the count, and a list of booleans takes no bytes there, so a structure of a hundred bytes keeps it counting for
//! hours. The compact encoding describes itself, so lists longer than what is left are found without knowing what they
//! mean. Once the crate holds the count of a list that it skips against the bytes that are left, this file can go; the
//! seeds `fuzz/corpus/parquet` that it answers would then be refused by the crate.

/// The length of the first list that cannot be: it has more elements than bytes follow. Whatever else is wrong with a
/// structure is for the Parquet crate to say.
pub(crate) fn impossible_list(structure: &[u8]) -> Option<u64> {
    match (Walk { left: structure }).value(STRUCT, DEEPEST) {
        Err(Stop::TooLong(len)) => Some(len),
        Ok(()) | Err(Stop::Malformed) => None,
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
    fn value(&mut self, kind: u8, depth: u8) -> Result<(), Stop> {
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

    fn elements(&mut self, len: u64, kinds: &[u8], depth: u8) -> Result<(), Stop> {
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

    fn fields(&mut self, depth: u8) -> Result<(), Stop> {
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

    fn byte(&mut self) -> Result<u8, Stop> {
        let (&byte, left) = self.left.split_first().ok_or(Stop::Malformed)?;
        self.left = left;
        Ok(byte)
    }

    fn skip(&mut self, len: u64) -> Result<(), Stop> {
        let len = usize::try_from(len).map_err(|_| Stop::Malformed)?;
        self.left = self.left.get(len..).ok_or(Stop::Malformed)?;
        Ok(())
    }

    fn integer(&mut self) -> Result<u64, Stop> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_list_that_is_longer_than_what_is_left() {
        // Field 1 an integer, field 2 a list of 2 integers, field 3 a list of booleans.
        let start = [0x15, 4, 0x19, 0x25, 2, 4, 0x19];
        let with = |list: &[u8]| impossible_list(&[&start, list].concat());
        assert_eq!(with(&[0x11, 0]), None);
        assert_eq!(with(&[0xf1, 0xff, 0xff, 0xff, 0xff, 0x07, 0]), Some(0x7fff_ffff));
        assert_eq!(with(&[0x19, 0xf2, 0x80, 0x01, 0]), Some(128));
        assert_eq!(with(&[]), None);
    }

    #[test]
    fn every_kind_of_value_is_passed_over() {
        let kinds = [
            0x11, 0x12, 0x13, 7, 0x14, 1, 0x16, 0x80, 1, 0x17, 0, 0, 0, 0, 0, 0, 0, 0, 0x18, 2, 9, 9, 0x1b,
            1, 0x35, 5, 6, 0x1b, 0, 0x1c, 0, 0x0d, 40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x19,
            0xf1, 0x7f,
        ];
        assert_eq!(impossible_list(&kinds), Some(127));
    }
}
