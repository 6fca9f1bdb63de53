//! The headers that the kernels compute with, compiled for the host by a C++ compiler without contraction, against the
//! Rust functions: bit by bit, on millions of inputs; the normalisers of the activations, which have their own way,
//! within their stated error. A GPU is not needed; `g++` or what `CXX` names is.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use conformax::{
    Entmax, EntmaxScore, Gamma, Logit, Logits, Predictor, Row, Score, Thresholds, row_fingerprints,
};

// The very file of the core: its functions are not public.
#[allow(dead_code, clippy::disallowed_methods)]
#[path = "../../conformax/src/kernel/math.rs"]
mod math;

/// Compiles a program of this folder with the headers; tests that want the same one each have their own file.
fn compiled(source: &str, name: &str, defines: &[String]) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "g++".to_owned());
    let done = Command::new(&compiler)
        .args(["-std=c++17", "-O2", "-ffp-contract=off", "-Wall", "-Wno-unused-function", "-Werror", "-I"])
        .arg(here.join("src/kernels"))
        .args(defines)
        .arg(here.join("tests").join(source))
        .arg("-o")
        .arg(&out)
        .status();
    let done = done.map_err(|error| format!("{error}: install g++, or name a C++ compiler in CXX"));
    assert!(done.expect("wanted a C++ compiler").success(), "{compiler} refused the headers of {source}");
    out
}

/// What the program makes of these words.
fn answer(program: &Path, function: &str, words: &[u64]) -> Vec<u64> {
    let mut child = Command::new(program)
        .arg(function)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the compiled program starts");
    let mut input = child.stdin.take().expect("piped");
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let feed = std::thread::spawn(move || input.write_all(&bytes));
    let output = child.wait_with_output().expect("the program ends");
    feed.join().expect("no panic").expect("all input is read");
    assert!(output.status.success());
    output.stdout.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect()
}

/// What the headers with the CPU's bits make of these words.
fn host(function: &str, words: &[u64]) -> Vec<u64> {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    answer(PROGRAM.get_or_init(|| compiled("arithmetic.cpp", "arithmetic", &[])), function, words)
}

/// A small generator of our own, so that inputs never change.
struct Draws(u64);

impl Draws {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / 9_007_199_254_740_992.0
    }

    fn between(&mut self, lo: f64, hi: f64) -> f64 {
        lo + (hi - lo) * self.unit()
    }

    fn below(&mut self, end: usize) -> usize {
        (self.bits() % end as u64) as usize
    }
}

const EDGES: [f64; 22] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.0,
    5e-324,
    -5e-324,
    2.2250738585072014e-308,
    1e-300,
    1e-17,
    1e17,
    709.78,
    709.79,
    -745.13,
    -745.14,
    -746.0,
    f64::MAX,
    f64::MIN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

/// NaN has many bits, and no one relies on which.
fn same(a: f64, b: u64) -> bool {
    a.to_bits() == b || a.is_nan() && f64::from_bits(b).is_nan()
}

fn check(name: &str, function: impl Fn(f64) -> f64, draw: impl Fn(&mut Draws) -> f64) {
    let mut draws = Draws(1);
    let inputs: Vec<f64> = EDGES.into_iter().chain((0..400_000).map(|_| draw(&mut draws))).collect();
    let found = host(name, &inputs.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
    assert_eq!(found.len(), inputs.len());
    for (x, found) in inputs.into_iter().zip(found) {
        assert!(same(function(x), found), "{name}({x:e}): {:e} and {:e}", function(x), f64::from_bits(found));
    }
}

fn check_pairs(name: &str, function: impl Fn(f64, f64) -> f64, pairs: Vec<(f64, f64)>) {
    let words: Vec<u64> = pairs.iter().flat_map(|(x, y)| [x.to_bits(), y.to_bits()]).collect();
    let found = host(name, &words);
    assert_eq!(found.len(), pairs.len());
    for ((x, y), found) in pairs.into_iter().zip(found) {
        assert!(same(function(x, y), found), "{name}({x:e}, {y:e})");
    }
}

#[test]
fn exponentials_have_the_same_bits() {
    check("exp", math::exp, |draws| draws.between(-760.0, 720.0));
    check("exp", math::exp, |draws| f64::from_bits(draws.bits()));
    check("exp_m1", math::exp_m1, |draws| draws.between(-50.0, 50.0));
    check("exp_m1", math::exp_m1, |draws| draws.between(-1.0, 1.0) * 1e-3);
    check("exp_nonpositive", math::exp_nonpositive, |draws| draws.between(-760.0, 0.0));
}

#[test]
fn logarithms_have_the_same_bits() {
    check("ln", math::ln, |draws| f64::from_bits(draws.bits() >> 1));
    check("ln", math::ln, |draws| draws.between(0.5, 2.0));
    check("ln_1p", math::ln_1p, |draws| draws.between(-1.0, 3.0));
    check("ln_1p", math::ln_1p, |draws| draws.between(-1e-6, 1e-6));
}

#[test]
fn powers_have_the_same_bits() {
    let mut draws = Draws(7);
    let edges = || EDGES.into_iter().flat_map(|x| EDGES.into_iter().map(move |y| (x, y)));
    let drawn = (0..600_000).map(|_| (draws.between(0.0, 4.0), draws.between(-60.0, 60.0)));
    check_pairs("pow", math::pow, edges().chain(drawn).collect());
    let unit = (0..600_000).map(|_| (draws.unit(), draws.between(0.06, 60.0)));
    check_pairs("pow_unit", math::pow_unit, unit.chain([(0.0, 2.5), (1.0, 0.3), (1.0, 50.0)]).collect());
}

#[test]
fn sixteen_bytes_out_of_thirty_two() {
    let mut draws = Draws(11);
    let (mut words, mut wanted) = (Vec::new(), Vec::new());
    for case in 0..10_000 {
        let (skip, drawn) = (case % 8 * 2, [(); 4].map(|()| draws.bits()));
        words.push(skip as u64);
        words.extend(drawn);
        let bytes: Vec<u8> = drawn.iter().flat_map(|word| word.to_le_bytes()).collect();
        wanted.extend(bytes[skip..skip + 16].as_chunks::<8>().0.iter().map(|it| u64::from_le_bytes(*it)));
    }
    assert_eq!(host("bytes", &words), wanted);
}

const GAMMAS: [f64; 12] = [1.0, 1.02, 1.1, 1.3, 1.5, 1.7, 1.999, 2.0, 2.5, 3.0, 8.0, 16.0];

/// What rows are multiplied by: among others to the ends of single and double precision, and to subnormals of both.
const SCALES: [f64; 9] = [1.0, 10.0, 1e-5, 1e-42, 1e37, 1e-160, 1e150, 1e-320, 2e307];

/// Order, δ and 1/δ as words.
fn order_of(gamma: Gamma) -> [u64; 3] {
    match gamma.delta() {
        f64::INFINITY => [0, 0, 0],
        1.0 => [1, 1.0_f64.to_bits(), 1.0_f64.to_bits()],
        2.0 => [2, 2.0_f64.to_bits(), 0.5_f64.to_bits()],
        delta => [3, delta.to_bits(), gamma.inverse_delta().to_bits()],
    }
}

/// Rows with ties, near-ties, masked classes, huge and tiny numbers.
fn row(draws: &mut Draws) -> Vec<f64> {
    let classes = 1 + draws.below(70);
    let (grid, scale) = ([0.0, 0.25, 1e-9][draws.below(3)], SCALES[draws.below(SCALES.len())]);
    let mut row: Vec<f64> = (0..classes)
        .map(|_| {
            let z = draws.between(-3.0, 3.0);
            (if grid > 0.0 { (z / grid).round() * grid } else { z }) * scale
        })
        .collect();
    for place in 1..classes {
        if draws.below(12) == 0 {
            row[place] = f64::NEG_INFINITY;
        }
    }
    row
}

#[test]
fn scores_have_the_same_bits() {
    let mut draws = Draws(3);
    for gamma in GAMMAS {
        let gamma = Gamma::new(gamma).unwrap();
        let score = EntmaxScore { gamma };
        let (mut words, mut wanted) = (Vec::new(), Vec::new());
        for _ in 0..20_000 {
            let logits = row(&mut draws);
            let checked = Row::new(&logits).unwrap();
            let label = draws.below(logits.len());
            if logits[label] == f64::NEG_INFINITY {
                continue;
            }
            words.push(logits.len() as u64);
            words.extend(order_of(gamma));
            words.extend([checked.max().to_bits(), logits[label].to_bits()]);
            words.extend(logits.iter().map(|z| z.to_bits()));
            wanted.push((score.score(checked, label as u32), logits.clone(), label));
        }
        for how in ["norm", "list_norm"] {
            let found = host(how, &words);
            assert_eq!(found.len(), wanted.len());
            for ((score, logits, label), found) in wanted.iter().zip(found) {
                assert_eq!(score.to_bits(), found, "{how}, γ = {gamma}, label {label} of {logits:?}");
            }
        }
    }
}

#[test]
fn probabilities_have_the_same_bits() {
    let mut draws = Draws(5);
    for gamma in GAMMAS {
        let gamma = Gamma::new(gamma).unwrap();
        let score = EntmaxScore { gamma };
        let (mut words, mut wanted) = (Vec::new(), Vec::new());
        for _ in 0..6_000 {
            let logits = row(&mut draws);
            let checked = Row::new(&logits).unwrap();
            let spread =
                checked.max() - logits.iter().copied().filter(|z| z.is_finite()).fold(f64::MAX, f64::min);
            let threshold = draws.between(0.05, 1.5) * if spread > 0.0 { spread } else { 1.0 };
            let model = Predictor::new(score, Thresholds::One(threshold));
            let (sets, p) = model.predict_probabilities(Logits::new(&logits, logits.len()).unwrap()).unwrap();
            let gap = |label: &u32| {
                let z = logits[*label as usize];
                if gamma == Gamma::SOFTMAX { z - checked.max() } else { (checked.max() - z) / threshold }
            };
            words.push(sets.labels().len() as u64);
            words.extend(order_of(gamma));
            words.extend(sets.labels().iter().map(|label| gap(label).to_bits()));
            wanted.extend(p.into_iter().map(|p| (p, logits.clone(), threshold)));
        }
        let found = host("normalize", &words);
        assert_eq!(found.len(), wanted.len());
        for ((p, logits, threshold), found) in wanted.into_iter().zip(found) {
            assert_eq!(p.to_bits(), found, "γ = {gamma}, threshold {threshold:e} of {logits:?}");
        }
    }
}

#[test]
fn fingerprints_are_the_cpus() {
    let mut draws = Draws(13);
    let (mut words, mut wanted) = (Vec::new(), Vec::new());
    for _ in 0..20_000 {
        let mut logits = row(&mut draws);
        let zero = draws.below(logits.len());
        logits[zero] = -0.0;
        words.push(logits.len() as u64);
        words.extend(logits.iter().map(|z| z.to_bits()));
        wanted.extend(row_fingerprints(Logits::new(&logits, logits.len()).unwrap()));
    }
    assert_eq!(host("fingerprint", &words), wanted);
}

/// A threshold near which a decision is hard: a score of the row, or the number next to one; now and then any.
fn threshold(draws: &mut Draws, scores: &[f64]) -> Option<f64> {
    let score = scores[draws.below(scores.len())];
    let chosen = match draws.below(5) {
        0 | 1 => score,
        2 => score.next_up(),
        3 => score.next_down(),
        _ => score * draws.between(0.2, 3.0),
    };
    (chosen.is_finite() && chosen >= 0.0).then_some(chosen)
}

/// Sets of rows of one type at thresholds on and beside their scores, in lists with room for few labels and for all.
fn check_sets<T: Logit>(function: &str, gamma: Gamma, narrowed: impl Fn(f64) -> T) {
    let score = EntmaxScore { gamma };
    let (mut draws, mut words, mut wanted) = (Draws(17), Vec::new(), Vec::new());
    for _ in 0..18_000 {
        let mut logits = row(&mut draws);
        // With a clear winner all labels may be within reach and few of them members.
        let winner = draws.below(4) == 0;
        if winner {
            let most =
                logits.iter().copied().filter(|z| z.is_finite()).fold(0.0, |most, z| z.abs().max(most));
            logits[0] = 4.0 * most;
        }
        let logits: Vec<T> = logits.into_iter().map(&narrowed).collect();
        // Some scales are beyond the narrower type.
        let Ok(checked) = Row::new(&logits) else { continue };
        let max = checked.max();
        let scores: Vec<f64> = (0..logits.len()).map(|label| score.score(checked, label as u32)).collect();
        let threshold = match winner {
            true => Some(max * draws.between(0.75, 1.5)),
            false => threshold(&mut draws, &scores),
        };
        let Some(threshold) = threshold else { continue };
        let room = [3, 8, 128][draws.below(3)];
        words.push(logits.len() as u64);
        words.extend(order_of(gamma));
        words.extend([threshold.to_bits(), room]);
        words.extend(logits.iter().map(|z| z.to_f64().to_bits()));
        let model = Predictor::new(score, Thresholds::One(threshold));
        let sets = model.predict(Logits::new(&logits, logits.len()).unwrap()).unwrap();
        let within = logits.iter().filter(|z| max - z.to_f64() <= threshold).count() as u64;
        wanted.push((sets.labels().to_vec(), threshold, logits, room, within));
    }
    let (mut found, mut left_to_others, mut raised) = (host(function, &words).into_iter(), 0, 0);
    for (labels, threshold, logits, room, within) in &wanted {
        let size = found.next().unwrap();
        if size == u64::MAX {
            assert!(within > room, "room enough for all within reach");
            left_to_others += 1;
            continue;
        }
        raised += usize::from(within > room);
        let set: Vec<u32> = found.by_ref().take(size as usize).map(|label| label as u32).collect();
        assert_eq!(set, *labels, "γ = {gamma}, threshold {threshold:e}, room {room}, of {logits:?}");
    }
    assert_eq!(found.next(), None);
    assert!(wanted.len() - left_to_others > 3_000, "γ = {gamma}: {left_to_others} of {}", wanted.len());
    // Of γ = 1 all within reach are members, and between 1 and 1.5 nothing is gained.
    assert!(raised > 100 || gamma.delta() > 2.0, "γ = {gamma}: {raised} bounds raised");
}

#[test]
fn sets_near_their_threshold_are_the_cpus() {
    for gamma in GAMMAS {
        let gamma = Gamma::new(gamma).unwrap();
        check_sets("set", gamma, |z| z);
        check_sets("set_f32", gamma, |z| z as f32);
    }
}

/// Rows of every temper, short and long.
fn rows_to_normalise() -> Vec<Vec<f64>> {
    let mut draws = Draws(19);
    let mut rows: Vec<Vec<f64>> = (0..6_000).map(|_| row(&mut draws)).collect();
    for classes in [200, 1000, 3000] {
        for spread in [1e-4, 0.3, 3.0, 300.0] {
            rows.push((0..classes).map(|_| draws.between(-1.0, 1.0) * spread).collect());
        }
        rows.push(vec![0.25; classes]);
    }
    rows
}

/// Probabilities by the kernels' own way are within `most` of the CPU's; where an edge is given, the supports are the
/// same but for masses up to it.
fn check_roots(program: &Path, gamma: f64, narrowed: impl Fn(f64) -> f64, most: f64, edge: Option<f64>) {
    let gamma = Gamma::new(gamma).unwrap();
    let soft = gamma == Gamma::SOFTMAX;
    let (scale, delta) = if soft { (1.0, 0.0) } else { (gamma.inverse_delta(), gamma.delta()) };
    let (mut words, mut wanted) = (Vec::new(), Vec::new());
    for row in rows_to_normalise() {
        let logits: Vec<f64> = row.into_iter().map(&narrowed).collect();
        // Some scales are beyond the narrower type.
        if Row::new(&logits).is_err() {
            continue;
        }
        words.push(logits.len() as u64);
        words.extend([gamma.value(), scale, delta].map(f64::to_bits));
        words.extend(logits.iter().map(|z| z.to_bits()));
        wanted.extend(Entmax::new(gamma).forward_rows(Logits::new(&logits, logits.len()).unwrap()).unwrap());
    }
    let found = answer(program, "", &words);
    assert_eq!(found.len(), wanted.len());
    for (p, wanted) in found.into_iter().map(f64::from_bits).zip(wanted) {
        assert!((p - wanted).abs() <= most, "γ = {gamma}: {p:e}, wanted {wanted:e}");
        let same = (p > 0.0) == (wanted > 0.0) || edge.is_none_or(|edge| p.max(wanted) <= edge);
        assert!(same, "γ = {gamma}: {p:e}, wanted {wanted:e}");
    }
}

/// `KIND` of the kernels, what else its programs are compiled with, and indices it is for. The last one holds every
/// formula, for a γ of each row's own.
const KINDS: [(u32, &str, &[f64]); 7] = [
    (0, "", &[1.0]),
    (1, "", &[2.0]),
    (2, "", &[1.5]),
    (3, "", &[1.02, 1.1, 1.3, 1.7]),
    (3, "-DSTEEP", &[1.001]),
    (4, "", &[3.0, 8.0, 16.0]),
    (5, "", &[1.0, 1.001, 1.1, 1.5, 2.0, 3.0, 16.0]),
];

#[test]
fn normalisers_are_within_their_stated_error() {
    for (kind, more, gammas) in KINDS {
        for dtype in [0, 1] {
            let mut defines = vec![format!("-DKIND={kind}"), format!("-DDTYPE={dtype}")];
            defines.extend((!more.is_empty()).then(|| more.to_owned()));
            let program = compiled("roots.cpp", &format!("roots-{kind}{more}-{dtype}"), &defines);
            for &gamma in gammas {
                // What docs/gpu.md states.
                let most = match (dtype, gamma) {
                    (0, 1.0) => 4e-7,
                    (0, _) => 2e-7,
                    (_, 2.01..) => 1e-12,
                    _ => 1e-14,
                };
                // A slack of one ulp of 1 in single precision is a mass of that to the power δ.
                let edge = match (dtype, kind) {
                    (0, 1) => Some(2.0_f64.powi(-23)),
                    (0, 2) => Some(2.0_f64.powi(-46)),
                    _ => None,
                };
                let narrowed = |z: f64| if dtype == 0 { f64::from(z as f32) } else { z };
                check_roots(&program, gamma, narrowed, most, edge);
            }
        }
    }
}
