//! `Pool`: a population of rows with true labels, from which exchangeable rows are drawn.
//!
//! What a pool fixes is where scores tie, since that alone decides whether the law of coverage is an equality.

use std::fmt;

use conformax::{Logits, ScoreSpec};

/// Classes of every row: enough for sets of many sizes, few enough for a million rows a second.
pub const CLASSES: usize = 8;

/// SplitMix64: a seed gives the same rows on every system.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.uniform() * end as f64) as usize
    }
}

/// Logits and true labels.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    data: Vec<f64>,
    pub labels: Vec<u32>,
}

impl Rows {
    pub fn logits(&self) -> Logits<'_, f64> {
        Logits::new(&self.data, CLASSES).expect("whole rows are drawn")
    }

    pub fn labelled(&self) -> conformax::Result<conformax::Labelled<'_, f64>> {
        self.logits().labelled(&self.labels)
    }

    pub fn extend(&mut self, other: &Self) {
        self.data.extend(&other.data);
        self.labels.extend(&other.labels);
    }

    pub fn take(&self, places: &[usize]) -> Self {
        let row = |place: &usize| &self.data[place * CLASSES..][..CLASSES];
        Self {
            data: places.iter().flat_map(row).copied().collect(),
            labels: places.iter().map(|place| self.labels[*place]).collect(),
        }
    }
}

/// How rows and their true labels come about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pool {
    /// Continuous logits, and the true label never on top: no score but the rank ties.
    TieFree,
    /// Continuous logits, and the true label on top with this probability: entmax scores have an atom at 0.
    Accurate(f64),
    /// The true label on top of every row by so much that its probability is nearly 1.
    Certain,
    /// Whole numbers for logits: most scores tie with many others.
    Tied,
    /// Logits with the eight significant bits of `bf16`: some scores tie.
    Quantised,
    /// One class in eight masked by −∞ whatever the label, which some true labels then are.
    Masked,
}

impl Pool {
    pub fn draw(self, rows: usize, random: &mut Random) -> Rows {
        let mut drawn = Rows { data: Vec::with_capacity(rows * CLASSES), labels: Vec::with_capacity(rows) };
        for _ in 0..rows {
            let row: [f64; CLASSES] = std::array::from_fn(|_| self.logit(random));
            self.push(row, random, &mut drawn);
        }
        drawn
    }

    /// Triangular on (−4, 4), rounded as the pool asks.
    fn logit(self, random: &mut Random) -> f64 {
        let z = 4.0 * (random.uniform() + random.uniform() - 1.0);
        match self {
            Self::Tied => z.round(),
            Self::Quantised => f64::from_bits(z.to_bits() >> 45 << 45),
            Self::TieFree | Self::Accurate(_) | Self::Certain | Self::Masked => z,
        }
    }

    fn push(self, mut row: [f64; CLASSES], random: &mut Random, drawn: &mut Rows) {
        let top = (0..CLASSES).max_by(|a, b| row[*a].total_cmp(&row[*b])).expect("there are classes");
        let another = (top + 1 + random.below(CLASSES - 1)) % CLASSES;
        let label = match self {
            Self::TieFree => another,
            Self::Certain => top,
            Self::Accurate(accuracy) if random.uniform() < accuracy => top,
            Self::Tied | Self::Quantised | Self::Masked if random.uniform() < 0.5 => top,
            Self::Accurate(_) | Self::Tied | Self::Quantised | Self::Masked => another,
        };
        match self {
            Self::Certain => row[top] += 8.0,
            Self::Masked => row[random.below(CLASSES)] = f64::NEG_INFINITY,
            Self::TieFree | Self::Accurate(_) | Self::Tied | Self::Quantised => {}
        }
        drawn.data.extend(row);
        drawn.labels.push(label as u32);
    }

    /// Whether no two scores of true labels tie, so that the law is an equality.
    pub fn is_free_of_ties(self, score: ScoreSpec) -> bool {
        match self {
            _ if matches!(score, ScoreSpec::TopK(_)) => false,
            Self::TieFree => true,
            Self::Accurate(_) | Self::Certain => score.gamma().is_none(),
            Self::Tied | Self::Quantised | Self::Masked => false,
        }
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TieFree => f.write_str("tie-free"),
            Self::Accurate(accuracy) => write!(f, "accuracy {accuracy}"),
            Self::Certain => f.write_str("certain"),
            Self::Tied => f.write_str("tied"),
            Self::Quantised => f.write_str("quantised"),
            Self::Masked => f.write_str("masked"),
        }
    }
}
