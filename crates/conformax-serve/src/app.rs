//! `App`: what every request shares.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

use crate::bodies::Bodies;
use crate::hosts::Hosts;
use crate::metrics::Metrics;
use crate::models::Models;
use crate::problem::Problem;
use crate::token::Token;
use crate::{Error, Limits, Note};

pub(crate) struct App {
    pub(crate) models: Models,
    pub(crate) token: Option<Token>,
    pub(crate) hosts: Hosts,
    pub(crate) limits: Limits,
    pub(crate) note: Note,
    pub(crate) metrics: Metrics,
    pub(crate) bodies: Bodies,
    turns: Arc<Semaphore>,
    large_turns: Arc<Semaphore>,
    stopping: AtomicBool,
}

/// How much there is to do for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// Over sooner than it would be handed to another thread.
    Small,
    Large,
}

impl Size {
    /// Of what a body asks for, where one of up to so many bytes is soon done with.
    pub(crate) fn of_body(body: &[u8], small: usize) -> Self {
        if body.len() <= small { Self::Small } else { Self::Large }
    }
}

impl App {
    pub(crate) fn new(
        models: Models,
        token: Option<Token>,
        hosts: Hosts,
        limits: Limits,
        note: Note,
    ) -> Self {
        Self {
            models,
            token,
            hosts,
            limits,
            note,
            metrics: Metrics::default(),
            bodies: Bodies::new(limits),
            turns: Arc::new(Semaphore::new(limits.requests)),
            large_turns: Arc::new(Semaphore::new(limits.large)),
            stopping: AtomicBool::new(false),
        }
    }

    /// Waits until few enough others are worked on.
    pub(crate) async fn turn(&self) -> Result<OwnedSemaphorePermit, Problem> {
        turn_of(&self.turns).await
    }

    /// Does the work of a request when its turn comes. What is large is done beside the threads that answer, and waits
    /// for others of its kind before it waits with everybody.
    pub(crate) async fn work<R: Send + 'static>(
        &self,
        size: Size,
        work: impl FnOnce() -> Result<R, Problem> + Send + 'static,
    ) -> Result<R, Problem> {
        if size == Size::Small {
            let _turn = self.turn().await?;
            return work();
        }
        let turns = (turn_of(&self.large_turns).await?, self.turn().await?);
        let work = move || {
            // Kept until the work is over, even where whoever asked has gone.
            let _turns = turns;
            work()
        };
        spawn_blocking(work).await.unwrap_or_else(|_| {
            let detail = "the request could not be worked on; that is a defect";
            Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail))
        })
    }

    #[cfg(test)]
    pub(crate) fn turns_left(&self) -> usize {
        self.turns.available_permits()
    }

    #[cfg(test)]
    pub(crate) fn large_turns_left(&self) -> usize {
        self.large_turns.available_permits()
    }

    /// From here on it is not ready for more.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Why it should get no requests, where it should not.
    pub(crate) fn not_ready(&self) -> Option<&'static str> {
        match self.stopping.load(Ordering::Relaxed) {
            true => Some("stopping"),
            false => self.models.all().iter().find_map(|(_, served)| served.refusal()),
        }
    }

    /// Leaves everything on the disk.
    pub(crate) async fn settle(&self) -> Result<(), Error> {
        for (_, served) in self.models.all() {
            served.settle().await?;
        }
        Ok(())
    }
}

async fn turn_of(turns: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Problem> {
    let turn = Arc::clone(turns).acquire_owned().await;
    turn.map_err(|_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the service is stopping"))
}
