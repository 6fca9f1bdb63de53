//! `Token`: who may ask.

use axum::http::{HeaderMap, header};
use subtle::ConstantTimeEq;

use crate::Error;

/// A secret that clients send as `Authorization: Bearer …`.
#[derive(Clone)]
pub(crate) struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Shorter ones can be guessed.
const SHORTEST: usize = 16;

impl Token {
    pub(crate) fn new(text: &str) -> Result<Self, Error> {
        match text.len() >= SHORTEST && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Ok(Self(text.to_owned())),
            false => Err(Error::Token(text.chars().count())),
        }
    }

    /// Whether a request carries it. How long that takes depends on the length of what came, not on what it is.
    pub(crate) fn is_in(&self, headers: &HeaderMap) -> bool {
        let value = headers.get(header::AUTHORIZATION).map(|value| value.as_bytes()).unwrap_or_default();
        match value.split_at_checked(7) {
            Some((scheme, given)) if scheme.eq_ignore_ascii_case(b"bearer ") => {
                self.0.as_bytes().ct_eq(given).into()
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_it() {
        let token = Token::new("0123456789abcdef").unwrap();
        let with = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            token.is_in(&headers)
        };
        assert!(with("Bearer 0123456789abcdef") && with("bearer 0123456789abcdef"));
        for other in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdef0",
            "0123456789abcdef",
        ] {
            assert!(!with(other), "{other}");
        }
        assert!(!token.is_in(&HeaderMap::new()));
        assert!(Token::new("short").is_err() && Token::new("with a space in it").is_err());
    }
}
