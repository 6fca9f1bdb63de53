//! The norm of gaps in single precision, for whoever asks which of many thresholds a score lies between: a fifth of the
//! work, and close enough but for scores right beside a threshold.

use super::isa::{Isa, Kernel};
use super::single::{BLOCK, WIDTH, error_in_single, fold, power};
use super::{DELTAS_IN_SINGLE, Order, THRESHOLDS_IN_SINGLE, math};

/// `‖(gap − other gaps)₊‖_δ` where `ahead` are the gaps to the maximum of the labels ahead, and how far off that may
/// be; `None` where single precision does not hold it, or where the norm itself costs no more.
pub(crate) fn norm_in_single(ahead: &[f64], gap: f64, order: Order) -> Option<(f64, f64)> {
    let Order::Other { delta, inverse } = order else { return None };
    let fits = delta >= 1.0 && DELTAS_IN_SINGLE.contains(&delta) && THRESHOLDS_IN_SINGLE.contains(&gap);
    fits.then(|| {
        let scale = (1.0 / gap) as f32;
        let sum = Isa::best().dispatch(PowerSum { ahead, gap, scale, delta: delta as f32 });
        // A root of order δ ≥ 1 is off by no more than what it is taken of.
        let norm = gap * math::pow(sum.max(1.0), inverse);
        (norm, norm * error_in_single(delta))
    })
}

/// `Σ ((gap − x) / gap)^δ` over the gaps `x` ahead.
struct PowerSum<'a> {
    ahead: &'a [f64],
    gap: f64,
    scale: f32,
    delta: f32,
}

impl Kernel for PowerSum<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let mut total = 0.0;
        for block in self.ahead.chunks(BLOCK) {
            let mut sums = [0.0; WIDTH];
            let (chunks, rest) = block.as_chunks::<WIDTH>();
            for chunk in chunks {
                self.add(&mut sums, chunk);
            }
            if !rest.is_empty() {
                // A label that is not ahead adds nothing.
                let mut padded = [self.gap; WIDTH];
                padded[..rest.len()].copy_from_slice(rest);
                self.add(&mut sums, &padded);
            }
            total += f64::from(fold(sums));
        }
        total
    }
}

impl PowerSum<'_> {
    #[inline(always)]
    fn add(&self, sums: &mut [f32; WIDTH], ahead: &[f64; WIDTH]) {
        let mut terms = [0.0; WIDTH];
        for lane in 0..WIDTH {
            terms[lane] = (self.gap - ahead[lane]) as f32 * self.scale;
        }
        for lane in 0..WIDTH {
            let term = power(terms[lane], self.delta);
            terms[lane] = if terms[lane] > 0.0 { term } else { 0.0 };
        }
        for lane in 0..WIDTH {
            sums[lane] += terms[lane];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::gap_norm;
    use super::*;
    use crate::Gamma;

    #[test]
    fn is_as_close_as_it_says() {
        let spread = |i: u32, n: u32| f64::from(i * 7919 % n) / f64::from(n);
        let mut checked = 0;
        for labels in [2, 3, 31, 32, 33, 100, 1000, 3000] {
            for scale in [1e-6_f64, 1.0, 30.0, 1e6] {
                let mut gaps: Vec<f64> = (0..labels).map(|i| spread(i, labels) * scale).collect();
                gaps.sort_unstable_by(f64::total_cmp);
                let row: Vec<f64> = gaps.iter().map(|gap| -gap).collect();
                for gamma in [1.016, 1.1, 1.2, 1.3, 1.4, 1.6, 1.7, 1.8, 1.9] {
                    let order = Order::from(Gamma::new(gamma).unwrap());
                    for place in [1, labels as usize / 2, labels as usize - 1] {
                        let exact = gap_norm(&row, 0.0, row[place], order);
                        let found = norm_in_single(&gaps[..place], gaps[place], order);
                        let (norm, error) = found.unwrap();
                        assert!(
                            (norm - exact).abs() <= error,
                            "{labels} {scale} {gamma} {place}: {norm} {exact}"
                        );
                        checked += 1;
                    }
                }
            }
        }
        assert_eq!(checked, 8 * 4 * 9 * 3);
    }

    #[test]
    fn is_none_where_it_would_not_be_close() {
        let order = |gamma: f64| Order::from(Gamma::new(gamma).unwrap());
        assert_eq!(norm_in_single(&[0.0], 1.0, order(1.5)), None);
        assert_eq!(norm_in_single(&[0.0], 1.0, order(3.0)), None);
        assert_eq!(norm_in_single(&[], 0.0, order(1.3)), None);
        assert_eq!(norm_in_single(&[0.0], 1e-30, order(1.3)), None);
    }
}
