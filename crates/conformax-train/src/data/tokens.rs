//! `Tokens`: documents as numbers of word pieces.

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tokenizers::{Encoding, PostProcessor, Tokenizer, TruncationParams};

use super::error::{Error, InFile, Problem, Result};

/// How documents become tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokenizing {
    /// A `tokenizer.json`, as checkpoints carry it.
    pub tokenizer: PathBuf,
    /// Tokens of each document, the special ones included: longer documents are cut, shorter ones padded.
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
    /// Appends a row's ids, mask (1 for a token, 0 for padding) and types, each `max_length` long.
    pub(crate) fn append(&self, row: usize, ids: &mut Vec<i64>, mask: &mut Vec<i64>, types: &mut Vec<i64>) {
        let Document { ids: tokens, types: kinds } = &self.documents[row];
        append_filled(ids, tokens.iter().map(|id| i64::from(*id)), self.max_length, i64::from(self.padding));
        append_filled(mask, tokens.iter().map(|_| 1), self.max_length, 0);
        append_filled(types, kinds.iter().map(|kind| i64::from(*kind)), self.max_length, 0);
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
        for row in 0..expected.texts.len() {
            let (mut ids, mut mask, mut types) = (Vec::new(), Vec::new(), Vec::new());
            tokens.append(row, &mut ids, &mut mask, &mut types);
            let text = &expected.texts[row];
            assert_eq!(
                (&ids, &mask, &types),
                (&expected.ids[row], &expected.mask[row], &expected.types[row]),
                "{text}"
            );
        }
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
