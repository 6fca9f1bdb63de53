//! Prediction sets over HTTP: calibrated models in use, with labels that come back and an alarm.
//!
//! [`serve`] is all of it: models are read, streams taken up from their folder, and requests answered until it is told
//! to stop. `models.rs` knows which model a name stands for, `served.rs` what one model has been told, `journal.rs` how
//! that is kept, `routes.rs` what can be asked, and `connections.rs` who gets to ask.

mod app;
mod bodies;
mod client_stream;
mod connections;
mod error;
mod hosts;
mod journal;
mod limits;
mod metrics;
mod models;
mod problem;
mod routes;
mod served;
mod token;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use conformax::{Alpha, StreamOptions};

use crate::app::App;
use crate::hosts::Hosts;
use crate::models::Models;
use crate::token::Token;

pub use crate::error::Error;
pub use crate::limits::Limits;

/// Somebody to tell what happened.
pub type Note = Arc<dyn Fn(&str) + Send + Sync>;

/// What is served, to whom and how.
#[derive(Clone)]
pub struct Options {
    /// Models by name; the first stands for requests that name none.
    pub models: Vec<(String, PathBuf)>,
    /// Where to listen; port 0 takes any that is free.
    pub listen: SocketAddr,
    /// The folder that keeps what was learned; without it a restart begins anew.
    pub state: Option<PathBuf>,
    /// The secret that clients send, where they must.
    pub token: Option<String>,
    /// Whether anybody who can reach the address may ask, without a token.
    pub insecure: bool,
    /// The level to begin at; the first of each model where not given.
    pub alpha: Option<Alpha>,
    /// How levels move, when the alarm rises and what is kept.
    pub stream: StreamOptions,
    /// What one client may take from the others.
    pub limits: Limits,
    /// Threads that answer; one per processor where 0.
    pub threads: usize,
}

/// How often files are looked at and a request to stop is noticed.
const LOOK: Duration = Duration::from_millis(50);
/// Looks between two looks at the files.
const LOOKS_AT_FILES: u32 = 10;

/// Serves until `stop` says so, having told `ready` the address; requests in hand are answered first.
pub fn serve(
    options: &Options,
    ready: impl FnOnce(SocketAddr),
    stop: impl Fn() -> bool + Send + Sync + 'static,
    note: Note,
) -> Result<(), Error> {
    let token = options.token.as_deref().map(Token::new).transpose()?;
    if token.is_none() && !options.insecure && !options.listen.ip().is_loopback() {
        return Err(Error::Open(options.listen));
    }
    let Options { models, alpha, stream, state, .. } = options;
    let models = Models::open(models, *alpha, *stream, state.as_deref(), &note)?;
    // Who has the token was meant; who may ask without one is known by the address, which a web page can be made to
    // use.
    let hosts = match token.is_some() || options.insecure {
        true => Hosts::Any,
        false => Hosts::Own(options.listen.ip()),
    };
    let app = Arc::new(App::new(models, token, hosts, options.limits, note));
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.enable_all();
    if options.threads > 0 {
        runtime.worker_threads(options.threads);
    }
    let runtime = runtime.build().map_err(Error::Threads)?;
    runtime.block_on(async {
        let listen = |error| Error::Listen { address: options.listen, error };
        let listener = connections::listen(options.listen, options.limits).map_err(listen)?;
        ready(listener.local_addr().map_err(listen)?);
        let watching = tokio::spawn(watch_files(Arc::clone(&app)));
        let stopped = async {
            while !stop() {
                tokio::time::sleep(LOOK).await;
            }
            app.stop();
        };
        connections::answer(listener, routes::router(Arc::clone(&app)), app.limits, stopped).await;
        watching.abort();
        app.settle().await
    })
}

/// Picks up models whose files are replaced, and puts long journals together.
async fn watch_files(app: Arc<App>) {
    loop {
        let looking = Arc::clone(&app);
        // Reading a model takes as long as its file is large.
        let _ = tokio::task::spawn_blocking(move || looking.models.reload(&looking.note)).await;
        for (name, served) in app.models.all() {
            if let Err(error) = served.compact_if_longer(app.limits.journal).await {
                (app.note)(&format!("{name}: the journal could not be put together: {error}"));
            }
        }
        tokio::time::sleep(LOOK * LOOKS_AT_FILES).await;
    }
}
