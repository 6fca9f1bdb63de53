//! What can be asked, and who may.

mod feedback;
mod page;
mod predict;
mod status;

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
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
                      request was for another host; ask for one of those, set CONFORMAX_TOKEN, or say --insecure";
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
