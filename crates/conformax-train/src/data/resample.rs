//! Images made larger or smaller: bilinear, antialiased.
//!
//! Along each axis an output pixel `i` looks at the input around `c = (i + ½)·s`, where `s` is input over output
//! size, and weighs input pixel `j` by `max(0, 1 − |j + ½ − c| / max(s, 1))`, the weights divided by their sum. So a
//! smaller image averages all that it covers, and a larger one interpolates between neighbours. It is the rule of
//! Pillow and of PyTorch's `interpolate(mode="bilinear", antialias=True)`; columns first, without rounding between.

use std::ops::Range;

/// What each output pixel takes from one axis of the input.
pub(crate) struct Axis {
    input: usize,
    /// The first input pixel, and where the weights of it and the next ones are.
    taps: Vec<(usize, Range<usize>)>,
    weights: Vec<f32>,
}

impl Axis {
    /// The part `keep` of an axis of `output` pixels made from `input` pixels; sizes are at least 1.
    pub(crate) fn new(input: usize, output: usize, keep: Range<usize>) -> Self {
        let step = input as f64 / output as f64;
        let reach = step.max(1.0);
        let mut axis = Self { input, taps: Vec::with_capacity(keep.len()), weights: Vec::new() };
        for place in keep {
            let centre = (place as f64 + 0.5) * step;
            let first = (centre - reach + 0.5).max(0.0) as usize;
            let end = ((centre + reach + 0.5) as usize).min(input);
            let weigh = |pixel: usize| (1.0 - (pixel as f64 + 0.5 - centre).abs() / reach).max(0.0);
            let sum: f64 = (first..end).map(weigh).sum();
            let start = axis.weights.len();
            axis.weights.extend((first..end).map(|pixel| (weigh(pixel) / sum) as f32));
            axis.taps.push((first, start..axis.weights.len()));
        }
        axis
    }

    /// The weights as a matrix with a row for each output pixel.
    pub(crate) fn matrix(&self) -> Matrix {
        let shape = [self.output(), self.input];
        let mut values = vec![0.0; shape[0] * shape[1]];
        for (row, (first, weights)) in values.chunks_exact_mut(self.input).zip(self.taps()) {
            row[first..first + weights.len()].copy_from_slice(weights);
        }
        Matrix { values, shape }
    }

    fn output(&self) -> usize {
        self.taps.len()
    }

    /// Each output pixel: its first input pixel and its weights.
    fn taps(&self) -> impl Iterator<Item = (usize, &[f32])> {
        self.taps.iter().map(|(first, weights)| (*first, &self.weights[weights.clone()]))
    }
}

/// Numbers in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// The numbers.
    pub values: Vec<f32>,
    /// Rows and columns.
    pub shape: [usize; 2],
}

/// How images of one size become larger: `vertical · image · horizontalᵀ` for each channel, which a device does in less
/// time than it would take to send it the larger images.
#[derive(Clone, Debug, PartialEq)]
pub struct Enlarging {
    /// Rows of pixels after by rows of pixels before.
    pub vertical: Matrix,
    /// The same for columns.
    pub horizontal: Matrix,
}

impl Enlarging {
    /// Height and width of what comes out.
    pub fn to(&self) -> [usize; 2] {
        [self.vertical.shape[0], self.horizontal.shape[0]]
    }
}

/// Planes of bytes, resampled to `vertical` × `horizontal` pixels; values stay between 0 and 255.
pub(crate) fn resample(planes: &[u8], vertical: &Axis, horizontal: &Axis) -> Vec<f32> {
    let plane = vertical.input * horizontal.input;
    planes
        .chunks_exact(plane)
        .flat_map(|plane| resample_rows(&resample_columns(plane, horizontal), vertical))
        .collect()
}

fn resample_columns(plane: &[u8], axis: &Axis) -> Vec<f32> {
    let mut out = Vec::with_capacity(plane.len() / axis.input * axis.output());
    for row in plane.chunks_exact(axis.input) {
        out.extend(axis.taps().map(|(first, weights)| {
            weights.iter().zip(&row[first..]).map(|(weight, byte)| weight * f32::from(*byte)).sum::<f32>()
        }));
    }
    out
}

fn resample_rows(plane: &[f32], axis: &Axis) -> Vec<f32> {
    let width = plane.len() / axis.input;
    let mut out = vec![0.0; width * axis.output()];
    for (row, (first, weights)) in out.chunks_exact_mut(width).zip(axis.taps()) {
        for (source, weight) in plane[first * width..].chunks_exact(width).zip(weights) {
            for (sum, value) in row.iter_mut().zip(source) {
                *sum += weight * value;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resized(plane: &[u8], [height, width]: [usize; 2], [to_height, to_width]: [usize; 2]) -> Vec<f32> {
        let vertical = Axis::new(height, to_height, 0..to_height);
        resample(plane, &vertical, &Axis::new(width, to_width, 0..to_width))
    }

    #[test]
    fn the_same_size_is_the_same_image() {
        let plane: Vec<u8> = (0..12).map(|i| i * 21).collect();
        let same: Vec<f32> = plane.iter().map(|byte| f32::from(*byte)).collect();
        assert_eq!(resized(&plane, [3, 4], [3, 4]), same);
    }

    #[test]
    fn weights_are_those_of_the_formula() {
        // Two pixels to four: centres at ¼, ¾, 1¼, 1¾.
        assert_eq!(resized(&[0, 100], [1, 2], [1, 4]), [0.0, 25.0, 75.0, 100.0]);
        // Four to two: centre 1, reach 2: weights ¾, ¾, ¼ over their sum of 7/4.
        let halved = resized(&[70, 0, 0, 0], [1, 4], [1, 2]);
        assert!((halved[0] - 30.0).abs() < 1e-4 && (halved[1] - 0.0).abs() < 1e-4, "{halved:?}");
    }

    #[test]
    fn does_what_pytorch_does() {
        #[derive(serde::Deserialize)]
        struct Case {
            input: [usize; 2],
            output: [usize; 2],
            pixels: Vec<u8>,
            resized: Vec<f32>,
        }
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/training-data/resize.json");
        let cases: Vec<Case> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert!(cases.len() >= 6, "{} cases", cases.len());
        for case in cases {
            let ours = resized(&case.pixels, case.input, case.output);
            assert_eq!(ours.len(), case.resized.len());
            for (ours, theirs) in ours.iter().zip(&case.resized) {
                // Of 255, in single precision.
                assert!(
                    (ours - theirs).abs() < 1e-3,
                    "{ours} and {theirs}, {:?} → {:?}",
                    case.input,
                    case.output
                );
            }
        }
    }

    #[test]
    fn a_part_of_an_axis_is_the_part_of_the_whole() {
        let plane: Vec<u8> = (0..30).map(|i| (i * 37 % 256) as u8).collect();
        let whole = resized(&plane, [1, 30], [1, 11]);
        let part = resample(&plane, &Axis::new(1, 1, 0..1), &Axis::new(30, 11, 4..9));
        assert_eq!(part, whole[4..9]);
    }
}
