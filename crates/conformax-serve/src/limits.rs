//! `Limits`: what one client may take from the others.

use std::time::Duration;

/// Bounds on connections, requests and time.
///
/// ```
/// let limits = conformax_serve::Limits { body: 1 << 20, ..conformax_serve::Limits::default() };
/// assert_eq!(limits.connections, 16_384);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Connections held at a time; more are told so and closed.
    pub connections: usize,
    /// Bytes of a request's head.
    pub head: usize,
    /// Bytes of a request's body.
    pub body: usize,
    /// Bytes of all bodies that are being read or worked on.
    pub bodies: usize,
    /// Rows of a request.
    pub rows: usize,
    /// Bytes of a journal that is then put together into a snapshot, unless rows that wait are more than half as many.
    pub journal: u64,
    /// Requests worked on at a time; others wait for their turn.
    pub requests: usize,
    /// How many of them may be large; what is left is for requests that are over soon.
    pub large: usize,
    /// Time for a request from its head to its answer.
    pub request_time: Duration,
    /// Time for a head to come, and for a connection to stay without one.
    pub head_time: Duration,
    /// Time for a client to take some of its answer.
    pub write_time: Duration,
    /// Time for requests in hand to be answered when the service is told to stop.
    pub drain_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 16_384,
            head: 16 << 10,
            body: 64 << 20,
            bodies: 512 << 20,
            rows: 100_000,
            journal: 64 << 20,
            requests: 256,
            large: 16,
            request_time: Duration::from_secs(30),
            head_time: Duration::from_secs(60),
            write_time: Duration::from_secs(30),
            drain_time: Duration::from_secs(30),
        }
    }
}
