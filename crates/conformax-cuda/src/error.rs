//! `Error`: every way a call can fail.

/// What went wrong; the message says what was wanted and what came.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// There is no CUDA driver on this machine.
    NoDriver,
    /// The driver is there, NVRTC is not.
    NoCompiler,
    /// The driver refused a call.
    Driver {
        /// The call.
        call: &'static str,
        /// What the driver says about it.
        reason: String,
    },
    /// NVRTC refused a program.
    Compile {
        /// The kernel.
        kernel: &'static str,
        /// What NVRTC says about it.
        log: String,
    },
    /// A number that the core refuses, such as γ below 1.
    Core(conformax::Error),
    /// A shape that does not fit a launch.
    Shape {
        /// Rows.
        rows: u64,
        /// Classes.
        classes: u64,
    },
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoDriver => f.write_str("there is no CUDA driver (libcuda) on this machine"),
            Self::NoCompiler => f.write_str(
                "CUDA's run-time compiler (libnvrtc) was not found: it comes with PyTorch's CUDA builds and with the \
                 package nvidia-cuda-nvrtc",
            ),
            Self::Driver { call, reason } => write!(f, "CUDA's {call} failed: {reason}"),
            Self::Compile { kernel, log } => write!(f, "the kernel {kernel} did not compile: {log}"),
            Self::Core(error) => error.fmt(f),
            Self::Shape { rows, classes } => {
                write!(f, "wanted 1 to 2³² − 1 classes and fewer than 2³¹ blocks of rows, got {rows} × {classes}")
            }
        }
    }
}

impl std::error::Error for Error {}

impl From<conformax::Error> for Error {
    fn from(error: conformax::Error) -> Self {
        Self::Core(error)
    }
}
