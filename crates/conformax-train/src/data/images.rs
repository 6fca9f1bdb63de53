//! `Images`: pictures by row, held in memory or left on disk until a batch needs them.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use image::{DynamicImage, ImageDecoder, ImageReader, Limits};

use super::error::{Error, InFile, Result};

/// Pictures by row.
#[derive(Clone, Debug, PartialEq)]
pub enum Images {
    /// Small ones of one size, all in memory.
    Memory(Pixels),
    /// PNG or JPEG files of any size, decoded on demand to red, green and blue.
    Files(Vec<PathBuf>),
}

/// Bytes of images of one size: planes of rows, `[images, channels, height, width]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Pixels {
    bytes: Vec<u8>,
    shape: [usize; 3],
}

impl Pixels {
    /// `bytes` must be a whole number of images of this shape.
    pub(crate) fn new(bytes: Vec<u8>, shape: [usize; 3]) -> Self {
        debug_assert!(bytes.len().is_multiple_of(shape.iter().product()), "images are whole");
        Self { bytes, shape }
    }

    /// Channels, height and width of every image.
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// The planes of one image.
    pub fn row(&self, row: usize) -> &[u8] {
        let size = self.shape.iter().product::<usize>();
        &self.bytes[row * size..][..size]
    }

    /// Adds the images of `other`, which have the same shape.
    pub(crate) fn append(&mut self, other: Self) {
        debug_assert_eq!(self.shape, other.shape, "readers check the shape");
        self.bytes.extend(other.bytes);
    }
}

/// One image: its planes of bytes.
pub(crate) struct Image<'a> {
    pub(crate) shape: [usize; 3],
    pub(crate) planes: Cow<'a, [u8]>,
}

impl Images {
    /// The image of a row, decoded if need be.
    pub(crate) fn get(&self, row: usize) -> Result<Image<'_>> {
        match self {
            Self::Memory(pixels) => Ok(Image { shape: pixels.shape, planes: Cow::Borrowed(pixels.row(row)) }),
            Self::Files(paths) => decode(&paths[row]),
        }
    }

    /// Number of channels: files are always read as colour.
    pub(crate) fn channels(&self) -> usize {
        match self {
            Self::Memory(pixels) => pixels.shape[0],
            Self::Files(_) => 3,
        }
    }

    /// The file of a row, where each has its own.
    pub(crate) fn file(&self, row: usize) -> Option<&Path> {
        match self {
            Self::Memory(_) => None,
            Self::Files(paths) => Some(&paths[row]),
        }
    }
}

/// Decodes by content, since names lie: ImageNet has a PNG file named `.JPEG`. Cameras write what they see and say in
/// the EXIF data which way is up; what a person would see is what a model gets.
fn decode(path: &Path) -> Result<Image<'static>> {
    let mut reader = ImageReader::open(path).in_file(path)?.with_guessed_format().in_file(path)?;
    // A header may promise any size; these bounds are beyond photographs and within memory.
    let mut limits = Limits::default();
    limits.max_image_width = Some(1 << 16);
    limits.max_image_height = Some(1 << 16);
    reader.limits(limits);
    let decoded = upright(reader).map_err(|error| Error::damaged(path, "a PNG or JPEG image", error))?;
    let colour = decoded.into_rgb8();
    let (width, height) = (colour.width() as usize, colour.height() as usize);
    Ok(Image { shape: [3, height, width], planes: Cow::Owned(planes(colour.as_raw(), height * width)) })
}

fn upright<R: std::io::BufRead + std::io::Seek>(reader: ImageReader<R>) -> image::ImageResult<DynamicImage> {
    let mut decoder = reader.into_decoder()?;
    let orientation = decoder.orientation()?;
    let mut image = DynamicImage::from_decoder(decoder)?;
    image.apply_orientation(orientation);
    Ok(image)
}

/// Red, green and blue planes of interleaved pixels.
fn planes(interleaved: &[u8], pixels: usize) -> Vec<u8> {
    let mut planes = Vec::with_capacity(3 * pixels);
    for channel in 0..3 {
        planes.extend(interleaved.iter().skip(channel).step_by(3));
    }
    planes
}

#[cfg(test)]
mod tests {
    use image::{ImageFormat, Luma, Rgb, RgbImage};

    use super::*;

    #[test]
    fn decodes_colour_and_grey_to_planes_whatever_the_name() {
        let folder = tempfile::tempdir().unwrap();
        let colour = folder.path().join("colour.JPEG");
        let picture = RgbImage::from_fn(2, 1, |x, _| Rgb([x as u8, 10 + x as u8, 20 + x as u8]));
        picture.save_with_format(&colour, ImageFormat::Png).unwrap();
        let grey = folder.path().join("grey.png");
        image::GrayImage::from_pixel(1, 2, Luma([7])).save(&grey).unwrap();
        let images = Images::Files(vec![colour, grey]);
        let first = images.get(0).unwrap();
        assert_eq!((first.shape, &*first.planes), ([3, 1, 2], &[0, 1, 10, 11, 20, 21][..]));
        let second = images.get(1).unwrap();
        assert_eq!((second.shape, &*second.planes), ([3, 2, 1], &[7; 6][..]));
    }

    #[test]
    fn reads_jpeg() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flat.jpg");
        RgbImage::from_pixel(16, 16, Rgb([200, 100, 50])).save(&path).unwrap();
        let image = Images::Files(vec![path]).get(0).map(|image| image.planes.into_owned()).unwrap();
        for (plane, wanted) in image.chunks(256).zip([200u8, 100, 50]) {
            assert!(plane.iter().all(|byte| byte.abs_diff(wanted) <= 3), "{plane:?}");
        }
    }

    /// A JPEG whose EXIF data say that it must be turned by a quarter, clockwise.
    fn turned(image: &RgbImage) -> Vec<u8> {
        let mut jpeg = std::io::Cursor::new(Vec::new());
        image.write_to(&mut jpeg, ImageFormat::Jpeg).unwrap();
        let jpeg = jpeg.into_inner();
        // Big-endian TIFF with one directory of one entry: orientation (0x0112), a short, 6.
        let tiff =
            [b"MM\0\x2a\0\0\0\x08".as_slice(), b"\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0", b"\0\0\0\0"]
                .concat();
        let exif = [b"Exif\0\0".as_slice(), &tiff].concat();
        let marker = [&[0xff, 0xe1], (exif.len() as u16 + 2).to_be_bytes().as_slice(), &exif].concat();
        [&jpeg[..2], &marker, &jpeg[2..]].concat()
    }

    #[test]
    fn images_stand_as_their_exif_data_say() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("turned.jpg");
        // Left half white, right half black; a turn clockwise puts the white half on top.
        let image = RgbImage::from_fn(32, 16, |x, _| Rgb([if x < 16 { 255 } else { 0 }; 3]));
        std::fs::write(&path, turned(&image)).unwrap();
        let images = Images::Files(vec![path]);
        let found = images.get(0).unwrap();
        assert_eq!(found.shape, [3, 32, 16]);
        assert!(found.planes[0] > 250 && found.planes[32 * 16 - 1] < 5);
    }

    #[test]
    fn an_image_that_does_not_decode_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("broken.png");
        RgbImage::new(8, 8).save(&path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        for bad in [&bytes[..bytes.len() / 2], b"not an image", b""] {
            std::fs::write(&path, bad).unwrap();
            let error = Images::Files(vec![path.clone()]).get(0).err().unwrap().to_string();
            assert!(error.contains("broken.png: damaged or not a PNG or JPEG image: "), "{error}");
        }
    }
}
