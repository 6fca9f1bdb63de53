//! A running service, and a client that speaks plain HTTP/1.1 to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::folder::{CLASSES, Folder, Rows};

/// A service that is killed when the test is over.
pub(crate) struct Service {
    child: Child,
    pub(crate) address: SocketAddr,
    notes: Arc<Mutex<String>>,
}

impl Service {
    /// Starts with these words after `serve`; port 0 unless they say otherwise.
    pub(crate) fn start(folder: &Folder, words: &str) -> Self {
        Self::run(folder.command(&format!("serve --listen 127.0.0.1:0 {words}")))
    }

    pub(crate) fn run(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap());
        let (mut before, mut line) = (String::new(), String::new());
        let address = loop {
            line.clear();
            assert!(told.read_line(&mut line).unwrap() > 0, "it ended: {before}");
            before.push_str(&line);
            if let Some(address) = line.trim_end().strip_prefix("listening on http://") {
                break address.parse().unwrap();
            }
        };
        let notes = Arc::new(Mutex::new(before));
        let more = Arc::clone(&notes);
        std::thread::spawn(move || {
            for line in told.lines().map_while(Result::ok) {
                more.lock().unwrap().push_str(&format!("{line}\n"));
            }
        });
        Self { child, address, notes }
    }

    /// What it has said so far.
    pub(crate) fn notes(&self) -> String {
        self.notes.lock().unwrap().clone()
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    pub(crate) fn ended(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.address).unwrap()
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.client().ask("GET", path, &[], b"").unwrap()
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Answer {
        self.client().post(path, body).unwrap()
    }

    /// Where a model stands.
    pub(crate) fn status(&self, model: &str) -> Value {
        self.get("/v1/status").json()["models"][model].clone()
    }

    /// Asks until what it says is so; it never is once the service ends.
    pub(crate) fn wait_until(&mut self, mut done: impl FnMut(&Self) -> bool) {
        while !done(self) {
            assert!(self.child.try_wait().unwrap().is_none(), "it ended: {}", self.notes());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection that is kept.
pub(crate) struct Client {
    pub(crate) stream: BufReader<TcpStream>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        serde_json::from_slice(&self.body).unwrap()
    }

    /// A problem of this status.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        assert!(self.head.contains("content-type: application/problem+json"), "{}", self.head);
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The head of a request whose body has so many bytes.
pub(crate) fn request_head(method: &str, path: &str, headers: &[(&str, &str)], len: usize) -> String {
    let mut head = format!("{method} {path} HTTP/1.1\r\ncontent-length: {len}\r\n");
    if headers.iter().all(|(name, _)| *name != "host") {
        head.push_str("host: localhost\r\n");
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head + "\r\n"
}

pub(crate) const JSON: (&str, &str) = ("content-type", "application/json");

impl Client {
    pub(crate) fn new(address: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self::of(stream))
    }

    pub(crate) fn of(stream: TcpStream) -> Self {
        Self { stream: BufReader::new(stream) }
    }

    pub(crate) fn post(&mut self, path: &str, body: &str) -> std::io::Result<Answer> {
        self.ask("POST", path, &[JSON], body.as_bytes())
    }

    pub(crate) fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> std::io::Result<Answer> {
        let request = [request_head(method, path, headers, body.len()).as_bytes(), body].concat();
        // Whoever is refused before the end of a body may be cut off in sending it, and has an answer all the same.
        let sent = self.stream.get_mut().write_all(&request);
        self.answer().map_err(|error| sent.err().unwrap_or(error))
    }

    /// Asks without waiting for the answer.
    pub(crate) fn send(&mut self, path: &str, body: &str) {
        let head = request_head("POST", path, &[JSON], body.len());
        self.stream.get_mut().write_all(&[head.as_bytes(), body.as_bytes()].concat()).unwrap();
    }

    /// Whether an answer has begun to come.
    pub(crate) fn is_answered(&self) -> bool {
        let stream = self.stream.get_ref();
        stream.set_nonblocking(true).unwrap();
        let is_there = stream.peek(&mut [0]).is_ok();
        stream.set_nonblocking(false).unwrap();
        is_there
    }

    /// Reads one answer; an early end is an error.
    pub(crate) fn answer(&mut self) -> std::io::Result<Answer> {
        let early = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.stream.read_line(&mut head)? == 0 {
                return Err(early());
            }
        }
        let head = head.to_ascii_lowercase();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(early)?;
        let len = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
        let mut body = vec![0; if status == 100 { 0 } else { len.unwrap_or(0) }];
        self.stream.read_exact(&mut body)?;
        Ok(Answer { status, head, body })
    }
}

/// Rows as a body, the k-th under the name `{prefix}{k}` where there is one.
pub(crate) fn body_of(rows: &Rows, which: std::ops::Range<usize>, prefix: Option<&str>) -> String {
    let row = |row: usize| {
        // As the arrays hold them: single precision, written out.
        let logits: Vec<f64> =
            rows.logits[row * CLASSES..][..CLASSES].iter().map(|value| f64::from(*value)).collect();
        match prefix {
            Some(prefix) => format!("{{\"id\":\"{prefix}{row}\",\"logits\":{logits:?}}}"),
            None => format!("{{\"logits\":{logits:?}}}"),
        }
    };
    format!("{{\"rows\":[{}]}}", which.map(row).collect::<Vec<_>>().join(","))
}

/// A body of labels for these names.
pub(crate) fn labels_of<'a>(labels: impl IntoIterator<Item = (&'a str, u32)>) -> String {
    let label = |(id, label): (&str, u32)| json!({"id": id, "label": label});
    json!({"rows": labels.into_iter().map(label).collect::<Vec<_>>()}).to_string()
}

/// A library of these functions that can stand before the system's own, by `LD_PRELOAD`.
#[cfg(target_os = "linux")]
pub(crate) fn stood_before(folder: &Folder, name: &str, source: &str) -> std::path::PathBuf {
    let (source_name, library) = (format!("{name}.cpp"), format!("{name}.so"));
    folder.write(&source_name, source);
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "g++".to_owned());
    let words = ["-O1", "-shared", "-fPIC", "-o", &library, &source_name];
    let done = Command::new(compiler).args(words).current_dir(folder.path()).status().unwrap();
    assert!(done.success());
    folder.file(&library)
}
