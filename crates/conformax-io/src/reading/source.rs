//! `Source`: a data set on disk, from one file or many, given out block by block.
//!
//! Whatever the format, a block holds the logits in the type they were stored in, labels looked up and checked, and
//! the kept columns. Memory is bounded by the block, not by the file.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::data::values::each_dtype;
use crate::error::{Error, Problem, Result};
use crate::reading::fit::{check_first, check_next, total_rows};
use crate::reading::in_place::Unread;
use crate::reading::open::{File, open};
use crate::reading::reader::{Layout, Reader, Rows, Wanted};
use crate::reading::resolve::{Lookup, resolve};
use crate::reading::shards::shards;
use crate::reading::source_options::{Data, LabelUse, SourceOptions};
use crate::{Block, CellType, ClassNames, Dtype, Input, Values};

/// A block has at most this many rows, so that what comes beside the logits is bounded too.
const MOST_ROWS: usize = 1 << 16;

/// A data set being read.
pub struct Source {
    files: Arc<[File]>,
    options: SourceOptions,
    wanted: Wanted,
    reader: Box<dyn Reader>,
    /// Layout of the first file; the others are held to it.
    layout: Layout,
    rows: Option<u64>,
    /// Which file is open, and how many rows came before it.
    current: usize,
    starts: Vec<u64>,
    next_row: u64,
    raw: Rows,
    groups: GroupNumbers,
    /// What is wrong with the next row, where the rows before it were given out first.
    failed: Option<Error>,
}

/// What of a block is still in its file.
///
/// ```
/// use conformax_io::{Block, Data, Source, SourceOptions, Values};
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("cal.csv");
/// std::fs::write(&path, "cat,dog\n2.5,0.5\n")?;
/// let mut source = Source::open(&Data::Files(vec![path]), &SourceOptions::default())?;
/// let mut block = Block::default();
/// let rest = source.read_ahead(&mut block)?; // on one thread, while others are at work on an earlier block
/// assert!(rest.read(1, &mut block)?); // on theirs
/// assert_eq!(block.logits, Values::F64(vec![2.5, 0.5]));
/// assert!(!source.read_ahead(&mut block)?.read(1, &mut block)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct Rest {
    files: Arc<[File]>,
    /// Files that end before this block. What was left of their last blocks has been read by now.
    ended: Range<usize>,
    /// The file that the block is in; `None` after the last.
    file: Option<usize>,
    unread: Option<Unread>,
    input: Input,
}

impl Rest {
    /// Whether there is no block any more.
    pub fn is_end(&self) -> bool {
        self.file.is_none()
    }

    /// Reads it, by so many threads of the pool that the caller is in; `false` where there is no block any more. The
    /// rests of a source are read one after another, in their order.
    pub fn read(self, threads: usize, block: &mut Block) -> Result<bool> {
        // Half of a file from before a write and half from after may look like good data.
        self.files[self.ended].iter().try_for_each(File::check_unchanged)?;
        let Some(file) = self.file else { return Ok(false) };
        if let Some(unread) = self.unread {
            let read = unread.read(threads, &mut block.logits);
            read.or_else(|error| self.files[file].check_unchanged().and(Err(error)))?;
            block.doubtful = self.input.is_doubtful(&block.logits, block.classes);
        }
        Ok(true)
    }
}

/// The groups met so far, by name.
#[derive(Default)]
struct GroupNumbers {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl GroupNumbers {
    fn of(names: &[String]) -> Self {
        let numbers = names.iter().cloned().zip(0..).collect();
        Self { names: names.to_vec(), numbers }
    }

    /// The number of a group; a new one only where groups are learned.
    fn number(&mut self, name: &str, learn: bool) -> Option<u32> {
        if let Some(number) = self.numbers.get(name) {
            return Some(*number);
        }
        learn.then(|| {
            let number = self.names.len() as u32;
            self.names.push(name.to_owned());
            self.numbers.insert(name.to_owned(), number);
            number
        })
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source")
            .field("files", &self.files)
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}

impl Source {
    /// Opens a data set and checks that its files fit together, as far as their headers tell.
    pub fn open(data: &Data, options: &SourceOptions) -> Result<Self> {
        let files = shards(data)?;
        let beside = [&options.group_column, &options.weight_column];
        let mut keep = options.keep.clone();
        keep.extend(beside.into_iter().flatten().filter(|column| !options.keep.contains(column)).cloned());
        keep.dedup();
        let wanted = Wanted {
            logits_column: options.logits_column.clone(),
            label_column: options.label_column.clone(),
            labels: options.labels != LabelUse::Ignored,
            classes: options.classes.clone(),
            keep,
            keep_others: options.keep_others,
            drop: options.drop.clone(),
            names: options.names.clone(),
            most_inflated: options.most_inflated,
        };
        let first = files.first().expect("a data set has a file");
        let reader = open(first, &wanted)?;
        let mut layout = reader.layout().clone();
        check_first(first.path(), &mut layout, options)?;
        let rows = total_rows(&files, &wanted, &layout)?;
        let raw = Rows { logits: Values::new(layout.dtype), unread: None, labels: None, keep: Vec::new() };
        Ok(Self {
            files: files.into(),
            options: options.clone(),
            wanted,
            reader,
            layout,
            rows,
            current: 0,
            starts: vec![0],
            next_row: 0,
            raw,
            groups: options.group_names.as_deref().map(GroupNumbers::of).unwrap_or_default(),
            failed: None,
        })
    }

    /// The same with the shares of the classes taken out of the logits; before the first row.
    #[must_use]
    pub fn with_prior(mut self, prior: Option<conformax::Prior>) -> Self {
        self.options.prior = prior;
        self
    }

    /// Names of the groups: those given, or those met so far.
    pub fn groups(&self) -> &[String] {
        &self.groups.names
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.layout.classes
    }

    /// Type of the logits in the blocks. Probabilities become `f64` logarithms.
    pub fn dtype(&self) -> Dtype {
        match self.options.prior {
            Some(_) => Dtype::F64,
            None => self.options.input.dtype(self.layout.dtype),
        }
    }

    /// Number of rows, where the files say so without being read.
    pub fn rows(&self) -> Option<u64> {
        self.rows
    }

    /// Names of the classes, where known.
    pub fn names(&self) -> Option<&ClassNames> {
        self.layout.names.as_ref()
    }

    /// Whether blocks will carry labels.
    pub fn has_labels(&self) -> bool {
        self.layout.has_labels
    }

    /// Names and types of the kept columns.
    pub fn kept(&self) -> impl Iterator<Item = (&str, CellType)> {
        let kept = self.layout.keep.iter().filter(|(name, _)| !self.is_beside(name));
        kept.map(|(name, cells)| (name.as_str(), *cells))
    }

    /// Whether a column is read for groups or weights alone and not carried through.
    fn is_beside(&self, name: &str) -> bool {
        let SourceOptions { group_column, weight_column, keep, .. } = &self.options;
        let asked = [group_column, weight_column].into_iter().flatten().any(|column| column == name);
        asked && !keep.iter().any(|column| column == name)
    }

    /// Overwrites `block` with the next rows; `false` at the end. The caller owns the block, so that one can be read
    /// while another is worked on, and its memory is used again.
    pub fn read(&mut self, block: &mut Block) -> Result<bool> {
        let threads = self.options.threads;
        self.read_ahead(block)?.read(threads, block)
    }

    /// The same but for logits that those who work on the block may as well read themselves, from their place in the
    /// file: most of the time goes there, and many threads do it faster than one.
    pub fn read_ahead(&mut self, block: &mut Block) -> Result<Rest> {
        // What another program left half done looks like damage; the message should name the cause.
        self.read_block(block).or_else(|error| self.files[self.current].check_unchanged().and(Err(error)))
    }

    fn read_block(&mut self, block: &mut Block) -> Result<Rest> {
        // A header may claim any number of classes as long as it claims no rows.
        let row_bytes = self.layout.classes.saturating_mul(self.layout.dtype.size());
        let most = (self.options.block_bytes / row_bytes).clamp(1, MOST_ROWS);
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let before = self.current;
        loop {
            self.raw.unread = None;
            self.reader.read(most, &mut self.raw)?;
            if !self.are_logits_as_they_are()
                && let Some(unread) = self.raw.unread.take()
            {
                unread.read(1, &mut self.raw.logits)?;
            }
            if self.raw.len(self.layout.classes) > 0 {
                self.next_row += self.fill_good(block)? as u64;
                return Ok(self.rest(before..self.current, Some(self.current)));
            }
            self.files[self.current].check_unchanged()?;
            if self.current + 1 == self.files.len() {
                return match self.next_row {
                    0 => Err(Error::new(self.files[0].path(), Problem::NoRows)),
                    _ => Ok(self.rest(before..self.files.len(), None)),
                };
            }
            self.open_next()?;
        }
    }

    /// Whether what is in the file needs no more than to be copied.
    fn are_logits_as_they_are(&self) -> bool {
        self.options.input == Input::Logits && self.options.prior.is_none()
    }

    fn rest(&mut self, ended: Range<usize>, file: Option<usize>) -> Rest {
        let (files, input) = (Arc::clone(&self.files), self.options.input);
        Rest { files, ended, file, unread: self.raw.unread.take(), input }
    }

    /// Whether it can be read once only, as a pipe can.
    pub fn is_once_only(&self) -> bool {
        self.files.iter().any(|file| file.is_pipe())
    }

    /// Goes back to the first row, for another pass.
    pub fn rewind(&mut self) -> Result<()> {
        if let Some(pipe) = self.files.iter().find(|file| file.is_pipe()) {
            return Err(Error::new(pipe.path(), Problem::OnceOnly));
        }
        self.reader = open(&self.files[0], &self.wanted)?;
        self.files[0].check_unchanged()?;
        self.current = 0;
        self.starts.truncate(1);
        self.next_row = 0;
        self.failed = None;
        Ok(())
    }

    /// The file a row read so far lies in, and the row's number within that file.
    pub fn locate(&self, row: u64) -> (&Path, u64) {
        let file = self.starts.partition_point(|&start| start <= row).saturating_sub(1);
        (self.files[file].path(), row - self.starts[file])
    }

    /// An error about a row read so far, with the file and row the user knows it by.
    pub fn error_at(&self, row: u64, problem: impl Into<Problem>) -> Error {
        let (path, row) = self.locate(row);
        Error::new(path, problem).in_row(row)
    }

    /// An error the arithmetic met in a block, with the file, row and class the user knows it by.
    pub fn error_in(&self, block: &Block, error: conformax::Error) -> Error {
        use conformax::Error as Core;
        let at = |row: u64, problem: Problem| self.error_at(block.first_row + row, problem);
        match error {
            Core::Logit { row, class, value } => at(row, Problem::NotALogit(value)).in_class(class),
            Core::AllMasked { row } => at(row, Problem::AllMasked),
            Core::MaskedLabel { row, label } => at(row, Problem::MaskedLabel(label)),
            error @ Core::Weight { .. } => match error.row() {
                Some(row) => at(row, error.into()),
                None => unreachable!("a weight is of a row"),
            },
            other => Error::new(self.files[self.current].path(), other.offset_rows(block.first_row)),
        }
    }

    fn open_next(&mut self) -> Result<()> {
        self.current += 1;
        self.starts.push(self.next_row);
        let file = &self.files[self.current];
        self.reader = open(file, &self.wanted)?;
        check_next(file.path(), self.reader.layout(), &self.layout)
    }

    /// Fills the block with the rows before the first bad one, whose error waits for the next block: rows that came
    /// through a pipe are good whatever comes after them. Says how many there are.
    fn fill_good(&mut self, block: &mut Block) -> Result<usize> {
        let rows = self.raw.len(self.layout.classes);
        let Err(error) = self.fill(block) else { return Ok(rows) };
        let first = self.next_row - self.starts[self.current];
        match error.place().row {
            Some(row) if row > first => {
                self.raw.truncate((row - first) as usize, self.layout.classes);
                self.failed = Some(error);
                // A row before it may have another fault.
                self.fill_good(block)
            }
            _ => Err(error),
        }
    }

    /// Whatever can be wrong with a row is found before anything is moved out of the raw rows.
    fn fill(&mut self, block: &mut Block) -> Result<()> {
        let path = self.files[self.current].path();
        let classes = self.layout.classes;
        let row_in_file = self.next_row - self.starts[self.current];
        block.first_row = self.next_row;
        block.classes = classes;
        let reuse = block.labels.take().unwrap_or_default();
        if let Some(cells) = self.raw.labels.as_ref().filter(|_| self.layout.has_labels) {
            let names = self.layout.names.as_ref();
            let labels =
                resolve(cells, Lookup { names, classes, labels_are: self.options.labels_are }, reuse);
            let at = |(row, problem): (usize, Problem)| {
                let path = self.files[self.current].labels_path();
                Error::new(path, problem).in_row(row_in_file + row as u64)
            };
            block.labels = Some(labels.map_err(at)?);
        }
        let cells =
            |column: &str| self.raw.keep.iter().find(|kept| kept.name == column).map(|kept| &kept.cells);
        let at = |row: usize, problem: Problem, column: &str| {
            Error::new(path, problem).in_row(row_in_file + row as u64).in_column(column)
        };
        block.groups = match &self.options.group_column {
            None => None,
            Some(column) => {
                let names = cells(column).map(|cells| cells.names()).transpose();
                let names = names.map_err(|row| at(row, Problem::Null, column))?.unwrap_or_default();
                let learn = self.options.group_names.is_none();
                let mut numbers = Vec::with_capacity(names.len());
                for (row, name) in names.iter().enumerate() {
                    let number = self.groups.number(name, learn);
                    numbers.push(number.ok_or_else(|| at(row, Problem::UnknownGroup(name.clone()), column))?);
                }
                block.known_groups = self.groups.names.len();
                Some(numbers)
            }
        };
        block.weights = match &self.options.weight_column {
            None => None,
            Some(column) => cells(column)
                .map(|cells| {
                    cells.numbers().map_err(|(row, found)| {
                        let problem = found.map_or(Problem::Null, Problem::NotANumber);
                        at(row, problem, column)
                    })
                })
                .transpose()?,
        };
        if self.raw.unread.is_some() {
            self.take_kept(block);
            return Ok(());
        }
        block.doubtful = self.options.input.is_doubtful(&self.raw.logits, classes);
        self.options.input.into_logits(&mut self.raw.logits, &mut block.logits).map_err(
            |(index, problem)| {
                Error::new(path, problem)
                    .in_row(row_in_file + (index / classes) as u64)
                    .in_class(index % classes)
            },
        )?;
        if let Some(prior) = &self.options.prior {
            let mut adjusted = Vec::new();
            let result = each_dtype!(&block.logits, v => {
                conformax::Logits::new(v, classes).and_then(|logits| prior.adjust(logits, &mut adjusted))
            });
            result.map_err(|error| Error::new(path, error))?;
            block.logits = Values::F64(adjusted);
        }
        self.take_kept(block);
        Ok(())
    }

    /// Moves what comes along into the block, without what was read for groups or weights alone.
    fn take_kept(&mut self, block: &mut Block) {
        std::mem::swap(&mut block.keep, &mut self.raw.keep);
        block.keep.retain(|kept| !self.is_beside(&kept.name));
    }
}
