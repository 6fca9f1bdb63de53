//! A seeded generator for shuffles: SplitMix64, one stream per purpose.

/// Random numbers that are the same everywhere: its bits are part of every split ever made, so they never change.
///
/// ```
/// use conformax::Generator;
/// let mut order = [0, 1, 2, 3];
/// Generator::new(7, "shuffle").shuffle(&mut order);
/// let mut again = [0, 1, 2, 3];
/// Generator::new(7, "shuffle").shuffle(&mut again);
/// assert_eq!(order, again);
/// assert!(Generator::new(7, "coin").below(2) < 2);
/// ```
#[derive(Clone, Debug)]
pub struct Generator(u64);

/// One step of SplitMix64.
pub(crate) fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Generator {
    /// Streams of different purposes share nothing, even with the same seed.
    pub fn new(seed: u64, purpose: &str) -> Self {
        Self(purpose.bytes().fold(mix(seed), |state, byte| mix(state ^ u64::from(byte))))
    }

    /// A stream of its own for item `index`, so that what one item draws does not depend on the others.
    #[must_use]
    pub fn stream(&self, index: u64) -> Self {
        Self(mix(mix(self.0) ^ index))
    }

    fn next(&mut self) -> u64 {
        let value = mix(self.0);
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        value
    }

    /// Uniform in `0..bound`, exactly: products that would favour small numbers are drawn again.
    ///
    /// # Panics
    /// With `bound` 0, where there is nothing to draw from.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a draw below 0 was asked for");
        loop {
            let product = u128::from(self.next()) * u128::from(bound);
            if product as u64 >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }

    /// Puts `items` into a random order, each order as likely (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_never_change() {
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf, "the generator's published first output");
        let mut order: Vec<u32> = (0..8).collect();
        Generator::new(1, "split").shuffle(&mut order);
        assert_eq!(order, [6, 5, 3, 1, 0, 4, 2, 7]);
        let draw = |index| Generator::new(1, "split").stream(index).below(1000);
        assert_eq!([draw(0), draw(1), draw(u64::MAX)], [210, 451, 343]);
        // Long enough that a draw refused by mistake, or not refused, would show.
        let mut order: Vec<u32> = (0..24).collect();
        Generator::new(1, "split").shuffle(&mut order);
        let expected = [10, 11, 13, 3, 23, 6, 4, 12, 1, 14, 15, 0, 22, 20, 17, 5, 18, 7, 19, 9, 2, 16, 8, 21];
        assert_eq!(order, expected);
    }

    #[test]
    fn every_order_is_as_likely() {
        let mut counts = std::collections::BTreeMap::new();
        let mut generator = Generator::new(0, "test");
        for _ in 0..6000 {
            let mut order = [0, 1, 2];
            generator.shuffle(&mut order);
            *counts.entry(order).or_insert(0) += 1;
        }
        assert!(counts.len() == 6 && counts.values().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
