//! The paper's printed tables as data, to stand beside ours.
//!
//! They are not like for like: the classifiers are others (accuracies 0.838, 0.860, 0.805 and 0.744), its
//! ImageNet has 50,000 rows where ours has 5,000, and its strata leave out empty sets and come from one split.

/// `1 − softmax` of the label.
pub const INV_PROB: &str = "InvProb";
/// RAPS, tuned.
pub const RAPS: &str = "RAPS";
/// γ = 1.
pub const LOG_MARGIN: &str = "log-margin";
/// γ = 1.5.
pub const ENTMAX: &str = "1.5-entmax";
/// γ = 2.
pub const SPARSEMAX: &str = "sparsemax";
/// γ tuned.
pub const OPT_ENTMAX: &str = "opt-entmax";

/// Printed names in the order of the strata tables' columns. `studies/paper.toml` calls its procedures so; claims,
/// styles and the command find them by these names.
pub const PROCEDURES: [&str; 6] = [INV_PROB, RAPS, LOG_MARGIN, ENTMAX, SPARSEMAX, OPT_ENTMAX];

/// Coverage averaged over five splits (Table 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrintedCoverage {
    /// Miscoverage level.
    pub alpha: f64,
    /// Our name for the benchmark.
    pub benchmark: &'static str,
    /// In the order of [`PROCEDURES`].
    pub coverage: [f64; 6],
}

/// Coverage by set size of one split (Tables 2, 4, 5 and 6).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrintedTable {
    /// Number of the table in the paper.
    pub table: u32,
    /// Our name for the benchmark.
    pub benchmark: &'static str,
    /// Miscoverage level.
    pub alpha: f64,
    /// One per stratum.
    pub rows: [PrintedRow; 5],
}

/// One stratum of a printed table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrintedRow {
    /// Smallest size.
    pub from: u64,
    /// Largest size.
    pub to: u64,
    /// Sets and their coverage (`None` where the table has a dash), in the order of [`PROCEDURES`].
    pub cells: [(u64, Option<f64>); 6],
}

/// Accuracy over five splits (Table 3).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrintedAccuracy {
    /// Our name for the benchmark.
    pub benchmark: &'static str,
    /// Test rows.
    pub n_test: u64,
    /// Mean and standard deviation of accuracy on test rows.
    pub test: (f64, f64),
    /// Calibration rows.
    pub n_cal: u64,
    /// Mean and standard deviation of accuracy on calibration rows.
    pub calibration: (f64, f64),
}

/// The place of a procedure among those of the paper: another way of tuning one, named in brackets, stands beside it.
fn place_of(procedure: &str) -> Option<usize> {
    let name = procedure.split_once(" (").map_or(procedure, |(name, _)| name);
    PROCEDURES.iter().position(|known| *known == name)
}

/// The printed coverage (Table 1).
pub fn coverage_of(benchmark: &str, procedure: &str, alpha: f64) -> Option<f64> {
    let row = COVERAGE.iter().find(|row| row.benchmark == benchmark && row.alpha == alpha)?;
    Some(row.coverage[place_of(procedure)?])
}

/// The strata of a procedure that are printed: sets and their coverage, by the smallest size.
fn strata_of(
    benchmark: &str,
    procedure: &str,
    alpha: f64,
) -> Option<impl Iterator<Item = (u64, u64, Option<f64>)>> {
    let place = place_of(procedure)?;
    let table = STRATA.iter().find(|table| table.benchmark == benchmark && table.alpha == alpha)?;
    Some(table.rows.iter().map(move |row| (row.from, row.cells[place].0, row.cells[place].1)))
}

/// The share of test rows with one label that follows from the printed strata, which leave out empty sets.
///
/// ```
/// use conformax_study::paper::{INV_PROB, singletons_of};
/// assert_eq!(singletons_of("imagenet5k", INV_PROB, 0.01), Some(5339.0 / 30000.0));
/// ```
pub fn singletons_of(benchmark: &str, procedure: &str, alpha: f64) -> Option<f64> {
    let rows = ACCURACY.iter().find(|row| row.benchmark == benchmark)?.n_test;
    let (_, sets, _) = strata_of(benchmark, procedure, alpha)?.find(|(from, ..)| *from == 0)?;
    Some(sets as f64 / rows as f64)
}

/// The largest distance from 1 − α among the printed strata.
///
/// ```
/// use conformax_study::paper::{SPARSEMAX, sscv_of};
/// assert!((sscv_of("cifar100", SPARSEMAX, 0.05).unwrap() - (0.95 - 0.556)).abs() < 1e-12);
/// ```
pub fn sscv_of(benchmark: &str, procedure: &str, alpha: f64) -> Option<f64> {
    let coverages = strata_of(benchmark, procedure, alpha)?.filter_map(|(_, _, coverage)| coverage);
    coverages.map(|coverage| (coverage - (1.0 - alpha)).abs()).reduce(f64::max)
}

const fn coverage(alpha: f64, benchmark: &'static str, printed: [f64; 6]) -> PrintedCoverage {
    // Table 1 has columns RAPS, 1.5-entmax, log-margin, opt-entmax, InvProb, sparsemax.
    let [raps, entmax, log_margin, opt_entmax, inv_prob, sparsemax] = printed;
    PrintedCoverage {
        alpha,
        benchmark,
        coverage: [inv_prob, raps, log_margin, entmax, sparsemax, opt_entmax],
    }
}

/// Table 1.
pub const COVERAGE: [PrintedCoverage; 8] = [
    coverage(0.01, "cifar10", [0.990, 0.990, 0.990, 0.989, 0.990, 0.989]),
    coverage(0.01, "cifar100", [0.991, 0.991, 0.991, 0.991, 0.990, 0.991]),
    coverage(0.01, "imagenet5k", [0.990, 0.990, 0.990, 0.990, 0.990, 0.990]),
    coverage(0.01, "newsgroups", [0.989, 0.988, 0.989, 0.990, 0.989, 0.989]),
    coverage(0.10, "cifar10", [0.899, 0.900, 0.901, 0.900, 0.900, 0.900]),
    coverage(0.10, "cifar100", [0.897, 0.899, 0.900, 0.899, 0.899, 0.900]),
    coverage(0.10, "imagenet5k", [0.899, 0.899, 0.899, 0.899, 0.899, 0.900]),
    coverage(0.10, "newsgroups", [0.895, 0.900, 0.902, 0.900, 0.901, 0.900]),
];

/// Table 3.
pub const ACCURACY: [PrintedAccuracy; 4] = [
    PrintedAccuracy {
        benchmark: "cifar10",
        n_test: 6000,
        test: (0.838, 0.005),
        n_cal: 4000,
        calibration: (0.841, 0.003),
    },
    PrintedAccuracy {
        benchmark: "cifar100",
        n_test: 6000,
        test: (0.860, 0.003),
        n_cal: 4000,
        calibration: (0.858, 0.002),
    },
    PrintedAccuracy {
        benchmark: "imagenet5k",
        n_test: 30000,
        test: (0.805, 0.001),
        n_cal: 20000,
        calibration: (0.805, 0.001),
    },
    PrintedAccuracy {
        benchmark: "newsgroups",
        n_test: 2261,
        test: (0.744, 0.006),
        n_cal: 1508,
        calibration: (0.742, 0.004),
    },
];

/// Tables 2, 4, 5 and 6. Their rows are the classifiers' test rows, less those with empty sets.
#[rustfmt::skip] // A line here is a line of the printed table.
pub const STRATA: [PrintedTable; 9] = [
    PrintedTable {
        table: 2,
        benchmark: "imagenet5k",
        alpha: 0.01,
        rows: [
            PrintedRow { from: 0, to: 1, cells: [(5339, Some(0.994)), (0, None), (7088, Some(0.992)), (44, Some(1.0)), (0, None), (3899, Some(0.996))] },
            PrintedRow { from: 2, to: 3, cells: [(7665, Some(0.992)), (0, None), (7970, Some(0.989)), (1559, Some(1.0)), (0, None), (7383, Some(0.994))] },
            PrintedRow { from: 4, to: 6, cells: [(5403, Some(0.99)), (0, None), (4821, Some(0.986)), (5196, Some(0.998)), (0, None), (6159, Some(0.991))] },
            PrintedRow { from: 7, to: 10, cells: [(3221, Some(0.99)), (0, None), (2604, Some(0.982)), (7585, Some(0.997)), (177, Some(1.0)), (3814, Some(0.992))] },
            PrintedRow { from: 11, to: 1000, cells: [(8372, Some(0.981)), (30000, Some(0.99)), (7517, Some(0.987)), (15616, Some(0.982)), (29823, Some(0.989)), (8745, Some(0.978))] },
        ],
    },
    PrintedTable {
        table: 2,
        benchmark: "imagenet5k",
        alpha: 0.1,
        rows: [
            PrintedRow { from: 0, to: 1, cells: [(19610, Some(0.932)), (17408, Some(0.948)), (21664, Some(0.924)), (20939, Some(0.933)), (19820, Some(0.942)), (20074, Some(0.94))] },
            PrintedRow { from: 2, to: 3, cells: [(9321, Some(0.851)), (8862, Some(0.888)), (6346, Some(0.859)), (7358, Some(0.849)), (9098, Some(0.838)), (8731, Some(0.839))] },
            PrintedRow { from: 4, to: 6, cells: [(917, Some(0.808)), (2696, Some(0.774)), (1404, Some(0.767)), (1407, Some(0.728)), (1048, Some(0.618)), (1140, Some(0.636))] },
            PrintedRow { from: 7, to: 10, cells: [(4, Some(0.5)), (753, Some(0.616)), (373, Some(0.743)), (262, Some(0.588)), (34, Some(0.6)), (50, Some(0.519))] },
            PrintedRow { from: 11, to: 1000, cells: [(0, None), (0, None), (213, Some(0.653)), (34, Some(0.559)), (0, None), (1, Some(0.0))] },
        ],
    },
    PrintedTable {
        table: 4,
        benchmark: "imagenet5k",
        alpha: 0.05,
        rows: [
            PrintedRow { from: 0, to: 1, cells: [(13745, Some(0.975)), (12321, Some(0.979)), (16286, Some(0.966)), (13730, Some(0.975)), (7260, Some(0.992)), (11805, Some(0.982))] },
            PrintedRow { from: 2, to: 3, cells: [(9579, Some(0.958)), (4774, Some(0.977)), (8144, Some(0.945)), (10132, Some(0.956)), (15693, Some(0.968)), (11788, Some(0.959))] },
            PrintedRow { from: 4, to: 6, cells: [(4189, Some(0.903)), (8654, Some(0.959)), (2653, Some(0.912)), (3671, Some(0.905)), (5681, Some(0.885)), (4397, Some(0.898))] },
            PrintedRow { from: 7, to: 10, cells: [(2046, Some(0.835)), (3494, Some(0.865)), (1244, Some(0.916)), (1542, Some(0.858)), (1226, Some(0.742)), (1510, Some(0.819))] },
            PrintedRow { from: 11, to: 1000, cells: [(440, Some(0.793)), (570, Some(0.684)), (1673, Some(0.877)), (925, Some(0.751)), (140, Some(0.614)), (500, Some(0.678))] },
        ],
    },
    PrintedTable {
        table: 5,
        benchmark: "cifar100",
        alpha: 0.01,
        rows: [
            PrintedRow { from: 0, to: 1, cells: [(2222, Some(0.999)), (1577, Some(0.999)), (2422, Some(0.998)), (795, Some(0.999)), (0, None), (2397, Some(0.998))] },
            PrintedRow { from: 2, to: 3, cells: [(1476, Some(0.995)), (1015, Some(0.998)), (1437, Some(0.993)), (1464, Some(0.999)), (12, Some(1.0)), (1457, Some(0.993))] },
            PrintedRow { from: 4, to: 6, cells: [(810, Some(0.998)), (567, Some(1.0)), (750, Some(0.996)), (1416, Some(1.0)), (190, Some(1.0)), (762, Some(0.997))] },
            PrintedRow { from: 7, to: 10, cells: [(457, Some(0.991)), (898, Some(0.998)), (414, Some(0.99)), (977, Some(0.993)), (1410, Some(0.999)), (424, Some(0.988))] },
            PrintedRow { from: 11, to: 100, cells: [(1035, Some(0.98)), (1943, Some(0.984)), (977, Some(0.986)), (1348, Some(0.976)), (4388, Some(0.991)), (960, Some(0.984))] },
        ],
    },
    PrintedTable {
        table: 5,
        benchmark: "cifar100",
        alpha: 0.05,
        rows: [
            PrintedRow { from: 0, to: 1, cells: [(4089, Some(0.976)), (3587, Some(0.986)), (4312, Some(0.97)), (4065, Some(0.977)), (3634, Some(0.987)), (3934, Some(0.98))] },
            PrintedRow { from: 2, to: 3, cells: [(1357, Some(0.917)), (1055, Some(0.967)), (1139, Some(0.913)), (1391, Some(0.918)), (1954, Some(0.916)), (1569, Some(0.917))] },
            PrintedRow { from: 4, to: 6, cells: [(453, Some(0.841)), (1316, Some(0.872)), (346, Some(0.867)), (423, Some(0.83)), (393, Some(0.756)), (432, Some(0.806))] },
            PrintedRow { from: 7, to: 10, cells: [(99, Some(0.677)), (0, None), (121, Some(0.826)), (114, Some(0.728)), (18, Some(0.556)), (62, Some(0.597))] },
            PrintedRow { from: 11, to: 100, cells: [(2, Some(1.0)), (0, None), (82, Some(0.805)), (7, Some(0.286)), (1, Some(1.0)), (3, Some(0.667))] },
        ],
    },
    PrintedTable {
        table: 5,
        benchmark: "cifar100",
        alpha: 0.1,
        rows: [
            PrintedRow { from: 0, to: 1, cells: [(5194, Some(0.916)), (4456, Some(0.952)), (5225, Some(0.92)), (5182, Some(0.924)), (5170, Some(0.925)), (5170, Some(0.925))] },
            PrintedRow { from: 2, to: 3, cells: [(786, Some(0.785)), (1240, Some(0.819)), (683, Some(0.779)), (752, Some(0.769)), (807, Some(0.742)), (804, Some(0.749))] },
            PrintedRow { from: 4, to: 6, cells: [(1, Some(1.0)), (153, Some(0.556)), (82, Some(0.598)), (63, Some(0.587)), (23, Some(0.565)), (25, Some(0.6))] },
            PrintedRow { from: 7, to: 10, cells: [(0, None), (0, None), (9, Some(0.667)), (3, Some(0.667)), (0, None), (1, Some(0.0))] },
            PrintedRow { from: 11, to: 100, cells: [(0, None), (0, None), (1, Some(1.0)), (0, None), (0, None), (0, None)] },
        ],
    },
    PrintedTable {
        table: 6,
        benchmark: "newsgroups",
        alpha: 0.01,
        rows: [
            PrintedRow { from: 0, to: 1, cells: [(0, None), (0, None), (0, None), (0, None), (0, None), (0, None)] },
            PrintedRow { from: 2, to: 3, cells: [(77, Some(0.987)), (0, None), (78, Some(0.987)), (0, None), (0, None), (13, Some(1.0))] },
            PrintedRow { from: 4, to: 6, cells: [(338, Some(0.982)), (0, None), (345, Some(0.983)), (0, None), (0, None), (279, Some(0.978))] },
            PrintedRow { from: 7, to: 10, cells: [(718, Some(0.986)), (0, None), (720, Some(0.986)), (45, Some(0.978)), (10, Some(0.9)), (704, Some(0.989))] },
            PrintedRow { from: 11, to: 20, cells: [(1128, Some(0.994)), (2261, Some(0.988)), (1118, Some(0.994)), (2216, Some(0.99)), (2251, Some(0.988)), (1265, Some(0.992))] },
        ],
    },
    PrintedTable {
        table: 6,
        benchmark: "newsgroups",
        alpha: 0.05,
        rows: [
            PrintedRow { from: 0, to: 1, cells: [(1045, Some(0.957)), (40, Some(0.9)), (1047, Some(0.956)), (745, Some(0.969)), (0, None), (745, Some(0.969))] },
            PrintedRow { from: 2, to: 3, cells: [(413, Some(0.935)), (451, Some(0.973)), (411, Some(0.937)), (660, Some(0.947)), (125, Some(0.944)), (660, Some(0.947))] },
            PrintedRow { from: 4, to: 6, cells: [(166, Some(0.946)), (1441, Some(0.948)), (167, Some(0.946)), (393, Some(0.954)), (588, Some(0.912)), (393, Some(0.954))] },
            PrintedRow { from: 7, to: 10, cells: [(97, Some(0.948)), (213, Some(0.859)), (95, Some(0.947)), (229, Some(0.904)), (1126, Some(0.952)), (229, Some(0.904))] },
            PrintedRow { from: 11, to: 20, cells: [(540, Some(0.983)), (116, Some(0.957)), (541, Some(0.983)), (234, Some(0.923)), (422, Some(0.981)), (234, Some(0.923))] },
        ],
    },
    PrintedTable {
        table: 6,
        benchmark: "newsgroups",
        alpha: 0.1,
        rows: [
            PrintedRow { from: 0, to: 1, cells: [(1481, Some(0.918)), (1095, Some(0.944)), (1481, Some(0.918)), (1356, Some(0.933)), (575, Some(0.967)), (1226, Some(0.939))] },
            PrintedRow { from: 2, to: 3, cells: [(320, Some(0.856)), (311, Some(0.945)), (312, Some(0.853)), (471, Some(0.885)), (1336, Some(0.912)), (642, Some(0.894))] },
            PrintedRow { from: 4, to: 6, cells: [(121, Some(0.868)), (794, Some(0.851)), (113, Some(0.867)), (208, Some(0.837)), (263, Some(0.722)), (234, Some(0.786))] },
            PrintedRow { from: 7, to: 10, cells: [(92, Some(0.946)), (61, Some(0.541)), (77, Some(0.961)), (102, Some(0.833)), (27, Some(0.778)), (92, Some(0.793))] },
            PrintedRow { from: 11, to: 20, cells: [(247, Some(0.964)), (0, None), (278, Some(0.975)), (124, Some(0.944)), (60, Some(0.883)), (67, Some(0.985))] },
        ],
    },
];
