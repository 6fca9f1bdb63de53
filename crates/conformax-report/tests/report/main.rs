//! The report of made-up results: what is drawn, tabled and written equals the records it was made from.

mod figures;
mod page;
mod rendered;
mod synthetic;
mod tables;
