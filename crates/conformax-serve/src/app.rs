//! `App`: what every request shares.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

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
    stopping: AtomicBool,
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
            stopping: AtomicBool::new(false),
        }
    }

    /// Waits until few enough others are worked on.
    pub(crate) async fn turn(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        turn.map_err(|_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the service is stopping"))
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
