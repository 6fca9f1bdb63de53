//! Data and the yardstick of the benchmarks.
#![allow(dead_code, clippy::unwrap_used, missing_docs)]

use conformax::{Alpha, Choice, Labelled, Row, Score, Selection, Tuner};
use half::f16;

/// Logits in row order with true labels.
pub struct Tiled {
    pub logits: Vec<f32>,
    pub labels: Vec<u32>,
    pub classes: usize,
}

/// The part of a NumPy file after its header; the files of the benchmarks are version 1.
fn npy_data(name: &str) -> Vec<u8> {
    // The three small benchmarks lie in the crate that embeds them.
    let folder = if name.starts_with("imagenet") { "../.." } else { "../conformax-study" };
    let path = format!("{}/{folder}/benchmarks/{name}.npy", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(&path).expect("the benchmarks are part of the checkout");
    let header = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    bytes[10 + header..].to_vec()
}

fn pairs(bytes: &[u8]) -> impl Iterator<Item = u16> {
    bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
}

/// From a small problem to a language model's vocabulary.
pub const CLASSES: [usize; 5] = [10, 100, 1_000, 50_000, 128_256];

impl Tiled {
    /// Eight million logits or so in rows of this width.
    pub fn of_width(classes: usize) -> Self {
        let rows = (8_000_000 / classes).max(32);
        match classes {
            10 => Self::narrow(rows),
            1_000 => Self::imagenet(rows),
            _ => Self::laid_end_to_end(classes, rows),
        }
    }

    /// One of the small benchmarks, repeated until there are `rows`.
    pub fn benchmark(name: &str, rows: usize) -> Self {
        let logits: Vec<f32> = npy_data(&format!("{name}-logits"))
            .as_chunks()
            .0
            .iter()
            .map(|z| f32::from_le_bytes(*z))
            .collect();
        let labels: Vec<u32> = pairs(&npy_data(&format!("{name}-labels"))).map(u32::from).collect();
        let classes = logits.len() / labels.len();
        Self { logits, labels, classes }.tile(rows)
    }

    /// ImageNet-5k repeated until there are `rows`.
    pub fn imagenet(rows: usize) -> Self {
        let logits: Vec<f32> =
            pairs(&npy_data("imagenet5k-logits")).map(|bits| f16::from_bits(bits).to_f32()).collect();
        let labels: Vec<u32> = pairs(&npy_data("imagenet5k-labels")).map(u32::from).collect();
        let classes = logits.len() / labels.len();
        Self { logits, labels, classes }.tile(rows)
    }

    fn tile(self, rows: usize) -> Self {
        let Self { logits, labels, classes } = self;
        Self {
            logits: logits.into_iter().cycle().take(rows * classes).collect(),
            labels: labels.into_iter().cycle().take(rows).collect(),
            classes,
        }
    }

    /// Ten classes: the nine likeliest of each ImageNet row and the true one, which leads as often as there.
    pub fn narrow(rows: usize) -> Self {
        let source = Self::imagenet(5_000);
        let classes = 10;
        let mut narrow = Self { logits: Vec::with_capacity(rows * classes), labels: Vec::new(), classes };
        for row in 0..source.labels.len() {
            let logits = &source.logits[row * source.classes..][..source.classes];
            let label = source.labels[row] as usize;
            let mut others: Vec<f32> =
                (0..source.classes).filter(|k| *k != label).map(|k| logits[k]).collect();
            others.sort_unstable_by(|a, b| b.total_cmp(a));
            others.truncate(classes - 1);
            others.insert(row % classes, logits[label]);
            narrow.logits.extend(others);
            narrow.labels.push((row % classes) as u32);
        }
        narrow.tile(rows)
    }

    /// A language model's vocabulary.
    pub fn wide(rows: usize) -> Self {
        Self::laid_end_to_end(128_256, rows)
    }

    /// Rows of any width: an ImageNet row, cut or followed by others that are shifted so that the first leads.
    fn laid_end_to_end(classes: usize, rows: usize) -> Self {
        let source = Self::imagenet(5_000);
        let mut wide = Self { logits: Vec::with_capacity(rows * classes), labels: Vec::new(), classes };
        let head = source.classes.min(classes);
        for row in 0..rows {
            let leader = row % 5_000;
            wide.logits.extend_from_slice(&source.logits[leader * source.classes..][..head]);
            let rest = source.logits.iter().cycle().skip((leader + 1) * source.classes);
            wide.logits.extend(rest.take(classes - head).map(|logit| logit - 12.0));
            wide.labels.push(source.labels[leader] % classes as u32);
        }
        wide
    }

    /// The first rows alone.
    pub fn first(&self, rows: usize) -> Self {
        let (logits, labels) = (self.logits[..rows * self.classes].to_vec(), self.labels[..rows].to_vec());
        Self { logits, labels, classes: self.classes }
    }

    pub fn with_random_labels(&self) -> Self {
        let labels =
            (0..self.labels.len() as u64).map(|row| (row * 2_654_435_761 % self.classes as u64) as u32);
        Self { logits: self.logits.clone(), labels: labels.collect(), classes: self.classes }
    }
}

/// The threshold at which sets hold half the labels: the median of the scores of the labels in the middle of their
/// rows.
pub fn threshold_of_half<S: Score>(score: &S, data: &Tiled) -> f64 {
    let rows = data.logits.chunks_exact(data.classes).take(501);
    let mut scores: Vec<f64> = rows
        .map(|logits| {
            let mut labels: Vec<u32> = (0..data.classes as u32).collect();
            let logit = |label: &u32| logits[*label as usize];
            labels.sort_unstable_by(|a, b| logit(b).total_cmp(&logit(a)));
            score.score(Row::new(logits).unwrap(), labels[data.classes / 2 - 1])
        })
        .collect();
    scores.sort_unstable_by(f64::total_cmp);
    scores[scores.len() / 2]
}

/// The yardstick: the fastest row-max pass we have, and nothing else: no checks.
pub fn row_maxima(logits: &[f32], classes: usize) -> Vec<f32> {
    let mut maxima = vec![f32::NEG_INFINITY; logits.len() / classes];
    maxima_into(logits, classes, &mut maxima);
    maxima
}

#[multiversion::multiversion(targets(
    "x86_64+avx+avx2+avx512f+avx512bw+avx512dq+avx512vl",
    "x86_64+avx+avx2"
))]
fn maxima_into(logits: &[f32], classes: usize, maxima: &mut [f32]) {
    for (row, max) in logits.chunks_exact(classes).zip(maxima) {
        *max = match row.last_chunk() {
            Some(last) => max_of_chunks(row.as_chunks().0, last),
            None => row.iter().copied().fold(f32::NEG_INFINITY, larger),
        };
    }
}

const WIDTH: usize = 64;

/// The last chunk may overlap the one before.
#[inline(always)]
fn max_of_chunks(chunks: &[[f32; WIDTH]], last: &[f32; WIDTH]) -> f32 {
    let mut max = *last;
    for chunk in chunks {
        for lane in 0..WIDTH {
            max[lane] = larger(chunk[lane], max[lane]);
        }
    }
    // As in the library: keeps the lanes of the loop in whole registers.
    let mut max = std::hint::black_box(max);
    for half in [32, 16, 8, 4, 2, 1] {
        for lane in 0..half {
            max[lane] = larger(max[lane + half], max[lane]);
        }
    }
    max[0]
}

#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

/// Every candidate judged on all rows: what `tune` does with those it sets aside.
pub fn tune_on_all<S: Score + Clone>(grid: &[S], rows: Labelled<'_, f32>, alpha: Alpha) -> Choice<S> {
    let mut tuner = Tuner::new(grid.to_vec(), rows.logits().classes(), alpha).unwrap();
    tuner.extend(rows).unwrap();
    let mut sizes = tuner.finish().unwrap();
    sizes.extend(rows.logits()).unwrap();
    sizes.finish().unwrap()
}

/// The choice that all rows make anew for every label, with a count of who decides the true ones.
pub fn choose_on_all<S: Score + Clone>(
    grid: &[S],
    rows: Labelled<'_, f32>,
    alpha: Alpha,
) -> (Selection<S>, Vec<u64>) {
    let mut tuner = Tuner::new(grid.to_vec(), rows.logits().classes(), alpha).unwrap();
    tuner.extend(rows).unwrap();
    let mut pairs = tuner.finish_selecting().unwrap();
    pairs.extend(rows).unwrap();
    pairs.finish().unwrap()
}
