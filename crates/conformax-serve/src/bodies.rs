//! `Bodies`: reading what requests bring, each within its limit and all together within theirs.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::Limits;
use crate::problem::Problem;

/// Memory is lent in pieces of this size.
const PIECE: usize = 4 << 10;

/// Room for the bodies of all requests.
pub(crate) struct Bodies {
    room: Arc<Semaphore>,
    most: usize,
}

/// What a request brought, and the room it takes up.
pub(crate) struct Brought {
    pub(crate) bytes: Vec<u8>,
    _room: Option<OwnedSemaphorePermit>,
}

impl Bodies {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { room: Arc::new(Semaphore::new(limits.bodies.div_ceil(PIECE))), most: limits.body }
    }

    /// Reads a body. Memory is taken as bytes come, never for a length that was only claimed.
    pub(crate) async fn read(&self, headers: &HeaderMap, mut body: Body) -> Result<Brought, Problem> {
        let too_large = || {
            let detail = format!("a body may have {} bytes, and this one has more", self.most);
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
        };
        let claimed = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        if claimed.is_some_and(|claimed: u64| claimed > self.most as u64) {
            return Err(too_large());
        }
        let (mut bytes, mut room) = (Vec::new(), None::<OwnedSemaphorePermit>);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Problem::bad_request("the body ended early or was malformed"))?;
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len() + data.len() > self.most {
                return Err(too_large());
            }
            let (have, need) =
                (room.as_ref().map_or(0, OwnedSemaphorePermit::num_permits), bytes.len() + data.len());
            if let Some(more) = need.div_ceil(PIECE).checked_sub(have).filter(|more| *more > 0) {
                let more = Arc::clone(&self.room).try_acquire_many_owned(more as u32).map_err(|_| {
                    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too much is being read at once; try again")
                })?;
                match &mut room {
                    Some(room) => room.merge(more),
                    None => room = Some(more),
                }
            }
            bytes.extend_from_slice(&data);
        }
        Ok(Brought { bytes, _room: room })
    }
}
