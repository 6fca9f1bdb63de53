//! Rows like a classifier's, from a seed: more of them than fit one chunk of work.

/// A uniform stream in [0, 1): SplitMix64, whose bits are the same everywhere.
pub struct Uniform(pub u64);

impl Uniform {
    pub fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Logits and labels, the true label near the top as a rule.
pub struct Data {
    pub classes: usize,
    pub logits: Vec<f32>,
    pub labels: Vec<u32>,
}

impl Data {
    pub fn new(rows: usize, classes: usize, seed: u64) -> Self {
        let mut uniform = Uniform(seed);
        let mut logits: Vec<f32> = (0..rows * classes)
            .map(|_| (uniform.next() + uniform.next() + uniform.next() - 1.5) as f32 * 3.0)
            .collect();
        let labels: Vec<u32> = (0..rows).map(|_| (uniform.next() * classes as f64) as u32).collect();
        for (row, label) in logits.chunks_exact_mut(classes).zip(&labels) {
            row[*label as usize] += 4.0;
        }
        Self { classes, logits, labels }
    }

    pub fn rows(&self) -> conformax::Logits<'_, f32> {
        conformax::Logits::new(&self.logits, self.classes).unwrap()
    }

    pub fn labelled(&self) -> conformax::Labelled<'_, f32> {
        self.rows().labelled(&self.labels).unwrap()
    }
}
