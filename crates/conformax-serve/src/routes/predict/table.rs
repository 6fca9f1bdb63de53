//! Rows as an Arrow table, for bulk: what `conformax predict table.arrow -o sets.arrow` does, over the wire.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use conformax::{Logit, Logits, PredictionSets, Taxonomy};
use conformax_io::{
    Block, CellType, Cells, Data, LONGEST_ID, LabelUse, NamedCells, Problem as FileProblem, Purpose,
    SetColumns, SetRows, SetsWriter, Source, SourceOptions, Values, whole_id,
};

use crate::app::App;
use crate::problem::Problem;
use crate::routes::Asked;
use crate::served::{Moment, Predicted, Served};

const ID: &str = "id";

/// A compressed table may come to so many times what a body may have.
const INFLATED: u64 = 16;

/// Bytes of logits that are read at a time: so few that they stay in the cache until their sets are found.
const BLOCK: usize = 1 << 20;

/// Calls a function with the logits of a block, of whichever type they are.
macro_rules! with_values {
    ($block:expr, $function:ident($($argument:expr),*)) => {
        match &$block.logits {
            Values::F16(values) => $function(values, $($argument),*),
            Values::Bf16(values) => $function(values, $($argument),*),
            Values::F32(values) => $function(values, $($argument),*),
            Values::F64(values) => $function(values, $($argument),*),
        }
    };
}

pub(super) fn of_table(
    app: &App,
    asked: &Asked,
    served: &Arc<Served>,
    body: &mut Vec<u8>,
    kind: &'static str,
) -> Result<Response, Problem> {
    let bytes = Arc::new(std::mem::take(body));
    let table = Data::InMemory { name: "rows.arrow".into(), bytes: Arc::clone(&bytes) };
    let answer = answer(app, asked, served, table, kind);
    // The next body is read to where this one was.
    *body = Arc::into_inner(bytes).unwrap_or_default();
    answer
}

fn answer(
    app: &App,
    asked: &Asked,
    served: &Arc<Served>,
    table: Data,
    kind: &'static str,
) -> Result<Response, Problem> {
    let (mut source, has_ids) = open(served, &table, INFLATED * app.limits.body as u64)?;
    served.model.expect_classes(&source)?;
    let keep = if asked.untracked && !has_ids { Vec::new() } else { vec![(ID.to_owned(), CellType::Text)] };
    let columns = SetColumns { keep, names: served.model.names.clone(), ..SetColumns::default() };
    let form = if kind.ends_with("stream") { "sets.arrows" } else { "sets.arrow" };
    let mut writer = SetsWriter::in_memory(Path::new(form), &columns)?;
    let moment = served.moment();
    // Every row gets its set before the first is remembered: a table that is refused leaves no trace.
    let (mut blocks, mut block, mut doubtful) = (Vec::new(), Block::default(), None);
    while source.read(&mut block)? {
        doubtful.get_or_insert(block.doubtful);
        if block.first_row + block.rows() as u64 > app.limits.rows as u64 {
            let detail = format!("a request may have {} rows, and this one has more", app.limits.rows);
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
        }
        let found =
            names_of(&block).and_then(|names| Ok((names, with_values!(block, sets_of(&moment, &block))?)));
        let (names, sets) = found.map_err(|problem| problem.after(block.first_row))?;
        // What is not remembered is not kept: the next block is read to where this one was.
        let kept = match asked.untracked {
            true => Block { first_row: block.first_row, ..Block::default() },
            false => std::mem::take(&mut block),
        };
        blocks.push((kept, names, sets));
    }
    let taken = super::distinct(blocks.iter().flat_map(|(_, names, _)| names))?;
    let mut level = moment.level;
    for (block, given, sets) in blocks {
        let predicted = match asked.untracked {
            true => {
                let names = given.into_iter().map(Option::unwrap_or_default).collect();
                Predicted { level: moment.level, sets, names }
            }
            false => with_values!(block, remembered(served, &moment, &block, given, &taken, sets))?,
        };
        level = predicted.level;
        let names = predicted.names.iter().cloned().map(Some).collect();
        let ids = [NamedCells { name: ID.to_owned(), cells: Cells::Text(names) }];
        writer.write(&SetRows {
            first_row: block.first_row,
            keep: if columns.keep.is_empty() { &[] } else { &ids },
            offsets: predicted.sets.offsets(),
            labels: predicted.sets.labels(),
            probabilities: None,
            p_values: None,
            alphas: None,
        })?;
    }
    let sets = writer.into_bytes()?;
    let headers = [
        (header::CONTENT_TYPE.as_str(), kind.to_owned()),
        ("conformax-level", level.to_string()),
        ("conformax-fingerprint", served.fingerprint.clone()),
    ];
    let name = app.models.name(asked.model.as_deref());
    let warning = served.warning(doubtful == Some(true), name, &app.note);
    let warning = warning.map(|warning| [("conformax-warning", warning)]);
    Ok((headers, warning, sets).into_response())
}

/// Opens the table as the command does, with its column of ids where it has one.
fn open(served: &Served, table: &Data, most: u64) -> Result<(Source, bool), Problem> {
    let model = &served.model;
    let mut options = SourceOptions {
        keep: vec![ID.to_owned()],
        input: model.input,
        prior: model.prior.clone(),
        names: model.names.clone(),
        labels: LabelUse::Ignored,
        most_inflated: Some(most),
        block_bytes: BLOCK,
        ..SourceOptions::default()
    };
    if let conformax::Scheme::Groups(Taxonomy::Group(_)) = &model.scheme {
        options.group_column = Some(model.beside.column.clone().unwrap_or_else(|| "group".to_owned()));
        options.group_names = Some(model.beside.groups.clone());
    }
    match Source::open(table, &options) {
        Ok(source) => Ok((source, true)),
        Err(error) if matches!(error.problem(), FileProblem::Missing { purpose: Purpose::Keep, .. }) => {
            options.keep.clear();
            Ok((Source::open(table, &options)?, false))
        }
        Err(error) => Err(error.into()),
    }
}

/// The sets of a block's rows.
fn sets_of<T: Logit>(values: &[T], moment: &Moment, block: &Block) -> Result<PredictionSets, Problem> {
    Ok(moment.predictor.predict(block.beside(Logits::new(values, block.classes)?)?)?)
}

fn remembered<T: Logit>(
    values: &[T],
    served: &Served,
    moment: &Moment,
    block: &Block,
    given: Vec<Option<String>>,
    taken: &BTreeSet<String>,
    sets: PredictionSets,
) -> Result<Predicted, Problem> {
    let logits = block.beside(Logits::new(values, block.classes)?)?;
    Ok(served.remember(moment.level, logits, block.groups.as_deref(), given, taken, sets)?)
}

/// The ids of a block's rows, of the kinds and lengths that feedback can name.
fn names_of(block: &Block) -> Result<Vec<Option<String>>, Problem> {
    let ids = block.keep.iter().find(|kept| kept.name == ID).map(|kept| texts(&kept.cells));
    let names = ids
        .unwrap_or_else(|| Ok(vec![None; block.rows()]))
        .map_err(|row| Problem::unprocessable("an id must be text or a whole number").in_row(row as u64))?;
    let is_wrong =
        |name: &Option<String>| name.as_ref().is_some_and(|name| name.is_empty() || name.len() > LONGEST_ID);
    match names.iter().position(is_wrong) {
        Some(row) => {
            let detail = format!("an id has 1 to {LONGEST_ID} bytes");
            Err(Problem::unprocessable(detail).in_row(row as u64))
        }
        None => Ok(names),
    }
}

/// Ids as text; the error is the first row with one that is neither text nor a whole number.
fn texts(cells: &Cells) -> Result<Vec<Option<String>>, usize> {
    fn each<T>(
        values: &[Option<T>],
        text: impl Fn(&T) -> Option<String>,
    ) -> Result<Vec<Option<String>>, usize> {
        let id = |(row, value): (usize, &Option<T>)| match value {
            Some(value) => text(value).ok_or(row).map(Some),
            None => Ok(None),
        };
        values.iter().enumerate().map(id).collect()
    }
    match cells {
        Cells::Bool(values) => each(values, |_| None),
        Cells::Int(values) => each(values, |value| Some(value.to_string())),
        Cells::UInt(values) => each(values, |value| Some(value.to_string())),
        Cells::Float(values) => each(values, |value| whole_id(*value).map(|id| id.to_string())),
        Cells::Text(values) => Ok(values.clone()),
    }
}
