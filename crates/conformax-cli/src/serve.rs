//! `conformax serve`: prediction sets over HTTP.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use clap::Args;
use conformax_serve::{Limits, Note, Options, serve};

use crate::args::StreamArgs;
use crate::console::Console;
use crate::failure::Failure;
use crate::interrupt;

/// Serve prediction sets over HTTP, and learn from the labels that come back.
///
/// Rows are posted to /v1/predict and their labels to /v1/feedback; / shows coverage, sizes, level and alarm as they
/// go. A model file that is replaced is picked up. With --state nothing that was answered is lost, not even when the
/// process is killed. Clients send what the variable CONFORMAX_TOKEN holds as a bearer token, where it is set.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  conformax serve model.json --state state/
  conformax serve pets=pets.json cars=cars.json --listen 127.0.0.1:9000 --fixed
  curl -s localhost:8080/v1/predict -H 'content-type: application/json' -d '{\"rows\": [{\"logits\": [2.5, 0.5]}]}'")]
pub(crate) struct ServeArgs {
    /// Calibration files, each under the name that requests ask for with ?model=NAME; the name of the file without
    /// one. The first stands for requests that name none.
    #[arg(value_name = "[NAME=]MODEL", required = true)]
    models: Vec<String>,
    /// Address to listen on; port 0 takes any that is free.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Folder that keeps what was learned; without it a restart begins anew.
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Let anybody ask who can reach the address, without a token.
    #[arg(long)]
    insecure: bool,
    /// Largest body of a request, in megabytes.
    #[arg(long, value_name = "MB", default_value_t = 64, help_heading = "Limits")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=4096))]
    max_body: u16,
    /// Most rows of a request.
    #[arg(long, value_name = "N", default_value_t = 100_000, help_heading = "Limits")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    max_rows: u32,
    /// Size at which a journal is put together into a snapshot, in megabytes; it waits until the journal is twice as
    /// large as the logits of the rows that wait for a label, where these are more.
    #[arg(long, value_name = "MB", default_value_t = 64, help_heading = "Limits")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    max_journal: u16,
    /// Most connections at a time.
    #[arg(long, value_name = "N", default_value_t = 16_384, help_heading = "Limits")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_connections: u32,
    #[command(flatten)]
    stream: StreamArgs,
}

pub(crate) fn run(args: &ServeArgs, console: &mut Console<'_>) -> Result<(), Failure> {
    let usual = Limits::default();
    let body = usize::from(args.max_body) << 20;
    let limits = Limits {
        body,
        bodies: usual.bodies.max(2 * body),
        rows: args.max_rows as usize,
        journal: u64::from(args.max_journal) << 20,
        connections: args.max_connections as usize,
        ..usual
    };
    let options = Options {
        models: args.models.iter().map(|text| named(text)).collect(),
        listen: args.listen,
        state: args.state.clone(),
        token: std::env::var("CONFORMAX_TOKEN").ok().filter(|token| !token.is_empty()),
        insecure: args.insecure,
        alpha: args.stream.alpha(),
        stream: args.stream.options(),
        limits,
        threads: rayon::current_num_threads(),
    };
    // Many threads have something to tell, and the console belongs to this one.
    let (tell, told) = channel();
    let note: Note = Arc::new({
        let tell = tell.clone();
        move |message: &str| drop(tell.send(message.to_owned()))
    });
    let ready = move |address| drop(tell.send(format!("listening on http://{address}")));
    let service = thread::Builder::new().name("service".to_owned());
    let service = service
        .spawn(move || serve(&options, ready, || interrupt::check().is_err(), note))
        .map_err(Failure::error)?;
    for message in told {
        console.note(message);
    }
    let served = service.join().map_err(|_| Failure::error("the service panicked"))?;
    served.map_err(Failure::error)
}

/// What to do about it, in the words of the command.
pub(crate) fn hint(error: &conformax_serve::Error) -> Option<&'static str> {
    use conformax_serve::Error;
    match error {
        Error::Listen { error, .. } if error.kind() == std::io::ErrorKind::AddrInUse => {
            Some("give another address with --listen; port 0 takes any that is free")
        }
        Error::NoJournal { .. } | Error::Locked { .. } => Some("give another folder with --state"),
        Error::Open(_) => {
            Some("set CONFORMAX_TOKEN to a secret that clients send as a bearer token, or say --insecure")
        }
        Error::Token(_) => Some("the token is what CONFORMAX_TOKEN holds"),
        Error::NameTwice(_) => Some("name them: NAME=FILE"),
        _ => None,
    }
}

/// `NAME=FILE`, or a file under its own name.
fn named(text: &str) -> (String, PathBuf) {
    match text.split_once('=') {
        Some((name, path)) if !Path::new(text).exists() => (name.to_owned(), path.into()),
        _ => {
            let stem = Path::new(text).file_stem().unwrap_or_default();
            (stem.to_string_lossy().into_owned(), text.into())
        }
    }
}
