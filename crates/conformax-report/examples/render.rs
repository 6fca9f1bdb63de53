//! Draws a study's report again from its `results.json`: `cargo run --example render -- RESULTS.json FOLDER`.

use std::error::Error;
use std::fs;
use std::path::Path;

use conformax_report::{Options, render};

fn main() -> Result<(), Box<dyn Error>> {
    let [_, results, folder] =
        std::env::args().collect::<Vec<_>>().try_into().map_err(|_| "wanted: RESULTS.json FOLDER")?;
    let results = serde_json::from_slice(&fs::read(results)?)?;
    let options = Options {
        #[cfg(feature = "png")]
        png: true,
        ..Options::default()
    };
    for file in render(&results, &options) {
        let path = Path::new(&folder).join(file.path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, file.bytes)?;
    }
    Ok(())
}
