//! From paths to blocks: which files there are, which reader each gets, and whether they fit together.

pub(crate) mod fit;
pub(crate) mod in_place;
pub(crate) mod open;
#[cfg(feature = "npy")]
pub(crate) mod pair;
pub(crate) mod positioned;
pub(crate) mod reader;
pub(crate) mod resolve;
pub(crate) mod roles;
pub(crate) mod shards;
pub(crate) mod source;
pub(crate) mod source_options;
pub(crate) mod stamp;
pub(crate) mod stream;
