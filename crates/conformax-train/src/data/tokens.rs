//! `Tokens`: documents as numbers of word pieces.

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tokenizers::{Encoding, PostProcessor, Tokenizer, TruncationParams};

use super::BatchInputs;
use super::error::{Error, InFile, Problem, Result};

/// How documents become tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokenizing {
    /// A `tokenizer.json`, as checkpoints carry it.
    pub tokenizer: PathBuf,
    /// Most tokens of a document, the special ones included: longer documents are cut.
    #[serde(default = "max_length")]
    pub max_length: usize,
}

/// The paper's.
fn max_length() -> usize {
    128
}

/// Documents by row; padding is left out until a batch is made.
#[derive(Clone, Debug)]
pub(crate) struct Tokens {
    documents: Vec<Document>,
    pub(crate) max_length: usize,
    pub(crate) vocabulary: usize,
    padding: u32,
}

#[derive(Clone, Debug)]
struct Document {
    ids: Vec<u32>,
    types: Vec<u32>,
}

impl Tokenizing {
    /// Tokenises every text, on all cores.
    pub(crate) fn encode(&self, texts: &[String]) -> Result<Tokens> {
        let path = &self.tokenizer;
        let mut tokenizer = open(path)?;
        let padding = padding_id(path, &tokenizer)?;
        tokenizer.with_padding(None);
        self.truncate(&mut tokenizer)?;
        let encode = |text: &String| {
            tokenizer.encode_fast(text.as_str(), true).map(|encoding| Document::of(&encoding))
        };
        let documents = texts.par_iter().map(encode).collect::<std::result::Result<_, _>>();
        Ok(Tokens {
            documents: documents.map_err(|error| damaged(path, error))?,
            max_length: self.max_length,
            vocabulary: vocabulary(&tokenizer),
            padding,
        })
    }

    /// Puts our length in place of what the file says about it.
    fn truncate(&self, tokenizer: &mut Tokenizer) -> Result<()> {
        let length = self.max_length;
        // The crate subtracts these without a check.
        let special = tokenizer.get_post_processor().map_or(0, |processor| processor.added_tokens(false));
        if length <= special {
            let why = format!("{length} tokens leave no room beside the {special} special ones");
            return Err(Error::Options(why));
        }
        let truncation = TruncationParams { max_length: length, ..TruncationParams::default() };
        tokenizer.with_truncation(Some(truncation)).map_err(|error| damaged(&self.tokenizer, error))?;
        Ok(())
    }
}

fn open(path: &Path) -> Result<Tokenizer> {
    let bytes = std::fs::read(path).in_file(path)?;
    Tokenizer::from_bytes(bytes).map_err(|error| damaged(path, error))
}

/// The token that fills up short documents: the one the file pads with, or BERT's.
fn padding_id(path: &Path, tokenizer: &Tokenizer) -> Result<u32> {
    let of_file = tokenizer.get_padding().map(|padding| padding.pad_id);
    let id = of_file.or_else(|| tokenizer.token_to_id("[PAD]"));
    id.ok_or_else(|| Error::new(path, Problem::Missing("token `[PAD]`")))
}

/// One more than the largest number of a token; a vocabulary may have gaps.
fn vocabulary(tokenizer: &Tokenizer) -> usize {
    tokenizer.get_vocab(true).into_values().max().map_or(0, |last| last as usize + 1)
}

fn damaged(path: &Path, error: tokenizers::Error) -> Error {
    Error::damaged(path, "a tokenizer file", error)
}

impl Document {
    fn of(encoding: &Encoding) -> Self {
        Self { ids: encoding.get_ids().to_vec(), types: encoding.get_type_ids().to_vec() }
    }
}

impl Tokens {
    /// Tokens of a row, without padding.
    pub(crate) fn length(&self, row: usize) -> usize {
        self.documents[row].ids.len()
    }

    /// These rows, padded to the longest of them.
    pub(crate) fn batch(&self, rows: &[usize]) -> BatchInputs {
        /// Matrix units work on blocks of eight, and a few lengths are better for caches of kernels than many.
        const MULTIPLE: usize = 8;
        let longest = rows.iter().map(|row| self.length(*row)).max().unwrap_or(0);
        let length = longest.next_multiple_of(MULTIPLE).min(self.max_length);
        let room = || Vec::with_capacity(rows.len() * length);
        let (mut ids, mut mask, mut types) = (room(), room(), room());
        for Document { ids: tokens, types: kinds } in rows.iter().map(|row| &self.documents[*row]) {
            append_filled(&mut ids, tokens.iter().map(|id| i64::from(*id)), length, i64::from(self.padding));
            append_filled(&mut mask, tokens.iter().map(|_| 1), length, 0);
            append_filled(&mut types, kinds.iter().map(|kind| i64::from(*kind)), length, 0);
        }
        BatchInputs::Tokens { ids, mask, types, shape: [rows.len(), length] }
    }
}

fn append_filled(out: &mut Vec<i64>, values: impl Iterator<Item = i64>, length: usize, filling: i64) {
    let end = out.len() + length;
    out.extend(values);
    out.resize(end, filling);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/training-data").join(name)
    }

    fn tokenizing(max_length: usize) -> Tokenizing {
        Tokenizing { tokenizer: fixture("tokenizer.json"), max_length }
    }

    #[test]
    fn does_what_transformers_does() {
        #[derive(Deserialize)]
        struct Expected {
            texts: Vec<String>,
            ids: Vec<Vec<i64>>,
            mask: Vec<Vec<i64>>,
            types: Vec<Vec<i64>>,
        }
        let json = std::fs::read_to_string(fixture("tokens.json")).unwrap();
        let expected: Expected = serde_json::from_str(&json).unwrap();
        let tokens = tokenizing(8).encode(&expected.texts).unwrap();
        assert_eq!(tokens.vocabulary, 27);
        for (row, text) in expected.texts.iter().enumerate() {
            let BatchInputs::Tokens { ids, mask, types, shape } = tokens.batch(&[row]) else {
                panic!("texts became images");
            };
            assert_eq!(shape, [1, 8]);
            assert_eq!(
                (&ids, &mask, &types),
                (&expected.ids[row], &expected.mask[row], &expected.types[row]),
                "{text}"
            );
        }
    }

    #[test]
    fn a_batch_is_as_long_as_its_longest_text() {
        let texts = ["the cat", "the cat sat on the mat again the cat sat on the mat again the cat"];
        let tokens = tokenizing(20).encode(&texts.map(str::to_owned)).unwrap();
        let shape = |rows: &[usize]| match tokens.batch(rows) {
            BatchInputs::Tokens { ids, mask, shape, .. } => {
                assert_eq!((ids.len(), mask.len()), (shape[0] * shape[1], shape[0] * shape[1]));
                shape
            }
            BatchInputs::Images { .. } => panic!("texts became images"),
        };
        let longest = tokens.length(1);
        assert!(tokens.length(0) <= 8 && longest > 16, "{longest}");
        // A multiple of eight, and never more than may be kept.
        assert_eq!((shape(&[0]), shape(&[0, 1])), ([1, 8], [2, 20]));
    }

    #[test]
    fn refuses_what_is_no_tokenizer_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokenizer.json");
        let message = || {
            let tokenizing = Tokenizing { tokenizer: path.clone(), max_length: 8 };
            tokenizing.encode(&[]).unwrap_err().to_string()
        };
        assert!(message().contains("tokenizer.json: No such file"), "{}", message());
        std::fs::write(&path, "{}").unwrap();
        assert!(message().contains("tokenizer.json: damaged or not a tokenizer file: "), "{}", message());
        let without = std::fs::read_to_string(fixture("tokenizer.json")).unwrap().replace("[PAD]", "[FILL]");
        std::fs::write(&path, without).unwrap();
        assert!(message().ends_with("tokenizer.json: holds no token `[PAD]`"), "{}", message());
    }

    #[test]
    fn refuses_a_length_without_room() {
        let message = tokenizing(2).encode(&[]).unwrap_err().to_string();
        assert_eq!(message, "2 tokens leave no room beside the 2 special ones");
        assert!(tokenizing(3).encode(&[]).is_ok());
    }
}
