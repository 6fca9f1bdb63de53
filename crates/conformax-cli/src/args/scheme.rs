//! What thresholds go by: classes, groups, clusters, weights or a loss, and what is promised.

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};
use conformax::{Alpha, Choose, Loss, Prior, Scheme, Taxonomy};
use conformax_io::{
    Beside, ClassNames, Clusters, Error, Problem, Source, SourceOptions, printable, read_clusters,
    read_label_weights, read_matrix, read_numbers_per_class,
};

use super::{By, delta};
use crate::failure::Failure;

const HEADING: &str = "Coverage where it matters";

/// Where coverage is promised, and what is promised instead of it.
#[derive(Args, Clone, Debug)]
#[command(group = ArgGroup::new("scheme").multiple(false))]
pub(crate) struct SchemeArgs {
    /// A threshold for each: `class`, the name of a COLUMN of groups, or a FILE with the cluster of each class.
    #[arg(long, value_name = "WHAT", group = "scheme", help_heading = HEADING, value_parser = By::named)]
    by: Option<By>,
    /// A threshold for each of N clusters of classes that are found on rows which then do not calibrate [default: as
    /// many as the rows tell apart].
    #[arg(long, value_name = "N", num_args = 0..=1, group = "scheme", help_heading = HEADING)]
    clusters: Option<Option<usize>>,
    /// Leave out labels that stand further down the ranking than their class allows; some rows choose how far and do
    /// not calibrate. Thresholds are by class.
    #[arg(long, conflicts_with_all = ["scheme"], help_heading = HEADING)]
    truncate_ranks: bool,
    /// Column of the weights of rows: how much likelier each is among the rows to come.
    #[arg(long, value_name = "COLUMN", group = "scheme", help_heading = HEADING)]
    weights: Option<String>,
    /// File with the weight of each class, as `weigh` writes it: how much likelier it is among the rows to come.
    #[arg(long, value_name = "FILE", group = "scheme", help_heading = HEADING)]
    label_weights: Option<PathBuf>,
    /// File with the severity of missing each class: alpha then bounds its mean.
    #[arg(long, value_name = "FILE", group = "scheme", help_heading = HEADING)]
    severity: Option<PathBuf>,
    /// File with the matrix of costs, a row per true class: alpha then bounds the mean of the least cost in a set.
    #[arg(long, value_name = "FILE", group = "scheme", help_heading = HEADING)]
    cost: Option<PathBuf>,
    /// File with the share of each class where the classifier was trained; its logarithm is taken out of the logits.
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    prior: Option<PathBuf>,
    /// Promise coverage with probability 1 - DELTA over the calibration rows rather than on average.
    #[arg(long, value_name = "DELTA", value_parser = delta, help_heading = HEADING)]
    #[arg(conflicts_with_all = ["weights", "label_weights", "severity", "cost"])]
    pub(crate) pac: Option<Alpha>,
}

/// What was asked for, where it needs nothing of the rows.
pub(crate) struct Asked {
    pub(crate) scheme: Scheme,
    pub(crate) beside: Beside,
    pub(crate) prior: Option<Prior>,
}

impl SchemeArgs {
    /// The column to read beside the logits.
    fn columns(&self) -> (Option<&str>, Option<&str>) {
        (self.by.as_ref().and_then(By::column), self.weights.as_deref())
    }

    /// The error of groups or weights by the true label, which rows to come do not have.
    pub(crate) fn check(&self, label_column: Option<&str>) -> Result<(), Failure> {
        let is_label = |column: &str| match label_column {
            Some(label) => column == label,
            None => ["label", "labels"].contains(&column),
        };
        let (groups, weights) = self.columns();
        match groups.or(weights).filter(|column| is_label(column)) {
            Some(column) => Err(Failure::error(format!(
                "`{column}` is the true label, which rows to come do not have: --by class has a threshold for each class"
            ))),
            None => Ok(()),
        }
    }

    pub(crate) fn adjust(&self, options: &mut SourceOptions) {
        let (groups, weights) = self.columns();
        options.group_column = groups.map(str::to_owned);
        options.weight_column = weights.map(str::to_owned);
    }

    /// Every file that is named.
    pub(crate) fn files(&self) -> impl Iterator<Item = PathBuf> {
        let Self { by, label_weights, severity, cost, prior, .. } = self;
        let files = [&by.as_ref().and_then(By::file), label_weights, severity, cost, prior].map(Clone::clone);
        files.into_iter().flatten()
    }

    /// What some of the rows choose, where they do.
    pub(crate) fn choose(&self) -> Option<Choose> {
        let ranks = self.truncate_ranks.then_some(Choose::Ranks);
        self.clusters.map(Choose::Clusters).or(ranks)
    }

    /// Whether one threshold for all rows is wanted, and nothing else.
    pub(crate) fn is_plain(&self) -> bool {
        let Self { by, clusters, weights, label_weights, severity, cost, .. } = self;
        let files = [label_weights, severity, cost];
        by.is_none()
            && weights.is_none()
            && clusters.is_none()
            && files.iter().all(|file| file.is_none())
            && !self.truncate_ranks
            && self.pac.is_none()
            && self.prior.is_none()
    }

    /// Reads the files that were named, for the classes of the source.
    pub(crate) fn read(&self, source: &Source) -> Result<Asked, Failure> {
        let (classes, names) = (source.classes(), source.names());
        let numbers = |path: &Path| read_numbers_per_class(path, classes, names);
        let mut beside = Beside::default();
        let of = |path: &Path, error: conformax::Error| Error::new(path, by_name(error, names));
        let scheme = if let Some(path) = &self.label_weights {
            beside.estimated = is_estimated(path);
            let scheme = Scheme::LabelWeights(read_label_weights(path, classes, names)?);
            scheme.check(classes).map_err(|error| of(path, error))?;
            scheme
        } else if let Some(path) = &self.severity {
            Scheme::Risk(Loss::severity(numbers(path)?).map_err(|error| of(path, error))?)
        } else if let Some(path) = &self.cost {
            Scheme::Risk(Loss::cost(read_matrix(path, classes)?, classes).map_err(|error| of(path, error))?)
        } else if let Some(column) = &self.weights {
            beside.column = Some(column.clone());
            Scheme::RowWeights
        } else {
            Scheme::Groups(match &self.by {
                None => Taxonomy::All,
                Some(By::Class) => Taxonomy::Label,
                Some(By::Clusters(path)) => {
                    let Clusters { of_class, names } =
                        expect_shared(read_clusters(path, classes, names)?, path)?;
                    beside.clusters = names;
                    Taxonomy::Cluster(of_class.into_iter().map(Some).collect())
                }
                Some(By::Column(column)) => {
                    beside.column = Some(column.clone());
                    Taxonomy::Group(1)
                }
            })
        };
        let prior = self.prior.as_deref().map(|path| {
            let prior = Prior::new(numbers(path)?);
            prior.map_err(|error| Failure::from(of(path, error)))
        });
        Ok(Asked { scheme, beside, prior: prior.transpose()? })
    }
}

/// An error about a class, which goes by its name where it has one.
fn by_name(error: conformax::Error, names: Option<&ClassNames>) -> Problem {
    match (error, names) {
        (conformax::Error::LabelValue { what, wanted, label, value }, Some(names)) => {
            let name = printable(&names.as_slice()[label as usize]);
            Problem::PerClass(format!("the {what} of the class `{name}` must be {wanted}, got {value}"))
        }
        (error, _) => error.into(),
    }
}

/// Whether weights say of themselves that they were estimated.
fn is_estimated(path: &Path) -> bool {
    let value =
        std::fs::read(path).ok().and_then(|text| serde_json::from_slice::<serde_json::Value>(&text).ok());
    value.is_some_and(|value| value["estimated"] == true)
}

/// Clusters of which some has several classes.
fn expect_shared(clusters: Clusters, path: &Path) -> Result<Clusters, Error> {
    let (found, classes) = (clusters.names.len(), clusters.of_class.len());
    if found == classes && classes > 2 {
        let message =
            "every class has a cluster of its own: --by class does that, and weights are --label-weights";
        return Err(Error::new(path, Problem::PerClass(message.to_owned())));
    }
    Ok(clusters)
}
