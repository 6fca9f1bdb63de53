//! What a stream takes: bytes that are asked for, counted on the thread that asks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(unsafe_code, reason = "an allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use conformax::{
    Alarm, Alpha, Calibration, Calibrator, EntmaxScore, Generator, Logits, Ranks, Scheme, SortedScores,
    Stream, StreamOptions, Taxonomy,
};

thread_local! {
    /// Bytes that are held, and bytes ever asked for.
    static HELD: Cell<i64> = const { Cell::new(0) };
    static ASKED: Cell<i64> = const { Cell::new(0) };
}

struct Counting;

fn count(bytes: i64) {
    HELD.set(HELD.get() + bytes);
    ASKED.set(ASKED.get() + bytes.max(0));
}

// SAFETY: every call is handed to the system's allocator with the layout it came with.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's layout, as it came.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the pointer came from the same allocator under this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static MEMORY: Counting = Counting;

/// Bytes that are held after some work and were not before.
fn held_by(work: impl FnOnce()) -> i64 {
    let before = HELD.get();
    work();
    HELD.get() - before
}

fn alpha() -> Alpha {
    Alpha::new(0.1).unwrap()
}

fn calibration(n: u32, classes: usize) -> Calibration<EntmaxScore> {
    let scores = SortedScores::new((0..n).map(|score| f64::from(score) / f64::from(n)).collect()).unwrap();
    Calibration::from_scores(EntmaxScore::default(), classes, scores).unwrap()
}

/// A list that doubles holds twice what is in it right after it grew.
#[test]
fn an_alarm_holds_at_most_96_bytes_for_each_score() {
    let (n, more) = (1_000_i64, 70_000_i64);
    let calibrating: Vec<f64> = (0..n).map(|score| score as f64).collect();
    let mut alarm = None;
    let first = held_by(|| alarm = Some(Alarm::new(&calibrating, 0.01, 0).unwrap()));
    assert!(first <= 96 * n + 256, "{first}");
    let mut alarm = alarm.unwrap();
    let mut held = first;
    for label in 0..more {
        held += held_by(|| assert!(alarm.update(0.5 + label as f64, None).is_ok()));
        assert!(held <= 96 * (n + label + 1) + 256, "{held} after {label}");
    }
    // Numbers that were there take nothing.
    let again =
        held_by(|| (0..more).for_each(|label| assert!(alarm.update(0.5 + label as f64, None).is_ok())));
    assert_eq!(again, 0);
}

/// What is written down for rows that wait and for labels that came lately, beside the logits and the names.
#[test]
fn a_stream_holds_a_bounded_number_of_bytes_for_each_row_and_label() {
    const ROWS: i64 = 5_000;
    let (classes, options) = (20, StreamOptions { step: 0.0, ..StreamOptions::default() });
    let mut stream = Stream::new(calibration(100, classes), alpha(), options).unwrap();
    let names: Vec<String> = (0..ROWS).map(|row| format!("{row:040}")).collect();
    let logits: Vec<f64> = (0..classes).map(|class| class as f64 / 7.0).collect();
    let row = Logits::new(&logits, classes).unwrap();
    stream.sets(row).unwrap();
    let waiting = held_by(|| names.iter().for_each(|name| drop(stream.predict(row, &[name]).unwrap())));
    assert!(waiting <= ROWS * (8 * classes as i64 + 2 * 40 + 250), "{} a row", waiting / ROWS);
    let labelled =
        held_by(|| names.iter().for_each(|name| assert!(stream.update(name, 3).is_ok()))) + waiting;
    // The recent hits and sizes and the points of the trace are bounded by themselves.
    assert!(labelled <= ROWS * (2 * 40 + 200) + 48 * 1_024, "{} a label", labelled / ROWS);
}

#[test]
fn a_window_bounds_the_bytes_that_are_held() {
    let mut generator = Generator::new(1, "memory");
    let options = StreamOptions { window: Some(50), ..StreamOptions::default() };
    let mut stream = Stream::new(calibration(200, 2), alpha(), options).unwrap();
    let (mut held, mut most) = (0, [0, 0]);
    for row in 0..20_000 {
        held += held_by(|| {
            let gap = generator.below(1 << 30) as f64 / (1 << 29) as f64;
            let name = format!("{row:06}");
            stream.predict(Logits::new(&[0.0, gap], 2).unwrap(), &[&name]).unwrap();
            stream.update(&name, 0).unwrap();
        });
        // The trace is full by then.
        let part = usize::from(row >= 10_000);
        most[part] = most[part].max(held);
    }
    assert!(most[1] <= most[0], "{most:?}");
}

/// A label of a model with a threshold and a rank for each of a thousand classes asks for no more memory than one of a
/// model with three: nothing is made anew for every class.
#[test]
fn a_label_asks_for_as_much_memory_however_many_classes_there_are() {
    let asked = |classes: usize| {
        let scheme = Scheme::Groups(Taxonomy::Label);
        let mut calibrator = Calibrator::new(EntmaxScore::default(), classes).unwrap().under(scheme).unwrap();
        let row: Vec<f64> = (0..classes).map(|class| (class % 5) as f64).collect();
        calibrator.extend(Logits::new(&row, classes).unwrap().labelled(&[0]).unwrap()).unwrap();
        let ranks = Ranks::new(vec![classes as u32; classes]).unwrap();
        let calibration = calibrator.finish().unwrap().with_ranks(ranks).unwrap();
        let mut stream = Stream::new(calibration, alpha(), StreamOptions::default()).unwrap();
        stream.predict(Logits::new(&row, classes).unwrap(), &["a"]).unwrap();
        let before = ASKED.get();
        stream.update("a", 0).unwrap();
        ASKED.get() - before
    };
    // What a thread asks for once is not counted.
    asked(3);
    let (few, many) = (asked(3), asked(1_000));
    assert!(many <= few + 1_000, "{few} and {many}");
}
