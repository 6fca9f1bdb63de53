//! `POST /v1/feedback`: the labels of rows that were predicted, answered once they are on the disk.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use conformax::Feedback;
use conformax_io::JsonLabel;
use serde::Serialize;

use crate::app::{App, Size};
use crate::problem::Problem;
use crate::routes::{Asked, content_type, expect_unpacked, json, unsupported};
use crate::served::Served;

#[derive(Serialize)]
struct Answer<'a> {
    model: &'a str,
    results: Vec<Outcome>,
}

/// What became of a label.
#[derive(Serialize)]
struct Outcome {
    id: String,
    /// `counted`, `repeated` or `unknown`.
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    covered: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p_value: Option<f64>,
}

impl Outcome {
    fn of(told: Feedback, name: &str) -> Self {
        let without = |outcome| Self { id: name.to_owned(), outcome, covered: None, p_value: None };
        match told {
            Feedback::Counted { covered, p_value, .. } => {
                Self { covered: Some(covered), p_value: Some(p_value), ..without("counted") }
            }
            Feedback::Repeated => without("repeated"),
            Feedback::Unknown => without("unknown"),
        }
    }
}

/// Bytes of labels, some hundreds, that are taken in within about a millisecond.
const SMALL: usize = 16 << 10;

/// Labels that are taken in together, with one write to the journal and one turn at the stream: between two such,
/// others get theirs.
const TOGETHER: usize = 256;

pub(super) async fn feedback(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let asked = Asked::of(request.uri())?;
    // Labels of rows that a model gave before its file was replaced go to that one.
    let lineage = app.models.lineage(asked.model.as_deref()).ok_or_else(|| asked.no_model())?;
    if content_type(request.headers()) != "application/json" {
        return Err(unsupported("application/json", request.headers()));
    }
    expect_unpacked(request.headers())?;
    let (parts, body) = request.into_parts();
    let body = app.bodies.read(&parts.headers, body).await?;
    let model = app.models.name(asked.model.as_deref()).to_owned();
    let (shared, learning, named) = (Arc::clone(&app), lineage.clone(), model.clone());
    let size = Size::of_body(&body.bytes, SMALL);
    let work = move || learned(&shared, &named, &learning, &body.bytes);
    let results = app.work(size, work).await?;
    // Whoever waits for the disk takes nobody's turn.
    for served in &lineage {
        served.settle().await?;
    }
    Ok(json(&Answer { model: &model, results }))
}

/// Takes in the labels of a request, which are on their way to the disk afterwards.
fn learned(app: &App, model: &str, lineage: &[Arc<Served>], body: &[u8]) -> Result<Vec<Outcome>, Problem> {
    let labels = JsonLabel::read_request(body, app.limits.rows)?;
    let labels = labels.into_iter().enumerate().map(|(row, label)| placed(lineage, label, row as u64));
    let labels = labels.collect::<Result<Vec<Placed>, Problem>>()?;
    let mut results = Vec::with_capacity(labels.len());
    let of_one_model = labels.chunk_by(|one, next| one.place == next.place);
    for together in of_one_model.flat_map(|labels| labels.chunks(TOGETHER)) {
        let named: Vec<_> = together.iter().map(|label| (label.name.as_str(), label.label)).collect();
        let told = lineage[together[0].place].learn(&named)?;
        if told.iter().any(|told| matches!(told, Feedback::Counted { rose: true, .. })) {
            (app.note)(&format!("{model}: the alarm rose: rows are no longer like those that calibrated"));
        }
        results.extend(told.into_iter().zip(together).map(|(told, label)| Outcome::of(told, &label.name)));
    }
    Ok(results)
}

/// A label, and the place in its lineage of the model that gave its row.
struct Placed {
    place: usize,
    name: String,
    label: u32,
}

/// A label with the model that gave its row, in whose words it is: a file that was replaced may call classes otherwise.
fn placed(
    lineage: &[Arc<Served>],
    JsonLabel { name, label }: JsonLabel,
    row: u64,
) -> Result<Placed, Problem> {
    let place = lineage.iter().position(|served| served.knows(&name)).unwrap_or(0);
    match (lineage[place].rows.label(&label), place) {
        (Ok(label), _) => Ok(Placed { place, name, label }),
        (Err(problem), 0) => Err(Problem::unprocessable(problem).in_row(row)),
        (Err(problem), _) => {
            let detail =
                format_args!("{problem} of the model that gave the row its set, which has been replaced");
            Err(Problem::unprocessable(detail).in_row(row))
        }
    }
}
