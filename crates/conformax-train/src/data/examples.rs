//! `Examples`: a data set that is ready to be cut into batches.

use std::sync::Arc;

use super::augment::{Affine, Placement};
use super::error::Problem;
use super::tokens::Tokens;
use super::{
    BatchInputs, Dataset, Enlarging, Error, ImageTransform, Images, Inputs, Parts, Resize, Result, Tokenizing,
};

/// How inputs become numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Preparation {
    /// Images are brought to one size and scale when a batch needs them.
    Images(ImageTransform),
    /// Texts are tokenised once.
    Texts(Tokenizing),
}

/// Inputs that have passed every check that can be made before a batch is.
#[derive(Debug)]
pub struct Examples {
    /// The class of each row.
    pub labels: Vec<u32>,
    /// The names of the classes.
    pub class_names: Vec<String>,
    /// Which rows train, validate and test.
    pub parts: Parts,
    prepared: Prepared,
}

#[derive(Debug)]
enum Prepared {
    Images(PreparedImages),
    Tokens(Tokens),
}

#[derive(Debug)]
struct PreparedImages {
    images: Images,
    transform: ImageTransform,
    affine: Vec<Affine>,
    /// Channels, height and width of what goes into a batch.
    shape: [usize; 3],
    /// What the device does to them afterwards.
    enlarging: Option<Arc<Enlarging>>,
}

impl Dataset {
    /// Fits images or texts to what a model takes.
    pub fn prepare(self, preparation: &Preparation) -> Result<Examples> {
        let prepared = match (self.inputs, preparation) {
            (Inputs::Images(images), Preparation::Images(transform)) => {
                Prepared::Images(PreparedImages::new(images, transform.clone())?)
            }
            (Inputs::Texts(texts), Preparation::Texts(tokenizing)) => {
                Prepared::Tokens(tokenizing.encode(&texts)?)
            }
            (Inputs::Images(_), Preparation::Texts(_)) => {
                return Err(Error::Options("the data are images, and the model takes texts".to_owned()));
            }
            (Inputs::Texts(_), Preparation::Images(_)) => {
                return Err(Error::Options("the data are texts, and the model takes images".to_owned()));
            }
        };
        Ok(Examples { labels: self.labels, class_names: self.class_names, parts: self.parts, prepared })
    }
}

impl Examples {
    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.class_names.len()
    }

    /// Channels, height and width of images; nothing for texts.
    pub fn input_shape(&self) -> Option<[usize; 3]> {
        match &self.prepared {
            Prepared::Images(PreparedImages { shape, enlarging: None, .. }) => Some(*shape),
            Prepared::Images(PreparedImages { shape, enlarging: Some(enlarging), .. }) => {
                let [height, width] = enlarging.to();
                Some([shape[0], height, width])
            }
            Prepared::Tokens(_) => None,
        }
    }

    /// Number of tokens the tokenizer may give; nothing for images. A model must have an embedding for each.
    pub fn vocabulary(&self) -> Option<usize> {
        match &self.prepared {
            Prepared::Images(_) => None,
            Prepared::Tokens(tokens) => Some(tokens.vocabulary),
        }
    }

    /// The inputs of these rows, images placed as told.
    pub(crate) fn inputs(&self, rows: &[usize], place: impl Fn(usize) -> Placement) -> Result<BatchInputs> {
        match &self.prepared {
            Prepared::Images(images) => images.inputs(rows, place),
            Prepared::Tokens(tokens) => Ok(tokens.batch(rows)),
        }
    }

    /// How long a row is, where rows differ in it: a batch is as long as its longest.
    pub(crate) fn length(&self, row: usize) -> Option<usize> {
        match &self.prepared {
            Prepared::Images(_) => None,
            Prepared::Tokens(tokens) => Some(tokens.length(row)),
        }
    }
}

impl PreparedImages {
    fn new(images: Images, transform: ImageTransform) -> Result<Self> {
        transform.check()?;
        let affine = transform.affine(images.channels())?;
        let [channels, height, width] = images.get(0)?.shape;
        let enlarging = match &images {
            // Of one size, and fewer bytes for the device than what they become.
            Images::Memory(_) => transform.enlarging([height, width]).map(Arc::new),
            Images::Files(_) => None,
        };
        let transform = match enlarging {
            Some(_) => ImageTransform { resize: Resize::Keep, ..transform },
            None => transform,
        };
        let [height, width] = transform.output_size([height, width]);
        Ok(Self { images, transform, affine, shape: [channels, height, width], enlarging })
    }

    fn inputs(&self, rows: &[usize], place: impl Fn(usize) -> Placement) -> Result<BatchInputs> {
        let [channels, height, width] = self.shape;
        let size = channels * height * width;
        let mut values = vec![0.0; rows.len() * size];
        for (row, out) in rows.iter().zip(values.chunks_exact_mut(size)) {
            let image = self.images.get(*row)?;
            self.check_size(*row, [image.shape[1], image.shape[2]])?;
            self.transform.write(&image, &self.affine, place(*row), out);
        }
        let shape = [rows.len(), channels, height, width];
        Ok(BatchInputs::Images { values, shape, enlarging: self.enlarging.clone() })
    }

    fn check_size(&self, row: usize, size: [usize; 2]) -> Result<()> {
        let [_, height, width] = self.shape;
        let found = self.transform.output_size(size);
        match self.images.file(row) {
            Some(file) if found != [height, width] => {
                let (wanted, found) = (format!("{height}×{width}"), format!("{}×{}", found[0], found[1]));
                Err(Error::new(file, Problem::SizesDiffer { wanted, found }))
            }
            _ => Ok(()),
        }
    }
}
