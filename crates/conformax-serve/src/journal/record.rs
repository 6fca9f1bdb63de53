//! `Record`: something a stream was told, as bytes in a journal.

use conformax::{Logit, Logits, PredictionSets, ScoreSpec, Stream};

pub(super) const MARKER: [u8; 4] = [0xc5, b'r', b'e', b'c'];
/// Marker, length and checksum.
const FRAME: usize = 12;
/// A longer record is none: rows are limited long before.
const LONGEST_RECORD: usize = 1 << 30;

/// Something a stream was told.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Record {
    /// A row was given a set of this size at this level.
    Row { id: String, level: f64, group: Option<u32>, size: u32, logits: Vec<f64> },
    /// A row has this label.
    Label { id: String, label: u32 },
}

/// Something that has a form as a record.
pub(crate) trait Recorded {
    /// Appends what comes after the frame.
    fn write_contents(&self, to: &mut Vec<u8>);

    /// Appends the record.
    fn write(&self, to: &mut Vec<u8>) {
        let start = to.len();
        to.extend([0; FRAME]);
        self.write_contents(to);
        let (len, sum) = ((to.len() - start - FRAME) as u32, crc32fast::hash(&to[start + FRAME..]));
        to[start..start + 4].copy_from_slice(&MARKER);
        to[start + 4..start + 8].copy_from_slice(&len.to_le_bytes());
        to[start + 8..start + 12].copy_from_slice(&sum.to_le_bytes());
    }
}

/// A [`Record::Row`] whose parts lie elsewhere: a row is copied once, to where it is written from.
pub(crate) struct GivenRow<'a, T> {
    pub(crate) id: &'a str,
    pub(crate) level: f64,
    pub(crate) group: Option<u32>,
    pub(crate) size: u32,
    pub(crate) logits: &'a [T],
}

impl<T: Logit> Recorded for GivenRow<'_, T> {
    fn write_contents(&self, to: &mut Vec<u8>) {
        to.push(1);
        write_text(to, self.id);
        to.extend(self.level.to_le_bytes());
        to.push(u8::from(self.group.is_some()));
        to.extend(self.group.unwrap_or_default().to_le_bytes());
        to.extend(self.size.to_le_bytes());
        let start = to.len();
        to.resize(start + 8 * self.logits.len(), 0);
        for (place, logit) in to[start..].as_chunks_mut::<8>().0.iter_mut().zip(self.logits) {
            *place = logit.to_f64().to_le_bytes();
        }
    }
}

impl<R: Recorded> Recorded for &R {
    fn write_contents(&self, to: &mut Vec<u8>) {
        (**self).write_contents(to);
    }
}

impl Recorded for Record {
    fn write_contents(&self, to: &mut Vec<u8>) {
        match self {
            Self::Row { id, level, group, size, logits } => {
                GivenRow { id, level: *level, group: *group, size: *size, logits }.write_contents(to);
            }
            Self::Label { id, label } => {
                to.push(2);
                write_text(to, id);
                to.extend(label.to_le_bytes());
            }
        }
    }
}

fn write_text(to: &mut Vec<u8>, text: &str) {
    to.extend((text.len() as u32).to_le_bytes());
    to.extend(text.as_bytes());
}

impl Record {
    /// The record at the beginning of these bytes and how many it takes; `None` where none can be read.
    pub(super) fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let (frame, rest) = bytes.split_first_chunk::<FRAME>()?;
        let word = |at: usize| u32::from_le_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]]);
        let len = word(4) as usize;
        let body = rest.get(..len).filter(|_| frame[..4] == MARKER && len <= LONGEST_RECORD)?;
        if crc32fast::hash(body) != word(8) {
            return None;
        }
        let mut from = Fields(body);
        let record = match from.take::<1>()?[0] {
            1 => {
                let (id, level) = (from.text()?, f64::from_le_bytes(from.take()?));
                let (has, group) = (from.take::<1>()?[0], u32::from_le_bytes(from.take()?));
                let size = u32::from_le_bytes(from.take()?);
                let (logits, []) = from.0.as_chunks::<8>() else { return None };
                let logits = logits.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
                Self::Row { id, level, group: (has == 1).then_some(group), size, logits }
            }
            2 => {
                let (id, label) = (from.text()?, u32::from_le_bytes(from.take()?));
                from.0.is_empty().then_some(Self::Label { id, label })?
            }
            _ => return None,
        };
        Some((record, FRAME + len))
    }

    /// Tells a stream what it was told before; what it refused then it refuses now.
    pub(super) fn replay(self, stream: &mut Stream<ScoreSpec>) {
        // Both calls are the ones that were made before the record was answered, with the same outcome.
        let _ = match self {
            Self::Label { id, label } => stream.update(&id, label).map(|_| ()),
            Self::Row { id, level, group, size, logits } => {
                let groups = group.map(|group| [group]);
                let classes = logits.len();
                // The stream counts the labels of a set, not which they are.
                let labels: Vec<u32> = (0..size).collect();
                let sets = PredictionSets::from_parts(classes, vec![0, labels.len()], labels);
                Logits::new(&logits, classes).and_then(|rows| {
                    let rows = match &groups {
                        Some(groups) => rows.with_groups(groups)?,
                        None => rows,
                    };
                    stream.remember(rows, &[&id], level, &sets?)
                })
            }
        };
    }
}

struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn text(&mut self) -> Option<String> {
        let len = u32::from_le_bytes(self.take()?) as usize;
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        for record in [
            Record::Row {
                id: "3".into(),
                level: 0.1,
                group: None,
                size: 2,
                logits: vec![3.0, f64::NEG_INFINITY],
            },
            Record::Label { id: "4".into(), label: 1 },
            Record::Row { id: "ü".into(), level: -1.5, group: Some(2), size: 0, logits: vec![] },
        ] {
            let mut bytes = Vec::new();
            record.write(&mut bytes);
            assert_eq!(Record::read(&bytes), Some((record.clone(), bytes.len())));
            for cut in 0..bytes.len() {
                assert_eq!(Record::read(&bytes[..cut]), None);
            }
            for place in 0..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[place] ^= 1;
                assert_eq!(Record::read(&damaged), None, "byte {place}");
            }
        }
    }
}
