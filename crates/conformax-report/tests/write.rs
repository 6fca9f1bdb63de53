//! Temporary.
mod synthetic;
#[test]
fn write() {
    let out = std::env::var("OUT").unwrap();
    std::fs::create_dir_all(&out).unwrap();
    std::fs::write(format!("{out}/results.json"), serde_json::to_string(&synthetic::results()).unwrap()).unwrap();
}
