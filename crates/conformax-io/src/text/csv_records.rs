//! Records of a CSV file as they come.
//!
//! The parser is that of the crate `csv`, fed by hand: the crate's reader asks for more bytes whenever it has none left,
//! and rows that have come through a pipe would wait there for the next one.

use std::io;

use csv_core::ReadRecordResult;

use super::LONGEST_ROW;
use crate::Problem;
use crate::data::utf8::without_mark;
use crate::reading::stream::{Next, Patience, Stream};

pub(crate) struct CsvRecords {
    stream: Box<dyn Stream>,
    parser: csv_core::Reader,
    /// The first line, which was read to find out what separates its cells, and how much of it was parsed.
    header: Vec<u8>,
    parsed: usize,
    /// Cells of the record, end to end, and where each ends; the lengths say how much of both is in use.
    cells: Vec<u8>,
    cells_len: usize,
    ends: Vec<usize>,
    ends_len: usize,
    /// Bytes the record took so far.
    taken: usize,
    whole: bool,
}

/// What may stand between cells; the one that the header has most of is taken, the first of them on a tie.
const SEPARATORS: [u8; 3] = [b',', b';', b'\t'];

impl CsvRecords {
    /// Reads the first line and decides what separates its cells.
    pub(crate) fn open(mut stream: Box<dyn Stream>) -> Result<Self, Problem> {
        let header = first_line(&mut *stream)?;
        let header = without_mark(&header)?.to_vec();
        Ok(Self {
            stream,
            parser: csv_core::ReaderBuilder::new().delimiter(separator(&header)).build(),
            header,
            parsed: 0,
            cells: vec![0; 1 << 10],
            cells_len: 0,
            ends: vec![0; 1 << 6],
            ends_len: 0,
            taken: 0,
            whole: true,
        })
    }

    /// Goes to the next record.
    pub(crate) fn next(&mut self, patience: Patience) -> Result<Next, Problem> {
        if self.whole {
            (self.cells_len, self.ends_len, self.taken, self.whole) = (0, 0, 0, false);
        }
        loop {
            let from_header = self.parsed < self.header.len();
            if !from_header && patience == Patience::Now && self.stream.would_wait() {
                return Ok(Next::NotYet);
            }
            let input = match from_header {
                true => &self.header[self.parsed..],
                false => match self.stream.fill_buf() {
                    Ok(bytes) => bytes,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error.into()),
                },
            };
            let (result, read, cells, ends) = self.parser.read_record(
                input,
                &mut self.cells[self.cells_len..],
                &mut self.ends[self.ends_len..],
            );
            match from_header {
                true => self.parsed += read,
                false => self.stream.consume(read),
            }
            self.taken += read;
            self.cells_len += cells;
            self.ends_len += ends;
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => self.cells.resize(2 * self.cells.len(), 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(2 * self.ends.len(), 0),
                ReadRecordResult::Record => {
                    self.whole = true;
                    return Ok(Next::Row);
                }
                ReadRecordResult::End => return Ok(Next::End),
            }
            if self.taken > LONGEST_ROW {
                return Err(Problem::RowTooLong(LONGEST_ROW));
            }
        }
    }

    /// How many cells the record has.
    pub(crate) fn len(&self) -> usize {
        self.ends_len
    }

    /// The cells of the record.
    pub(crate) fn cells(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends[..self.ends_len].iter().map(move |&end| {
            let cell = &self.cells[start..end];
            start = end;
            cell
        })
    }
}

/// The first line that is not blank, with the end of the line.
fn first_line(stream: &mut dyn Stream) -> Result<Vec<u8>, Problem> {
    let (mut line, mut quoted, mut begun) = (Vec::new(), false, false);
    loop {
        let bytes = match stream.fill_buf() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        let end = bytes.iter().position(|&byte| {
            quoted ^= byte == b'"';
            let at_end = !quoted && [b'\n', b'\r'].contains(&byte);
            begun |= !at_end;
            at_end && begun
        });
        let taken = end.map_or(bytes.len(), |end| end + 1);
        line.extend_from_slice(&bytes[..taken]);
        stream.consume(taken);
        if taken == 0 || end.is_some() {
            return Ok(line);
        }
        if line.len() > LONGEST_ROW {
            return Err(Problem::RowTooLong(LONGEST_ROW));
        }
    }
}

fn separator(header: &[u8]) -> u8 {
    let mut counts = [0_usize; SEPARATORS.len()];
    let mut quoted = false;
    for byte in header {
        quoted ^= *byte == b'"';
        if let Some(which) = SEPARATORS.iter().position(|separator| !quoted && separator == byte) {
            counts[which] += 1;
        }
    }
    let most = counts.iter().max().copied().unwrap_or(0);
    let first = counts.iter().position(|&count| count == most).unwrap_or(0);
    SEPARATORS[first]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_separated_by_what_the_header_has_most_of() {
        assert_eq!(separator(b"cat,dog,label"), b',');
        assert_eq!(separator(b"cat;dog;label"), b';');
        assert_eq!(separator(b"cat\tdog\tlabel"), b'\t');
        assert_eq!(separator(b"\"a,b,c\";dog"), b';');
        assert_eq!(separator(b"cat"), b',');
    }
}
