//! `GET /v1/status`, `/metrics` and `/readyz`: where every stream stands.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use conformax::{StreamStatus, TracePoint};
use serde::Serialize;

use crate::app::App;
use crate::problem::Problem;
use crate::routes::json;
use crate::served::{BAND, Served, Standing};

#[derive(Serialize)]
struct Answer<'a> {
    version: &'static str,
    models: BTreeMap<&'a str, Stands>,
}

/// Where one model stands.
#[derive(Serialize)]
struct Stands {
    fingerprint: String,
    score: String,
    classes: usize,
    calibrating_rows: u64,
    promise: String,
    step: f64,
    decay: Option<f64>,
    window: Option<u64>,
    delta: f64,
    #[serde(flatten)]
    stream: StreamStatus,
    /// Where the recent coverage lies with this probability, as long as nothing changes and the level stays.
    band: Option<(f64, f64)>,
    band_probability: f64,
    trace: Vec<Point>,
}

#[derive(Serialize)]
struct Point {
    #[serde(flatten)]
    at: TracePoint,
    band: Option<(f64, f64)>,
}

impl Stands {
    fn of(served: &Served) -> Self {
        let Standing { status: stream, options, most_recent, trace } = served.standing();
        let point = |at: TracePoint| Point { at, band: served.band(at.labelled.min(most_recent)) };
        Self {
            fingerprint: served.fingerprint.clone(),
            score: served.model.score.to_string(),
            classes: served.model.classes,
            calibrating_rows: served.model.n,
            promise: served.model.promise(),
            step: options.step,
            decay: options.decay,
            window: options.window,
            delta: options.delta.value(),
            band: served.band(stream.recent_labelled),
            band_probability: BAND,
            stream,
            trace: trace.into_iter().map(point).collect(),
        }
    }
}

pub(super) async fn status(State(app): State<Arc<App>>) -> Response {
    let models = app.models.all().into_iter().map(|(name, served)| (name, Stands::of(&served))).collect();
    let mut response = json(&Answer { version: env!("CARGO_PKG_VERSION"), models });
    response.headers_mut().insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
    response
}

pub(super) async fn metrics(State(app): State<Arc<App>>) -> Response {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], app.metrics.text(&app.models)).into_response()
}

pub(super) async fn ready(State(app): State<Arc<App>>) -> Result<&'static str, Problem> {
    match app.not_ready() {
        None => Ok("ready\n"),
        Some(why) => Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, why)),
    }
}
