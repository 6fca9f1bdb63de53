//! `POST /v1/feedback`: the labels of rows that were predicted, answered once they are on the disk.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use conformax::Feedback;
use conformax_io::JsonLabel;
use serde::Serialize;

use crate::app::App;
use crate::problem::Problem;
use crate::routes::{Asked, content_type, json, unsupported};
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

pub(super) async fn feedback(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let asked = Asked::of(request.uri())?;
    // Labels of rows that a model gave before its file was replaced go to that one.
    let lineage = app.models.lineage(asked.model.as_deref()).ok_or_else(|| asked.no_model())?;
    if content_type(request.headers()) != "application/json" {
        return Err(unsupported("application/json", request.headers()));
    }
    let (parts, body) = request.into_parts();
    let body = app.bodies.read(&parts.headers, body).await?;
    let _turn = app.turn().await?;
    let labels = JsonLabel::read_request(&body.bytes, app.limits.rows)?;
    let labels = labels.into_iter().enumerate().map(|(row, label)| placed(&lineage, label, row as u64));
    let labels = labels.collect::<Result<Vec<_>, Problem>>()?;
    let model = app.models.name(asked.model.as_deref());
    let mut results = Vec::with_capacity(labels.len());
    for (served, name, label) in labels {
        let told = served.learn(&name, label)?;
        if let Feedback::Counted { rose: true, .. } = told {
            (app.note)(&format!("{model}: the alarm rose: rows are no longer like those that calibrated"));
        }
        results.push(match told {
            Feedback::Counted { covered, p_value, .. } => {
                Outcome { id: name, outcome: "counted", covered: Some(covered), p_value: Some(p_value) }
            }
            Feedback::Repeated => Outcome { id: name, outcome: "repeated", covered: None, p_value: None },
            Feedback::Unknown => Outcome { id: name, outcome: "unknown", covered: None, p_value: None },
        });
    }
    for served in &lineage {
        served.settle().await?;
    }
    Ok(json(&Answer { model, results }))
}

/// A label with the model that gave its row, in whose words it is: a file that was replaced may call classes otherwise.
fn placed(
    lineage: &[Arc<Served>],
    JsonLabel { name, label }: JsonLabel,
    row: u64,
) -> Result<(&Served, String, u32), Problem> {
    let place = lineage.iter().position(|served| served.knows(&name)).unwrap_or(0);
    let served = &lineage[place];
    match (served.rows.label(&label), place) {
        (Ok(label), _) => Ok((served, name, label)),
        (Err(problem), 0) => Err(Problem::unprocessable(problem).in_row(row)),
        (Err(problem), _) => {
            let detail =
                format_args!("{problem} of the model that gave the row its set, which has been replaced");
            Err(Problem::unprocessable(detail).in_row(row))
        }
    }
}
