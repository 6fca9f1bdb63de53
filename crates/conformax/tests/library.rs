//! Every test of the library, in one program: scores and kernels are compiled for every type of logit, and as a program
//! for each file they took seven minutes more.

mod accumulators;
mod activation;
mod by_label;
mod common;
mod coverage;
mod dealing;
mod definitions;
mod duality;
mod errors;
mod exact;
mod golden;
mod laws;
mod methods;
mod narrow;
mod policies;
mod ranks;
mod streams;
mod threads;
mod tuning;
mod wide;
