//! `Names`: names in the order in which they came, each once.

use std::collections::BTreeMap;

/// Names in the order in which they came. To add one, take one out and look one up is O(log n) each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    by_place: BTreeMap<u64, String>,
    places: BTreeMap<String, u64>,
}

impl Names {
    /// Adds a name after all others; one that was there is now the last.
    pub(crate) fn push(&mut self, name: &str) {
        self.remove(name);
        let place = self.by_place.last_key_value().map_or(0, |(last, _)| last + 1);
        self.by_place.insert(place, name.to_owned());
        self.places.insert(name.to_owned(), place);
    }

    pub(crate) fn remove(&mut self, name: &str) {
        if let Some(place) = self.places.remove(name) {
            self.by_place.remove(&place);
        }
    }

    pub(crate) fn remove_first(&mut self) {
        if let Some((_, first)) = self.by_place.pop_first() {
            self.places.remove(&first);
        }
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &String> {
        self.by_place.values()
    }
}

impl PartialEq for Names {
    /// Places have gaps where names were taken out, which is no part of what is held.
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_the_order_in_which_they_came_last() {
        let mut names = Names::default();
        ["a", "b", "c", "a", "d"].iter().for_each(|name| names.push(name));
        names.remove("c");
        names.remove("nobody");
        assert!(names.iter().eq(["b", "a", "d"]) && names.len() == 3);
        names.remove_first();
        assert!(names.contains("a") && !names.contains("b") && !names.contains("c"));
        let mut others = Names::default();
        ["a", "d"].iter().for_each(|name| others.push(name));
        assert_eq!(names, others);
        names.remove("d");
        names.push("e");
        assert!(names.iter().eq(["a", "e"]) && names != others);
    }
}
