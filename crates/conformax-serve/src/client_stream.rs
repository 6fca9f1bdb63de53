//! `ClientStream`: a connection whose client has to take its answer, and gets to.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// After the last answer a client may still be sending, as one does whose body was refused for its length. To close on
/// it then would tear the connection, and the answer with it; so what comes is thrown away until this long nothing
/// does. Most have nothing to send, and a service that stops waits for all of them.
const QUIET: Duration = Duration::from_millis(500);

/// The same for a client that has sent something since: a lost packet holds up what comes after it for a second or two.
const PAUSE: Duration = Duration::from_secs(5);

/// Ends with an error when a write makes no progress for `patience`, and lets a client finish for as long at its close.
pub(crate) struct ClientStream<S> {
    stream: S,
    patience: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
    closing: Option<Closing>,
}

/// What ends the wait for a client that is still sending: silence, or time.
struct Closing {
    quiet: Pin<Box<Sleep>>,
    end: Pin<Box<Sleep>>,
}

impl<S: AsyncWrite + Unpin> ClientStream<S> {
    pub(crate) fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, waiting: None, closing: None }
    }

    fn within_patience<R>(
        &mut self,
        context: &mut Context<'_>,
        outcome: Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        if outcome.is_ready() {
            self.waiting = None;
            return outcome;
        }
        let patience = self.patience;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(patience)));
        match waiting.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ClientStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ClientStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.within_patience(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.within_patience(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.within_patience(context, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, patience, closing, .. } = &mut *self;
        if closing.is_none() {
            ready!(Pin::new(&mut *stream).poll_shutdown(context))?;
        }
        let closing = closing.get_or_insert_with(|| Closing {
            quiet: Box::pin(sleep(QUIET)),
            end: Box::pin(sleep(*patience)),
        });
        let mut unread = [0; 8 << 10];
        loop {
            let over = closing.end.as_mut().poll(context).is_ready();
            let mut into = ReadBuf::new(&mut unread);
            match Pin::new(&mut *stream).poll_read(context, &mut into) {
                Poll::Ready(Ok(())) if !into.filled().is_empty() && !over => {
                    closing.quiet.as_mut().reset(Instant::now() + PAUSE);
                }
                Poll::Pending if !over && closing.quiet.as_mut().poll(context).is_pending() => {
                    return Poll::Pending;
                }
                // It ended, went away, fell silent or never would.
                _ => return Poll::Ready(Ok(())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    const PATIENCE: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_client_that_is_still_sending_gets_its_answer() {
        let (mut client, ours) = duplex(1 << 10);
        let mut ours = ClientStream::new(ours, PATIENCE);
        let service = tokio::spawn(async move {
            ours.write_all(b"too large").await.unwrap();
            ours.shutdown().await.unwrap();
        });
        client.write_all(&[b' '; 1 << 20]).await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "too large");
        drop(client);
        service.await.unwrap();
    }

    /// Packets get lost, and what comes after them waits.
    #[tokio::test(start_paused = true)]
    async fn a_client_that_pauses_is_waited_for() {
        let (mut client, ours) = duplex(1 << 10);
        let service = tokio::spawn(async move {
            let start = Instant::now();
            ClientStream::new(ours, PATIENCE).shutdown().await.unwrap();
            start.elapsed()
        });
        for _ in 0..3 {
            client.write_all(b" ").await.unwrap();
            sleep(PAUSE - QUIET).await;
        }
        // It is still there, and told apart from one that has gone.
        client.write_all(b" ").await.unwrap();
        assert_eq!(service.await.unwrap(), (PAUSE - QUIET) * 3 + PAUSE);
        assert!(client.write_all(b" ").await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_is_silent_never_ends_or_has_gone_holds_up_nobody() {
        let (silent, ours) = duplex(1 << 10);
        let start = Instant::now();
        ClientStream::new(ours, PATIENCE).shutdown().await.unwrap();
        assert_eq!(start.elapsed(), QUIET);
        drop(silent);

        let (gone, ours) = duplex(1 << 10);
        drop(gone);
        let start = Instant::now();
        let mut ours = ClientStream::new(ours, PATIENCE);
        ours.shutdown().await.unwrap();
        // Whoever asks again gets the same answer.
        ours.shutdown().await.unwrap();
        assert_eq!(start.elapsed(), Duration::ZERO);

        let (mut endless, ours) = duplex(1 << 10);
        let start = Instant::now();
        let sending = tokio::spawn(async move {
            while endless.write_all(b" ").await.is_ok() {
                sleep(PAUSE / 2).await;
            }
        });
        ClientStream::new(ours, PATIENCE).shutdown().await.unwrap();
        assert_eq!(start.elapsed(), PATIENCE);
        sending.await.unwrap();
    }

    /// One that takes nothing of its answer is given up; one that takes a little now and then is not.
    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_not_taken_ends_the_connection() {
        let (stuck, ours) = duplex(1 << 10);
        let start = Instant::now();
        let error = ClientStream::new(ours, PATIENCE).write_all(&[b' '; 1 << 11]).await.unwrap_err();
        assert_eq!((error.kind(), start.elapsed()), (io::ErrorKind::TimedOut, PATIENCE));
        drop(stuck);

        let (mut slow, ours) = duplex(1 << 10);
        let service = tokio::spawn(async move {
            let mut ours = ClientStream::new(ours, PATIENCE);
            ours.write_all(&[b' '; 1 << 11]).await
        });
        let mut some = [0; 1 << 9];
        for _ in 0..4 {
            sleep(PATIENCE - QUIET).await;
            slow.read_exact(&mut some).await.unwrap();
        }
        service.await.unwrap().unwrap();
    }
}
