//! `Metrics`: what the service has done, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::models::Models;

/// Upper ends of the buckets of request times, in microseconds.
const BUCKETS: [u64; 12] =
    [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 500_000, 2_500_000, 10_000_000];

/// Counts since the start.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    answers: Mutex<BTreeMap<(&'static str, u16), u64>>,
    times: [AtomicU64; BUCKETS.len()],
    count: AtomicU64,
    micros: AtomicU64,
}

impl Metrics {
    /// A request to a route was answered so, after so long.
    pub(crate) fn answered(&self, route: &'static str, status: u16, time: Duration) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        *answers.entry((route, status)).or_default() += 1;
        drop(answers);
        let micros = time.as_micros() as u64;
        if let Some(bucket) = BUCKETS.iter().position(|end| micros <= *end) {
            self.times[bucket].fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Everything, with where each model stands.
    pub(crate) fn text(&self, models: &Models) -> String {
        let mut out = String::new();
        self.requests(&mut out);
        let stands: Vec<_> =
            models.all().into_iter().map(|(name, served)| (name, served.standing().status)).collect();
        let mut each =
            |name: &str, kind: &str, help: &str, value: &dyn Fn(&conformax::StreamStatus) -> Option<f64>| {
                let _ = writeln!(out, "# HELP conformax_{name} {help}\n# TYPE conformax_{name} {kind}");
                for (model, status) in &stands {
                    if let Some(value) = value(status) {
                        let _ = writeln!(out, "conformax_{name}{{model=\"{model}\"}} {value}");
                    }
                }
            };
        each("rows_total", "counter", "Rows predicted that wait or waited for labels.", &|s| {
            Some(s.predicted as f64)
        });
        each("labels_total", "counter", "Labels that count.", &|s| Some(s.labelled as f64));
        each("covered_total", "counter", "Labels that were in their sets.", &|s| Some(s.covered as f64));
        each("forgotten_total", "counter", "Rows dropped while waiting for labels.", &|s| {
            Some(s.forgotten as f64)
        });
        each("waiting", "gauge", "Rows whose labels may still come.", &|s| Some(s.waiting as f64));
        each("coverage", "gauge", "Share of recent labels that were in their sets.", &|s| s.recent_coverage);
        each("set_size", "gauge", "Mean size of recent sets.", &|s| s.recent_size);
        each("level", "gauge", "Level of the next row.", &|s| Some(s.level));
        each("alarm_log_capital", "gauge", "Logarithm of the alarm's capital.", &|s| Some(s.log_capital));
        each("alarm", "gauge", "Whether the alarm has risen.", &|s| Some(f64::from(u8::from(s.alarm))));
        let _ = writeln!(
            out,
            "# HELP conformax_reload_failures_total Model files that could not be picked up.\n\
             # TYPE conformax_reload_failures_total counter\n\
             conformax_reload_failures_total {}",
            models.reload_failures.load(Ordering::Relaxed)
        );
        out
    }

    fn requests(&self, out: &mut String) {
        let _ = writeln!(
            out,
            "# HELP conformax_requests_total Requests answered.\n# TYPE conformax_requests_total counter"
        );
        for ((route, status), count) in &*self.answers.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ =
                writeln!(out, "conformax_requests_total{{route=\"{route}\",status=\"{status}\"}} {count}");
        }
        let _ = writeln!(
            out,
            "# HELP conformax_request_seconds Time from a request's head to its answer.\n\
             # TYPE conformax_request_seconds histogram"
        );
        let mut below = 0;
        for (end, count) in BUCKETS.iter().zip(&self.times) {
            below += count.load(Ordering::Relaxed);
            let end = *end as f64 / 1e6;
            let _ = writeln!(out, "conformax_request_seconds_bucket{{le=\"{end}\"}} {below}");
        }
        let count = self.count.load(Ordering::Relaxed);
        let seconds = self.micros.load(Ordering::Relaxed) as f64 / 1e6;
        let _ = writeln!(
            out,
            "conformax_request_seconds_bucket{{le=\"+Inf\"}} {count}\n\
             conformax_request_seconds_sum {seconds}\nconformax_request_seconds_count {count}"
        );
    }
}
