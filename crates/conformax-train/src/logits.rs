//! `logits`: what a checkpoint's own head says about data, without training.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use conformax_io::Overwrite;

use crate::backend::Device;
use crate::checkpoint::{self, Kind, Pretrained, PretrainedModel};
use crate::data::{Dataset, Part, Parts, Plan, Preparation, Source, Tokenizing};
use crate::error::{Error, Result};
use crate::export::export;
use crate::model::bert::BertConfig;
use crate::model::vit::VitConfig;
use crate::model::{Classifier, Kernels};
use crate::training::{Observer, setting_up};

/// Which logits to write.
#[derive(Clone, Debug)]
pub struct LogitsRequest {
    /// A Hugging Face folder whose model has a head.
    pub checkpoint: PathBuf,
    /// Where the rows are.
    pub data: Source,
    /// Which of them; the test part where the files have one, and all of them otherwise, if nothing is said.
    pub part: Option<Part>,
    /// Most tokens of a text.
    pub max_length: usize,
    /// Rows that are computed together.
    pub batch_size: usize,
}

/// What was written.
#[derive(Clone, Copy, Debug)]
pub struct Scored {
    /// Rows.
    pub rows: usize,
    /// Share of them whose largest logit is the label's.
    pub accuracy: f64,
    /// How the data's classes were found among the checkpoint's labels.
    pub matched: Matched,
}

/// How the data's classes were found among a checkpoint's labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matched {
    /// Every class has the name of a label.
    ByName,
    /// Every class is the number of a label.
    ByNumber,
    /// No class has the name of a label, and there are as many of each: by their order.
    ByOrder,
}

/// Writes logits and labels of the rows as npz, with the names of the checkpoint's labels.
///
/// ```no_run
/// use std::path::Path;
/// use conformax_io::Overwrite;
/// use conformax_train::data::Source;
/// use conformax_train::{Device, LogitsRequest, Unobserved, logits};
///
/// let request = LogitsRequest {
///     checkpoint: "vit-base-patch16-224".into(),
///     data: Source::at(Path::new("imagenet/val"))?,
///     part: None,
///     max_length: 128,
///     batch_size: 64,
/// };
/// let output = (Path::new("test.npz"), Overwrite::Refuse);
/// println!("{}", logits(&request, output, Device::Cpu, &mut Unobserved)?.accuracy);
/// # Ok::<(), conformax_train::Error>(())
/// ```
pub fn logits(
    request: &LogitsRequest,
    output: (&Path, Overwrite),
    device: Device,
    observer: &mut dyn Observer,
) -> Result<Scored> {
    match device {
        Device::Cpu => logits_on::<burn_flex::Flex>(request, output, &Default::default(), observer),
        #[cfg(feature = "tch")]
        Device::Cuda(number) => {
            let device = crate::backend::gpu(number)?;
            logits_on::<burn_tch::LibTorch>(request, output, &device, observer)
        }
        #[cfg(not(feature = "tch"))]
        Device::Cuda(number) => Err(crate::backend::no_gpu(number)),
    }
}

fn logits_on<B: Kernels>(
    request: &LogitsRequest,
    output: (&Path, Overwrite),
    device: &B::Device,
    observer: &mut dyn Observer,
) -> Result<Scored> {
    let preparation = preparation(request)?;
    let Pretrained { model, labels } = checkpoint::load_with_head::<B>(&request.checkpoint, device)?;
    let mut dataset = request.data.read()?;
    let (part, matched) = (chosen(&mut dataset, request.part), relabelled(&mut dataset, labels)?);
    let examples = Arc::new(dataset.prepare(&preparation)?);
    let model = match model {
        PretrainedModel::Bert(bert, config) => {
            setting_up::check_texts(&config, request.max_length, &examples)?;
            Classifier::Bert(bert)
        }
        PretrainedModel::Vit(vit, config) => {
            let size = setting_up::check_images(&config, &examples)?;
            Classifier::Vit(vit.for_images(size))
        }
    };
    let plan = Plan::evaluation(examples.clone(), part, request.batch_size)?;
    let rows = plan.rows();
    let correct = export(&model, plan, &examples.class_names, output, device, observer)?;
    Ok(Scored { rows, accuracy: correct as f64 / rows as f64, matched })
}

/// What the checkpoint wants of its inputs.
fn preparation(request: &LogitsRequest) -> Result<Preparation> {
    let folder = &request.checkpoint;
    Ok(match checkpoint::kind(folder)? {
        Kind::Bert => {
            // Read for its errors before any data is.
            BertConfig::read(folder)?;
            let tokenizer = folder.join("tokenizer.json");
            Preparation::Texts(Tokenizing { tokenizer, max_length: request.max_length })
        }
        Kind::Vit => Preparation::Images(checkpoint::preprocessing(folder, &VitConfig::read(folder)?)?),
    })
}

/// The part asked for; where none is, the test rows, or all rows if the files are not divided.
fn chosen(dataset: &mut Dataset, part: Option<Part>) -> Part {
    match part {
        Some(part) => part,
        None if dataset.parts.test.is_empty() => {
            dataset.parts = Parts { test: (0..dataset.labels.len()).collect(), ..Parts::default() };
            Part::Test
        }
        None => Part::Test,
    }
}

/// Gives every row the checkpoint's number of its class.
fn relabelled(dataset: &mut Dataset, labels: Vec<String>) -> Result<Matched> {
    let classes = &dataset.class_names;
    let by_name: Vec<Option<u32>> = classes.iter().map(|class| place(&labels, class)).collect();
    let number = |class: &String| class.parse().ok().filter(|number: &u32| (*number as usize) < labels.len());
    let by_number: Option<Vec<u32>> = classes.iter().map(number).collect();
    let (numbers, matched) = if by_name.iter().all(Option::is_some) {
        (by_name.into_iter().flatten().collect(), Matched::ByName)
    } else if let Some(numbers) = by_number {
        (numbers, Matched::ByNumber)
    } else if by_name.iter().all(Option::is_none) && classes.len() == labels.len() {
        ((0..labels.len() as u32).collect::<Vec<u32>>(), Matched::ByOrder)
    } else {
        let unknown = classes.iter().zip(&by_name).find(|(_, place)| place.is_none());
        let class = unknown.map_or("", |(class, _)| class.as_str());
        let (found, known) = (classes.len(), labels.len());
        let shown = labels.iter().take(3).map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
        return Err(Error::Labels(format!(
            "class `{class}` of the data is no label of the checkpoint, whose {known} begin with {shown}; the data have \
             {found} classes, which must be names of labels, numbers of labels, or as many as there are labels"
        )));
    };
    dataset.labels.iter_mut().for_each(|label| *label = numbers[*label as usize]);
    dataset.class_names = labels;
    Ok(matched)
}

fn place(labels: &[String], class: &str) -> Option<u32> {
    labels.iter().position(|label| label == class).map(|place| place as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Inputs;

    fn dataset(classes: &[&str], labels: &[u32]) -> Dataset {
        Dataset {
            inputs: Inputs::Texts(vec![String::new(); labels.len()]),
            labels: labels.to_vec(),
            class_names: classes.iter().map(|class| (*class).to_owned()).collect(),
            parts: Parts::in_sequence(labels.len(), 0, 0),
        }
    }

    fn matched(classes: &[&str], labels: &[&str]) -> std::result::Result<(Vec<u32>, Matched), String> {
        let mut dataset = dataset(classes, &[0, 1]);
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        let matched = relabelled(&mut dataset, labels).map_err(|error| error.to_string())?;
        Ok((dataset.labels, matched))
    }

    #[test]
    fn classes_are_matched_by_name_by_number_and_by_order() {
        assert_eq!(matched(&["cat", "dog"], &["dog", "bird", "cat"]).unwrap(), (vec![2, 0], Matched::ByName));
        assert_eq!(matched(&["2", "10"], &["x"; 11]).unwrap(), (vec![2, 10], Matched::ByNumber));
        assert_eq!(matched(&["n01", "n02"], &["tench", "goldfish"]).unwrap(), (vec![0, 1], Matched::ByOrder));
    }

    #[test]
    fn a_class_that_is_no_label_is_named() {
        let error = matched(&["cat", "dgo"], &["cat", "dog"]).unwrap_err();
        assert!(error.starts_with("class `dgo` of the data is no label of the checkpoint"), "{error}");
        assert!(matched(&["a", "b"], &["x", "y", "z"]).is_err());
        assert!(matched(&["1", "3"], &["x", "y", "z"]).is_err());
    }

    #[test]
    fn all_rows_are_scored_where_none_are_for_testing() {
        let mut undivided = dataset(&["a"], &[0, 0]);
        assert_eq!(chosen(&mut undivided, None), Part::Test);
        assert_eq!(undivided.parts.test, [0, 1]);
        let mut divided = dataset(&["a"], &[0, 0, 0]);
        divided.parts = Parts::in_sequence(2, 0, 1);
        assert_eq!((chosen(&mut divided, None), divided.parts.test.len()), (Part::Test, 1));
        assert_eq!(chosen(&mut divided, Some(Part::Train)), Part::Train);
    }
}
