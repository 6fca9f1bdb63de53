//! `ImageTransform`: what every image goes through, in training and after it.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::augment::{Affine, Placement};
use super::images::Image;
use super::resample::{Axis, Enlarging, resample};
use super::{Error, Result};

/// Size and scale of the images a model sees: `(pixel / 255 − mean) / std`, channel by channel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ImageTransform {
    /// The size.
    pub resize: Resize,
    /// One mean for each channel; none means 0.
    pub mean: Vec<f32>,
    /// One standard deviation for each channel; none means 1.
    pub std: Vec<f32>,
}

/// The size of images, bilinear and antialiased where it changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Resize {
    /// As it is; all images must have one size.
    #[default]
    Keep,
    /// Exactly this, whatever the proportions were.
    To {
        /// Rows of pixels.
        height: usize,
        /// Columns of pixels.
        width: usize,
    },
    /// The shorter side to `size` with proportions kept (the longer side rounded down), then a square of `crop`
    /// pixels from the centre.
    ShortSide {
        /// Pixels of the shorter side.
        size: usize,
        /// Pixels of each side of the square.
        crop: usize,
    },
}

/// The size an image is brought to, and the window of it that is kept.
struct Frame {
    size: [usize; 2],
    window: [Range<usize>; 2],
}

impl ImageTransform {
    /// Refuses sizes that make no image.
    pub(crate) fn check(&self) -> Result<()> {
        match self.resize {
            Resize::To { height: 0, .. }
            | Resize::To { width: 0, .. }
            | Resize::ShortSide { crop: 0, .. } => {
                Err(Error::Options("images must be resized to at least one pixel".to_owned()))
            }
            Resize::ShortSide { size, crop } if crop > size => Err(Error::Options(format!(
                "a crop of {crop} pixels does not fit into a short side of {size}"
            ))),
            Resize::Keep | Resize::To { .. } | Resize::ShortSide { .. } => Ok(()),
        }
    }

    /// Height and width of what comes out of an image of this height and width.
    pub(crate) fn output_size(&self, size: [usize; 2]) -> [usize; 2] {
        self.frame(size).map_or(size, |frame| frame.window.map(|range| range.len()))
    }

    /// One scale and offset for each channel, or why there is none.
    pub(crate) fn affine(&self, channels: usize) -> Result<Vec<Affine>> {
        let mean = per_channel("mean", &self.mean, channels, 0.0)?;
        let std = per_channel("std", &self.std, channels, 1.0)?;
        if let Some(bad) = std.iter().find(|std| **std <= 0.0) {
            return Err(Error::Options(format!("std must be positive, got {bad}")));
        }
        let affine = |(mean, std): (&f32, &f32)| Affine { scale: 1.0 / (255.0 * std), offset: -mean / std };
        Ok(mean.iter().zip(&std).map(affine).collect())
    }

    /// Resizes `image` and writes it into `out` where `placement` says.
    pub(crate) fn write(&self, image: &Image<'_>, affine: &[Affine], placement: Placement, out: &mut [f32]) {
        let [_, height, width] = image.shape;
        match self.frame([height, width]) {
            None => write_planes(&image.planes, width, affine, placement, out),
            Some(Frame { size, window: [rows, columns] }) => {
                let width = columns.len();
                let vertical = Axis::new(height, size[0], rows);
                let horizontal = Axis::new(image.shape[2], size[1], columns);
                write_planes(&resample(&image.planes, &vertical, &horizontal), width, affine, placement, out);
            }
        }
    }

    /// How images of this height and width become larger; nothing where they stay, or become smaller on a side.
    pub(crate) fn enlarging(&self, size: [usize; 2]) -> Option<Enlarging> {
        let Frame { size: whole, window } = self.frame(size)?;
        let grows = (0..2).all(|side| window[side].len() >= size[side]);
        let [rows, columns] = window;
        grows.then(|| Enlarging {
            vertical: Axis::new(size[0], whole[0], rows).matrix(),
            horizontal: Axis::new(size[1], whole[1], columns).matrix(),
        })
    }

    /// Nothing where the image stays as it is.
    fn frame(&self, [height, width]: [usize; 2]) -> Option<Frame> {
        let frame = match self.resize {
            Resize::Keep => return None,
            Resize::To { height, width } => Frame { size: [height, width], window: [0..height, 0..width] },
            Resize::ShortSide { size, crop } => {
                let short = height.min(width);
                let size = [height, width].map(|side| size * side / short);
                Frame { size, window: size.map(|side| centre(side, crop)) }
            }
        };
        let whole = frame.size == [height, width] && frame.window == [0..height, 0..width];
        (!whole).then_some(frame)
    }
}

fn write_planes<T: Copy + Into<f32>>(
    planes: &[T],
    width: usize,
    affine: &[Affine],
    placement: Placement,
    out: &mut [f32],
) {
    let plane = planes.len() / affine.len();
    let channels = planes.chunks_exact(plane).zip(affine).zip(out.chunks_exact_mut(plane));
    channels.for_each(|((plane, affine), out)| placement.write(plane, width, *affine, out));
}

/// `crop` pixels in the middle of `side`; half a pixel goes to the even place, as in torchvision.
fn centre(side: usize, crop: usize) -> Range<usize> {
    let start = ((side - crop) as f64 / 2.0).round_ties_even() as usize;
    start..start + crop
}

fn per_channel(name: &str, values: &[f32], channels: usize, default: f32) -> Result<Vec<f32>> {
    if values.is_empty() {
        return Ok(vec![default; channels]);
    }
    if values.len() != channels {
        let found = values.len();
        return Err(Error::Options(format!(
            "{name} has {found} numbers, the images have {channels} channels"
        )));
    }
    match values.iter().find(|value| !value.is_finite()) {
        Some(bad) => Err(Error::Options(format!("{name} must be finite, got {bad}"))),
        None => Ok(values.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    fn applied(transform: &ImageTransform, shape: [usize; 3], planes: &[u8]) -> Vec<f32> {
        let image = Image { shape, planes: Cow::Borrowed(planes) };
        let [height, width] = transform.output_size([shape[1], shape[2]]);
        let mut out = vec![f32::NAN; shape[0] * height * width];
        transform.write(&image, &transform.affine(shape[0]).unwrap(), Placement::default(), &mut out);
        out
    }

    #[test]
    fn normalises_each_channel() {
        let transform = ImageTransform { mean: vec![0.5, 0.0], std: vec![0.5, 2.0], ..Default::default() };
        assert_eq!(applied(&transform, [2, 1, 2], &[0, 255, 0, 255]), [-1.0, 1.0, 0.0, 0.5]);
        assert_eq!(applied(&ImageTransform::default(), [1, 1, 2], &[0, 255]), [0.0, 1.0]);
    }

    #[test]
    fn short_side_keeps_proportions_and_the_centre() {
        let resize = Resize::ShortSide { size: 2, crop: 1 };
        let transform = ImageTransform { resize, ..Default::default() };
        let frame = transform.frame([4, 10]).unwrap();
        assert_eq!((frame.size, frame.window), ([2, 5], [0..1, 2..3]));
        assert_eq!(transform.output_size([4, 10]), [1, 1]);
        // An odd difference of 3 rounds 1.5 to 2, and of 1 rounds 0.5 to 0.
        assert_eq!((centre(5, 2), centre(3, 2)), (2..4, 0..2));
    }

    #[test]
    fn a_size_that_is_there_already_changes_nothing() {
        let resize = Resize::To { height: 1, width: 2 };
        let transform = ImageTransform { resize, ..Default::default() };
        assert!(transform.frame([1, 2]).is_none());
        assert_eq!(applied(&transform, [1, 2, 2], &[0, 255, 0, 255]), [0.0, 1.0]);
    }

    #[test]
    fn refuses_what_does_not_fit_the_images() {
        let affine = |mean: &[f32], std: &[f32]| {
            let transform = ImageTransform { mean: mean.to_vec(), std: std.to_vec(), ..Default::default() };
            transform.affine(3).unwrap_err().to_string()
        };
        assert_eq!(affine(&[0.5], &[]), "mean has 1 numbers, the images have 3 channels");
        assert_eq!(affine(&[], &[1.0, 0.0, 1.0]), "std must be positive, got 0");
        assert_eq!(affine(&[0.0, f32::NAN, 0.0], &[]), "mean must be finite, got NaN");
        let check = |resize| ImageTransform { resize, ..Default::default() }.check().unwrap_err().to_string();
        assert!(check(Resize::ShortSide { size: 2, crop: 3 }).contains("does not fit"));
        assert!(check(Resize::To { height: 0, width: 3 }).contains("at least one pixel"));
    }
}
