//! Going through a data set block by block, reading the next while the last is worked on.
//!
//! The reader is a thread that nobody waits for: one that hangs on a silent pipe must hold up neither an error
//! nor Ctrl-C. Three blocks go round, so memory is bounded whatever the file. Logits that need no more than to be
//! copied from their file are copied by the threads that work on them; where that is one thread, by the reader
//! meanwhile.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use conformax_io::{Block, Rest, Source};

use crate::console::Console;
use crate::failure::Failure;
use crate::interrupt;

/// Blocks that exist at a time: one being read, one waiting, one being worked on.
const BLOCKS: usize = 3;

/// Runs an expression over the logits of a block, whatever their type, with the groups and weights that come with them.
macro_rules! with_logits {
    ($block:expr, $logits:ident => $body:expr) => {
        match &$block.logits {
            conformax_io::Values::F16(values) => conformax::Logits::new(values, $block.classes)
                .and_then(|logits| $block.beside(logits))
                .and_then(|$logits| $body),
            conformax_io::Values::Bf16(values) => conformax::Logits::new(values, $block.classes)
                .and_then(|logits| $block.beside(logits))
                .and_then(|$logits| $body),
            conformax_io::Values::F32(values) => conformax::Logits::new(values, $block.classes)
                .and_then(|logits| $block.beside(logits))
                .and_then(|$logits| $body),
            conformax_io::Values::F64(values) => conformax::Logits::new(values, $block.classes)
                .and_then(|logits| $block.beside(logits))
                .and_then(|$logits| $body),
        }
    };
}
pub(crate) use with_logits;

/// What can go wrong with a block; a fault in a row still counts rows from the block's first.
pub(crate) enum BlockError {
    Row(conformax::Error),
    Other(Failure),
}

impl From<conformax::Error> for BlockError {
    fn from(error: conformax::Error) -> Self {
        Self::Row(error)
    }
}

/// What an accumulator said of a row in the whole, of which `before` came before this block.
pub(crate) fn in_block(error: conformax::Error, before: u64) -> conformax::Error {
    match error.row() {
        Some(row) => error.at_row(row - before),
        None => error,
    }
}

impl From<Failure> for BlockError {
    fn from(failure: Failure) -> Self {
        Self::Other(failure)
    }
}

impl From<conformax_io::Error> for BlockError {
    fn from(error: conformax_io::Error) -> Self {
        Self::Other(error.into())
    }
}

/// A block and where its first row is to be found.
struct Piece {
    block: Block,
    /// What those who work on the block read themselves.
    rest: Option<Rest>,
    path: PathBuf,
    first_row_in_file: u64,
}

impl Piece {
    fn is_end(&self) -> bool {
        self.rest.as_ref().is_some_and(Rest::is_end)
    }

    /// The fault with the file and the row the user knows it by.
    fn locate(&self, error: BlockError) -> Failure {
        match error {
            BlockError::Row(error) => Failure::of_row(&self.path, error.offset_rows(self.first_row_in_file)),
            BlockError::Other(failure) => failure,
        }
    }
}

/// Calls `work` with each block in order and gives the source back for another pass.
pub(crate) fn for_each_block(
    source: Source,
    what: &str,
    console: &mut Console<'_>,
    mut work: impl FnMut(&Block, &mut Console<'_>) -> Result<(), BlockError>,
) -> Result<Source, Failure> {
    let bar = console.progress(what, source.rows());
    let threads = rayon::current_num_threads();
    let (empty_sender, empty) = sync_channel(BLOCKS);
    let (sender, filled) = sync_channel(BLOCKS);
    for _ in 0..BLOCKS {
        empty_sender.send(Block::default()).expect("the channel holds every block");
    }
    let reader = thread::Builder::new().name("reader".to_owned());
    let reader =
        reader.spawn(move || read_ahead(source, threads, &empty, &sender)).map_err(Failure::error)?;
    while let Some(piece) = interrupt::next(&filled)? {
        let mut piece = piece?;
        if let Some(rest) = piece.rest.take()
            && !rest.read(threads, &mut piece.block)?
        {
            break;
        }
        work(&piece.block, console).map_err(|error| {
            bar.finish_and_clear();
            piece.locate(error)
        })?;
        bar.inc(piece.block.rows() as u64);
        // The reader has gone once the last block is read.
        let _ = empty_sender.send(piece.block);
    }
    bar.finish_and_clear();
    reader.join().map_err(|_| Failure::error("the thread that reads the data panicked"))
}

/// Reads until the end, an error, or until nobody listens any more.
fn read_ahead(
    mut source: Source,
    threads: usize,
    empty: &Receiver<Block>,
    filled: &SyncSender<conformax_io::Result<Piece>>,
) -> Source {
    while let Ok(block) = empty.recv() {
        let piece = read_piece(&mut source, threads, block);
        let over = piece.as_ref().map_or(true, Piece::is_end);
        if filled.send(piece).is_err() || over {
            break;
        }
    }
    source
}

/// The next block, as far as this thread reads it.
fn read_piece(source: &mut Source, threads: usize, mut block: Block) -> conformax_io::Result<Piece> {
    let rest = source.read_ahead(&mut block)?;
    let rest = match threads == 1 && !rest.is_end() {
        true => rest.read(1, &mut block).map(|_| None)?,
        false => Some(rest),
    };
    let (path, first_row_in_file) = source.locate(block.first_row);
    Ok(Piece { path: path.to_owned(), first_row_in_file, rest, block })
}

/// Number of rows, counted in a pass of its own where the files do not say.
pub(crate) fn count_rows(source: Source, console: &mut Console<'_>) -> Result<(Source, u64), Failure> {
    if let Some(rows) = source.rows() {
        return Ok((source, rows));
    }
    let mut rows = 0;
    let mut source = for_each_block(source, "counting rows", console, |block, _| {
        rows += block.rows() as u64;
        Ok(())
    })?;
    source.rewind()?;
    Ok((source, rows))
}
