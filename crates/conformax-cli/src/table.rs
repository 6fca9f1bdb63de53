//! Tables as people read them: a heading, numbers to the right, no boxes.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle};
use conformax_io::printable;

/// Nothing but a rule under the headings.
const RULED: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// How a column is set.
#[derive(Clone, Copy)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A table with these headings; add rows with [`Table::add_row`].
pub(crate) fn table(headings: &[(&str, Align)]) -> Table {
    let mut table = Table::new();
    table.load_style(RULED).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(headings.iter().map(|(heading, _)| *heading));
    for (index, (_, align)) in headings.iter().enumerate() {
        let column = table.column_mut(index).expect("every heading has a column");
        column.set_constraint(ColumnConstraint::ContentWidth);
        column.set_padding((0, 1));
        column.set_cell_alignment(match align {
            Align::Left => CellAlignment::Left,
            Align::Right => CellAlignment::Right,
        });
    }
    table
}

/// The table without the blanks that padding leaves at the ends of lines.
pub(crate) fn text(table: &Table) -> String {
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// Facts one to a line: what, then which. What comes from files may hold anything.
pub(crate) fn pairs(facts: &[(&str, String)]) -> String {
    let width = facts.iter().map(|(what, _)| what.chars().count()).max().unwrap_or(0);
    facts.iter().map(|(what, which)| format!("{what:width$}  {}\n", printable(which))).collect()
}
