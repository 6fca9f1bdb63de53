//! `Layout`: how many threads share a row, from its length, and what a program must know of the numbers.

/// Type of the logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// 32 bits.
    F32,
    /// 64 bits.
    F64,
    /// IEEE's 16 bits.
    F16,
    /// The upper half of an `f32`.
    Bf16,
}

impl Dtype {
    /// Bytes of one element.
    pub(crate) fn size(self) -> u32 {
        match self {
            Self::F32 => 4,
            Self::F64 => 8,
            Self::F16 | Self::Bf16 => 2,
        }
    }

    /// How the kernels are told.
    pub(crate) fn code(self) -> u32 {
        match self {
            Self::F32 => 0,
            Self::F64 => 1,
            Self::F16 => 2,
            Self::Bf16 => 3,
        }
    }

    /// Elements of a 16-byte access.
    pub(crate) fn pack(self) -> u32 {
        16 / self.size()
    }
}

/// How a launch deals out its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Layout {
    /// A thread a row, `rows` of them a block, through shared memory.
    Narrow { classes: u32, rows: u32 },
    /// `lanes` threads a row, `values` logits each in registers; the first `full` accesses of every thread are inside
    /// the row.
    Held { lanes: u32, values: u32, full: u32, threads: u32 },
    /// A block a row.
    Wide { threads: u32 },
}

/// Longest row that a thread takes alone.
const NARROW: u32 = 32;

/// Shared memory of a block of narrow rows, in bytes: under what every GPU has, with room for several blocks.
const STAGED: u32 = 36 << 10;

impl Layout {
    /// `vec` are the neighbours that a thread takes together. Teams of fewer threads than a warp stay in step with one
    /// another, so rows whose formula differs (`mixed`) take a thread or whole warps.
    pub(crate) fn of(classes: u32, dtype: Dtype, vec: u32, mixed: bool) -> Self {
        let wide = dtype == Dtype::F64;
        if classes <= NARROW {
            let pitch = (classes | 1) * if wide { 8 } else { 4 };
            let rows = [256, 128, 64].into_iter().find(|rows| rows * pitch <= STAGED).unwrap_or(32);
            return Self::Narrow { classes, rows };
        }
        // Registers hold half as many f64.
        let longest = if wide { 512 } else { 1024 };
        let longest = if mixed { longest / 4 } else { longest };
        if classes > longest {
            // Enough loads in flight for long rows, few idle threads for short ones.
            return Self::Wide {
                threads: if classes <= 4096 {
                    128
                } else if classes <= 16384 {
                    256
                } else {
                    512
                },
            };
        }
        let lanes = match classes {
            _ if mixed => 32,
            ..=128 => 8,
            129..=256 => 16,
            _ => 32,
        };
        let values = classes.div_ceil(lanes).next_multiple_of(vec);
        // Few programs: lengths in between share one.
        let values = if values > 8 { values.next_multiple_of(if vec > 4 { vec } else { 4 }) } else { values };
        Self::Held { lanes, values, full: classes / (lanes * vec), threads: 128 }
    }

    /// How rows end to end from these addresses are dealt out, the neighbours that a thread takes together, and whether
    /// rows may begin beside a boundary of 16 bytes.
    ///
    /// Which labels a thread has decides the order of sums, and with it their last bits: that depends on the number of
    /// classes alone, and only the accesses on where the rows lie.
    pub(crate) fn at(classes: u32, dtype: Dtype, mixed: bool, addresses: &[u64]) -> (Self, u32, bool) {
        let pack = dtype.pack();
        let aligned = addresses.iter().all(|address| address % 16 == 0);
        let whole = classes.is_multiple_of(pack);
        match Self::of(classes, dtype, pack, mixed) {
            // A thread has a row for itself; packs are only how a block of rows is fetched, which begins on a boundary.
            layout @ Self::Narrow { .. } => (layout, if aligned { pack } else { 1 }, false),
            layout @ Self::Wide { .. } => (layout, pack, !(aligned && whole)),
            layout @ Self::Held { .. } if whole => (layout, pack, !aligned),
            Self::Held { .. } => (Self::of(classes, dtype, 1, mixed), 1, false),
        }
    }

    /// Blocks of a launch over `rows` rows, and threads of a block.
    pub(crate) fn grid(self, rows: u64) -> (u64, u32) {
        match self {
            Self::Narrow { rows: per_block, .. } => (rows.div_ceil(u64::from(per_block)), per_block),
            Self::Held { lanes, threads, .. } => (rows.div_ceil(u64::from(threads / lanes)), threads),
            Self::Wide { threads } => (rows, threads),
        }
    }

    pub(crate) fn defines(self, into: &mut Vec<String>) {
        match self {
            Self::Narrow { classes, rows } => {
                into.extend(["-DNARROW".into(), format!("-DCLASSES={classes}"), format!("-DROWS={rows}")]);
            }
            Self::Held { lanes, values, full, threads } => into.extend([
                "-DHELD".into(),
                format!("-DLANES={lanes}"),
                format!("-DVALUES={values}"),
                format!("-DFULL={full}"),
                format!("-DTHREADS={threads}"),
            ]),
            Self::Wide { threads } => into.extend(["-DWIDE".into(), format!("-DTHREADS={threads}")]),
        }
    }

    /// The name of the kernel among those of its source.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Narrow { .. } => "narrow",
            Self::Held { .. } => "held",
            Self::Wide { .. } => "wide",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Dtype; 4] = [Dtype::F32, Dtype::F64, Dtype::F16, Dtype::Bf16];

    #[test]
    fn every_length_has_a_place_for_every_class() {
        for dtype in ALL {
            for mixed in [false, true] {
                for classes in (1..5000).chain([128_256, 4_000_000_000]) {
                    for vec in [1, dtype.pack()] {
                        if let Layout::Held { lanes, values, .. } = Layout::of(classes, dtype, vec, mixed) {
                            assert!(lanes * values >= classes && values % vec == 0);
                            assert!(lanes == 32 || !mixed);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_deal_does_not_depend_on_the_address() {
        for dtype in ALL {
            for mixed in [false, true] {
                for classes in (1..5000).chain([128_256, 128_257]) {
                    let (layout, vec, unaligned) = Layout::at(classes, dtype, mixed, &[4096, 512]);
                    let whole = classes * dtype.size() % 16 == 0;
                    for beside in (0..16).step_by(dtype.size() as usize) {
                        let (other, other_vec, other_unaligned) =
                            Layout::at(classes, dtype, mixed, &[4096 + beside, 512]);
                        assert_eq!(layout, other);
                        if classes > NARROW {
                            assert_eq!(vec, other_vec);
                            // An access of 16 bytes at once where, and only where, all are on a boundary.
                            assert_eq!(other_unaligned, vec > 1 && (beside > 0 || !whole));
                        } else {
                            assert!(!other_unaligned && other_vec == if beside == 0 { vec } else { 1 });
                        }
                    }
                    assert!(!(unaligned && whole));
                }
            }
        }
    }

    #[test]
    fn narrow_rows_fit_shared_memory() {
        for dtype in ALL {
            for classes in 1..=NARROW {
                let Layout::Narrow { rows, .. } = Layout::of(classes, dtype, 1, false) else {
                    unreachable!()
                };
                let bytes = rows * (classes | 1) * if dtype == Dtype::F64 { 8 } else { 4 };
                // The first element of every block is on a boundary of 16 bytes.
                assert!(bytes <= 48 << 10 && rows % 32 == 0 && (rows * classes * dtype.size()) % 16 == 0);
            }
        }
    }

    #[test]
    fn a_grid_covers_all_rows() {
        for (classes, rows) in [(10, 1_000_001), (100, 7), (1000, 200_000), (128_256, 4096)] {
            let layout = Layout::of(classes, Dtype::F32, 4, false);
            let (blocks, threads) = layout.grid(rows);
            let per_block = match layout {
                Layout::Narrow { rows, .. } => rows,
                Layout::Held { lanes, .. } => threads / lanes,
                Layout::Wide { .. } => 1,
            };
            assert!(blocks * u64::from(per_block) >= rows);
        }
    }
}
