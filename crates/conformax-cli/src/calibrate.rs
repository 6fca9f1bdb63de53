//! `conformax calibrate`: held-out rows in, a calibration file out.

use clap::Args;
use conformax::{
    Alpha, Calibrator, ClusterPlan, Evidence, Masked, RankChooser, Ranks, Remember, RowSet, Scheme,
    ScoreSpec, SearchStep, Taxonomy, ThresholdSearch, Thresholds, TuningSplit, cluster_classes,
};
use conformax_io::{
    Block, ClassNames, KeptLevel, LabelUse, Model, Output, Part, PartOf, Settings, Source, printable,
};
use serde::Serialize;

use crate::args::{Asked, DataArgs, Files, LevelArgs, MaskedChoice, OutputArgs, SchemeArgs, ScoreArgs};
use crate::blocks::{count_rows, for_each_block, in_block, with_logits};
use crate::chart::bar;
use crate::console::Console;
use crate::failure::Failure;
use crate::json;
use crate::model;
use crate::numbers::{CONFIDENCE, count, or_dash, range, rows, shown};
use crate::table::{Align, table, text};

/// Calibrate on held-out logits and labels, and write a calibration file.
///
/// The rows must be ones the classifier was not trained on. Prints the threshold, the temperature at which the
/// activation's support is the set, and the interval that coverage on new rows will lie in.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  conformax calibrate cal.npz -o model.json
  conformax calibrate cal.parquet --score raps --k-reg 5 --alpha 0.1 --alpha 0.05 -o model.json
  conformax calibrate --logits z.npy --labels y.npy --gamma 2 --confidence 0.9 -o model.json
  python scores.py | conformax calibrate - --input probabilities -o model.json
  conformax calibrate cal.parquet --by class -o model.json
  conformax calibrate cal.parquet --by region --pac 0.05 -o model.json
  conformax calibrate shard7.parquet --partial -o part7   # then: conformax merge part* -o model.json")]
pub(crate) struct CalibrateArgs {
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    score: ScoreArgs,
    #[command(flatten)]
    levels: LevelArgs,
    #[command(flatten)]
    scheme: SchemeArgs,
    /// What a logit of minus infinity means.
    #[arg(long, value_name = "POLICY", default_value = "allowed")]
    masked: MaskedChoice,
    /// Keep thresholds and no scores: a small file and constant memory, but no p-values and no new levels later. Files
    /// are read a few times over.
    #[arg(long)]
    thresholds_only: bool,
    /// Write what these rows gave, to be put together with others by `merge`.
    #[arg(long, conflicts_with_all = ["thresholds_only", "json"])]
    partial: bool,
    #[command(flatten)]
    output: OutputArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl CalibrateArgs {
    pub(crate) fn files(&self) -> Files {
        let read = self.data.files().into_iter().chain(self.scheme.files()).collect();
        Files { read, written: vec![self.output.output.clone()] }
    }
}

/// Bytes of logits in a block. Rows are looked at once and nothing of a block is written, and a process that reads for
/// some milliseconds would spend most of them on memory it has not touched before.
const BLOCK_BYTES: usize = 2 << 20;

pub(crate) fn run(args: &CalibrateArgs, console: &mut Console<'_>) -> Result<(), Failure> {
    let score = args.score.spec()?;
    let masked = args.masked.into();
    let output = Output::create(&args.output.output, args.output.overwrite())?;
    args.scheme.check(args.data.label_column.as_deref())?;
    if args.partial && (args.scheme.clusters().is_some() || args.scheme.truncate_ranks) {
        return Err(Failure::error(
            "clusters and ranks cannot be found by parts: give clusters of your own with --by FILE",
        ));
    }
    let source = args.data.open_with(LabelUse::Required, |options| {
        options.block_bytes = BLOCK_BYTES;
        args.scheme.adjust(options);
    })?;
    let (classes, names, alphas) = (source.classes(), source.names().cloned(), args.levels.alphas());
    let Asked { scheme, mut beside, prior } = args.scheme.read(&source)?;
    if args.thresholds_only && scheme == Scheme::RowWeights {
        return Err(Failure::error("thresholds by weight need the scores: leave out --thresholds-only"));
    }
    let source = source.with_prior(prior.clone());
    let mut model = if args.thresholds_only && args.scheme.is_plain() && !source.is_once_only() {
        let search = ThresholdSearch::new(score, classes, &alphas)?.with_masked(masked);
        let found = search_thresholds(source, search.remembering(Remember::Rows), console)?;
        Model::of_thresholds(found, classes, masked, names)
    } else {
        let prepared = prepare(source, scheme, &alphas, args, console)?;
        let mut calibrator = calibrator(score, classes, masked)?.under(prepared.scheme)?;
        if let Some(ranks) = prepared.ranks {
            calibrator = calibrator.with_ranks(ranks)?;
        }
        let (calibrator, groups) = read_all(prepared.source, calibrator, &prepared.calibrating, console)?;
        beside.groups = groups;
        let settings = Settings { beside, prior, delta: args.scheme.pac };
        if args.partial {
            let of = PartOf::Calibration(calibrator);
            Part::new(of, names, args.data.input(), alphas, settings).write(output)?;
            return console.note(format_args!("wrote {}", args.output.output.display()));
        }
        let mut model = model_of(calibrator, &alphas, names, settings)?;
        model.choosing_rows = prepared.choosing;
        if args.thresholds_only {
            model.evidence = None;
        }
        model
    };
    model.input = args.data.input();
    finish(&model, output, args.json, console)
}

/// The model of a finished calibration, with its groups in the order of their names.
pub(crate) fn model_of(
    mut calibrator: Calibrator<ScoreSpec>,
    alphas: &[Alpha],
    names: Option<ClassNames>,
    mut settings: Settings,
) -> Result<Model, Failure> {
    let learned = &settings.beside.groups;
    if !learned.is_empty() {
        let mut sorted = learned.clone();
        sorted.sort();
        let place = |name: &String| sorted.binary_search(name).expect("it is one of them");
        calibrator = calibrator.regrouped(&learned.iter().map(place).collect::<Vec<_>>(), sorted.len())?;
        settings.beside.groups = sorted;
    }
    let found = calibrator.finish().map_err(|error| match (&error, &settings.beside.column) {
        (conformax::Error::NoWeight, Some(column)) => {
            Failure::error(format!("the column `{}`: {error}", printable(column)))
        }
        _ => error.into(),
    })?;
    let mut model = Model::new(&found, alphas, names);
    (model.beside, model.prior) = (settings.beside, settings.prior);
    match settings.delta {
        Some(delta) => model.with_delta(delta).map_err(Failure::error),
        None => Ok(model),
    }
}

/// Which rows calibrate.
enum Calibrating {
    All,
    /// Those that a plan did not take for clusters.
    NotClustering(ClusterPlan, u64),
    These(Vec<usize>),
}

impl Calibrating {
    fn takes(&self, row: u64) -> bool {
        match self {
            Self::All => true,
            Self::NotClustering(plan, seed) => !plan.clusters_row(row, *seed),
            Self::These(rows) => rows.binary_search(&(row as usize)).is_ok(),
        }
    }
}

/// What other rows than those that calibrate had to choose.
struct Prepared {
    source: Source,
    scheme: Scheme,
    ranks: Option<Ranks>,
    calibrating: Calibrating,
    choosing: Option<RowSet>,
}

/// Finds clusters or ranks, where they are to be found, on rows that then do not calibrate.
fn prepare(
    source: Source,
    scheme: Scheme,
    alphas: &[Alpha],
    args: &CalibrateArgs,
    console: &mut Console<'_>,
) -> Result<Prepared, Failure> {
    let alpha = *alphas.iter().min().expect("there is a level");
    if let Some(wanted) = args.scheme.clusters() {
        return find_clusters(source, alpha, wanted, args, console);
    }
    if !args.scheme.truncate_ranks {
        return Ok(Prepared { source, scheme, ranks: None, calibrating: Calibrating::All, choosing: None });
    }
    let (source, n) = count_rows(source, console)?;
    let n = usize::try_from(n).map_err(Failure::error)?;
    let split = TuningSplit::new(n, TuningSplit::FRACTION, SEED)?;
    let mut chooser = RankChooser::new(source.classes())?;
    let mut names = Vec::new();
    let mut source = crate::tune::for_rows(source, &split.tuning, "choosing ranks", console, |block| {
        names.extend(block.row_fingerprints());
        let before = chooser.n();
        let extended = with_logits!(block, logits => chooser.extend(logits.labelled(labels(block))?));
        extended.map_err(|error| in_block(error, before))
    })?;
    source.rewind()?;
    let (ranks, calibrating) = (Some(chooser.finish(alpha)?), Calibrating::These(split.calibrating));
    Ok(Prepared { source, scheme, ranks, calibrating, choosing: Some(RowSet::new(names)) })
}

/// Which rows choose is decided by this seed, the same for everybody.
const SEED: u64 = 0;

fn find_clusters(
    source: Source,
    alpha: Alpha,
    wanted: Option<usize>,
    args: &CalibrateArgs,
    console: &mut Console<'_>,
) -> Result<Prepared, Failure> {
    let classes = source.classes();
    let mut counts = vec![0_u64; classes];
    let mut source = for_each_block(source, "counting labels", console, |block, _| {
        labels(block).iter().for_each(|label| counts[*label as usize] += 1);
        Ok(())
    })?;
    source.rewind()?;
    let Some(plan) = ClusterPlan::for_counts(&counts, alpha) else {
        return Err(Failure::error(format!(
            "too few rows of each class, or classes, to find clusters at alpha = {alpha}: of {classes} classes the rarest \
             has {}; calibrate on more, or give clusters of your own with --by FILE",
            rows(counts.iter().copied().filter(|count| *count > 0).min().unwrap_or(0))
        )));
    };
    let mut calibrator = calibrator(args.score.spec()?, classes, args.masked.into())?.by(Taxonomy::Label)?;
    let calibrating = Calibrating::NotClustering(plan, SEED);
    let mut source = for_each_block(source, "clustering", console, |block, _| {
        Ok(extend_with(&mut calibrator, block, |row| !calibrating.takes(row))?)
    })?;
    source.rewind()?;
    let found = calibrator.finish()?;
    let clusters = cluster_classes(found.groups(), wanted.unwrap_or(plan.clusters), plan.rows_wanted, SEED)?;
    let scheme = Scheme::Groups(Taxonomy::Cluster(clusters));
    Ok(Prepared { source, scheme, ranks: None, calibrating, choosing: Some(found.rows().clone()) })
}

/// A calibrator that remembers its rows, as files do.
pub(crate) fn calibrator(
    score: ScoreSpec,
    classes: usize,
    masked: Masked,
) -> Result<Calibrator<ScoreSpec>, conformax::Error> {
    Ok(Calibrator::new(score, classes)?.with_masked(masked).remembering(Remember::Rows))
}

/// Writes the model, and then shows it: whoever closes the pipe early still has the file.
pub(crate) fn finish(
    model: &Model,
    output: Output,
    as_json: bool,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let (path, is_standard) = (output.path().to_owned(), output.is_standard());
    warn_of_model(model, console)?;
    model::write(model, output)?;
    if is_standard {
        return Ok(());
    }
    print(model, as_json, console).map_err(|failure| failure.after_writing(&[&path]))?;
    console.note(format_args!("wrote {}", path.display()))
}

/// What a person should know of a model before using it.
pub(crate) fn warn_of_model(model: &Model, console: &mut Console<'_>) -> Result<(), Failure> {
    warn_of_few_rows(model, &model.levels, console)?;
    warn_of_impossible_labels(model, console)?;
    note_thresholds_of_zero(model, console)
}

fn labels(block: &Block) -> &[u32] {
    block.labels.as_deref().expect("labels were required of the source")
}

/// Calibrates on the rows that do; the names of groups come in the order in which they were met.
fn read_all(
    source: Source,
    mut calibrator: Calibrator<ScoreSpec>,
    calibrating: &Calibrating,
    console: &mut Console<'_>,
) -> Result<(Calibrator<ScoreSpec>, Vec<String>), Failure> {
    let mut doubt = LooksLikeProbabilities::new(&source);
    let mut labelled = vec![false; source.classes()];
    let source = for_each_block(source, "calibrating", console, |block, console| {
        doubt.look_at(block, console)?;
        labels(block).iter().for_each(|label| labelled[*label as usize] = true);
        match calibrating {
            Calibrating::All => extend(&mut calibrator, block)?,
            some => extend_with(&mut calibrator, block, |row| some.takes(row))?,
        }
        Ok(())
    })?;
    warn_of_unlabelled(&source, &labelled, console)?;
    Ok((calibrator, source.groups().to_vec()))
}

fn extend(calibrator: &mut Calibrator<ScoreSpec>, block: &Block) -> Result<(), conformax::Error> {
    let before = calibrator.n();
    calibrator.make_room(block)?;
    with_logits!(block, logits => calibrator.extend(logits.labelled(labels(block))?))
        .map_err(|error| in_block(error, before))
}

/// The same with the rows that `takes` says yes to.
fn extend_with(
    calibrator: &mut Calibrator<ScoreSpec>,
    block: &Block,
    takes: impl Fn(u64) -> bool,
) -> Result<(), conformax::Error> {
    let taken = |row: &usize| takes(block.first_row + *row as u64);
    let wanted: Vec<usize> = (0..block.rows()).filter(taken).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    extend(calibrator, &crate::tune::gather(block, &wanted)).map_err(|error| match error.row() {
        Some(row) => error.at_row(wanted[row as usize] as u64),
        None => error,
    })
}

/// A column that no row is labelled with may be something else than a class.
fn warn_of_unlabelled(source: &Source, labelled: &[bool], console: &mut Console<'_>) -> Result<(), Failure> {
    // Of many classes some are rare, and a table has few columns that are none.
    const MOST: usize = 3;
    let Some(names) = source.names() else { return Ok(()) };
    let never: Vec<_> = names.as_slice().iter().zip(labelled).filter(|(_, seen)| !**seen).collect();
    if never.is_empty() || never.len() > MOST || 2 * never.len() >= labelled.len() {
        return Ok(());
    }
    let never: Vec<String> = never.iter().map(|(name, _)| format!("`{}`", printable(name))).collect();
    console.warn(format_args!(
        "no row has the label {}: if that is a column and no class, leave it out with --drop",
        never.join(" or ")
    ))
}

/// Groups are learned as rows come.
trait MakeRoom {
    fn make_room(&mut self, block: &Block) -> Result<(), conformax::Error>;
}

impl MakeRoom for Calibrator<ScoreSpec> {
    fn make_room(&mut self, block: &Block) -> Result<(), conformax::Error> {
        let Scheme::Groups(Taxonomy::Group(known)) = self.scheme() else { return Ok(()) };
        if block.known_groups > *known {
            let (same, empty) = ((0..*known).collect::<Vec<usize>>(), self.emptied());
            *self = std::mem::replace(self, empty).regrouped(&same, block.known_groups)?;
        }
        Ok(())
    }
}

/// Reads the rows as often as it takes.
fn search_thresholds(
    mut source: Source,
    mut search: ThresholdSearch<ScoreSpec>,
    console: &mut Console<'_>,
) -> Result<conformax::FoundThresholds<ScoreSpec>, Failure> {
    let mut doubt = LooksLikeProbabilities::new(&source);
    loop {
        source = for_each_block(source, "calibrating", console, |block, console| {
            doubt.look_at(block, console)?;
            let before = search.n();
            with_logits!(block, logits => search.extend(logits.labelled(labels(block))?))
                .map_err(|error| in_block(error, before))?;
            Ok(())
        })?;
        match search.finish_pass()? {
            SearchStep::Done(found) => return Ok(found),
            SearchStep::Again(next) => search = next,
        }
        source.rewind()?;
    }
}

/// Says so once where numbers that are said to be logits look like probabilities.
pub(crate) struct LooksLikeProbabilities {
    wanted: bool,
    what_to_do: &'static str,
}

impl LooksLikeProbabilities {
    /// How far from one a sum of rounded probabilities may be.
    const ROUNDING: f64 = 1e-2;

    /// Of rows that calibrate.
    pub(crate) fn new(source: &Source) -> Self {
        let what_to_do = "give --input probabilities if that is what they are";
        Self { wanted: source.input() == conformax_io::Input::Logits && source.classes() > 1, what_to_do }
    }

    /// Of rows that are held against a model.
    pub(crate) fn with_model(source: &Source) -> Self {
        let what_to_do = "if that is what they are, give the logits, as the model was calibrated on, or calibrate \
                          again with --input probabilities";
        Self { what_to_do, ..Self::new(source) }
    }

    pub(crate) fn look_at(&mut self, block: &Block, console: &mut Console<'_>) -> Result<(), Failure> {
        if !std::mem::take(&mut self.wanted) {
            return Ok(());
        }
        const ROWS: usize = 100;
        let value = |index| block.logits.get(index).expect("a block holds whole rows");
        let is_one = |row: usize| {
            let range = row * block.classes..(row + 1) * block.classes;
            let sum: f64 = range.clone().map(value).sum();
            range.map(value).all(|value| (0.0..=1.0).contains(&value)) && (sum - 1.0).abs() < Self::ROUNDING
        };
        match block.rows() > 0 && (0..block.rows().min(ROWS)).all(is_one) {
            true => console.warn(format_args!(
                "these rows are not negative and sum to 1, as probabilities do, and are taken for logits; {}",
                self.what_to_do
            )),
            false => Ok(()),
        }
    }
}

/// Levels that so few rows cannot reach give sets with every label.
pub(crate) fn warn_of_few_rows(
    model: &Model,
    levels: &[KeptLevel],
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    warn_of_few_in_groups(model, levels, console)?;
    warn_of_infinite_thresholds(model, levels, console)?;
    for level in levels.iter().filter_map(KeptLevel::ranked_level) {
        if let Some(wanted) = level.rows_wanted() {
            console.warn(format_args!(
                "{} cannot reach alpha = {}: every set will hold every label; calibrate on at least {}, or ask \
                 for a larger alpha",
                rows(level.n()),
                level.alpha(),
                rows(wanted)
            ))?;
        }
    }
    Ok(())
}

/// Losses that no threshold keeps below the level, and thresholds that weights or ranks make infinite.
fn warn_of_infinite_thresholds(
    model: &Model,
    levels: &[KeptLevel],
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    for kept in levels {
        let alpha = kept.alpha();
        if let (Scheme::Risk(loss), Some(f64::INFINITY)) = (&model.scheme, kept.threshold()) {
            console.warn(format_args!(
                "alpha = {alpha}: {} cannot keep an expected loss of up to {} that low, so every set will hold every \
                 label; a bound of at least {} can be had with so many rows",
                rows(model.n),
                loss.bound(),
                shown(loss.bound() / (model.n as f64 + 1.0))
            ))?;
        }
        let levels = kept.group_levels();
        let reached = |place: usize| levels.len() != model.classes || levels[place].rank().is_some();
        let infinite = match &kept.thresholds {
            Thresholds::PerLabel(thresholds) => (0..thresholds.len())
                .filter(|place| thresholds[*place] == f64::INFINITY && reached(*place))
                .count(),
            _ => 0,
        };
        let why = match &model.scheme {
            Scheme::LabelWeights(_) => "their weight is more than the rows can bear",
            _ if model.ranks.is_some() => "too many of their rows stand further down than they may",
            _ => continue,
        };
        if infinite > 0 {
            console.warn(format_args!(
                "alpha = {alpha}: {} of {} classes will be in every set: {why}",
                count(infinite as u64),
                count(model.classes as u64)
            ))?;
        }
    }
    Ok(())
}

/// Groups that so few rows cannot reach a level: their labels, or their rows, get every set.
fn warn_of_few_in_groups(
    model: &Model,
    levels: &[KeptLevel],
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    const NAMED: usize = 5;
    let names = model.group_names();
    for kept in levels {
        let few: Vec<_> =
            names.iter().zip(kept.group_levels()).filter(|(_, level)| level.rank().is_none()).collect();
        let Some((_, level)) = few.first() else { continue };
        let named =
            few.iter().take(NAMED).map(|(name, level)| format!("{} ({})", printable(name), rows(level.n())));
        let more = if few.len() > NAMED { format!(" and {} more", few.len() - NAMED) } else { String::new() };
        let what = match &model.scheme {
            Scheme::Groups(Taxonomy::Group(_)) => "sets of their rows will hold every label",
            _ => "their labels will be in every set",
        };
        console.warn(format_args!(
            "alpha = {}: too few rows for {}{more}: {what}; each needs at least {}",
            kept.alpha(),
            named.collect::<Vec<_>>().join(", "),
            rows(level.rows_needed())
        ))?;
    }
    Ok(())
}

/// True labels of probability zero score infinity; where too many do, so does the threshold.
fn warn_of_impossible_labels(model: &Model, console: &mut Console<'_>) -> Result<(), Failure> {
    let reached = |kept: &KeptLevel| kept.ranked_level().is_some_and(|level| level.rank().is_some());
    let infinite = |kept: &&KeptLevel| reached(kept) && kept.threshold() == Some(f64::INFINITY);
    for kept in model.levels.iter().filter(infinite) {
        let how_many = match &model.evidence {
            Some(Evidence::Groups(groups)) => {
                let impossible = groups.iter().map(|scores| scores.ties(f64::INFINITY)).sum();
                format!("{} of {}", count(impossible), count(model.n))
            }
            _ => "too many".to_owned(),
        };
        console.warn(format_args!(
            "alpha = {}: {how_many} true labels have logit -inf or a gap beyond all numbers, so the threshold is \
             infinite and every set will hold every label; correct those rows, or ask for a larger alpha",
            kept.alpha()
        ))?;
    }
    Ok(())
}

/// A classifier that is right often enough by itself leaves nothing for the sets to do.
fn note_thresholds_of_zero(model: &Model, console: &mut Console<'_>) -> Result<(), Failure> {
    for kept in model.levels.iter().filter(|kept| top_label_is_enough(model, kept)) {
        console.note(format_args!(
            "alpha = {}: the top label alone is right often enough; sets hold it and its ties, and coverage is the \
             accuracy, which may lie above the interval",
            kept.alpha()
        ))?;
    }
    Ok(())
}

/// Whether the classifier is right so often that the threshold is 0 and sets hold the top label alone.
pub(crate) fn top_label_is_enough(model: &Model, kept: &KeptLevel) -> bool {
    kept.level().is_some() && kept.threshold() == Some(0.0) && model.score.gamma().is_some()
}

/// A level as it is shown.
#[derive(Serialize)]
pub(crate) struct ShownLevel {
    alpha: f64,
    #[serde(serialize_with = "json::optional_number")]
    threshold: Option<f64>,
    #[serde(serialize_with = "json::optional_number")]
    temperature: Option<f64>,
    #[serde(serialize_with = "json::optional_number")]
    odds_ratio: Option<f64>,
    rank: Option<u64>,
    n: u64,
    coverage_interval: Option<(f64, f64)>,
    /// Where thresholds differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<ShownGroup>,
}

/// The threshold of a class, cluster or group.
#[derive(Serialize)]
struct ShownGroup {
    group: String,
    #[serde(serialize_with = "json::number")]
    threshold: f64,
    n: Option<u64>,
    coverage_interval: Option<(f64, f64)>,
}

impl ShownLevel {
    /// The levels of a model.
    pub(crate) fn all(model: &Model) -> Vec<Self> {
        model.levels.iter().map(|kept| Self::new(model, kept)).collect()
    }

    fn new(model: &Model, kept: &KeptLevel) -> Self {
        let (score, threshold) = (model.score, kept.threshold());
        let law = kept.law().filter(|_| model.law_holds());
        Self {
            alpha: kept.alpha().value(),
            threshold,
            temperature: model.predictor(kept).temperature(),
            odds_ratio: threshold.and_then(|threshold| score.odds_ratio(threshold)),
            rank: kept.ranked_level().and_then(|level| level.rank()),
            n: model.n,
            coverage_interval: law
                .map(|law| law.interval(CONFIDENCE).expect("a confidence is a probability")),
            groups: Self::groups(model, kept),
        }
    }

    fn groups(model: &Model, kept: &KeptLevel) -> Vec<ShownGroup> {
        let levels = kept.group_levels();
        let thresholds: Vec<f64> = match (&model.scheme, &kept.thresholds) {
            // Thresholds of clusters are kept by label.
            (Scheme::Groups(Taxonomy::Cluster(clusters)), Thresholds::PerLabel(of_label)) => {
                let label = |cluster: usize| {
                    let rest = levels.len() - 1;
                    let of = |own: &Option<u32>| own.map_or(rest, |own| own as usize);
                    clusters.iter().position(|own| of(own) == cluster)
                };
                (0..levels.len()).filter_map(label).map(|label| of_label[label]).collect()
            }
            (_, Thresholds::PerLabel(of_each) | Thresholds::PerGroup(of_each)) => of_each.clone(),
            (_, Thresholds::One(_) | Thresholds::ByWeight(_)) => Vec::new(),
        };
        let shown = |(place, (group, threshold)): (usize, (String, f64))| {
            let level = levels.get(place).copied();
            let law = level.map(|level| {
                let interval = Thresholds::One(threshold).law(level).interval(CONFIDENCE);
                interval.expect("a confidence is a probability")
            });
            ShownGroup { group, threshold, n: level.map(|level| level.n()), coverage_interval: law }
        };
        model.group_names().into_iter().zip(thresholds).enumerate().map(shown).collect()
    }
}

#[derive(Serialize)]
struct Printed {
    score: String,
    n: u64,
    promise: String,
    levels: Vec<ShownLevel>,
}

fn print(model: &Model, as_json: bool, console: &mut Console<'_>) -> Result<(), Failure> {
    let (score, n, levels) = (model.score.to_string(), model.n, ShownLevel::all(model));
    if as_json {
        return json::print(&Printed { score, n, promise: model.promise_and_limits(), levels }, console);
    }
    writeln!(console.out(), "{score}, calibrated on {}\n\n{}", rows(n), level_table(&levels).trim_end())?;
    write!(console.out(), "{}", group_tables(&levels))?;
    writeln!(console.out(), "\n{}", promise_line(model))?;
    Ok(())
}

/// What is promised and what is not; names of columns come from files and may hold anything.
pub(crate) fn promise_line(model: &Model) -> String {
    format!("promise: {}", printable(&model.promise_and_limits()))
}

/// The thresholds of groups, largest first, with a bar for each.
pub(crate) fn group_tables(levels: &[ShownLevel]) -> String {
    const SHOWN: usize = 20;
    let mut out = String::new();
    for level in levels.iter().filter(|level| !level.groups.is_empty()) {
        let mut groups: Vec<&ShownGroup> = level.groups.iter().collect();
        groups.sort_by(|a, b| b.threshold.total_cmp(&a.threshold));
        let finite = groups.iter().map(|group| group.threshold).filter(|threshold| threshold.is_finite());
        let most = finite.fold(0.0, f64::max);
        let interval = format!("coverage will lie in ({} %)", CONFIDENCE * 100.0);
        let headings = [
            ("group", Align::Left),
            ("n", Align::Right),
            ("threshold", Align::Right),
            ("", Align::Left),
            (interval.as_str(), Align::Right),
        ];
        let mut table = table(&headings);
        for group in groups.iter().take(SHOWN) {
            let share = if group.threshold.is_finite() { group.threshold / most } else { 1.0 };
            table.add_row([
                printable(&group.group).to_string(),
                or_dash(group.n.map(count)),
                shown(group.threshold),
                bar(share),
                or_dash(group.coverage_interval.map(range)),
            ]);
        }
        out += &format!("\nalpha = {}, largest thresholds first\n\n{}", level.alpha, text(&table));
        if groups.len() > SHOWN {
            out += &format!("… and {} more; --json has them all\n", groups.len() - SHOWN);
        }
    }
    out
}

/// Thresholds with what they mean: a temperature, or for log-margin an odds ratio, where there is one.
pub(crate) fn level_table(levels: &[ShownLevel]) -> String {
    let has_odds = levels.iter().any(|level| level.odds_ratio.is_some());
    let has_temperature = !has_odds && levels.iter().any(|level| level.temperature.is_some());
    let interval = format!("coverage will lie in ({} %)", CONFIDENCE * 100.0);
    let mut headings = vec![("alpha", Align::Right), ("threshold", Align::Right)];
    headings.extend(has_temperature.then_some(("temperature β", Align::Right)));
    headings.extend(has_odds.then_some(("odds ratio", Align::Right)));
    headings.extend([("rank", Align::Right), ("n", Align::Right), (interval.as_str(), Align::Right)]);
    let mut table = table(&headings);
    for level in levels {
        let threshold = match (level.threshold, &level.groups[..]) {
            (Some(threshold), _) => shown(threshold),
            (None, []) => "by weight".to_owned(),
            (None, groups) => format!("{} below", count(groups.len() as u64)),
        };
        let mut cells = vec![level.alpha.to_string(), threshold];
        cells.extend(has_temperature.then(|| or_dash(level.temperature.map(shown))));
        cells.extend(has_odds.then(|| or_dash(level.odds_ratio.map(shown))));
        let interval = or_dash(level.coverage_interval.map(range));
        cells.extend([or_dash(level.rank.map(count)), count(level.n), interval]);
        table.add_row(cells);
    }
    text(&table)
}
