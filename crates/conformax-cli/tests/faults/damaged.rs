//! Cut and flipped bytes in every format: a message that names the file, or a reading, and never a panic.

use crate::folder::Folder;
use crate::written::{Sample, Write};

/// Places spread over a file, thicker at both ends, where headers and footers are.
fn places(len: usize, count: usize) -> Vec<usize> {
    let near = count / 4;
    let spread = (0..count - 2 * near).map(|at| at * len / (count - 2 * near));
    let mut places: Vec<_> =
        (0..near).map(|at| at * 3).chain(spread).chain((1..=near).map(|at| len - at)).collect();
    places.retain(|&place| place < len);
    places.sort_unstable();
    places.dedup();
    places
}

/// Runs on a file with these bytes; the message where it could not be read.
fn refusal(folder: &Folder, name: &str, bytes: &[u8], how: &str) -> Option<String> {
    folder.write(name, bytes);
    let ran = folder.run(&format!("calibrate {name} --alpha 0.3 -o model.json"));
    let written = folder.file("model.json").exists();
    match ran.code {
        0 => std::fs::remove_file(folder.file("model.json")).unwrap(),
        2 => assert!(ran.err.starts_with(&format!("error: {name}: ")), "{name}, {how}: {}", ran.err),
        code => panic!("{name}, {how}: exit code {code}\n{}", ran.err),
    }
    assert!(!ran.err.contains("panicked"), "{name}, {how}: {}", ran.err);
    assert_eq!(written, ran.code == 0, "{name}, {how}");
    assert_eq!(folder.names(), [name], "{name}, {how}");
    (ran.code == 2).then_some(ran.err)
}

/// What is written of a sample, with its name.
fn sample(write: Write) -> (String, Vec<u8>) {
    let folder = Folder::empty();
    let path = write.write(&Sample::new(20, 5), folder.path());
    (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(path).unwrap())
}

fn for_every_format(test: impl Fn(Write, &Folder, &str, &[u8]) + Sync) {
    let (first, second) = Write::ALL.split_at(Write::ALL.len() / 2);
    std::thread::scope(|scope| {
        for half in [first, second] {
            let test = &test;
            scope.spawn(move || {
                for (write, _, _) in half {
                    let (name, bytes) = sample(*write);
                    let folder = Folder::empty();
                    assert_eq!(refusal(&folder, &name, &bytes, "as it was written"), None);
                    test(*write, &folder, &name, &bytes);
                }
            });
        }
    });
}

#[test]
fn cut_files_are_named() {
    for_every_format(|write, folder, name, bytes| {
        let mut read = 0;
        for place in places(bytes.len(), 16) {
            let refused = refusal(folder, name, &bytes[..place], &format!("cut at {place}"));
            read += usize::from(refused.is_none());
        }
        // Text and streams may end after any row, and the end marks of others are not needed to read them.
        let may_end_early = matches!(
            write,
            Write::Csv | Write::CsvCounting | Write::JsonLines | Write::Arrow | Write::ArrowStream
        );
        assert!(read == 0 || may_end_early, "{write:?}: {read} cut files were read");
    });
}

#[test]
fn flipped_bits_give_a_message_or_a_reading() {
    for_every_format(|_, folder, name, bytes| {
        for (turn, place) in places(bytes.len(), 32).into_iter().enumerate() {
            let mut bytes = bytes.to_vec();
            bytes[place] ^= [0x01, 0x80, 0xff][turn % 3];
            refusal(folder, name, &bytes, &format!("byte {place} flipped"));
        }
    });
}

/// The Arrow crate panics at some contradictions; a user learns that the file is damaged, and no more.
#[test]
fn a_panic_of_a_reader_is_told_as_damage() {
    let (name, bytes) = sample(Write::Arrow);
    let folder = Folder::empty();
    let caught = (0..bytes.len()).step_by(7).any(|place| {
        let mut bytes = bytes.clone();
        bytes[place] ^= 0xff;
        let message = refusal(&folder, &name, &bytes, &format!("byte {place} flipped"));
        message.is_some_and(|message| message.contains("damaged or not a table: "))
    });
    assert!(caught, "no flipped byte reached a panic, so this test shows nothing");
}

#[test]
fn a_damaged_model_is_named() {
    let folder = Folder::with_model();
    let (model, names) = (folder.read("model.json"), folder.names());
    let check = |bytes: &[u8], how: &str| {
        folder.write("model.json", bytes);
        let ran = folder.run("predict model.json test.npz");
        let named = ran.code == 2 && ran.err.starts_with("error: model.json: ");
        assert!(ran.code == 0 || named, "{how}: {}", ran.err);
        assert!(!ran.err.contains("panicked"), "{how}: {}", ran.err);
        assert_eq!(folder.names(), names);
        ran.code == 0
    };
    for place in places(model.len() - 2, 40) {
        assert!(!check(&model[..place], &format!("cut at {place}")));
        let mut flipped = model.clone();
        flipped[place] ^= 1 << (place % 8);
        check(&flipped, &format!("byte {place} flipped"));
    }
}
