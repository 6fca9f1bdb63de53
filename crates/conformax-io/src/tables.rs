//! Files of Arrow's columns: Parquet and Arrow IPC, and what keeps a damaged one from taking the process with it.

pub(crate) mod arrow;
pub(crate) mod arrow_messages;
pub(crate) mod guard;
pub(crate) mod levels;
pub(crate) mod list_pages;
pub(crate) mod lists_in_place;
pub(crate) mod page_header;
pub(crate) mod parquet;
pub(crate) mod record_batch;
pub(crate) mod spare;
pub(crate) mod thrift;
