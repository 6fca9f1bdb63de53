//! Columns that are held until the logits are written, as formats of arrays have them one after another.

use std::io::Write;

use crate::{Block, Cells, NamedCells, Problem};

/// Adds rows of a block's kept columns to those held.
pub(crate) fn keep_rows(held: &mut Vec<NamedCells>, block: &Block, rows: &[usize]) {
    if held.is_empty() {
        held.extend(block.keep.iter().map(|column| NamedCells {
            name: column.name.clone(),
            cells: Cells::new(column.cells.cell_type()),
        }));
    }
    for (held, column) in held.iter_mut().zip(&block.keep) {
        held.cells.append(column.cells.take(rows));
    }
}

/// The values of a column that is not text, end to end in the machine's order.
pub(crate) fn write_numbers(out: &mut impl Write, cells: &Cells) -> Result<(), Problem> {
    match cells {
        Cells::Bool(v) => {
            for cell in v {
                out.write_all(&[u8::from(cell.ok_or(Problem::Null)?)])?;
            }
        }
        Cells::Int(v) => {
            for cell in v {
                out.write_all(&cell.ok_or(Problem::Null)?.to_ne_bytes())?;
            }
        }
        Cells::UInt(v) => {
            for cell in v {
                out.write_all(&cell.ok_or(Problem::Null)?.to_ne_bytes())?;
            }
        }
        Cells::Float(v) => {
            for cell in v {
                out.write_all(&cell.unwrap_or(f64::NAN).to_ne_bytes())?;
            }
        }
        Cells::Text(_) => unreachable!("text is written by those who know how wide it is"),
    }
    Ok(())
}
