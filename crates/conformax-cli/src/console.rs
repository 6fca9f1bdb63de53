//! `Console`: the two streams, and whether they want colour, progress and notes.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::time::Duration;

use conformax_io::printable;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::numbers;

/// Data goes to `out`, everything said about it to `err`.
pub(crate) struct Console<'a> {
    out: &'a mut (dyn Write + Send),
    err: &'a mut (dyn Write + Send),
    quiet: bool,
    colour: bool,
}

/// The colours of the first word of a line.
#[derive(Clone, Copy)]
enum Tone {
    Error,
    Warning,
    Hint,
}

impl Tone {
    fn escape(self) -> &'static str {
        match self {
            Self::Error => "\x1b[1;31m",
            Self::Warning => "\x1b[1;33m",
            Self::Hint => "\x1b[1;36m",
        }
    }
}

impl<'a> Console<'a> {
    pub(crate) fn new(out: &'a mut (dyn Write + Send), err: &'a mut (dyn Write + Send)) -> Self {
        let colour = std::io::stderr().is_terminal() && !no_color();
        Self { out, err, quiet: false, colour }
    }

    pub(crate) fn set_quiet(&mut self, quiet: bool) {
        self.quiet = quiet;
    }

    /// Where data goes.
    pub(crate) fn out(&mut self) -> &mut (dyn Write + Send) {
        self.out
    }

    /// Something that went as asked and is nice to know.
    pub(crate) fn note(&mut self, message: impl Display) {
        if !self.quiet {
            self.say(format_args!("{}", plain(&message)));
        }
    }

    /// Something that needs attention; it says what to do next, and `--quiet` does not silence it.
    pub(crate) fn warn(&mut self, message: impl Display) {
        self.line(Tone::Warning, "warning", &message);
    }

    /// A bar on standard error over `rows`, or a counter where their number is not known; neither when standard
    /// error is no terminal.
    pub(crate) fn progress(&self, what: &str, rows: Option<u64>) -> ProgressBar {
        if self.quiet || !std::io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let template = match rows {
            Some(_) => "{msg} [{bar:32}] {human_pos}/{human_len} rows, {rate} a second, {eta} left",
            None => "{msg} {spinner} {human_pos} rows, {rate} a second",
        };
        let style = ProgressStyle::with_template(template).expect("the template is well formed");
        let bar = ProgressBar::with_draw_target(rows, ProgressDrawTarget::stderr());
        bar.set_style(style.progress_chars("━╸ ").with_key("rate", rate));
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        bar
    }

    /// A line on standard error that says how a stream stands; none when standard error is no terminal.
    pub(crate) fn status(&self) -> ProgressBar {
        if self.quiet || !std::io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let style = ProgressStyle::with_template("{wide_msg}").expect("the template is well formed");
        ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style)
    }

    /// A bar on standard error over the stages of a study; none when standard error is no terminal.
    pub(crate) fn stages(&self) -> ProgressBar {
        if self.quiet || !std::io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let style = ProgressStyle::with_template("[{bar:32}] {pos}/{len} {wide_msg}");
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        bar.set_style(style.expect("the template is well formed").progress_chars("━╸ "));
        bar
    }

    /// A bar on standard error over the steps of a run; none when standard error is no terminal.
    #[cfg(feature = "train")]
    pub(crate) fn steps(&self, steps: u64) -> ProgressBar {
        if self.quiet || !std::io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let template = "[{bar:32}] {human_pos}/{human_len} steps, {per_sec}, {eta} left {wide_msg}";
        let style = ProgressStyle::with_template(template).expect("the template is well formed");
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr());
        bar.set_style(style.progress_chars("━╸ "));
        bar
    }

    /// Tells of a failure and says what it means to a shell; hints keep to the flags that there are.
    pub(crate) fn report(&mut self, failure: &Failure, has_flag: impl Fn(&str) -> bool) -> ExitCode {
        match failure {
            Failure::No(why) => {
                self.line(Tone::Error, "no", &why);
                ExitCode::No
            }
            Failure::Usage(usage) => self.report_usage(usage),
            Failure::Error(error) => {
                self.line(Tone::Error, "error", &error);
                let mut cause = error.source();
                while let Some(error) = cause {
                    self.say(format_args!("  because {}", plain(&error)));
                    cause = error.source();
                }
                if let Some(hint) = crate::failure::hint(&**error, has_flag) {
                    self.line(Tone::Hint, "hint", &hint);
                }
                ExitCode::CouldNotRun
            }
            Failure::Interrupted => {
                self.line(Tone::Error, "error", &"interrupted; no output was written");
                ExitCode::CouldNotRun
            }
            Failure::OutputClosed => ExitCode::Done,
        }
    }

    fn report_usage(&mut self, usage: &clap::Error) -> ExitCode {
        let wanted = !usage.use_stderr();
        let colour = if wanted { std::io::stdout().is_terminal() && !no_color() } else { self.colour };
        let text = usage.render();
        let escaped = plain(&text);
        let stream = if wanted { &mut *self.out } else { &mut *self.err };
        // There is nobody left to tell.
        let _ = match colour && escaped == text.to_string() {
            true => write!(stream, "{}", text.ansi()),
            false => write!(stream, "{escaped}"),
        };
        if wanted { ExitCode::Done } else { ExitCode::CouldNotRun }
    }

    fn line(&mut self, tone: Tone, word: &str, message: &dyn Display) {
        let message = plain(message);
        if self.colour {
            self.say(format_args!("{}{word}:\x1b[0m {message}", tone.escape()));
        } else {
            self.say(format_args!("{word}: {message}"));
        }
    }

    /// A line on standard error. Where that takes no more there is nobody left to tell, and what is in hand goes on.
    fn say(&mut self, line: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.err, "{line}");
    }
}

/// A message as a terminal may show it: names from files may hold anything. Lines stay lines.
fn plain(message: &dyn Display) -> String {
    let text = message.to_string();
    text.split('\n').map(|line| printable(line).to_string()).collect::<Vec<_>>().join("\n")
}

/// Whole rows a second.
fn rate(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    // A bar that cannot be drawn is no reason to stop.
    let _ = out.write_str(&numbers::count(state.per_sec() as u64));
}

/// Whether the user wants no colour anywhere, as no-color.org has it.
fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}
