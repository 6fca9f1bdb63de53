//! `Counted`: numbers with repetition that know how many lie above one.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::LazyLock;

use crate::random::mix;
use crate::{Error, Result};

/// Numbers with repetition, in a tree that knows how many lie above one: O(log n) a call.
///
/// A treap whose priorities are hashes of the numbers with a salt of the process's own: whoever chooses the numbers
/// cannot make a list of it. What it holds and answers does not depend on its shape.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted {
    nodes: Vec<Node>,
    root: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Node {
    key: f64,
    priority: u64,
    count: u64,
    /// With everything below.
    total: u64,
    left: Option<u32>,
    right: Option<u32>,
}

impl Counted {
    pub(crate) fn len(&self) -> u64 {
        self.total(self.root)
    }

    fn total(&self, node: Option<u32>) -> u64 {
        node.map_or(0, |node| self.nodes[node as usize].total)
    }

    /// These scores, none of which may be NaN.
    pub(crate) fn of(scores: &[f64]) -> Result<Self> {
        let mut counted = Self::default();
        for (row, score) in (0..).zip(scores) {
            match score.is_nan() {
                true => return Err(Error::ScoreIsNan { row }),
                false => counted.insert(*score),
            }
        }
        Ok(counted)
    }

    pub(crate) fn insert(&mut self, key: f64) {
        self.insert_many(key, 1);
    }

    /// Takes in a number that occurs `count` times.
    pub(crate) fn insert_many(&mut self, key: f64, count: u64) {
        // −0 is 0.
        let key = key + 0.0;
        self.root = Some(self.inserted(self.root, key, count));
    }

    /// Every number and how often it occurs, ascending.
    pub(crate) fn in_order(&self) -> Vec<(f64, u64)> {
        let mut all: Vec<_> = self.nodes.iter().map(|node| (node.key, node.count)).collect();
        all.sort_unstable_by(|(a, _), (b, _)| a.total_cmp(b));
        all
    }

    fn inserted(&mut self, node: Option<u32>, key: f64, count: u64) -> u32 {
        let Some(at) = node else {
            let priority = mix(key.to_bits() ^ salt());
            self.nodes.push(Node { key, priority, count, total: count, left: None, right: None });
            return self.nodes.len() as u32 - 1;
        };
        let Node { key: own, left, right, .. } = self.nodes[at as usize];
        let top = if key < own {
            let child = self.inserted(left, key, count);
            self.nodes[at as usize].left = Some(child);
            if self.priority(child) > self.priority(at) { self.turned(at, child, true) } else { at }
        } else if key > own {
            let child = self.inserted(right, key, count);
            self.nodes[at as usize].right = Some(child);
            if self.priority(child) > self.priority(at) { self.turned(at, child, false) } else { at }
        } else {
            self.nodes[at as usize].count += count;
            at
        };
        self.recount(at);
        self.recount(top);
        top
    }

    fn priority(&self, node: u32) -> u64 {
        self.nodes[node as usize].priority
    }

    /// Puts a child above its parent.
    fn turned(&mut self, parent: u32, child: u32, from_left: bool) -> u32 {
        if from_left {
            self.nodes[parent as usize].left = self.nodes[child as usize].right;
            self.nodes[child as usize].right = Some(parent);
        } else {
            self.nodes[parent as usize].right = self.nodes[child as usize].left;
            self.nodes[child as usize].left = Some(parent);
        }
        child
    }

    fn recount(&mut self, node: u32) {
        let Node { count, left, right, .. } = self.nodes[node as usize];
        self.nodes[node as usize].total = count + self.total(left) + self.total(right);
    }

    pub(crate) fn above_and_equal(&self, key: f64) -> (u64, u64) {
        let (mut above, mut at) = (0, self.root);
        while let Some(node) = at {
            let Node { key: own, count, left, right, .. } = self.nodes[node as usize];
            if key < own {
                above += count + self.total(right);
                at = left;
            } else if key > own {
                at = right;
            } else {
                return (above + self.total(right), count);
            }
        }
        (above, 0)
    }
}

/// A number that nobody outside knows.
fn salt() -> u64 {
    static SALT: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));
    *SALT
}

impl PartialEq for Counted {
    /// Where the nodes lie tells in which order numbers came, which is no part of what it holds.
    fn eq(&self, other: &Self) -> bool {
        self.in_order() == other.in_order()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_counts_as_a_list_does() {
        let (mut tree, mut list, mut state) = (Counted::default(), Vec::new(), 7_u64);
        for _ in 0..2_000 {
            state = mix(state);
            let key = (state % 500) as f64 / 7.0 - 20.0;
            tree.insert(key);
            list.push(key);
            let above = list.iter().filter(|other| **other > key).count() as u64;
            let equal = list.iter().filter(|other| **other == key).count() as u64;
            assert_eq!(tree.above_and_equal(key), (above, equal));
            assert_eq!(tree.len(), list.len() as u64);
        }
        // Rising numbers make no list of the tree.
        let mut rising = Counted::default();
        (0..100_000).for_each(|key| rising.insert(f64::from(key)));
        let depth = |tree: &Counted| {
            let mut most = 0;
            let mut open = vec![(tree.root, 0)];
            while let Some((node, depth)) = open.pop() {
                if let Some(node) = node.map(|node| tree.nodes[node as usize]) {
                    most = most.max(depth);
                    open.extend([(node.left, depth + 1), (node.right, depth + 1)]);
                }
            }
            most
        };
        // A random tree of so many is about 50 deep; one of 200 comes less than once in 10²⁰ salts.
        assert!(depth(&rising) < 200, "{}", depth(&rising));
    }
}
