//! probe
fn main() { let a: Vec<String> = std::env::args().collect(); conformax_study::probe(&a[1], &a[2], a[3].parse().unwrap()); }
