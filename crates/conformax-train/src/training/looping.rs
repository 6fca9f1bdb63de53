//! `Training`: the steps of a run, from wherever it is to its end.

use std::sync::Arc;
use std::time::Instant;

use burn::module::AutodiffModule;
use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{Int, Tensor};
use burn_optim::GradientsParams;
use conformax::Generator;

use super::adamw::{AdamW, Moments};
use super::checkpointing;
use super::evaluation::{evaluate, hits, workers};
use super::progress::Progress;
use super::{Observer, Schedule, StepPart, setting_up};
use crate::backend::TrainingBackend;
use crate::config::Config;
use crate::curve::EpochRecord;
use crate::data::{Batch, Batches, Examples, Part, Plan};
use crate::error::{Error, Result};
use crate::model::{Classifier, Input};
use crate::run_folder::RunFolder;
use crate::weights;

/// Steps whose losses stay on the device before they are read together: reading waits for all work given to a GPU.
const READ_EVERY: u64 = 16;

/// Steps after which their speed is told.
const PACE: u64 = 2;

/// A run under way.
pub(super) struct Training<'a, B: AutodiffBackend> {
    pub(super) model: Classifier<B>,
    pub(super) progress: Progress,
    config: &'a Config,
    folder: &'a RunFolder,
    device: &'a B::Device,
    adamw: AdamW,
    moments: Option<Moments<B::InnerBackend>>,
    plan: Plan,
    validation: Option<Plan>,
    schedule: Schedule,
    unread: Vec<Measured<B>>,
}

/// What a step gave, still on the device.
struct Measured<B: AutodiffBackend> {
    rows: u64,
    loss: Tensor<B::InnerBackend, 1>,
    correct: Tensor<B::InnerBackend, 1, Int>,
}

/// When the latest part of a step was over.
struct Parts<'a, D> {
    since: Instant,
    device: &'a D,
}

impl<D> Parts<'_, D> {
    /// Tells the observer, if it wants to hear it, what the part took.
    fn done<B: AutodiffBackend<Device = D>>(&mut self, part: StepPart, observer: &mut dyn Observer) {
        if observer.wants_parts() {
            // A device that fails here fails again at the next reading of the losses, which says so.
            let _ = B::sync(self.device);
            observer.part(part, self.since.elapsed().as_secs_f64());
            self.since = Instant::now();
        }
    }
}

/// What randomness of a purpose and step starts from.
pub(super) fn seed_of(seed: u64, purpose: &str, step: u64) -> u64 {
    Generator::new(seed, purpose).stream(step).below(u64::MAX)
}

impl<'a, B: TrainingBackend> Training<'a, B> {
    /// A run at its beginning, or at its last checkpoint.
    pub(super) fn start(
        config: &'a Config,
        examples: Arc<Examples>,
        folder: &'a RunFolder,
        device: &'a B::Device,
    ) -> Result<Self> {
        let training = &config.training;
        let plan = Plan::training(examples.clone(), training.batch_size, config.augment, config.seed)?;
        let validation = match examples.parts.validation.is_empty() {
            true => None,
            false => Some(Plan::evaluation(examples.clone(), Part::Validation, training.batch_size)?),
        };
        let mut model = setting_up::model::<B>(config, &examples, device)?;
        let mut moments = None;
        let progress = Progress::read(folder)?.unwrap_or_default();
        if progress.step > 0 {
            (model, moments) = checkpointing::load(model, &progress, folder, device)?;
        }
        let model = setting_up::freeze(model, &config.model);
        let schedule = config.schedule(plan.steps_per_epoch() * training.epochs);
        Ok(Self {
            model,
            progress,
            config,
            folder,
            device,
            adamw: config.adamw(),
            moments,
            plan,
            validation,
            schedule,
            unread: Vec::new(),
        })
    }

    /// Every step that is left.
    pub(super) fn run(&mut self, observer: &mut dyn Observer) -> Result<()> {
        observer.begin(self.progress.step, self.schedule.steps);
        if self.progress.ending.is_some() {
            return Ok(());
        }
        let batches = Batches::new(self.plan.clone(), self.progress.step..self.schedule.steps, workers());
        let mut clock = Instant::now();
        let first = self.progress.step;
        let mut parts = Parts { since: Instant::now(), device: self.device };
        for batch in batches {
            let batch = batch?;
            parts.done::<B>(StepPart::Waiting, observer);
            self.step(batch, |part| parts.done::<B>(part, observer));
            if self.progress.step == first + PACE {
                self.read(observer)?;
                observer.pace(
                    clock.elapsed().as_secs_f64() / PACE as f64,
                    self.schedule.steps - self.progress.step,
                );
            }
            let ends_epoch = self.progress.step.is_multiple_of(self.plan.steps_per_epoch());
            if ends_epoch || self.progress.step.is_multiple_of(READ_EVERY) {
                self.read(observer)?;
            }
            let stop = observer.stop();
            if ends_epoch || stop || self.is_checkpoint_due() {
                self.read(observer)?;
                self.progress.seconds += clock.elapsed().as_secs_f64();
                if ends_epoch {
                    self.end_epoch(observer)?;
                }
                checkpointing::save(&self.model, &self.moments, &mut self.progress, self.folder)?;
                if self.progress.ending.is_some() {
                    return Ok(());
                }
                if stop {
                    return Err(Error::Stopped { step: self.progress.step });
                }
                clock = Instant::now();
            }
            parts.since = Instant::now();
        }
        Ok(())
    }

    fn is_checkpoint_due(&self) -> bool {
        self.config.training.checkpoint_every.is_some_and(|every| self.progress.step.is_multiple_of(every))
    }

    /// One step of AdamW.
    fn step(&mut self, batch: Batch, mut done: impl FnMut(StepPart)) {
        B::seed(self.device, seed_of(self.config.seed, "step", batch.step));
        let (rate, rows) = (self.schedule.rate(batch.step), batch.labels.len() as u64);
        let kept = self.config.augment.kept(Generator::new(self.config.seed, "mixup").stream(batch.step));
        let (input, targets) = Input::from_batch(batch, self.device);
        done(StepPart::Input);
        let logits = self.model.forward(match kept {
            Some(kept) => input.mixed(kept),
            None => input,
        });
        let correct = hits(logits.clone().inner(), targets.clone().inner());
        let loss = self.loss(logits, targets, kept);
        done(StepPart::Forward);
        let mut gradients = GradientsParams::from_grads(loss.backward(), &self.model);
        done(StepPart::Backward);
        self.unread.push(Measured { rows, loss: loss.inner(), correct });
        self.model = self.adamw.step(rate, self.model.clone(), &mut gradients, &mut self.moments);
        done(StepPart::Optimiser);
        self.progress.step += 1;
    }

    /// What is minimised: the loss, its labels smoothed and mixed as the images were.
    fn loss(&self, logits: Tensor<B, 2>, targets: Tensor<B, 1, Int>, kept: Option<f64>) -> Tensor<B, 1> {
        let training = &self.config.training;
        let loss = |targets| training.loss.smoothed(logits.clone(), targets, training.label_smoothing);
        match kept {
            Some(kept) => loss(targets.clone()) * kept + loss(targets.flip([0])) * (1.0 - kept),
            None => loss(targets),
        }
    }

    /// Brings the measurements of the latest steps to the host and adds them up, in their order.
    fn read(&mut self, observer: &mut dyn Observer) -> Result<()> {
        if self.unread.is_empty() {
            return Ok(());
        }
        let first = self.progress.step - self.unread.len() as u64;
        let rows: Vec<u64> = self.unread.iter().map(|measured| measured.rows).collect();
        let (losses, correct) =
            self.unread.drain(..).map(|measured| (measured.loss, measured.correct)).unzip();
        let losses = Tensor::cat(losses, 0).into_data();
        let correct = Tensor::cat(correct, 0).into_data();
        let measured = losses.iter::<f32>().zip(correct.iter::<u64>()).zip(rows);
        for (step, ((loss, correct), rows)) in (first..).zip(measured) {
            if !loss.is_finite() {
                return Err(Error::Diverged { step, loss });
            }
            self.progress.epoch.add(rows, loss, correct);
        }
        let epoch = &self.progress.epoch;
        observer.steps(self.progress.step, epoch.mean_loss(), epoch.accuracy());
        Ok(())
    }

    /// Validates, keeps the weights if they are the best so far, and draws the curve.
    fn end_epoch(&mut self, observer: &mut dyn Observer) -> Result<()> {
        let model = self.model.valid();
        let loss = &self.config.training.loss;
        let validated = match self.validation.clone() {
            Some(plan) => Some(evaluate(&model, plan, loss, self.device)?),
            None => None,
        };
        let (step, epoch) = (self.progress.step, self.progress.epoch);
        let record = EpochRecord {
            epoch: step / self.plan.steps_per_epoch(),
            step,
            learning_rate: self.schedule.rate(step - 1),
            train_loss: epoch.mean_loss(),
            train_accuracy: epoch.accuracy(),
            validation_loss: validated.map(|sums| sums.mean_loss()),
            validation_accuracy: validated.map(|sums| sums.accuracy()),
        };
        if record.validation_loss.is_some_and(|loss| !loss.is_finite()) {
            return Err(Error::Diverged { step, loss: f32::NAN });
        }
        if self.progress.end_epoch(record) {
            weights::save(&model, self.folder)?;
        }
        let training = &self.config.training;
        self.progress.ending = self.progress.verdict(training.epochs, training.patience);
        self.folder.write("curve.csv", self.progress.curve.csv().as_bytes())?;
        self.folder.write("curve.svg", self.progress.curve.svg().as_bytes())?;
        observer.epoch(&record);
        Ok(())
    }
}
