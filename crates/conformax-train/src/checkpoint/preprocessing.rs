//! How a checkpoint's own images were prepared: `preprocessor_config.json` of its folder.

use std::path::Path;

use serde::Deserialize;

use super::Error;
use super::config::problem;
use crate::data::{ImageTransform, Resize};
use crate::model::vit::VitConfig;

const FILE: &str = "preprocessor_config.json";

/// The keys that decide what a model sees; `transformers` takes ViT's values where one is absent.
#[derive(Deserialize)]
#[serde(default)]
struct Preprocessor {
    image_mean: Vec<f32>,
    image_std: Vec<f32>,
    size: Option<Size>,
    crop_size: Option<Size>,
    do_center_crop: bool,
    resample: u8,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Size {
    Square(usize),
    ShortSide { shortest_edge: usize },
    Exact { height: usize, width: usize },
}

impl Default for Preprocessor {
    fn default() -> Self {
        let half = || vec![0.5; 3];
        let (size, crop_size) = (None, None);
        Self {
            image_mean: half(),
            image_std: half(),
            size,
            crop_size,
            do_center_crop: false,
            resample: BILINEAR,
        }
    }
}

/// Pillow's number for it.
const BILINEAR: u8 = 2;

/// What brings images to what the checkpoint in `folder` takes.
pub(crate) fn preprocessing(folder: &Path, vit: &VitConfig) -> Result<ImageTransform, Error> {
    let path = folder.join(FILE);
    let found: Preprocessor = match path.is_file() {
        false => Preprocessor::default(),
        true => {
            let bytes = std::fs::read(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
            serde_json::from_slice(&bytes).map_err(|error| problem(&path, error.to_string()))?
        }
    };
    if found.resample != BILINEAR {
        let other = found.resample;
        return Err(problem(&path, format!("resample is {other}, only {BILINEAR} (bilinear) is supported")));
    }
    let square = |side| Resize::To { height: side, width: side };
    let resize = match found.size {
        None => square(vit.image_size),
        Some(Size::Square(side)) => square(side),
        Some(Size::Exact { height, width }) => Resize::To { height, width },
        Some(Size::ShortSide { shortest_edge: size }) => {
            let crop = match found.crop_size.filter(|_| found.do_center_crop) {
                Some(
                    Size::Square(side)
                    | Size::Exact { height: side, .. }
                    | Size::ShortSide { shortest_edge: side },
                ) => side,
                None => {
                    return Err(problem(
                        &path,
                        "size.shortest_edge without do_center_crop gives images of any size".into(),
                    ));
                }
            };
            Resize::ShortSide { size, crop }
        }
    };
    Ok(ImageTransform { resize, mean: found.image_mean, std: found.image_std })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: Option<&str>) -> Result<ImageTransform, String> {
        let folder = tempfile::tempdir().unwrap();
        if let Some(text) = text {
            std::fs::write(folder.path().join(FILE), text).unwrap();
        }
        let vit = r#"{"image_size": 8, "patch_size": 4, "hidden_size": 8, "num_hidden_layers": 1,
            "num_attention_heads": 1, "intermediate_size": 8}"#;
        preprocessing(folder.path(), &serde_json::from_str(vit).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn sizes_are_read_in_every_spelling() {
        let resize = |text| read(Some(text)).unwrap().resize;
        assert_eq!(read(None).unwrap().resize, Resize::To { height: 8, width: 8 });
        assert_eq!(resize(r#"{"size": 16}"#), Resize::To { height: 16, width: 16 });
        assert_eq!(resize(r#"{"size": {"height": 16, "width": 24}}"#), Resize::To { height: 16, width: 24 });
        let crop = r#"{"size": {"shortest_edge": 20}, "crop_size": {"height": 16, "width": 16}, "do_center_crop": true}"#;
        assert_eq!(resize(crop), Resize::ShortSide { size: 20, crop: 16 });
        let means = read(Some(r#"{"image_mean": [0.1, 0.2, 0.3], "image_std": [1, 1, 1]}"#)).unwrap();
        assert_eq!((means.mean, means.std), (vec![0.1, 0.2, 0.3], vec![1.0; 3]));
    }

    #[test]
    fn what_would_give_other_pixels_is_refused() {
        let error = read(Some(r#"{"resample": 3}"#)).unwrap_err();
        assert!(error.contains("preprocessor_config.json: resample is 3, only 2 (bilinear)"), "{error}");
        assert!(read(Some(r#"{"size": {"shortest_edge": 20}}"#)).is_err());
    }
}
