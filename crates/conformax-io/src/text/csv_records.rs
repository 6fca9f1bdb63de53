//! Records of a CSV file as they come.
//!
//! The parser is that of the crate `csv`, fed by hand: the crate's reader asks for more bytes whenever it has none
//! left, and rows that have come through a pipe would wait there for the next one. It looks at every byte by itself, so
//! a line that is there as a whole and has no quotes is cut at its separators instead: the same cells in a tenth of the
//! time.

use std::io;

use csv_core::ReadRecordResult;
use memchr::{memchr_iter, memchr3};

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
    separator: u8,
    record: Record,
    /// Bytes the record took so far.
    taken: usize,
    /// Whether the parser has seen some of the record.
    begun: bool,
    whole: bool,
}

/// The bytes of a record and where each cell ends; the lengths say how much of both is in use.
struct Record {
    bytes: Vec<u8>,
    bytes_len: usize,
    ends: Vec<usize>,
    ends_len: usize,
    /// Bytes between cells: the parser leaves none, and a line has its separators.
    gap: usize,
}

impl Record {
    fn new() -> Self {
        Self { bytes: vec![0; 1 << 10], bytes_len: 0, ends: vec![0; 1 << 6], ends_len: 0, gap: 0 }
    }

    fn clear(&mut self) {
        (self.bytes_len, self.ends_len, self.gap) = (0, 0, 0);
    }

    /// Takes what the parser makes of further bytes: how many it read, and what it came to.
    fn parse(&mut self, parser: &mut csv_core::Reader, input: &[u8]) -> (usize, Option<Next>) {
        let room = (&mut self.bytes[self.bytes_len..], &mut self.ends[self.ends_len..]);
        let (result, read, bytes, ends) = parser.read_record(input, room.0, room.1);
        self.bytes_len += bytes;
        self.ends_len += ends;
        let outcome = match result {
            ReadRecordResult::InputEmpty => None,
            ReadRecordResult::OutputFull => {
                self.bytes.resize(2 * self.bytes.len(), 0);
                None
            }
            ReadRecordResult::OutputEndsFull => {
                self.ends.resize(2 * self.ends.len(), 0);
                None
            }
            ReadRecordResult::Record => Some(Next::Row),
            ReadRecordResult::End => Some(Next::End),
        };
        (read, outcome)
    }

    /// Takes a line without quotes.
    fn set_line(&mut self, line: &[u8], separator: u8) {
        if self.bytes.len() < line.len() {
            self.bytes.resize(line.len(), 0);
        }
        self.bytes[..line.len()].copy_from_slice(line);
        (self.bytes_len, self.ends_len, self.gap) = (line.len(), 0, 1);
        for end in memchr_iter(separator, line).chain([line.len()]) {
            if self.ends_len == self.ends.len() {
                self.ends.resize(2 * self.ends_len, 0);
            }
            self.ends[self.ends_len] = end;
            self.ends_len += 1;
        }
    }
}

/// What may stand between cells; the one that the header has most of is taken, the first of them on a tie.
const SEPARATORS: [u8; 3] = [b',', b';', b'\t'];

impl CsvRecords {
    /// Reads the first line and decides what separates its cells.
    pub(crate) fn open(mut stream: Box<dyn Stream>) -> Result<Self, Problem> {
        let header = first_line(&mut *stream)?;
        let header = without_mark(&header)?.to_vec();
        let separator = separator(&header);
        let parser = csv_core::ReaderBuilder::new().delimiter(separator).build();
        let record = Record::new();
        Ok(Self { stream, parser, header, parsed: 0, separator, record, taken: 0, begun: false, whole: true })
    }

    /// Goes to the next record.
    pub(crate) fn next(&mut self, patience: Patience) -> Result<Next, Problem> {
        if self.whole {
            self.record.clear();
            (self.taken, self.begun, self.whole) = (0, false, false);
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
            let line = plain_line(input).filter(|_| !from_header && !self.begun);
            let (read, outcome) = match line {
                // An empty line is no record, and between `\r` and `\n` there is one.
                Some([]) => (1, None),
                Some(line) => {
                    self.record.set_line(line, self.separator);
                    (line.len() + 1, Some(Next::Row))
                }
                None => {
                    self.begun = true;
                    self.record.parse(&mut self.parser, input)
                }
            };
            match from_header {
                true => self.parsed += read,
                false => self.stream.consume(read),
            }
            self.taken += read;
            if let Some(next) = outcome {
                self.whole = next == Next::Row;
                return Ok(next);
            }
            if self.taken > LONGEST_ROW {
                return Err(Problem::RowTooLong(LONGEST_ROW));
            }
        }
    }

    /// How many cells the record has.
    pub(crate) fn len(&self) -> usize {
        self.record.ends_len
    }

    /// The cells of the record.
    pub(crate) fn cells(&self) -> impl Iterator<Item = &[u8]> {
        let (mut start, gap) = (0, self.record.gap);
        self.record.ends[..self.record.ends_len].iter().map(move |&end| {
            let cell = &self.record.bytes[start..end];
            start = end + gap;
            cell
        })
    }
}

/// The first of these bytes that are a whole line, where nothing in it is quoted.
fn plain_line(bytes: &[u8]) -> Option<&[u8]> {
    let end = memchr3(b'\n', b'\r', b'"', bytes)?;
    (bytes[end] != b'"').then_some(&bytes[..end])
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

    fn records(text: &str, buffer: usize) -> Vec<Vec<Vec<u8>>> {
        struct Text<'a>(io::BufReader<&'a [u8]>);
        impl io::Read for Text<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                self.0.read(buffer)
            }
        }
        impl io::BufRead for Text<'_> {
            fn fill_buf(&mut self) -> io::Result<&[u8]> {
                self.0.fill_buf()
            }
            fn consume(&mut self, len: usize) {
                self.0.consume(len);
            }
        }
        impl Stream for Text<'static> {
            fn would_wait(&mut self) -> bool {
                false
            }
        }
        let bytes: &'static [u8] = text.to_owned().leak().as_bytes();
        let stream = Text(io::BufReader::with_capacity(buffer, bytes));
        let mut records = CsvRecords::open(Box::new(stream)).unwrap();
        let mut all = Vec::new();
        while records.next(Patience::Wait).unwrap() == Next::Row {
            assert_eq!(records.cells().count(), records.len());
            all.push(records.cells().map(<[u8]>::to_vec).collect());
        }
        all
    }

    /// Lines are cut where they are whole and plain, and parsed where they are not; which of them are whole depends on
    /// the buffer, and the cells do not.
    #[test]
    fn cells_are_those_of_the_parser_however_the_bytes_come() {
        let texts = [
            "a,b\n1,2\n3,4",
            "a,b\r\n1,2\r\n\r\n3,4\r\n",
            "a,b\r1,2\r\r\n3,4\r",
            "a,b\n\n\n\"1\n,\",2\n3,\"4\"\"\"\n,\n",
            "a,b\r\n1,\"2\"\r\n 3,4 \r\n5\n6,7,8\n",
            "a,b\n1,2\"2\n3,4\n\"5,6",
            &format!("a,b\n{}\n1,2\n", "3,".repeat(200)),
        ];
        for text in texts {
            let mut reader = csv::ReaderBuilder::new();
            let reader = reader.has_headers(false).flexible(true).from_reader(text.as_bytes());
            let wanted: Vec<Vec<Vec<u8>>> = reader
                .into_byte_records()
                .map(|record| record.unwrap().iter().map(<[u8]>::to_vec).collect())
                .collect();
            for buffer in 1..40 {
                assert_eq!(records(text, buffer), wanted, "{text:?} by {buffer} bytes");
            }
        }
    }
}
