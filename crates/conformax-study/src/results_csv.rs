//! `results.csv`: one line per record, the strata side by side, and then those of the other ways to tune.

use crate::results::{Record, Results};

/// The records as CSV. Numbers are the shortest decimals that read back as the same bits; what is undefined is
/// empty, an infinite threshold is `inf`.
pub fn results_csv(results: &Results) -> String {
    let header = header(results.records.first());
    let lines = results.records.iter().chain(&results.tuned).map(line);
    csv_of(std::iter::once(header).chain(lines))
}

/// Rows of cells as CSV; names come from the user's file and may hold anything.
pub fn csv_of(rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
    for row in rows {
        writer.write_record(row).expect("memory takes all that is written");
    }
    let bytes = writer.into_inner().expect("memory takes all that is written");
    String::from_utf8(bytes).expect("what was made of text is text")
}

fn header(first: Option<&Record>) -> Vec<String> {
    let fixed = "benchmark,procedure,alpha,split,n_cal,n_tune,n_test,threshold,gamma,lambda,k_reg,coverage,\
                 average_size,singleton_ratio,singleton_coverage,empty_ratio,sscv,covgap";
    let strata = first.map_or(&[][..], |record| &record.strata);
    let mut names: Vec<String> = fixed.split(',').map(str::to_owned).collect();
    for (place, stratum) in strata.iter().enumerate() {
        // The last stratum ends at the number of classes, which differs between benchmarks.
        let name = match place + 1 == strata.len() {
            true => format!("{}_up", stratum.from),
            false => format!("{}_{}", stratum.from, stratum.to),
        };
        names.extend([format!("n_{name}"), format!("coverage_{name}")]);
    }
    names
}

fn line(record: &Record) -> Vec<String> {
    fn optional(value: Option<impl ToString>) -> String {
        value.map_or(String::new(), |value| value.to_string())
    }
    let mut cells = vec![
        record.benchmark.clone(),
        record.procedure.clone(),
        record.alpha.to_string(),
        record.split.to_string(),
        record.n_cal.to_string(),
        record.n_tune.to_string(),
        record.n_test.to_string(),
        record.threshold.to_string(),
        optional(record.gamma),
        optional(record.lambda),
        optional(record.k_reg),
        record.coverage.to_string(),
        record.average_size.to_string(),
        record.singleton_ratio.to_string(),
        optional(record.singleton_coverage),
        record.empty_ratio.to_string(),
        record.sscv.to_string(),
        record.covgap.to_string(),
    ];
    for stratum in &record.strata {
        cells.push(stratum.n.to_string());
        cells.push(optional(stratum.coverage));
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Stratum;

    #[test]
    fn writes_what_is_undefined_as_nothing() {
        let record = Record {
            benchmark: "a, \"b\"\r".to_owned(),
            procedure: "RAPS".to_owned(),
            alpha: 0.1,
            threshold: f64::INFINITY,
            strata: vec![Stratum { from: 0, to: 7, n: 0, coverage: None }],
            ..Record::default()
        };
        let csv = results_csv(&Results { records: vec![record], ..Results::default() });
        let lines: Vec<&str> = csv.lines().collect();
        assert!(lines[0].ends_with("sscv,covgap,n_0_up,coverage_0_up"), "{}", lines[0]);
        assert_eq!(lines[1], "\"a, \"\"b\"\"\r\",RAPS,0.1,0,0,0,0,inf,,,,0,0,0,,0,0,0,0,");
    }
}
