//! `InPlace`: logits that lie in a file as they are, or nearly so, and are read where they are worked on.
//!
//! Copying them is all there is to it, and that takes longer than scoring them does: it is left to those who work on
//! them, all at a time, into memory that is in their caches.

use std::ops::Range;
use std::sync::Arc;

use crate::data::values::ByteOrder;
use crate::error::Result;
use crate::reading::positioned::Section;
use crate::{Dtype, Values};

/// Logits of which any rows can be read at any time.
pub(crate) trait InPlace: Send + Sync {
    /// Replaces `into` by some rows, read by so many threads of the pool that the caller is in.
    fn read(&self, rows: Range<u64>, threads: usize, into: &mut Values) -> Result<()>;
}

/// Some rows that are yet to be read.
#[derive(Clone)]
pub(crate) struct Unread {
    pub(crate) from: Arc<dyn InPlace>,
    pub(crate) rows: Range<u64>,
}

impl Unread {
    pub(crate) fn len(&self) -> usize {
        (self.rows.end - self.rows.start) as usize
    }

    pub(crate) fn truncate(&mut self, rows: usize) {
        self.rows.end = self.rows.end.min(self.rows.start + rows as u64);
    }

    pub(crate) fn read(&self, threads: usize, into: &mut Values) -> Result<()> {
        self.from.read(self.rows.clone(), threads, into)
    }
}

impl std::fmt::Debug for Unread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unread").field("rows", &self.rows).finish_non_exhaustive()
    }
}

/// Logits that lie row after row from the beginning of a section.
pub(crate) struct RowAfterRow {
    pub(crate) section: Section,
    pub(crate) classes: usize,
    pub(crate) dtype: Dtype,
    pub(crate) order: ByteOrder,
}

impl InPlace for RowAfterRow {
    fn read(&self, rows: Range<u64>, threads: usize, into: &mut Values) -> Result<()> {
        let len = (rows.end - rows.start) as usize * self.classes;
        into.reuse(self.dtype, len);
        into.resize(len);
        let offset = rows.start * (self.classes * self.dtype.size()) as u64;
        self.section.read_side_by_side(into.as_bytes_mut(), offset, threads)?;
        into.swap_from(self.order);
        Ok(())
    }
}
