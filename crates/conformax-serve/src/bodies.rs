//! `Bodies`: reading what requests bring, each within its limit and all together within theirs.

use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::Limits;
use crate::problem::Problem;

/// Memory is lent in pieces of this size.
const PIECE: usize = 4 << 10;

/// Bodies from here on are read into memory that one before them left. What is new to a process costs as much again as
/// the way through the socket, and the allocator gives pieces of this size back to the system each time.
const LARGE: usize = 256 << 10;

/// Room for the bodies of all requests.
pub(crate) struct Bodies {
    room: Arc<Semaphore>,
    most: usize,
    spare: Spare,
}

/// What a request brought, and the room it takes up.
pub(crate) struct Brought {
    pub(crate) bytes: Vec<u8>,
    spare: Spare,
    _room: Option<OwnedSemaphorePermit>,
}

/// The memory of one large body between two requests.
#[derive(Clone, Default)]
struct Spare(Arc<Mutex<Vec<u8>>>);

impl Spare {
    /// Moves bytes to where they can grow without new memory, if there is such a place.
    fn make_room(&self, bytes: &mut Vec<u8>) {
        let mut spare = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        if spare.capacity() > bytes.capacity() {
            spare.extend_from_slice(bytes);
            *bytes = spare;
        }
    }
}

impl Drop for Brought {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        let mut spare = self.spare.0.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes.capacity() > spare.capacity().max(LARGE) {
            bytes.clear();
            *spare = bytes;
        }
    }
}

impl Bodies {
    pub(crate) fn new(limits: Limits) -> Self {
        let room = Arc::new(Semaphore::new(limits.bodies.div_ceil(PIECE)));
        Self { room, most: limits.body, spare: Spare::default() }
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
            if bytes.len() < LARGE && need >= LARGE {
                self.spare.make_room(&mut bytes);
            }
            bytes.extend_from_slice(&data);
        }
        Ok(Brought { bytes, spare: self.spare.clone(), _room: room })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_large_body_is_read_to_where_the_last_one_was() {
        let bodies = Bodies::new(Limits::default());
        let read = async |byte: u8, len: usize| {
            let body = bodies.read(&HeaderMap::new(), Body::from(vec![byte; len])).await;
            body.unwrap_or_else(|_| unreachable!("it is within every limit"))
        };
        let first = read(1, 4 * LARGE).await;
        let place = first.bytes.as_ptr();
        // One that is read meanwhile has memory of its own.
        assert_ne!(read(2, 2 * LARGE).await.bytes.as_ptr(), place);
        drop(first);
        let small = read(3, LARGE - 1).await;
        assert_ne!(small.bytes.as_ptr(), place);
        let second = read(4, 3 * LARGE).await;
        assert_eq!(second.bytes.as_ptr(), place);
        assert_eq!(second.bytes, vec![4; 3 * LARGE]);
    }
}
