"""The compiled half of `conformax`: the core's functions over NumPy arrays.

Logits are matrices of float16, float32, float64, or uint16 holding the bits of bfloat16, in any layout. Matrices come
back flat, row after row.
"""

from os import PathLike
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

VERSION: str
ARITHMETIC_VERSION: int
TUNING_FRACTION: float
GRID_GAMMAS: list[float]
GRID_LAMBDAS: list[float]
GRID_K_REGS: list[int]

@final
class Score:
    def __new__(
        cls,
        name: str,
        *,
        gamma: float | None = None,
        lambda_: float | None = None,
        k_reg: int | None = None,
        penalty: str | None = None,
        randomized: bool = True,
        seed: int = 0,
    ) -> Score: ...
    @property
    def name(self) -> str: ...
    @property
    def gamma(self) -> float | None: ...
    @property
    def lambda_(self) -> float | None: ...
    @property
    def k_reg(self) -> int | None: ...
    @property
    def penalty(self) -> str | None: ...
    @property
    def randomized(self) -> bool | None: ...
    @property
    def seed(self) -> int | None: ...
    def fits(self, classes: int) -> bool: ...
    def temperature(self, threshold: float) -> float | None: ...

@final
class Calibration:
    @staticmethod
    def from_scores(
        score: Score,
        scores: NDArray[np.float64],
        *,
        classes: int,
        alphas: list[str],
        names: list[str] | None = None,
        masked: str = "allowed",
        rows: NDArray[np.uint64] | None = None,
    ) -> Calibration: ...
    @property
    def score(self) -> Score: ...
    @property
    def scores(self) -> NDArray[np.float64] | None: ...
    @property
    def n(self) -> int: ...
    @property
    def classes(self) -> int: ...
    @property
    def names(self) -> list[str] | None: ...
    @property
    def alphas(self) -> list[float]: ...
    @property
    def masked(self) -> str: ...
    @property
    def tuning(self) -> tuple[int, int, list[tuple[Score, float, float]]] | None: ...
    @property
    def selection(self) -> tuple[int, list[tuple[Score, float, float, bool, int | None]]] | None: ...
    @property
    def is_a_choice(self) -> bool: ...
    @property
    def no_p_values(self) -> str | None: ...
    @property
    def valid(self) -> bool: ...
    @property
    def input(self) -> str: ...
    def coverage_interval(self, alpha: str, rows: int, probability: float) -> tuple[float, float] | None: ...
    @property
    def promise(self) -> str: ...
    @property
    def promise_and_limits(self) -> str: ...
    @property
    def by(self) -> str: ...
    @property
    def clusters(self) -> list[int | None] | None: ...
    @property
    def losses(self) -> dict[str, Any]: ...
    @property
    def group_names(self) -> list[str]: ...
    @property
    def column(self) -> str | None: ...
    @property
    def threshold_names(self) -> list[str]: ...
    @property
    def ranks(self) -> list[int] | None: ...
    @property
    def prior(self) -> list[float] | None: ...
    @property
    def delta(self) -> float | None: ...
    def too_few(self, alpha: str) -> list[tuple[str, int, int]]: ...
    def impossible(self, alpha: str) -> list[tuple[str, int, int]]: ...
    def level(self, alpha: str) -> tuple[float | None, int | None]: ...
    def thresholds(self, alpha: str) -> tuple[float | None, list[float]]: ...
    def predict(
        self,
        alphas: list[str],
        logits: NDArray[Any],
        u: NDArray[np.float64] | None = None,
        *,
        groups: NDArray[np.uint32] | None = None,
        weights: NDArray[np.float64] | None = None,
        masked: str = "allowed",
        empty: str = "allowed",
        n_threads: int | None = None,
        first_row: int = 0,
    ) -> list[tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[Any]]]: ...
    def predict_probabilities(
        self,
        alpha: str,
        logits: NDArray[Any],
        u: NDArray[np.float64] | None = None,
        *,
        groups: NDArray[np.uint32] | None = None,
        weights: NDArray[np.float64] | None = None,
        masked: str = "allowed",
        empty: str = "allowed",
        n_threads: int | None = None,
        first_row: int = 0,
    ) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.float64]]: ...
    def set_probabilities(
        self,
        alpha: str,
        offsets: NDArray[np.int64],
        logits: NDArray[np.float32] | NDArray[np.float64],
        *,
        groups: NDArray[np.uint32] | None = None,
        weights: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]: ...
    def with_levels(self, alphas: list[str]) -> Calibration: ...
    def for_prediction(self, alphas: list[str]) -> Calibration: ...
    def to_json(self) -> str: ...
    @staticmethod
    def from_json(text: str) -> Calibration: ...
    @staticmethod
    def from_bytes(bytes: bytes) -> Calibration: ...
    def write(self, path: str | PathLike[str]) -> None: ...
    def p_values(
        self,
        logits: NDArray[Any],
        u: NDArray[np.float64] | None = None,
        *,
        groups: NDArray[np.uint32] | None = None,
        weights: NDArray[np.float64] | None = None,
        n_threads: int | None = None,
        first_row: int = 0,
    ) -> NDArray[np.float64]: ...

@final
class Calibrator:
    def __new__(
        cls, score: Score, classes: int, *, masked: str = "allowed", rule: Rule | None = None
    ) -> Calibrator: ...
    def extend(
        self,
        logits: NDArray[Any],
        labels: NDArray[np.uint32],
        u: NDArray[np.float64] | None = None,
        *,
        groups: NDArray[np.uint32] | None = None,
        weights: NDArray[np.float64] | None = None,
        n_threads: int | None = None,
    ) -> None: ...
    def merge(self, other: Calibrator) -> None: ...
    @property
    def n(self) -> int: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(bytes: bytes) -> Calibrator: ...
    def finish(
        self,
        alphas: list[str],
        *,
        names: list[str] | None = None,
        input: str = "logits",
        delta: str | None = None,
        column: str | None = None,
        groups: list[str] | None = None,
        estimated: bool = False,
        prior: list[float] | None = None,
    ) -> Calibration: ...

@final
class Rule:
    def __new__(
        cls,
        by: str = "all",
        *,
        clusters: list[int | None] | None = None,
        groups: int = 0,
        label_weights: list[float] | None = None,
        severity: list[float] | None = None,
        cost: list[list[float]] | None = None,
        count: int | None = None,
    ) -> Rule: ...

@final
class AdaptiveLevel:
    def __new__(cls, alpha: str, step: float, decay: float | None = None) -> AdaptiveLevel: ...
    @property
    def level(self) -> float: ...
    @property
    def rows(self) -> int: ...
    @property
    def misses(self) -> int: ...
    @property
    def bound(self) -> float: ...
    def update(self, p_value: float) -> bool: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(bytes: bytes) -> AdaptiveLevel: ...

@final
class Alarm:
    def __new__(cls, scores: NDArray[np.float64], jump: float, seed: int) -> Alarm: ...
    def update(self, score: float, u: float | None = None) -> float: ...
    @property
    def capital(self) -> float: ...
    @property
    def log_capital(self) -> float: ...
    @property
    def highest(self) -> float: ...
    @property
    def rows(self) -> int: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(bytes: bytes) -> Alarm: ...

@final
class Stream:
    def __new__(
        cls,
        calibration: Calibration,
        alpha: str | None,
        step: float,
        decay: float | None,
        window: int | None,
        delta: str,
        seed: int,
    ) -> Stream: ...
    def predict(
        self, logits: NDArray[np.float64], names: list[str] | None = None, groups: NDArray[np.uint32] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.uint32], float]: ...
    def update(self, name: str, label: int) -> tuple[str, bool | None, float | None, bool]: ...
    def status(self) -> dict[str, Any]: ...
    def trace(self) -> list[tuple[int, float, float, float, float]]: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(bytes: bytes) -> Stream: ...

def row_fingerprints(logits: NDArray[Any]) -> NDArray[np.uint64]: ...
def pac_rank(n: int, alpha: str, delta: float) -> int | None: ...
def label_weights(
    logits: NDArray[np.float64], labels: NDArray[np.uint32], target: NDArray[np.float64], method: str
) -> list[float]: ...

@final
class Evaluator:
    def __new__(
        cls,
        calibration: Calibration,
        alphas: list[str],
        *,
        masked: str = "allowed",
        empty: str = "allowed",
        by: str | None = None,
        groups: list[str] | None = None,
    ) -> Evaluator: ...
    def extend(
        self,
        logits: NDArray[Any],
        labels: NDArray[np.uint32],
        u: NDArray[np.float64] | None = None,
        *,
        groups: NDArray[np.uint32] | None = None,
        weights: NDArray[np.float64] | None = None,
        n_threads: int | None = None,
    ) -> None: ...
    def extend_with_sets(
        self,
        sets: list[tuple[NDArray[np.int64], NDArray[np.uint32]]],
        labels: NDArray[np.uint32],
        fingerprints: NDArray[np.uint64],
        *,
        groups: NDArray[np.uint32] | None = None,
    ) -> None: ...
    def to_bytes(self) -> bytes: ...
    def merge_bytes(self, bytes: bytes) -> None: ...
    def finish(
        self, strata: list[int] | None = None
    ) -> tuple[list[dict[str, Any]], tuple[int, int, int | None, bool]]: ...

@final
class Partial:
    @staticmethod
    def search(score: Score, classes: int, alphas: list[str], *, masked: str = "allowed") -> Partial: ...
    @staticmethod
    def tuner(grid: list[Score], classes: int, alpha: str, *, masked: str = "allowed") -> Partial: ...
    @staticmethod
    def from_bytes(bytes: bytes) -> Partial: ...
    def to_bytes(self) -> bytes: ...
    @property
    def n(self) -> int: ...
    def extend(
        self,
        logits: NDArray[Any],
        labels: NDArray[np.uint32],
        u: NDArray[np.float64] | None = None,
        *,
        groups: NDArray[np.uint32] | None = None,
        weights: NDArray[np.float64] | None = None,
        n_threads: int | None = None,
        first_row: int = 0,
    ) -> None: ...
    def merge(self, other: Partial) -> None: ...
    def extend_scored(self, rows: Partial) -> None: ...
    def next_pass(self) -> Partial | None: ...
    def pairs_pass(self) -> Partial: ...
    def selected(self, *, names: list[str] | None = None) -> Calibration: ...
    def chosen(self) -> Score: ...
    def thresholds(self, classes: int, *, names: list[str] | None = None, masked: str = "allowed") -> Calibration: ...
    def tuned(self, calibrating: Partial, alpha: str, *, names: list[str] | None = None) -> Calibration: ...

def score_labels(
    score: Score,
    logits: NDArray[Any],
    labels: NDArray[np.uint32],
    u: NDArray[np.float64] | None = None,
    *,
    n_threads: int | None = None,
    first_row: int = 0,
) -> NDArray[np.float64]: ...
def score_all(
    score: Score,
    logits: NDArray[Any],
    u: NDArray[np.float64] | None = None,
    *,
    n_threads: int | None = None,
    first_row: int = 0,
) -> NDArray[np.float64]: ...
def predict(
    score: Score,
    thresholds: list[float],
    logits: NDArray[Any],
    u: NDArray[np.float64] | None = None,
    *,
    masked: str = "allowed",
    empty: str = "allowed",
    n_threads: int | None = None,
    first_row: int = 0,
) -> list[tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[Any]]]: ...
def predict_probabilities(
    score: Score,
    threshold: float,
    logits: NDArray[Any],
    u: NDArray[np.float64] | None = None,
    *,
    masked: str = "allowed",
    empty: str = "allowed",
    n_threads: int | None = None,
    first_row: int = 0,
) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.float64]]: ...
def set_probabilities(
    score: Score, threshold: float, offsets: NDArray[np.int64], logits: NDArray[np.float32] | NDArray[np.float64]
) -> NDArray[np.float64]: ...
def logarithms(numbers: NDArray[np.float64]) -> NDArray[np.float64]: ...
def evaluate(
    classes: int,
    offsets: NDArray[np.int64],
    labels: NDArray[np.uint32],
    truth: NDArray[np.uint32],
    alpha: str,
    strata: list[int] | None = None,
) -> dict[str, Any]: ...
def tune(
    grid: list[Score],
    logits: NDArray[Any],
    labels: NDArray[np.uint32],
    calibrating: NDArray[np.int64],
    tuning: NDArray[np.int64],
    alpha: str,
    *,
    names: list[str] | None = None,
    masked: str = "allowed",
    n_threads: int | None = None,
    input: str = "logits",
) -> Calibration: ...
def select(
    grid: list[Score],
    logits: NDArray[Any],
    labels: NDArray[np.uint32],
    alpha: str,
    *,
    names: list[str] | None = None,
    masked: str = "allowed",
    n_threads: int | None = None,
    input: str = "logits",
) -> Calibration: ...
def run_command(arguments: list[str]) -> int: ...
def entmax(logits: NDArray[Any], gamma: float, *, n_threads: int | None = None) -> NDArray[Any]: ...
def entmax_backward(
    p: NDArray[Any], upstream: NDArray[Any], gamma: float, *, n_threads: int | None = None
) -> NDArray[Any]: ...
def entmax_gamma_derivative(p: NDArray[Any], gamma: float, *, n_threads: int | None = None) -> NDArray[Any]: ...
def entmax_loss(
    logits: NDArray[Any], labels: NDArray[np.uint32], gamma: float, *, n_threads: int | None = None
) -> tuple[NDArray[np.float64], NDArray[Any]]: ...
@final
class CudaRows:
    def __new__(
        cls,
        device: int,
        stream: int,
        dtype: int,
        logits: int,
        rows: int,
        classes: int,
        gamma: float,
        fault: int,
    ) -> CudaRows: ...
    def score_labels(self, labels: int, scores: int, never: bool) -> None: ...
    def score_all(self, bound: float, scores: int) -> None: ...
    def set_scratch(self) -> tuple[int, int]: ...
    def find_sets(self, threshold: float, top_label: bool, scratch: int) -> None: ...
    def set_reports(self, scratch: int) -> tuple[int, int | None, int | None]: ...
    def pack_sets(self, scratch: int, offsets: int, labels: int, places: int) -> None: ...
    def probabilities(self, threshold: float, offsets: int, packed: int, p: int, pool: int) -> None: ...
    def fingerprints(self, out: int) -> None: ...

def cuda_problem() -> str | None: ...
def cuda_compile_all(architecture: str) -> int: ...
def cuda_entmax(
    device: int,
    stream: int,
    dtype: int,
    logits: int,
    out: int,
    rows: int,
    classes: int,
    gamma: float,
    gammas: int,
    stride: int,
) -> None: ...
def cuda_entmax_backward(
    device: int,
    stream: int,
    dtype: int,
    p: int,
    upstream: int,
    out: int,
    in_gamma: int,
    rows: int,
    classes: int,
    gamma: float,
    gammas: int,
    stride: int,
) -> None: ...
def cuda_entmax_loss(
    device: int,
    stream: int,
    dtype: int,
    logits: int,
    labels: int,
    losses: int,
    kept: int,
    rows: int,
    classes: int,
    gamma: float,
    gammas: int,
    stride: int,
) -> None: ...
def cuda_entmax_loss_backward(
    device: int,
    stream: int,
    dtype: int,
    logits: int,
    labels: int,
    kept: int,
    upstream: int,
    spread: int,
    out: int,
    rows: int,
    classes: int,
    gamma: float,
    gammas: int,
    stride: int,
) -> None: ...
def conformal_rank(n: int, alpha: str) -> int | None: ...
def rows_needed(alpha: str, delta: str | None = None) -> int: ...
def coverage_interval(
    n: int, alpha: str, probability: float, rows: int | None = None
) -> tuple[float, float]: ...
def outlook(
    n: int, alpha: str, probability: float, delta: str | None = None
) -> tuple[int | None, float, float, tuple[float, float], float]: ...
def rows_for_precision(alpha: str, precision: float, probability: float) -> int: ...
def split(n: int, fractions: list[float], seed: int) -> list[NDArray[np.int64]]: ...
def tuning_split(n: int, tuning_fraction: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
def compare(
    logits: NDArray[Any],
    labels: NDArray[np.uint32],
    alpha: str,
    *,
    splits: int,
    seed: int,
    n_threads: int | None = None,
) -> str: ...
def run_study(
    path: str | PathLike[str] | None = None,
    *,
    benchmarks: str | PathLike[str] | None = None,
    splits: int | None = None,
    n_threads: int | None = None,
) -> str: ...
