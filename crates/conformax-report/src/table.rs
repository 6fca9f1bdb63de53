//! `Table`: rows for people, in Markdown, LaTeX and the page, and the same numbers unrounded in CSV.

mod accuracy;
mod at_a_glance;
mod claims;
mod coverage;
mod strata;
mod tuning;

use std::iter;

use conformax_study::csv_of;
use serde::Serialize;

use crate::view::View;

pub(crate) use at_a_glance::{METRICS, Metric};
pub(crate) use claims::verdict;

/// A table: a grid for people and flat records for programs.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Table {
    /// Name of its files, without an ending.
    pub(crate) slug: String,
    pub(crate) title: String,
    /// What to know before comparing numbers.
    pub(crate) notes: Vec<String>,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    /// The same numbers with one value per field, never rounded.
    #[serde(skip)]
    pub(crate) records: Records,
}

/// A column of the grid.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// Whether it holds words, set to the left.
    pub(crate) is_text: bool,
    /// The procedure whose numbers it holds, for hiding it in the page.
    pub(crate) procedure: Option<String>,
}

/// A row of the grid.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) cells: Vec<Cell>,
    pub(crate) benchmark: Option<String>,
    /// The level, as printed.
    pub(crate) alpha: Option<String>,
    /// Whether a line is drawn above it.
    pub(crate) begins_group: bool,
}

/// A cell: its first line, and what stands smaller below it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Cell {
    pub(crate) main: String,
    pub(crate) below: Vec<String>,
}

/// Fields by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records {
    pub(crate) header: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Column {
    pub(crate) fn text(name: &str) -> Self {
        Self { name: name.to_owned(), is_text: true, procedure: None }
    }

    pub(crate) fn number(name: &str) -> Self {
        Self { name: name.to_owned(), is_text: false, procedure: None }
    }

    pub(crate) fn procedure(name: &str) -> Self {
        Self { name: name.to_owned(), is_text: false, procedure: Some(name.to_owned()) }
    }
}

impl From<String> for Cell {
    fn from(main: String) -> Self {
        Self { main, below: Vec::new() }
    }
}

impl From<&str> for Cell {
    fn from(main: &str) -> Self {
        main.to_owned().into()
    }
}

impl Row {
    pub(crate) fn of(cells: Vec<Cell>) -> Self {
        Self { cells, benchmark: None, alpha: None, begins_group: false }
    }
}

/// An unrounded number in a record: the shortest text that reads back to the same value.
pub(crate) fn exact(value: f64) -> String {
    if value == f64::INFINITY { "inf".to_owned() } else { value.to_string() }
}

/// A number or an empty field.
pub(crate) fn optional(value: Option<f64>) -> String {
    value.map(exact).unwrap_or_default()
}

/// The tables of a report, in the paper's order and then ours.
pub(crate) struct Tables {
    pub(crate) coverage: Table,
    pub(crate) strata: Vec<strata::OfBenchmark>,
    /// Strata as the paper numbers them.
    pub(crate) printed_strata: Vec<Table>,
    pub(crate) accuracy: Table,
    pub(crate) claims: Table,
    pub(crate) tuning: Table,
    pub(crate) at_a_glance: Table,
}

impl Tables {
    pub(crate) fn new(view: &View<'_>) -> Self {
        Self {
            coverage: coverage::table(view),
            strata: strata::by_benchmark(view),
            printed_strata: strata::as_printed(view),
            accuracy: accuracy::table(view),
            claims: claims::table(view),
            tuning: tuning::table(view),
            at_a_glance: at_a_glance::table(view),
        }
    }

    /// All that become files.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Table> {
        let always = [&self.coverage, &self.accuracy, &self.at_a_glance];
        let where_judged = [&self.claims, &self.tuning].into_iter().filter(|table| !table.rows.is_empty());
        always.into_iter().chain(where_judged).chain(&self.printed_strata)
    }
}

impl Table {
    pub(crate) fn markdown(&self) -> String {
        let mut out = format!("**{}**\n\n", markdown(&self.title));
        let names: Vec<String> = self.columns.iter().map(|column| markdown(&column.name)).collect();
        let rules: Vec<&str> = self.columns.iter().map(|c| if c.is_text { ":--" } else { "--:" }).collect();
        out.push_str(&format!("| {} |\n| {} |\n", names.join(" | "), rules.join(" | ")));
        for row in &self.rows {
            let cells: Vec<String> = row.cells.iter().map(Cell::markdown).collect();
            out.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
        for note in &self.notes {
            out.push_str(&format!("\n{}\n", markdown(note)));
        }
        out
    }

    pub(crate) fn csv(&self) -> String {
        let header = self.records.header.iter().map(|name| (*name).to_owned()).collect();
        csv_of(iter::once(header).chain(self.records.rows.iter().cloned()))
    }

    pub(crate) fn latex(&self) -> String {
        let align: String = self.columns.iter().map(|c| if c.is_text { 'l' } else { 'r' }).collect();
        let names: Vec<String> = self.columns.iter().map(|column| latex(&column.name)).collect();
        let mut out =
            format!("\\begin{{tabular}}{{{align}}}\n\\hline\n{} \\\\\n\\hline\n", names.join(" & "));
        for (i, row) in self.rows.iter().enumerate() {
            if row.begins_group && i > 0 {
                out.push_str("\\hline\n");
            }
            let cells: Vec<String> = row
                .cells
                .iter()
                .zip(&self.columns)
                .map(|(cell, column)| cell.latex(column.is_text))
                .collect();
            out.push_str(&cells.join(" & "));
            out.push_str(" \\\\\n");
        }
        out.push_str("\\hline\n\\end{tabular}\n");
        for note in &self.notes {
            out.push_str(&format!("\n{}\n", latex(note)));
        }
        out
    }
}

impl Cell {
    fn markdown(&self) -> String {
        let lines = iter::once(&self.main).chain(&self.below);
        lines.map(|line| markdown(line)).collect::<Vec<_>>().join("<br>")
    }

    fn latex(&self, is_text: bool) -> String {
        if self.below.is_empty() {
            return latex(&self.main);
        }
        let lines: Vec<String> =
            self.below.iter().map(|line| format!("{{\\scriptsize {}}}", latex(line))).collect();
        let align = if is_text { 'l' } else { 'r' };
        format!("\\shortstack[{align}]{{{} \\\\ {}}}", latex(&self.main), lines.join(" \\\\ "))
    }
}

/// Text on one line that Markdown takes as it is: names come from the user's file and may hold anything.
fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '|' | '*' | '_' | '`' | '[' | ']' | '#' | '~' | '$' => {
                out.push('\\');
                out.push(c);
            }
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '\n' | '\r' => out.push(' '),
            _ => out.push(c),
        }
    }
    out
}

/// Text with LaTeX's special characters and our symbols spelt out.
fn latex(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => {
                out.push('\\');
                out.push(c);
            }
            '\\' => out.push_str("\\textbackslash{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '±' => out.push_str("$\\pm$"),
            '−' => out.push_str("$-$"),
            '–' => out.push_str("--"),
            '—' => out.push_str("---"),
            'α' => out.push_str("$\\alpha$"),
            'γ' => out.push_str("$\\gamma$"),
            'β' => out.push_str("$\\beta$"),
            'λ' => out.push_str("$\\lambda$"),
            '×' => out.push_str("$\\times$"),
            '≤' => out.push_str("$\\le$"),
            '≥' => out.push_str("$\\ge$"),
            '<' => out.push_str("$<$"),
            '>' => out.push_str("$>$"),
            '·' => out.push_str("$\\cdot$"),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let cell = Cell { main: "0.9 ± 0.1".to_owned(), below: vec!["paper 0.8".to_owned()] };
        Table {
            title: "T".to_owned(),
            columns: vec![Column::text("a_b"), Column::procedure("RAPS")],
            rows: vec![Row::of(vec!["x|y".into(), cell])],
            records: Records { header: vec!["a", "b"], rows: vec![vec!["x,y".to_owned(), exact(0.1)]] },
            ..Table::default()
        }
    }

    #[test]
    fn writes_markdown() {
        let expected = "**T**\n\n| a\\_b | RAPS |\n| :-- | --: |\n| x\\|y | 0.9 ± 0.1<br>paper 0.8 |\n";
        assert_eq!(table().markdown(), expected);
    }

    #[test]
    fn writes_csv_that_reads_back() {
        assert_eq!(table().csv(), "a,b\n\"x,y\",0.1\n");
    }

    #[test]
    fn writes_latex_with_its_characters_escaped() {
        let text = table().latex();
        assert!(text.contains("a\\_b & RAPS"), "{text}");
        assert!(text.contains("\\shortstack[r]{0.9 $\\pm$ 0.1 \\\\ {\\scriptsize paper 0.8}}"), "{text}");
    }

    #[test]
    fn takes_any_name_in_any_place() {
        let name = "a|b\r\n# <!--<script> *c* [d](e)";
        let table = Table {
            title: name.to_owned(),
            columns: vec![Column::text(name)],
            rows: vec![Row::of(vec![name.into()])],
            records: Records { header: vec!["a", "b"], rows: vec![vec![name.to_owned(), "\r".to_owned()]] },
            ..Table::default()
        };
        let escaped = "a\\|b  \\# &lt;!--&lt;script> \\*c\\* \\[d\\](e)";
        assert_eq!(table.markdown(), format!("**{escaped}**\n\n| {escaped} |\n| :-- |\n| {escaped} |\n"));
        assert_eq!(table.csv(), format!("a,b\n\"{name}\",\"\r\"\n"));
    }
}
