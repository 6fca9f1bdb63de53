//! `POST /v1/predict`: rows in, sets out, as JSON or as an Arrow table.

mod table;

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use conformax::Logits;
use conformax_io::ClassNames;
use serde::ser::{Serialize, SerializeSeq, Serializer};

use crate::app::{App, Size};
use crate::problem::Problem;
#[cfg(feature = "bars")]
use crate::routes::json;
use crate::routes::{Asked, content_type, expect_unpacked, json_of_about, unsupported};
use crate::served::{Predicted, Rows, Served};

/// Bytes of logits in JSON whose sets are found in about a millisecond.
const SMALL: usize = 256 << 10;

/// Bytes of logits that are taken in at a time: requests of few rows wait no longer for a larger one.
const TOGETHER: usize = 1 << 20;

/// The forms of tables: each is answered in the form it came in.
const TABLES: [&str; 2] = ["application/vnd.apache.arrow.stream", "application/vnd.apache.arrow.file"];

pub(super) async fn predict(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let asked = Asked::of(request.uri())?;
    let served = app.models.get(asked.model.as_deref()).ok_or_else(|| asked.no_model())?;
    let kind = content_type(request.headers());
    let table = match TABLES.into_iter().find(|table| *table == kind) {
        Some(table) => Some(table),
        None if kind == "application/json" => None,
        None => {
            let wanted = format!("application/json, {} or {}", TABLES[0], TABLES[1]);
            return Err(unsupported(&wanted, request.headers()));
        }
    };
    expect_unpacked(request.headers())?;
    let (parts, body) = request.into_parts();
    let mut body = app.bodies.read(&parts.headers, body).await?;
    let size = if table.is_some() { Size::Large } else { Size::of_body(&body.bytes, SMALL) };
    let shared = Arc::clone(&app);
    let work = move || match table {
        Some(kind) => table::of_table(&shared, &asked, &served, &mut body.bytes, kind),
        None => of_json(&shared, &asked, &served, &body.bytes),
    };
    app.work(size, work).await
}

/// Reads a request as [`predict`] does and answers a constant: what is left of the time is the sets'.
#[cfg(feature = "bars")]
pub(super) async fn parse(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let served = app.models.get(None).ok_or_else(|| Asked::default().no_model())?;
    let (parts, body) = request.into_parts();
    let body = app.bodies.read(&parts.headers, body).await?;
    let _turn = app.turn().await?;
    let rows = served.rows.read_request(&body.bytes, app.limits.rows)?;
    Ok(json(&rows.len()))
}

/// The ids that rows of a request were given, no two of them alike: only one of two could get a label.
fn distinct<'a>(ids: impl Iterator<Item = &'a Option<String>>) -> Result<BTreeSet<String>, Problem> {
    let mut distinct = BTreeSet::new();
    for (row, id) in ids.enumerate() {
        let Some(id) = id else { continue };
        if !distinct.insert(id.clone()) {
            return Err(
                Problem::unprocessable(format_args!("the id {id:?} is there twice")).in_row(row as u64)
            );
        }
    }
    Ok(distinct)
}

fn of_json(app: &App, asked: &Asked, served: &Arc<Served>, body: &[u8]) -> Result<Response, Problem> {
    let rows = served.rows.read_request(body, app.limits.rows)?;
    let rows = Rows::of(rows)
        .map_err(|row| Problem::unprocessable("a row to predict needs `logits`").in_row(row as u64))?;
    let taken = distinct(rows.names.iter())?;
    let logits = Logits::new(&rows.logits, served.model.classes)?;
    let logits = match &rows.groups {
        Some(groups) => logits.with_groups(groups)?,
        None => logits,
    };
    let moment = served.moment();
    // Every row gets its set before the first is remembered: a request that is refused leaves no trace.
    let together = (TOGETHER / (size_of::<f64>() * served.model.classes)).max(1);
    let starts = (0..logits.len()).step_by(together);
    let pieces = starts.map(|start| start..logits.len().min(start + together));
    let sets = pieces.map(|rows| Ok((moment.predictor.predict(logits.rows(rows.clone()))?, rows)));
    let sets: Vec<_> = sets.collect::<Result<_, Problem>>()?;
    let (mut given, rows_groups) = (rows.names.into_iter(), rows.groups.as_deref());
    let remembered = sets.into_iter().map(|(sets, rows)| match asked.untracked {
        true => Ok(Predicted { level: moment.level, sets, names: Vec::new() }),
        false => {
            let given = given.by_ref().take(rows.len()).collect();
            let groups = rows_groups.map(|groups| &groups[rows.clone()]);
            served.remember(moment.level, logits.rows(rows), groups, given, &taken, sets)
        }
    });
    let remembered: Vec<Predicted> = remembered.collect::<Result<_, _>>()?;
    let names = served.model.names.as_ref();
    let sets = remembered.iter().flat_map(|predicted| {
        let ids = predicted.names.iter().map(|name| Some(name.as_str())).chain(std::iter::repeat(None));
        let sets = predicted.sets.iter().zip(ids);
        sets.map(|(set, id)| SetOfRow { id, labels: Labels { set, names }, size: set.len() })
    });
    let model = app.models.name(asked.model.as_deref());
    let sets: Vec<SetOfRow<'_>> = sets.collect();
    let about = sets.iter().map(|set| 64 + 8 * set.size).sum::<usize>() + 128;
    let warning = served.warning(rows.doubtful, model, &app.note);
    let answer = Answer { model, fingerprint: &served.fingerprint, level: moment.level, warning, sets };
    Ok(json_of_about(about, &answer))
}

#[derive(serde::Serialize)]
struct Answer<'a> {
    model: &'a str,
    fingerprint: &'a str,
    level: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
    sets: Vec<SetOfRow<'a>>,
}

#[derive(serde::Serialize)]
struct SetOfRow<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    labels: Labels<'a>,
    size: usize,
}

/// Labels by their names, where classes have names.
struct Labels<'a> {
    set: &'a [u32],
    names: Option<&'a ClassNames>,
}

impl Serialize for Labels<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.set.len()))?;
        for label in self.set {
            match self.names.and_then(|names| names.name(*label)) {
                Some(name) => list.serialize_element(name)?,
                None => list.serialize_element(label)?,
            }
        }
        list.end()
    }
}
