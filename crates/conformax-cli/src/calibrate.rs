//! `conformax calibrate`: held-out rows in, a calibration file out.

use clap::Args;
use conformax::{
    Alpha, Calibrator, Dealer, Masked, Remember, Scheme, ScoreSpec, SearchStep, Taxonomy, ThresholdSearch,
    Thresholds,
};
use conformax_io::{
    Block, Calibrating, ClassNames, GIVE_LOGITS, Impossible, KeptLevel, LIKE_PROBABILITIES, LabelUse, Model,
    Output, Part, PartOf, Settings, Source, printable,
};
use serde::Serialize;

use crate::args::{Asked, DataArgs, Files, LevelArgs, MaskedChoice, OutputArgs, SchemeArgs, ScoreArgs};
use crate::blocks::{for_each_block, in_block, with_logits};
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

/// Bytes of logits that a thread takes of a block, which are as many as a chunk of the library has, and up to how many
/// threads a block has some for. Rows are looked at once and nothing of a block is written, and a process that reads
/// for some milliseconds would spend most of them on memory it has not touched before.
const BYTES_EACH: usize = 1 << 20;
const THREADS: std::ops::RangeInclusive<usize> = 2..=8;

pub(crate) fn run(args: &CalibrateArgs, console: &mut Console<'_>) -> Result<(), Failure> {
    let score = args.score.spec()?;
    let masked = args.masked.into();
    let output = Output::create(&args.output.output, args.output.overwrite())?;
    args.scheme.check(args.data.label_column.as_deref())?;
    let source = args.data.open_with(LabelUse::Required, |options| {
        options.block_bytes = BYTES_EACH * options.threads.clamp(*THREADS.start(), *THREADS.end());
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
        let infinite = found.infinite;
        let model = Model::of_thresholds(found, classes, masked, names);
        warn_of_model(&model, Some(infinite), console);
        model
    } else {
        let none = match args.scheme.choose() {
            Some(choose) => Calibrating::Dealt(Dealer::new(score, classes, choose)?.with_masked(masked)),
            None => Calibrating::All(calibrator(score, classes, masked)?.under(scheme)?),
        };
        let (calibrating, groups) = read_all(source, none, console)?;
        beside.groups = groups;
        let settings = Settings { beside, prior, delta: args.scheme.pac };
        if args.partial {
            let of = PartOf::Calibration(calibrating);
            Part::new(of, names, args.data.input(), alphas, settings).write(output)?;
            console.note(format_args!("wrote {}", args.output.output.display()));
            return Ok(());
        }
        let mut model = model_of(calibrating, &alphas, names, settings)?;
        warn_of_model(&model, None, console);
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
    mut calibrating: Calibrating,
    alphas: &[Alpha],
    names: Option<ClassNames>,
    mut settings: Settings,
) -> Result<Model, Failure> {
    let learned = &settings.beside.groups;
    if !learned.is_empty() {
        let mut sorted = learned.clone();
        sorted.sort();
        let place = |name: &String| sorted.binary_search(name).expect("it is one of them");
        calibrating = calibrating.regrouped(&learned.iter().map(place).collect::<Vec<_>>(), sorted.len())?;
        settings.beside.groups = sorted;
    }
    let found = calibrating.model(alphas, names);
    let mut model = found.map_err(|error| match (&error, &settings.beside.column) {
        (conformax::Error::NoWeight, Some(column)) => {
            Failure::error(format!("the column `{}`: {error}", printable(column)))
        }
        (conformax::Error::FewForClusters { .. }, _) => Failure::error(format!("{error} with --by FILE")),
        _ => error.into(),
    })?;
    (model.beside, model.prior) = (settings.beside, settings.prior);
    match settings.delta {
        Some(delta) => model.with_delta(delta).map_err(Failure::error),
        None => Ok(model),
    }
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
    model::write(model, output)?;
    if is_standard {
        return Ok(());
    }
    print(model, as_json, console).map_err(|failure| failure.after_writing(&[&path]))?;
    console.note(format_args!("wrote {}", path.display()));
    Ok(())
}

/// What a person should know of a model before using it, said before its scores are left out. `impossible` is how many
/// true labels score infinity, where it never had scores.
pub(crate) fn warn_of_model(model: &Model, impossible: Option<u64>, console: &mut Console<'_>) {
    warn_of_few_rows(model, &model.levels, console);
    warn_of_impossible_labels(model, impossible, console);
    warn_of_no_cluster(model, console);
    note_thresholds_of_zero(model, console);
}

/// Classes with too few rows to be told apart.
fn warn_of_no_cluster(model: &Model, console: &mut Console<'_>) {
    let Scheme::Groups(Taxonomy::Cluster(clusters)) = &model.scheme else { return };
    let none = clusters.iter().filter(|cluster| cluster.is_none()).count();
    if none > 0 {
        console.warn(format_args!(
            "{} of {} classes had too few rows among those that find clusters: they take the threshold of all rows, and \
             nothing is promised of them",
            count(none as u64),
            count(clusters.len() as u64)
        ));
    }
}

fn labels(block: &Block) -> &[u32] {
    block.labels.as_deref().expect("labels were required of the source")
}

/// Takes in all rows; the names of groups come in the order in which they were met.
fn read_all(
    source: Source,
    mut calibrating: Calibrating,
    console: &mut Console<'_>,
) -> Result<(Calibrating, Vec<String>), Failure> {
    let mut doubt = LooksLikeProbabilities::new();
    let mut labelled = vec![false; source.classes()];
    let source = for_each_block(source, "calibrating", console, |block, console| {
        doubt.look_at(block.doubtful, console);
        labels(block).iter().for_each(|label| labelled[*label as usize] = true);
        let before = calibrating.n();
        make_room(&mut calibrating, block)?;
        with_logits!(block, logits => calibrating.extend(logits.labelled(labels(block))?))
            .map_err(|error| in_block(error, before))?;
        Ok(())
    })?;
    warn_of_unlabelled(&source, &labelled, console);
    Ok((calibrating, source.groups().to_vec()))
}

/// A column that no row is labelled with may be something else than a class.
fn warn_of_unlabelled(source: &Source, labelled: &[bool], console: &mut Console<'_>) {
    // Of many classes some are rare, and a table has few columns that are none.
    const MOST: usize = 3;
    let Some(names) = source.names() else { return };
    let never: Vec<_> = names.as_slice().iter().zip(labelled).filter(|(_, seen)| !**seen).collect();
    if never.is_empty() || never.len() > MOST || 2 * never.len() >= labelled.len() {
        return;
    }
    let never: Vec<String> = never.iter().map(|(name, _)| format!("`{}`", printable(name))).collect();
    console.warn(format_args!(
        "no row has the label {}: if that is a column and no class, leave it out with --drop",
        never.join(" or ")
    ));
}

/// Groups are learned as rows come.
fn make_room(calibrating: &mut Calibrating, block: &Block) -> Result<(), conformax::Error> {
    let Calibrating::All(calibrator) = calibrating else { return Ok(()) };
    let Scheme::Groups(Taxonomy::Group(known)) = *calibrator.scheme() else { return Ok(()) };
    if block.known_groups > known {
        let (same, empty) = ((0..known).collect::<Vec<usize>>(), calibrator.emptied());
        *calibrator = std::mem::replace(calibrator, empty).regrouped(&same, block.known_groups)?;
    }
    Ok(())
}

/// Reads the rows as often as it takes.
fn search_thresholds(
    mut source: Source,
    mut search: ThresholdSearch<ScoreSpec>,
    console: &mut Console<'_>,
) -> Result<conformax::FoundThresholds<ScoreSpec>, Failure> {
    let mut doubt = LooksLikeProbabilities::new();
    loop {
        source = for_each_block(source, "calibrating", console, |block, console| {
            doubt.look_at(block.doubtful, console);
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

/// Says so where the first rows are said to be logits and look like probabilities.
pub(crate) struct LooksLikeProbabilities {
    is_first: bool,
    what_to_do: &'static str,
}

impl LooksLikeProbabilities {
    /// Of rows that calibrate.
    pub(crate) fn new() -> Self {
        Self { is_first: true, what_to_do: "give --input probabilities if that is what they are" }
    }

    /// Of rows that are held against a model.
    pub(crate) fn with_model() -> Self {
        Self { what_to_do: GIVE_LOGITS, ..Self::new() }
    }

    /// Whether the next rows do.
    pub(crate) fn look_at(&mut self, doubtful: bool, console: &mut Console<'_>) {
        if std::mem::take(&mut self.is_first) && doubtful {
            console.warn(format_args!("these rows {LIKE_PROBABILITIES}; {}", self.what_to_do));
        }
    }
}

/// Levels that so few rows cannot reach give sets with every label.
pub(crate) fn warn_of_few_rows(model: &Model, levels: &[KeptLevel], console: &mut Console<'_>) {
    warn_of_few_in_groups(model, levels, console);
    warn_of_infinite_thresholds(model, levels, console);
    for level in levels.iter().filter_map(KeptLevel::ranked_level) {
        if let Some(wanted) = level.rows_wanted() {
            console.warn(format_args!(
                "{} cannot reach alpha = {}: every set will hold every label; calibrate on at least {}, or ask \
                 for a larger alpha",
                rows(level.n()),
                level.alpha(),
                rows(wanted)
            ));
        }
    }
}

/// Losses that no threshold keeps below the level, and thresholds that weights or ranks make infinite.
fn warn_of_infinite_thresholds(model: &Model, levels: &[KeptLevel], console: &mut Console<'_>) {
    for kept in levels {
        let alpha = kept.alpha();
        if let (Scheme::Risk(loss), Some(f64::INFINITY)) = (&model.scheme, kept.threshold()) {
            console.warn(format_args!(
                "alpha = {alpha}: {} cannot keep an expected loss of up to {} that low, so every set will hold every \
                 label; a bound of at least {} can be had with so many rows",
                rows(model.n),
                loss.bound(),
                shown(loss.bound() / (model.n as f64 + 1.0))
            ));
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
            ));
        }
    }
}

/// Groups that a warning names.
const NAMED: usize = 5;

/// Those beyond the ones that are named.
fn and_more(groups: usize) -> String {
    if groups > NAMED { format!(" and {} more", groups - NAMED) } else { String::new() }
}

/// What becomes of groups with infinite thresholds.
fn what_grows(model: &Model) -> &'static str {
    match &model.scheme {
        Scheme::Groups(Taxonomy::Group(_)) => "sets of their rows will hold every label",
        _ => "their labels will be in every set",
    }
}

/// Groups that so few rows cannot reach a level: their labels, or their rows, get every set.
fn warn_of_few_in_groups(model: &Model, levels: &[KeptLevel], console: &mut Console<'_>) {
    let names = model.group_names();
    for kept in levels {
        let few: Vec<_> =
            names.iter().zip(kept.group_levels()).filter(|(_, level)| level.rank().is_none()).collect();
        let Some((_, level)) = few.first() else { continue };
        let named =
            few.iter().take(NAMED).map(|(name, level)| format!("{} ({})", printable(name), rows(level.n())));
        console.warn(format_args!(
            "alpha = {}: too few rows for {}{}: {}; each needs at least {}",
            kept.alpha(),
            named.collect::<Vec<_>>().join(", "),
            and_more(few.len()),
            what_grows(model),
            rows(level.rows_needed())
        ));
    }
}

/// True labels of probability zero score infinity; where too many do, so does the threshold. `counted` is how many
/// there are, where the model has no scores to say so.
fn warn_of_impossible_labels(model: &Model, counted: Option<u64>, console: &mut Console<'_>) {
    for kept in &model.levels {
        let (alpha, found) = (kept.alpha(), model.impossible(kept));
        let has_rank = kept.ranked_level().is_some_and(|level| level.rank().is_some());
        let of_all = |labels: u64| format!("{} of {}", count(labels), count(model.n));
        let how_many = match (&found[..], counted) {
            ([Impossible { group: None, labels, .. }], _) => of_all(*labels),
            ([], _) if !has_rank || kept.threshold() != Some(f64::INFINITY) => continue,
            ([], Some(labels)) => of_all(labels),
            ([], None) => "too many".to_owned(),
            (groups, _) => {
                warn_of_impossible_in_groups(model, alpha, groups, console);
                continue;
            }
        };
        console.warn(format_args!(
            "alpha = {alpha}: {how_many} true labels {IMPOSSIBLE}, so the threshold is infinite and every set will hold \
             every label; correct those rows, or ask for a larger alpha"
        ));
    }
}

const IMPOSSIBLE: &str = "have logit -inf or a gap beyond all numbers";

fn warn_of_impossible_in_groups(
    model: &Model,
    alpha: Alpha,
    groups: &[Impossible],
    console: &mut Console<'_>,
) {
    let named = groups.iter().take(NAMED).map(|found| {
        let group = found.group.as_deref().unwrap_or_default();
        format!("{} ({} of {})", printable(group), count(found.labels), rows(found.rows))
    });
    console.warn(format_args!(
        "alpha = {alpha}: true labels {IMPOSSIBLE} in {}{}, so {}; correct those rows, or ask for a larger alpha",
        named.collect::<Vec<_>>().join(", "),
        and_more(groups.len()),
        what_grows(model)
    ));
}

/// A classifier that is right often enough by itself leaves nothing for the sets to do.
fn note_thresholds_of_zero(model: &Model, console: &mut Console<'_>) {
    for kept in model.levels.iter().filter(|kept| top_label_is_enough(model, kept)) {
        console.note(format_args!(
            "alpha = {}: the top label alone is right often enough; sets hold it and its ties, and coverage is the \
             accuracy, which may lie above the interval",
            kept.alpha()
        ));
    }
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
        let (levels, rest) = (kept.group_levels(), model.no_cluster());
        let shown = |(place, (group, threshold)): (usize, (String, f64))| {
            let level = levels.get(place).copied();
            let law = level.filter(|_| rest != Some(place)).map(|level| {
                let interval = Thresholds::One(threshold).law(level).interval(CONFIDENCE);
                interval.expect("a confidence is a probability")
            });
            ShownGroup { group, threshold, n: level.map(|level| level.n()), coverage_interval: law }
        };
        let thresholds = model.group_thresholds(kept);
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
