//! Every test of files, in one program: linking ten took longer than running them.

mod bad_input;
mod changing;
mod data;
mod formats;
mod model;
mod pipes;
mod readme;
mod roles;
mod schema;
mod selection;
mod sets;
mod written;
