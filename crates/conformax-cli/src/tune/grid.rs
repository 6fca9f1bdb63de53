//! The candidates: the usual grids, or any list.

use conformax::{Draw, EntmaxScore, Lambda, Penalty, RapsScore, ScoreSpec, entmax_grid, raps_grid};

use super::Over;
use crate::failure::Failure;

/// The candidates in the order they are tried; of equals the first wins.
pub(super) fn candidates(
    over: Over,
    grid: &[String],
    classes: usize,
    draw: Draw,
) -> Result<Vec<ScoreSpec>, Failure> {
    match over {
        Over::Gamma if grid.is_empty() => Ok(entmax_grid().into_iter().map(ScoreSpec::Entmax).collect()),
        Over::Gamma => grid.iter().map(|text| gamma(text)).collect(),
        Over::Raps if grid.is_empty() => {
            let scores = raps_grid(classes, draw);
            Ok(scores.into_iter().map(ScoreSpec::Raps).collect())
        }
        Over::Raps => grid.iter().map(|text| raps(text, draw)).collect(),
    }
}

fn gamma(text: &str) -> Result<ScoreSpec, Failure> {
    match text.parse() {
        Ok(gamma) => Ok(ScoreSpec::Entmax(EntmaxScore { gamma })),
        Err(conformax::Error::Decimal(_)) => Err(unreadable(text, "a gamma, as in --grid 1.2,1.5,2")),
        Err(error) => Err(error.into()),
    }
}

fn raps(text: &str, draw: Draw) -> Result<ScoreSpec, Failure> {
    let wanted = "LAMBDA:K_REG, as in --grid 0.01:1,0.01:5,0.1:5";
    let parsed = text.trim().split_once(':').and_then(|(lambda, k_reg)| {
        Some((lambda.trim().parse::<f64>().ok()?, k_reg.trim().parse::<u32>().ok()?))
    });
    let (lambda, k_reg) = parsed.ok_or_else(|| unreadable(text, wanted))?;
    let lambda = Lambda::new(lambda)?;
    Ok(ScoreSpec::Raps(RapsScore { lambda, k_reg, penalty: Penalty::default(), draw }))
}

fn unreadable(text: &str, wanted: &str) -> Failure {
    Failure::error(format!("`{text}` in --grid is not {wanted}"))
}
