//! Lists copied from their pages are the rows and the errors that the Parquet crate's record batches give.

use arrow_array::builder::{
    ArrayBuilder, FixedSizeListBuilder, Float32Builder, Float64Builder, LargeListBuilder, ListBuilder,
    PrimitiveBuilder,
};
use arrow_array::types::{ArrowPrimitiveType, Float32Type};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::ZstdLevel;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};

use super::*;
use crate::{Cells, NamedCells, Values};

const CLASSES: usize = 5;

/// What reading comes to: rows one by one, as text that tells every bit, and the error at the end.
type Outcome = (Vec<String>, Option<String>);

#[derive(Clone, Copy, PartialEq, Debug)]
enum By {
    Pages,
    Batches,
}

/// Reads by `most` rows, and says whether the last of them were copied from pages.
fn read(file: &PositionedFile, most: usize, by: By) -> (Outcome, bool) {
    let wanted = Wanted { labels: true, keep_others: true, ..Wanted::default() };
    let (mut rows, mut copied) = (Vec::new(), false);
    let mut go = || -> Result<()> {
        let mut reader = ParquetReader::open(file, &wanted)?;
        if by == By::Batches {
            reader.lists = Lists::Never;
        }
        let mut into = Rows { logits: Values::new(Dtype::F32), unread: None, labels: None, keep: Vec::new() };
        loop {
            reader.read(most, &mut into)?;
            let len = into.logits.len() / reader.layout.classes.max(1);
            if len == 0 {
                return Ok(());
            }
            copied = matches!(reader.lists, Lists::Copied(_));
            rows.extend((0..len).map(|row| shown(&into, row, reader.layout.classes)));
        }
    };
    let panics = std::panic::AssertUnwindSafe(&mut go);
    let error = match std::panic::catch_unwind(panics) {
        Ok(outcome) => outcome.err().map(|error| error.to_string()),
        Err(_) => Some("a panic".to_owned()),
    };
    ((rows, error), copied)
}

fn shown(rows: &Rows, row: usize, classes: usize) -> String {
    let size = rows.logits.dtype().size() * classes;
    let cell = |cells: &Cells| cells.text(row);
    let kept = rows.keep.iter().map(|NamedCells { name, cells }| format!("{name} {}", cell(cells)));
    let label = rows.labels.as_ref().map(cell);
    format!("{:?} {label:?} {:?}", &rows.logits.as_bytes()[row * size..][..size], kept.collect::<Vec<_>>())
}

/// A file of these bytes.
struct Written {
    file: PositionedFile,
    _folder: tempfile::TempDir,
}

fn written(bytes: &[u8]) -> Written {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("z.parquet");
    std::fs::write(&path, bytes).unwrap();
    Written { file: PositionedFile::open(&path).unwrap(), _folder: folder }
}

/// Reads both ways by blocks of several sizes; says of each whether its last rows were copied.
fn same(bytes: &[u8]) -> Vec<bool> {
    let Written { file, _folder } = &written(bytes);
    let both = [1, 3, 7, 64, 1000].map(|most| {
        let (copied, was_copied) = read(file, most, By::Pages);
        let (batches, _) = read(file, most, By::Batches);
        assert_eq!(copied, batches, "by {most} rows");
        was_copied
    });
    both.to_vec()
}

fn properties() -> WriterPropertiesBuilder {
    WriterProperties::builder().set_dictionary_enabled(false)
}

/// Lists with labels and a column of text beside them.
fn table(lists: ArrayRef, properties: WriterPropertiesBuilder) -> Vec<u8> {
    let rows = lists.len() as i64;
    let labels = Int64Array::from_iter_values((0..rows).map(|row| row % CLASSES as i64));
    let notes = StringArray::from_iter_values((0..rows).map(|row| format!("note {row}")));
    let columns: [(&str, ArrayRef); 3] =
        [("note", Arc::new(notes)), ("logits", lists), ("label", Arc::new(labels))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties.build())).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

fn number(row: usize, class: usize) -> f32 {
    (row * 31 + class * 7) as f32 * 0.37 - 40.0
}

/// Lists of singles; `len` says how many items a row has, `None` that it is null; so are items for which `null` says
/// so.
fn lists(rows: usize, len: impl Fn(usize) -> Option<usize>, null: impl Fn(usize, usize) -> bool) -> ArrayRef {
    let mut lists = ListBuilder::new(PrimitiveBuilder::<Float32Type>::new());
    for row in 0..rows {
        let items = (0..len(row).unwrap_or(0)).map(|class| (!null(row, class)).then(|| number(row, class)));
        items.for_each(|item| lists.values().append_option(item));
        lists.append(len(row).is_some());
    }
    Arc::new(lists.finish())
}

fn plain(rows: usize) -> ArrayRef {
    lists(rows, |_| Some(CLASSES), |_, _| false)
}

#[test]
fn plain_lists_are_copied_whatever_the_pages() {
    let packings = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::ZSTD(ZstdLevel::default()),
        Compression::GZIP(Default::default()),
        Compression::LZ4_RAW,
    ];
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        for packing in packings {
            for (page_rows, group_rows) in [(1000, 1000), (9, 1000), (9, 20), (1, 1), (50, 33)] {
                let properties = properties()
                    .set_writer_version(version)
                    .set_compression(packing)
                    .set_encoding(parquet::basic::Encoding::PLAIN)
                    .set_data_page_row_count_limit(page_rows)
                    .set_write_batch_size(page_rows)
                    .set_max_row_group_row_count(Some(group_rows));
                let copied = same(&table(plain(100), properties));
                assert!(
                    copied.iter().all(|copied| *copied),
                    "{version:?} {packing:?} {page_rows} {group_rows}"
                );
            }
        }
    }
}

#[test]
fn lists_of_other_types_are_the_same() {
    fn filled<T: ArrowPrimitiveType>(values: &mut PrimitiveBuilder<T>, row: usize)
    where
        T::Native: From<f32>,
    {
        (0..CLASSES).for_each(|class| values.append_value(number(row, class).into()));
    }
    let (mut large, mut fixed, mut doubles) = (
        LargeListBuilder::new(Float32Builder::new()),
        FixedSizeListBuilder::new(Float32Builder::new(), CLASSES as i32),
        ListBuilder::new(Float64Builder::new()),
    );
    for row in 0..40 {
        filled(large.values(), row);
        large.append(true);
        filled(fixed.values(), row);
        fixed.append(true);
        filled(doubles.values(), row);
        doubles.append(true);
    }
    let one = lists(40, |_| Some(1), |_, _| false);
    for lists in [ArrayBuilder::finish(&mut large), Arc::new(fixed.finish()), Arc::new(doubles.finish()), one]
    {
        let properties = properties().set_max_row_group_row_count(Some(15));
        assert!(same(&table(lists, properties)).iter().all(|copied| *copied));
    }
}

#[test]
fn many_classes_and_no_columns_beside() {
    for classes in [8, 9, 16, 63, 64, 65, 1000] {
        let lists = lists(30, |_| Some(classes), |_, _| false);
        let batch = RecordBatch::try_from_iter([("logits", lists)]).unwrap();
        let properties = properties().set_data_page_row_count_limit(7).set_write_batch_size(7).build();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        assert!(same(&writer.into_inner().unwrap()).iter().all(|copied| *copied), "{classes}");
    }
}

#[test]
fn a_dictionary_is_left_to_record_batches() {
    let bytes = table(plain(100), WriterProperties::builder().set_max_row_group_row_count(Some(30)));
    assert!(!same(&bytes).iter().any(|copied| *copied));
}

#[test]
fn other_lengths_and_nulls_are_told_as_ever() {
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        for at in [0, 1, 8, 9, 32, 33, 62, 99] {
            let cases = [
                lists(100, |row| Some(if row == at { 4 } else { 5 }), |_, _| false),
                lists(100, |row| Some(if row == at { 6 } else { 5 }), |_, _| false),
                lists(100, |row| Some(if row == at { 0 } else { 5 }), |_, _| false),
                lists(100, |row| (row != at).then_some(5), |_, _| false),
                lists(100, |_| Some(5), |row, class| row == at && class == at % 5),
                // As many values as there should be.
                lists(101, |row| Some(5 - usize::from(row == at) + usize::from(row == at + 1)), |_, _| false),
            ];
            for lists in cases {
                let properties = properties()
                    .set_writer_version(version)
                    .set_encoding(parquet::basic::Encoding::PLAIN)
                    .set_data_page_row_count_limit(9)
                    .set_write_batch_size(9)
                    .set_max_row_group_row_count(Some(33));
                let bytes = table(lists, properties);
                let file = written(&bytes);
                assert!(read(&file.file, 7, By::Pages).0.1.is_some(), "row {at}");
                same(&bytes);
            }
        }
    }
}

/// Every byte of a small file, changed: whatever comes of it, it comes both ways.
#[test]
fn damage_is_told_as_ever() {
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        let properties = properties()
            .set_writer_version(version)
            .set_encoding(parquet::basic::Encoding::PLAIN)
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(parquet::file::properties::EnabledStatistics::None)
            .set_data_page_row_count_limit(3)
            .set_write_batch_size(3)
            .set_max_row_group_row_count(Some(7));
        let bytes = table(plain(12), properties);
        let footer = u32::from_le_bytes(*bytes[bytes.len() - 8..].first_chunk().unwrap()) as usize;
        for at in 4..bytes.len() - 8 - footer {
            let bits = [0x01, 0x80, 0xff][at % 3];
            let mut damaged = bytes.clone();
            damaged[at] ^= bits;
            let file = written(&damaged);
            for most in [2, 100] {
                let (copied, error) = read(&file.file, most, By::Pages).0;
                let (batches, as_ever) = read(&file.file, most, By::Batches).0;
                assert_eq!(error, as_ever, "byte {at} by {bits:#x}, {most} rows");
                // To see that a list is over, batches are read into the page after it, and so to the damage.
                let same = copied.starts_with(&batches) && (error.is_some() || copied == batches);
                assert!(same, "byte {at} by {bits:#x}, {most} rows");
            }
        }
    }
}
