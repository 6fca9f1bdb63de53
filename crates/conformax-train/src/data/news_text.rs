//! The text of a newsgroup post without what gives its group away: header, signature and quotes.
//!
//! The rules are scikit-learn's (`fetch_20newsgroups(remove=…)`), so that accuracies can be compared;
//! `fixtures/training-data` holds posts and what scikit-learn makes of them.

use serde::{Deserialize, Serialize};

/// What to take out of a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Remove {
    /// Everything up to the first blank line.
    Headers,
    /// What follows the last blank line or line of hyphens, taken for a signature.
    Footers,
    /// Lines that quote another post or introduce a quote.
    Quotes,
}

impl Remove {
    /// Headers, footers and quotes.
    pub fn all() -> Vec<Self> {
        vec![Self::Headers, Self::Footers, Self::Quotes]
    }
}

/// Takes out what `remove` names: headers first, then footers, then quotes, whatever their order there.
pub(crate) fn strip(mut text: String, remove: &[Remove]) -> String {
    if remove.contains(&Remove::Headers) {
        text = without_header(&text).to_owned();
    }
    if remove.contains(&Remove::Footers) {
        text = without_footer(&text).to_owned();
    }
    if remove.contains(&Remove::Quotes) {
        text = without_quotes(&text);
    }
    text
}

/// A post without a blank line is all header.
fn without_header(text: &str) -> &str {
    text.split_once("\n\n").map_or("", |(_, body)| body)
}

/// Cuts before the last blank line or line of hyphens, unless nothing would be left.
fn without_footer(text: &str) -> &str {
    let trimmed = text.trim_matches(is_space);
    let mut end = trimmed.len();
    while let Some(newline) = trimmed[..end].rfind('\n') {
        if trimmed[newline + 1..end].trim_matches(is_space).chars().all(|c| c == '-') {
            return &trimmed[..newline];
        }
        end = newline;
    }
    text
}

fn without_quotes(text: &str) -> String {
    let kept: Vec<&str> = text.split('\n').filter(|line| !is_quote(line)).collect();
    kept.join("\n")
}

fn is_quote(line: &str) -> bool {
    const ANYWHERE: [&str; 5] = ["writes in", "writes:", "wrote:", "says:", "said:"];
    const AT_START: [&str; 4] = ["In article", "Quoted from", "|", ">"];
    AT_START.iter().any(|start| line.starts_with(start))
        || ANYWHERE.iter().any(|phrase| line.contains(phrase))
}

/// Whitespace as Python's `strip` has it: Unicode's, and the four separators of ASCII.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn does_what_scikit_learn_does() {
        #[derive(Deserialize)]
        struct Case {
            text: String,
            header: String,
            footer: String,
            quotes: String,
            all: String,
        }
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/training-data/newsgroups.json");
        let cases: Vec<Case> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert!(cases.len() >= 200, "{} cases", cases.len());
        for Case { text, header, footer, quotes, all } in cases {
            assert_eq!(without_header(&text), header, "header of {text:?}");
            assert_eq!(without_footer(&text), footer, "footer of {text:?}");
            assert_eq!(without_quotes(&text), quotes, "quotes of {text:?}");
            assert_eq!(strip(text.clone(), &Remove::all()), all, "all of {text:?}");
        }
    }

    #[test]
    fn takes_out_only_what_is_named() {
        let post = "From: a\n\n>quote\nbody\n\n--\nsignature";
        assert_eq!(strip(post.to_owned(), &[]), post);
        assert_eq!(strip(post.to_owned(), &[Remove::Headers]), ">quote\nbody\n\n--\nsignature");
        // The order of the list does not matter.
        assert_eq!(strip(post.to_owned(), &[Remove::Quotes, Remove::Headers]), "body\n\n--\nsignature");
        assert_eq!(strip(post.to_owned(), &Remove::all()), "body\n");
    }
}
