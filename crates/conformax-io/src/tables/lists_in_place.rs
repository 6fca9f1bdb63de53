//! Where the values of a column of lists lie in an Arrow file, for whoever reads them from there: they are nearly all
//! of a file, and copying them out of a message that was read before would be a second pass over them.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_ipc::RecordBatch as BatchHeader;
use arrow_schema::{DataType, Schema};

/// A column of lists of floats, and which of a batch's buffers holds their values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListsInPlace {
    column: usize,
    buffer: usize,
}

impl ListsInPlace {
    /// `None` where it takes more than copying to make logits of the values, or where it is not known how many buffers
    /// the columns before them have.
    pub(crate) fn find(schema: &Schema, column: usize) -> Option<Self> {
        let own = match schema.field(column).data_type() {
            DataType::List(item) | DataType::LargeList(item) if item.data_type().is_floating() => 3,
            DataType::FixedSizeList(item, _) if item.data_type().is_floating() => 2,
            _ => return None,
        };
        let before: Option<usize> =
            schema.fields()[..column].iter().map(|field| buffers(field.data_type())).sum();
        Some(Self { column, buffer: before? + own })
    }

    /// The same with another buffer taken for theirs.
    #[cfg(test)]
    pub(crate) fn displaced(self, by: isize) -> Self {
        Self { buffer: self.buffer.checked_add_signed(by).unwrap_or_default(), ..self }
    }

    /// Where in the body of a message the values lie, where they are not compressed.
    pub(crate) fn place(&self, batch: &BatchHeader<'_>, body_len: u64) -> Option<std::ops::Range<u64>> {
        let buffers = batch.buffers().filter(|buffers| buffers.len() > self.buffer)?;
        let buffer = buffers.get(self.buffer);
        let (start, len) = (u64::try_from(buffer.offset()).ok()?, u64::try_from(buffer.length()).ok()?);
        let end = start.checked_add(len).filter(|end| start < *end && *end <= body_len)?;
        batch.compression().is_none().then_some(start..end)
    }

    /// Whether a decoded batch has the values of its lists at this address: whatever a file says, what was not read is
    /// then these values and nothing else.
    pub(crate) fn is_at(&self, batch: &RecordBatch, address: *const u8) -> bool {
        let lists = batch.column(self.column);
        let items: &ArrayRef = match lists.data_type() {
            DataType::FixedSizeList(..) => lists.as_fixed_size_list().values(),
            DataType::LargeList(_) => lists.as_list::<i64>().values(),
            _ => lists.as_list::<i32>().values(),
        };
        let items = items.to_data();
        items.offset() == 0 && items.buffers().first().is_some_and(|values| values.as_ptr() == address)
    }

    /// Bytes of the values before those of a row.
    pub(crate) fn bytes_before(&self, batch: &RecordBatch, row: usize) -> u64 {
        let lists = batch.column(self.column);
        let (item, before) = match lists.data_type() {
            DataType::FixedSizeList(item, _) => (item, lists.as_fixed_size_list().value_offset(row) as u64),
            DataType::LargeList(item) => (item, lists.as_list::<i64>().value_offsets()[row] as u64),
            DataType::List(item) => (item, lists.as_list::<i32>().value_offsets()[row] as u64),
            other => unreachable!("a column of {other} is none of lists"),
        };
        before * item.data_type().primitive_width().unwrap_or(0) as u64
    }
}

/// Buffers that a column of a type has in a message; `None` for types that are seldom met.
fn buffers(column: &DataType) -> Option<usize> {
    Some(match column {
        DataType::Null => 0,
        DataType::Boolean | DataType::FixedSizeBinary(_) | DataType::Dictionary(..) => 2,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => 3,
        DataType::List(item) | DataType::LargeList(item) => 2 + buffers(item.data_type())?,
        DataType::FixedSizeList(item, _) => 1 + buffers(item.data_type())?,
        DataType::Struct(fields) => {
            let within: Option<usize> = fields.iter().map(|field| buffers(field.data_type())).sum();
            1 + within?
        }
        primitive if primitive.is_primitive() => 2,
        _ => return None,
    })
}
