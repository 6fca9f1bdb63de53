//! Positions of a vision transformer for another grid of patches than they were learnt for.
//!
//! Bicubic between the four nearest positions along each axis, the outermost repeated beyond the border: what
//! `transformers` does with `interpolate_pos_encoding`, which is PyTorch's `interpolate(mode="bicubic")`.

use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, TensorData};

/// `[1, 1 + n·n, hidden]` to `[1, 1 + rows·columns, hidden]`; the first token has no place and stays.
pub(super) fn interpolated<B: Backend>(positions: Tensor<B, 3>, grid: [usize; 2]) -> Tensor<B, 3> {
    let [_, tokens, hidden] = positions.dims();
    let side = (tokens - 1).isqrt();
    let first = positions.clone().narrow(1, 0, 1);
    let places = positions.narrow(1, 1, tokens - 1).reshape([side, side * hidden]);
    let device = places.device();
    let weights = |output: usize| {
        Tensor::<B, 2>::from_data(TensorData::new(cubic(side, output), [output, side]), &device)
    };
    let rows = weights(grid[0]).matmul(places).reshape([grid[0], side, hidden]).swap_dims(0, 1);
    let all = weights(grid[1]).matmul(rows.reshape([side, grid[0] * hidden]));
    let all = all.reshape([grid[1], grid[0], hidden]).swap_dims(0, 1);
    Tensor::cat(vec![first, all.reshape([1, grid[0] * grid[1], hidden])], 1)
}

/// What each of `output` places takes from each of `input` places, row by row.
fn cubic(input: usize, output: usize) -> Vec<f32> {
    let mut weights = vec![0.0; output * input];
    for (place, row) in weights.chunks_exact_mut(input).enumerate() {
        let centre = (place as f64 + 0.5) * input as f64 / output as f64 - 0.5;
        for tap in -1..=2 {
            let nearest = centre.floor() + f64::from(tap);
            let inside = (nearest.max(0.0) as usize).min(input - 1);
            row[inside] += weight((centre - nearest).abs()) as f32;
        }
    }
    weights
}

/// Keys' kernel with PyTorch's coefficient.
fn weight(distance: f64) -> f64 {
    const A: f64 = -0.75;
    let d = distance;
    if d <= 1.0 {
        ((A + 2.0) * d - (A + 3.0)) * d * d + 1.0
    } else {
        ((A * d - 5.0 * A) * d + 8.0 * A) * d - 4.0 * A
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn_flex::Flex;

    fn moved(side: usize, grid: [usize; 2], values: &[f32]) -> Vec<f32> {
        let positions =
            TensorData::new(values.to_vec(), [1, side * side + 1, values.len() / (side * side + 1)]);
        let moved = interpolated(Tensor::<Flex, 3>::from_data(positions, &Default::default()), grid);
        moved.into_data().to_vec().unwrap()
    }

    #[test]
    fn does_what_pytorch_does() {
        // torch.nn.functional.interpolate(values.view(1, 1, 2, 2), size=(3, 4), mode="bicubic", align_corners=False)
        let found = moved(2, [3, 4], &[9.0, 1.0, -2.0, 0.5, 4.0]);
        let wanted = [
            1.41932, 0.23588, -1.71331, -2.89675, 0.72363, 0.80664, 0.94336, 1.02637, 0.02795, 1.37740,
            3.60003, 4.94948,
        ];
        assert_eq!(found.len(), 13);
        assert_eq!(found[0], 9.0, "the first token stays");
        for (found, wanted) in found[1..].iter().zip(wanted) {
            assert!((found - wanted).abs() < 1e-5, "{found}, {wanted}");
        }
    }

    #[test]
    fn the_same_grid_is_the_same_positions() {
        let values: Vec<f32> = (0..20).map(|i| (i * 7 % 11) as f32).collect();
        assert_eq!(moved(3, [3, 3], &values), values);
    }
}
