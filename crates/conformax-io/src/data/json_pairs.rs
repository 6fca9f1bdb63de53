//! `JsonPairs`: an object of JSON with the keys it really has.
//!
//! A map would keep the last of two equal keys and say nothing.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// Keys and values in the order they are written.
#[derive(Debug)]
pub(crate) struct JsonPairs<V>(pub(crate) Vec<(String, V)>);

impl<V> JsonPairs<V> {
    pub(crate) fn get(&self, key: &str) -> Option<&V> {
        self.0.iter().find(|(other, _)| other == key).map(|(_, value)| value)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_str())
    }

    /// A key that occurs twice, where one does.
    pub(crate) fn repeated(&self) -> Option<&str> {
        let mut keys: Vec<&str> = self.keys().collect();
        keys.sort_unstable();
        keys.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for JsonPairs<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Pairs(PhantomData))
    }
}

struct Pairs<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for Pairs<V> {
    type Value = JsonPairs<V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonPairs<V>, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(JsonPairs(pairs))
    }
}
