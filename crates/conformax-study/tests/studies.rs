//! Every test of studies, in one program: linking six took longer than running most of them.

mod bad_studies;
mod built_in;
mod conditional;
mod examples;
mod plain_path;
mod trained;
