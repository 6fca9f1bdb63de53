//! The paper's empirical sentences with our figures and the verdict that follows from them.

use conformax_study::{Claim, Verdict};

use super::{Cell, Column, Records, Row, Table, exact};
use crate::view::View;

/// How the standard errors come about.
pub(crate) const ERRORS: &str = "Splits of one data set share its rows, so a standard error counts which rows \
                                 there are and not only which splits, and no number of splits makes it vanish: for \
                                 sizes and shares of sets by how much each row moves them, elsewhere by Nadeau and \
                                 Bengio's correction. Mean coverage needs neither, as it is the same over all splits \
                                 of any rows.";

/// What the fourth verdict means.
const IRREFUTABLE: &str = "A claim is irrefutable where no numbers could have spoken against it by its rule: it is not \
                           counted as reproduced.";

/// One row per claim; the records have one per comparison behind it.
pub(super) fn table(view: &View<'_>) -> Table {
    let claims = &view.results.claims;
    let row = |claim: &Claim| {
        Row::of(vec![
            Cell { main: claim.sentence.clone(), below: vec![claim.place.clone(), claim.rule.clone()] },
            claim.found.as_str().into(),
            verdict(claim.verdict).into(),
        ])
    };
    let header = vec![
        "claim",
        "claim_verdict",
        "benchmark",
        "alpha",
        "quantity",
        "first",
        "second",
        "difference",
        "standard_error",
        "splits",
        "verdict",
    ];
    Table {
        slug: "claims".to_owned(),
        title: format!(
            "What the paper says, judged on these rows over {} splits, at 3 standard errors of the paired difference",
            view.results.provenance.claim_splits
        ),
        notes: vec![ERRORS.to_owned(), IRREFUTABLE.to_owned()],
        columns: vec![Column::text("The paper says"), Column::text("We find"), Column::text("Verdict")],
        rows: claims.iter().map(row).collect(),
        records: Records { header, rows: claims.iter().flat_map(records).collect() },
    }
}

/// A verdict in words.
pub(crate) fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "reproduced",
        Verdict::NotReproduced => "not reproduced",
        Verdict::Undecided => "undecided",
        Verdict::Irrefutable => "irrefutable",
    }
}

fn records(claim: &Claim) -> impl Iterator<Item = Vec<String>> + '_ {
    claim.evidence.iter().map(|evidence| {
        vec![
            claim.id.clone(),
            verdict(claim.verdict).to_owned(),
            evidence.benchmark.clone(),
            exact(evidence.alpha),
            evidence.quantity.clone(),
            exact(evidence.first),
            exact(evidence.second),
            exact(evidence.difference.mean),
            exact(evidence.difference.standard_error),
            evidence.difference.splits.to_string(),
            verdict(evidence.verdict).to_owned(),
        ]
    })
}
