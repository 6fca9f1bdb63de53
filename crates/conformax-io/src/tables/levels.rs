//! Levels of a Parquet page, held against what lists of one length have, a run at a time.
//!
//! Parquet writes levels as runs: one value repeated, or values packed bit by bit in groups of eight, lowest bit first.
//! A run begins with a variable-length integer whose lowest bit says which of the two it is. Everything here answers no
//! where a run cannot be made out: the Parquet crate then says what is wrong with it.

/// One run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Run<'a> {
    /// A value and how often it comes.
    Repeated(u64, usize),
    /// Packed values, eight in every `width` bytes.
    Packed(&'a [u8]),
}

/// The runs in `bytes`, of values that are `width` bits wide; ends with `None` where no run can be made out.
pub(crate) struct Runs<'a> {
    bytes: &'a [u8],
    width: usize,
}

impl<'a> Runs<'a> {
    pub(crate) fn new(bytes: &'a [u8], width: usize) -> Self {
        Self { bytes, width }
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(len)?;
        self.bytes = rest;
        Some(taken)
    }

    fn header(&mut self) -> Option<usize> {
        let mut header = 0u64;
        for shift in [0, 7, 14, 21, 28] {
            let byte = *self.take(1)?.first()?;
            header |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return usize::try_from(header).ok();
            }
        }
        None
    }
}

impl<'a> Iterator for Runs<'a> {
    type Item = Run<'a>;

    fn next(&mut self) -> Option<Run<'a>> {
        let header = self.header()?;
        let (groups, packed) = (header >> 1, header & 1 == 1);
        if packed {
            return self.take(groups.checked_mul(self.width)?).map(Run::Packed);
        }
        let value = self.take(self.width.div_ceil(8))?;
        let value = value.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        Some(Run::Repeated(value, groups))
    }
}

/// Bits that the levels up to `most` take.
pub(crate) fn width(most: i16) -> usize {
    (i16::BITS - most.leading_zeros()) as usize
}

/// Whether the first `count` levels are all `most`, the largest there is; it has to be 1, 2 or 3.
pub(crate) fn all_are(most: i16, levels: &[u8], count: usize) -> bool {
    let packed = if most == 2 { 0b1010_1010 } else { 0xff };
    let per_byte = 8 / width(most);
    let mut left = count;
    for run in Runs::new(levels, width(most)) {
        if left == 0 {
            break;
        }
        let (same, len) = match run {
            Run::Repeated(value, len) => (value == most as u64, len),
            Run::Packed(bytes) => {
                let (whole, last) = bytes.split_at((left / per_byte).min(bytes.len()));
                // What fills up the last byte counts for nothing.
                let rest = last.first().is_none_or(|byte| {
                    let mask = !(0xff << (left % per_byte * width(most)));
                    (byte ^ packed) & mask as u8 == 0
                });
                (rest && whole.iter().all(|byte| *byte == packed), bytes.len() * per_byte)
            }
        };
        if !same || len == 0 {
            return false;
        }
        left -= len.min(left);
    }
    left == 0
}

/// Where in a row of `classes` values one stands, as repetition levels go by: 0 begins a row, 1 goes on with it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    classes: usize,
    /// Values that are still to come of the row.
    left: usize,
}

impl Place {
    /// Before a row.
    pub(crate) fn before_row(classes: usize) -> Self {
        Self { classes, left: 0 }
    }

    pub(crate) fn is_before_row(self) -> bool {
        self.left == 0
    }

    /// Goes through the first `count` levels; `None` where a row has another length.
    pub(crate) fn after(mut self, levels: &[u8], count: usize) -> Option<Self> {
        let mut to_come = count;
        for run in Runs::new(levels, 1) {
            if to_come == 0 {
                break;
            }
            let len = match run {
                Run::Repeated(_, len) => len.min(to_come),
                Run::Packed(bytes) => bytes.len().checked_mul(8)?.min(to_come),
            };
            if len == 0 {
                return None;
            }
            match run {
                Run::Repeated(1, _) => self.left = self.left.checked_sub(len)?,
                Run::Repeated(0, _) => (0..len).try_for_each(|_| self.begin())?,
                Run::Repeated(..) => return None,
                Run::Packed(bytes) => self.packed(bytes, len)?,
            }
            to_come -= len;
        }
        (to_come == 0).then_some(self)
    }

    fn begin(&mut self) -> Option<()> {
        if self.left > 0 {
            return None;
        }
        self.left = self.classes - 1;
        Some(())
    }

    fn packed(&mut self, bytes: &[u8], len: usize) -> Option<()> {
        for (byte, at) in bytes.iter().zip((0..len).step_by(8)) {
            if *byte == 0xff && self.left >= 8 && len - at >= 8 {
                self.left -= 8;
                continue;
            }
            for bit in 0..8.min(len - at) {
                match byte >> bit & 1 {
                    0 => self.begin()?,
                    _ => self.left = self.left.checked_sub(1)?,
                }
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(levels: &[u8], count: usize, classes: usize) -> Option<usize> {
        Place::before_row(classes).after(levels, count).map(|place| place.left)
    }

    #[test]
    fn widths_are_those_of_the_largest_level() {
        assert_eq!([1, 2, 3, 4].map(width), [1, 2, 2, 3]);
    }

    #[test]
    fn runs_of_both_kinds_are_told_apart() {
        let runs: Vec<_> = Runs::new(&[0x03, 0xfe, 0xc0, 0x0f, 0x01, 0x02, 0x00], 1).collect();
        assert_eq!(runs, [Run::Packed(&[0xfe]), Run::Repeated(1, 992), Run::Repeated(0, 1)]);
        assert_eq!(Runs::new(&[0x05, 0xfe], 1).next(), None);
        assert_eq!(Runs::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0x01], 1).next(), None);
    }

    #[test]
    fn a_run_of_the_largest_level_is_one_however_it_is_written() {
        for most in [1, 2, 3] {
            let packed = if most == 2 { 0xaa } else { 0xff };
            assert!(all_are(most, &[20, most as u8], 10));
            assert!(!all_are(most, &[20, most as u8], 11));
            assert!(!all_are(most, &[20, most as u8 - 1], 10));
            let groups = vec![packed; 2 * width(most)];
            let levels: Vec<u8> = [5].into_iter().chain(groups).collect();
            assert!(all_are(most, &levels, 16) && all_are(most, &levels, 9) && !all_are(most, &levels, 17));
            for bit in 0..8 * (levels.len() - 1) {
                let mut other = levels.clone();
                other[1 + bit / 8] ^= 1 << (bit % 8);
                assert!(!all_are(most, &other, 16), "{most}, {bit}");
                // Ten levels have ten times the width in bits.
                assert_eq!(all_are(most, &other, 10), bit >= 10 * width(most), "{most}, {bit}");
            }
        }
        assert!(!all_are(1, &[0, 1, 20, 1], 10), "a run of no length");
    }

    #[test]
    fn a_row_is_a_zero_and_ones() {
        let rows_of_ten = [0x03, 0xfe, 0x04, 0x01, 0x03, 0xfe, 0x04, 0x01];
        assert_eq!(after(&rows_of_ten, 20, 10), Some(0));
        assert_eq!(after(&rows_of_ten, 15, 10), Some(5));
        assert_eq!(after(&rows_of_ten, 21, 10), None);
        assert_eq!(after(&rows_of_ten, 20, 11), None);
        assert_eq!(after(&rows_of_ten, 20, 9), None);
        assert_eq!(after(&[0x28, 0x00], 20, 1), Some(0));
        assert_eq!(after(&[0x28, 0x00], 20, 2), None);
        assert_eq!(after(&[0x04, 0x02], 2, 2), None, "no level is 2");
        let half = Place::before_row(10).after(&rows_of_ten, 15).unwrap();
        assert!(half.after(&[0x0a, 0x01], 5).unwrap().is_before_row());
        assert!(half.after(&[0x0c, 0x01], 6).is_none());
    }

    #[test]
    fn packed_levels_are_read_bit_by_bit() {
        // Rows of three: 0 1 1 0 1 1 0 1 | 1 0 1 1 0 1 1 0 | 1 1 …
        let levels = [0x07, 0b1011_0110, 0b0110_1101, 0b1111_1111];
        assert_eq!(after(&levels, 18, 3), Some(0));
        assert_eq!(after(&levels, 19, 3), None);
        for bit in 0..18 {
            let mut other = levels;
            other[1 + bit / 8] ^= 1 << (bit % 8);
            assert_eq!(after(&other, 18, 3), None, "{bit}");
        }
        let mut wide = vec![0x09, 0xfe];
        wide.extend([0xff; 3]);
        assert_eq!(after(&wide, 32, 32), Some(0));
        assert_eq!(after(&wide, 32, 31), None);
    }
}
