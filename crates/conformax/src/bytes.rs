//! Accumulators as bytes, so that shards, processes and machines can be put together.
//!
//! A frame: `CFMX`, what it holds, its version, the version of the arithmetic, the contents, and a checksum over all of
//! it. Numbers are little-endian; lists begin with their length. The same rows give the same bytes, whatever blocks and
//! merges they came in: what has no order is put in order.

mod accumulators;
mod evaluator;
mod numbers;
mod parts;
mod stream;

use numbers::{Reader, Writer};

use crate::calibrate::Calibrator;
use crate::deal::Dealer;
use crate::evaluate::Evaluator;
use crate::fingerprint::mix_all;
use crate::select::PairCounter;
use crate::threshold_search::ThresholdSearch;
use crate::tune::{SizeCounter, Tuner};
use crate::{ARITHMETIC_VERSION, AdaptiveLevel, Alarm, Error, Result, ScoreSpec, Stream};

const MAGIC: &[u8; 4] = b"CFMX";

/// Something that has a form in bytes.
trait Framed: Sized {
    /// What it is, in the words of a message, and in the frame.
    const WHAT: &'static str;
    const KIND: u32;
    /// The version of the contents.
    const VERSION: u32 = 2;
    fn write(&self, to: &mut Writer);
    fn read(from: &mut Reader<'_>) -> Result<Self>;

    fn framed(&self) -> Vec<u8> {
        let mut writer = Writer(MAGIC.to_vec());
        [Self::KIND, Self::VERSION, ARITHMETIC_VERSION].iter().for_each(|word| writer.u32(*word));
        self.write(&mut writer);
        let sum = checksum(&writer.0);
        writer.u64(sum);
        writer.0
    }

    fn unframed(bytes: &[u8]) -> Result<Self> {
        let fault = |what| Error::Bytes { wanted: Self::WHAT, what };
        let (body, sum) = bytes.split_last_chunk::<8>().ok_or(fault("they are too few"))?;
        let mut reader = Reader { bytes: body, wanted: Self::WHAT };
        if reader.take(4)? != MAGIC {
            return Err(fault("they begin with something else"));
        }
        if reader.u32()? != Self::KIND {
            return Err(fault("they hold something else"));
        }
        if reader.u32()? != Self::VERSION {
            return Err(fault("they are of another version"));
        }
        if reader.u32()? != ARITHMETIC_VERSION {
            return Err(fault("their scores were computed with another version of the arithmetic"));
        }
        if checksum(body) != u64::from_le_bytes(*sum) {
            return Err(fault("they are damaged"));
        }
        let read = Self::read(&mut reader)?;
        if reader.bytes.is_empty() {
            Ok(read)
        } else {
            Err(fault("there are more of them than there should be"))
        }
    }
}

fn checksum(bytes: &[u8]) -> u64 {
    let word = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    };
    mix_all(bytes.chunks(8).map(word).chain([bytes.len() as u64]))
}

/// Gives an accumulator its public forms.
macro_rules! framed {
    ($($accumulator:ty),+) => {
        $(impl $accumulator {
            /// As bytes that [`from_bytes`](Self::from_bytes) reads: the same for the same rows, whatever their blocks.
            pub fn to_bytes(&self) -> Vec<u8> {
                self.framed()
            }

            /// From the bytes that [`to_bytes`](Self::to_bytes) made, here or elsewhere.
            pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
                Self::unframed(bytes)
            }
        })+
    };
}
framed!(
    Calibrator<ScoreSpec>,
    Tuner<ScoreSpec>,
    SizeCounter<ScoreSpec>,
    PairCounter<ScoreSpec>,
    Dealer<ScoreSpec>,
    Evaluator<ScoreSpec>,
    ThresholdSearch<ScoreSpec>,
    Stream<ScoreSpec>,
    AdaptiveLevel,
    Alarm
);
