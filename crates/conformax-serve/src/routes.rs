//! What can be asked, and who may.

mod feedback;
mod page;
mod predict;
mod status;

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};

use crate::app::App;
use crate::problem::Problem;

/// Every route, under the name that metrics know it by.
pub(crate) fn router(app: Arc<App>) -> Router {
    let mut router = Router::new();
    let routes = [
        ("/", true, get(page::page)),
        ("/healthz", true, get(|| async { "ok\n" })),
        ("/readyz", true, get(status::ready)),
        ("/openapi.json", false, get(page::openapi)),
        ("/metrics", false, get(status::metrics)),
        ("/v1/status", false, get(status::status)),
        ("/v1/predict", false, post(predict::predict)),
        ("/v1/feedback", false, post(feedback::feedback)),
        #[cfg(feature = "bars")]
        ("/v1/parse", false, post(predict::parse)),
    ];
    for (route, open, method) in routes {
        router = router.route(route, guarded(method, route, open, &app));
    }
    let nothing = |uri: Uri| async move {
        Problem::new(StatusCode::NOT_FOUND, format_args!("there is no {}; see /openapi.json", uri.path()))
    };
    let other_method = || async {
        Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this address takes another method; see /openapi.json")
    };
    router.fallback(nothing).method_not_allowed_fallback(other_method).with_state(app)
}

/// A route that checks who asks, keeps to the time a request may take, and counts.
fn guarded(
    method: MethodRouter<Arc<App>>,
    route: &'static str,
    open: bool,
    app: &Arc<App>,
) -> MethodRouter<Arc<App>> {
    let guard = move |State(app): State<Arc<App>>, request: Request, next: Next| async move {
        let started = Instant::now();
        let answer = match refused(&app, &request, open) {
            Some(problem) => problem.into_response(),
            None => match tokio::time::timeout(app.limits.request_time, next.run(request)).await {
                Ok(answer) => answer,
                Err(_) => {
                    let detail =
                        format!("a request may take {:?}, and this one took longer", app.limits.request_time);
                    Problem::new(StatusCode::REQUEST_TIMEOUT, detail).into_response()
                }
            },
        };
        app.metrics.answered(route, answer.status().as_u16(), started.elapsed());
        answer
    };
    method.layer(from_fn_with_state(Arc::clone(app), guard))
}

/// Why somebody may not ask, where they may not.
fn refused(app: &App, request: &Request, open: bool) -> Option<Problem> {
    if !app.hosts.allow(request.uri(), request.headers()) {
        let detail = "without a token the service answers to localhost and to addresses of this machine alone, and the \
                      request was for another host; ask for one of those, or have the service started with a token";
        return Some(Problem::new(StatusCode::MISDIRECTED_REQUEST, detail));
    }
    let allowed = open || app.token.as_ref().is_none_or(|token| token.is_in(request.headers()));
    let detail = "send the token as `Authorization: Bearer TOKEN`";
    (!allowed).then(|| Problem::new(StatusCode::UNAUTHORIZED, detail))
}

/// What the address of a request asks for: `?model=NAME&track=false`.
#[derive(Debug, Default, PartialEq)]
struct Asked {
    model: Option<String>,
    untracked: bool,
}

impl Asked {
    fn of(uri: &Uri) -> Result<Self, Problem> {
        let mut asked = Self::default();
        for pair in uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("model", name)) => asked.model = Some(name.to_owned()),
                Some(("track", "true")) => asked.untracked = false,
                Some(("track", "false")) => asked.untracked = true,
                _ => {
                    let wanted = "an address may say model=NAME and track=true or track=false";
                    return Err(Problem::bad_request(format_args!("{wanted}, got {pair}")));
                }
            }
        }
        Ok(asked)
    }

    fn no_model(&self) -> Problem {
        let name = self.model.as_deref().unwrap_or_default();
        Problem::new(
            StatusCode::NOT_FOUND,
            format_args!("no model is called {name:?}; /v1/status lists them"),
        )
    }
}

/// What a body is said to be, without its parameters.
fn content_type(headers: &HeaderMap) -> &str {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
}

/// An error where a body is packed: it is read as it comes.
fn expect_unpacked(headers: &HeaderMap) -> Result<(), Problem> {
    let packed = |value: &&HeaderValue| !value.as_bytes().eq_ignore_ascii_case(b"identity");
    let found = headers.get_all(header::CONTENT_ENCODING).iter().find(packed);
    found.map_or(Ok(()), |found| Err(Problem::packed(found.as_bytes())))
}

fn unsupported(wanted: &str, headers: &HeaderMap) -> Problem {
    let found = content_type(headers);
    let detail = format!("wanted the content type {wanted}, got {found:?}");
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail)
}

fn json(value: &impl serde::Serialize) -> Response {
    json_of_about(128, value)
}

/// The same with memory for so many bytes asked for at once.
fn json_of_about(bytes: usize, value: &impl serde::Serialize) -> Response {
    let mut body = Vec::with_capacity(bytes);
    match serde_json::to_writer(&mut body, value) {
        Ok(()) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Err(error) => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use conformax::{Alpha, Calibration, ScoreSpec, SortedScores, StreamOptions};
    use conformax_io::{Model, Overwrite};
    use http_body_util::BodyExt;

    use super::*;
    use crate::Limits;
    use crate::hosts::Hosts;
    use crate::models::Models;

    const ROW: &str = "{\"rows\":[{\"id\":\"a\",\"logits\":[0,1,2]}]}";
    const LABEL: &str = "{\"rows\":[{\"id\":\"a\",\"label\":2}]}";

    /// Two models under the names `busy` and `idle`.
    fn app(folder: &std::path::Path, limits: Limits) -> Arc<App> {
        let scores = SortedScores::new((0..50).map(f64::from).collect()).unwrap();
        let calibration = Calibration::from_scores(ScoreSpec::default(), 3, scores).unwrap();
        let path = folder.join("model.json");
        Model::new(&calibration, &[Alpha::new(0.1).unwrap()], None).write(&path, Overwrite::Refuse).unwrap();
        let named = ["busy", "idle"].map(|name| (name.to_owned(), path.clone()));
        let note: crate::Note = Arc::new(|_: &str| ());
        let state = folder.join("state");
        let models = Models::open(&named, None, StreamOptions::default(), Some(&state), &note).unwrap();
        Arc::new(App::new(models, None, Hosts::Any, limits, note))
    }

    /// A request to a model, with so many spaces after its body.
    fn request(model: &str, body: &str, spaces: usize) -> Request {
        let builder = Request::post(format!("/?model={model}"));
        let body = body.to_owned() + &" ".repeat(spaces);
        builder.header(header::CONTENT_TYPE, "application/json").body(Body::from(body)).unwrap()
    }

    async fn text(answer: Result<Response, Problem>) -> String {
        let bytes = answer.unwrap().into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    /// There is one thread that answers, and what is large is in the middle of its work, as long as the model is held:
    /// on that thread, or with every turn taken, nobody else would be answered.
    #[tokio::test(flavor = "current_thread")]
    #[allow(clippy::await_holding_lock, reason = "whoever waits for it does so on other threads")]
    async fn single_rows_are_answered_while_large_requests_are_worked_on() {
        let folder = tempfile::tempdir().unwrap();
        let app = app(folder.path(), Limits { requests: 4, large: 2, ..Limits::default() });
        text(predict::predict(State(Arc::clone(&app)), request("busy", ROW, 0)).await).await;
        let busy = app.models.get(Some("busy")).unwrap();
        let held = busy.held();
        let large: Vec<_> = (0..10)
            .map(|which| {
                let state = State(Arc::clone(&app));
                tokio::spawn(async move {
                    match which % 2 {
                        0 => text(predict::predict(state, request("busy", ROW, 1 << 20)).await).await,
                        _ => text(feedback::feedback(state, request("busy", LABEL, 1 << 20)).await).await,
                    }
                })
            })
            .collect();
        while app.large_turns_left() > 0 {
            tokio::task::yield_now().await;
        }
        for _ in 0..3 {
            let set = text(predict::predict(State(Arc::clone(&app)), request("idle", ROW, 0)).await).await;
            assert!(set.contains("\"id\":\"a\""), "{set}");
            let told =
                text(feedback::feedback(State(Arc::clone(&app)), request("idle", LABEL, 0)).await).await;
            assert!(told.contains("counted"), "{told}");
        }
        assert!(large.iter().all(|large| !large.is_finished()));
        drop(held);
        for large in large {
            large.await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_request_without_rows_is_answered() {
        let folder = tempfile::tempdir().unwrap();
        let app = app(folder.path(), Limits::default());
        let none = request("busy", "{\"rows\":[]}", 0);
        let answer = text(predict::predict(State(Arc::clone(&app)), none).await).await;
        assert!(answer.contains("\"sets\":[]"), "{answer}");
        assert_eq!(app.models.get(Some("busy")).unwrap().appended(), 0);
    }

    /// Others get at the model between two pieces. No name that is made is one that a later piece has.
    #[tokio::test]
    async fn many_rows_are_taken_in_by_pieces() {
        let folder = tempfile::tempdir().unwrap();
        let app = app(folder.path(), Limits::default());
        let rows = "{\"logits\":[0,1,2]},".repeat(99_999);
        let body = format!("{{\"rows\":[{rows}{{\"id\":\"row-0\",\"logits\":[0,1,2]}}]}}");
        let answer = text(predict::predict(State(Arc::clone(&app)), request("busy", &body, 0)).await).await;
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        let ids = answer["sets"].as_array().unwrap().iter().map(|set| set["id"].as_str().unwrap());
        assert_eq!(ids.collect::<std::collections::BTreeSet<_>>().len(), 100_000);
        assert_eq!(app.models.get(Some("busy")).unwrap().appended(), 3);
    }

    #[tokio::test(flavor = "current_thread")]
    #[allow(clippy::await_holding_lock, reason = "whoever waits for it does so on another thread")]
    async fn requests_beyond_their_number_wait_for_their_turn() {
        let folder = tempfile::tempdir().unwrap();
        let app = app(folder.path(), Limits { requests: 1, large: 1, ..Limits::default() });
        let busy = app.models.get(Some("busy")).unwrap();
        let held = busy.held();
        let asked = |model, spaces| {
            let state = State(Arc::clone(&app));
            tokio::spawn(
                async move { text(predict::predict(state, request(model, ROW, spaces)).await).await },
            )
        };
        let first = asked("busy", 1 << 20);
        while app.turns_left() > 0 {
            tokio::task::yield_now().await;
        }
        let second = asked("idle", 0);
        // On this thread alone there is nothing that it could be doing but wait.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(!first.is_finished() && !second.is_finished());
        drop(held);
        assert!(first.await.unwrap().contains("sets") && second.await.unwrap().contains("sets"));
    }
}
