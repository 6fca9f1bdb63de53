//! `conformax compare`: the procedures side by side on the user's own logits.

use clap::Args;
use conformax::Alpha;
use conformax_io::LabelUse;
use conformax_study::paper::{ENTMAX, INV_PROB, LOG_MARGIN, OPT_ENTMAX, RAPS, SPARSEMAX};
use conformax_study::{
    CLEAR, Comparison, ComparisonRow, FEWEST_SPLITS, Spread, Verdict, compare, comparison_study,
};

use crate::args::{DataArgs, confidence, level, quoted};
use crate::benchmark::read_benchmark;
use crate::console::Console;
use crate::failure::Failure;
use crate::json;
use crate::numbers::{rows, share};
use crate::study::StageBar;
use crate::table::{Align, table, text};

/// Compare the procedures on your own logits, over random splits into calibration and test rows.
///
/// Says which gives the smallest sets on these rows, if one clearly does, and the commands that calibrate it with
/// rows that had no part in the choice. Splits share rows, so more of them make a difference no clearer than the
/// rows allow.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  conformax compare data.npz --alpha 0.1
  conformax compare --logits z.npy --labels y.npy --alpha 0.05 --splits 50 --json")]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    data: DataArgs,
    /// How often a set may miss the true label [default: 0.1].
    #[arg(long, value_name = "A", conflicts_with = "confidence", value_parser = level)]
    alpha: Option<Alpha>,
    /// How often a set must hold the true label; another way to write --alpha.
    #[arg(long, value_name = "C", value_parser = confidence)]
    confidence: Option<Alpha>,
    /// Random splits to average over.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(2..=10_000))]
    splits: u64,
    /// Seed of the splits and of randomised scores.
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &CompareArgs, console: &mut Console<'_>) -> Result<(), Failure> {
    let alpha = args.alpha.or(args.confidence);
    let alpha = alpha.map_or_else(|| Alpha::new(0.1), Ok)?;
    let study = comparison_study(alpha, args.splits as usize, args.seed);
    let benchmark = read_benchmark(args.data.open(LabelUse::Required)?, &args.data.title(), console)?;
    let bar = StageBar(console.stages());
    let comparison = compare(&study, benchmark, &bar)?;
    bar.0.finish_and_clear();
    if args.json {
        return json::print(&comparison, console);
    }
    print(&comparison, alpha, &args.data, console)
}

fn print(
    comparison: &Comparison,
    alpha: Alpha,
    data: &DataArgs,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    writeln!(
        console.out(),
        "{}, {} classes, accuracy {}; alpha = {alpha}, mean ± standard deviation over {} random splits\n",
        rows(comparison.rows),
        comparison.classes,
        share(comparison.accuracy, 3),
        comparison.splits
    )?;
    write!(console.out(), "{}", side_by_side(comparison))?;
    writeln!(console.out(), "\n{}", verdict(comparison, alpha, data))?;
    Ok(())
}

fn side_by_side(comparison: &Comparison) -> String {
    let headings = ["procedure", "average size", "coverage", "singletons", "empty", "sscv", "covgap", ""];
    let aligned: Vec<(&str, Align)> = headings
        .into_iter()
        .map(|heading| {
            (heading, if heading.len() > 1 && heading != "procedure" { Align::Right } else { Align::Left })
        })
        .collect();
    let mut table = table(&aligned);
    for ComparisonRow { means, best, .. } in &comparison.procedures {
        table.add_row(vec![
            means.procedure.clone(),
            spread(means.average_size, 2),
            spread(means.coverage, 3),
            spread(means.singleton_ratio, 3),
            spread(means.empty_ratio, 3),
            spread(means.sscv, 3),
            spread(means.covgap, 3),
            if *best { "◀ smallest sets".to_owned() } else { String::new() },
        ]);
    }
    text(&table)
}

fn spread(spread: Spread, digits: usize) -> String {
    format!("{:.digits$} ± {:.digits$}", spread.mean, spread.deviation)
}

/// Which is best on these rows, if one is, and how to get it.
fn verdict(comparison: &Comparison, alpha: Alpha, data: &DataArgs) -> String {
    let smallest = comparison.procedures.iter().find(|row| row.larger_than_smallest.is_none());
    let Some(smallest) = smallest else { return String::new() };
    let name = &smallest.means.procedure;
    let lead = match smallest.best {
        true => format!(
            "on these rows {name} has the smallest sets, by more than {CLEAR} standard errors of the paired difference"
        ),
        false => {
            let close = comparison.procedures.iter().filter(|row| {
                row.larger_than_smallest.is_some_and(|paired| paired.verdict() != Verdict::Reproduced)
            });
            let close: Vec<&str> = close.map(|row| row.means.procedure.as_str()).collect();
            format!(
                "on these rows no procedure is clearly best: {name} has the smallest sets, but not clearly smaller \
                 than {}",
                close.join(", ")
            )
        }
    };
    let few = match comparison.splits < FEWEST_SPLITS {
        true => format!(" (fewer than {FEWEST_SPLITS} splits decide nothing)"),
        false => String::new(),
    };
    format!("{lead}{few}{}", recipe(name, alpha, data).unwrap_or_default())
}

/// How to make a model of the procedure from rows that had no part in choosing it.
fn recipe(procedure: &str, alpha: Alpha, data: &DataArgs) -> Option<String> {
    let (verb, score) = match procedure {
        INV_PROB => ("calibrate", "--score inv_prob"),
        RAPS => ("tune", "--over raps"),
        LOG_MARGIN => ("calibrate", "--score log_margin"),
        ENTMAX => ("calibrate", "--score entmax --gamma 1.5"),
        SPARSEMAX => ("calibrate", "--score sparsemax"),
        OPT_ENTMAX => ("tune", "--over gamma"),
        _ => return None,
    };
    let (whole, parts, stem) = (data.words(), data.words_of_parts(), data.stem());
    let must_not = "\n\nRows that chose a procedure must not calibrate it.";
    let calibrate = |base: &str| {
        let file = quoted(&format!("{base}-cal.npz"));
        format!("  conformax {verb} {file}{parts} {score} --alpha {alpha} -o model.json")
    };
    // Who took this advice has the other part.
    if let Some(base) = stem.strip_suffix("-choose") {
        return Some(format!("{must_not} To use it, calibrate on the other part:\n{}", calibrate(base)));
    }
    let [choose, cal] = ["choose", "cal"].map(|part| quoted(&format!("{stem}-{part}.npz")));
    Some(format!(
        "{must_not} To use it, split first, and choose with one part alone:
  conformax split {whole} --fractions 0.3,0.7 -o {choose} {cal}
  conformax compare {choose}{parts} --alpha {alpha}
{}",
        calibrate(&stem)
    ))
}
