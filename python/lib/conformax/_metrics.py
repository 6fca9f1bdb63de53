"""Metrics of prediction sets against the true labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from . import _conformax
from ._inputs import as_labels
from ._levels import level
from ._sets import PredictionSets


#: Groups that a printed evaluation names, those with the lowest coverage.
_SHOWN_GROUPS = 10


@dataclass(frozen=True, eq=False)
class Evaluation(Mapping):
    """How sets fared; attributes and keys are the same names. What is undefined is None (NaN in arrays)."""

    #: Rows evaluated.
    n: int
    #: Miscoverage level the sets were made for.
    alpha: float
    #: Fraction of rows whose set holds the true label.
    coverage: float
    #: Mean number of labels in a set.
    average_size: float
    #: Fraction of sets with one label, and the coverage of those.
    singleton_ratio: float
    singleton_coverage: float | None
    #: Fraction of sets without a label.
    empty_ratio: float
    #: Largest distance of a size stratum's coverage from 1 − alpha.
    sscv: float
    #: Mean distance of a class's coverage from 1 − alpha, over the classes present.
    covgap: float
    #: Coverage by set size: dictionaries with from, to, n and coverage.
    strata: list[dict[str, Any]]
    #: Coverage of each class.
    class_coverage: np.ndarray
    #: Where coverage on this many rows lies with probability 0.95, by the exact law; None without calibration.
    coverage_interval: tuple[float, float] | None = None
    #: The threshold the sets were made with; None without calibration.
    threshold: float | None = None
    #: "as promised", or "too low" or "too high" where chance would do so once in a thousand times; None without
    #: calibration.
    verdict: str | None = None
    #: What sets lost on average, under risk control.
    mean_loss: float | None = None
    #: Rows counted apart: by group, dictionaries with n, coverage, average_size, an interval that holds for all groups
    #: at once, and a verdict: "too low" where chance would make any of the groups do so once in a thousand times.
    groups: dict[str, dict[str, Any]] | None = None
    #: What is promised and what is not, in a sentence; None without calibration.
    promise: str | None = None

    def expect_coverage(self) -> Evaluation:
        """Raises `ValueError` where coverage, of all rows or of a group, is too low to be chance, and else returns the
        evaluation."""
        judged = [group["verdict"] for group in (self.groups or {}).values()]
        if self.coverage_interval is None and not any(judged):
            why = "evaluate a calibrated classifier on new rows" if self.mean_loss is None else self.promise
            raise ValueError(f"coverage has no law to be held to here: {why}")
        if self.verdict == "too low":
            low, high = self.coverage_interval
            raise ValueError(
                f"coverage {self.coverage:.4f} at alpha = {self.alpha:g} is too low to be chance (the law says {low:.3f} "
                f"to {high:.3f}): these rows are not like those that calibrated"
            )
        for name, group in (self.groups or {}).items():
            if group["verdict"] == "too low":
                raise ValueError(
                    f"coverage {group['coverage']:.4f} of the group {name!r} at alpha = {self.alpha:g} is too low to be "
                    "chance: these rows are not like those that calibrated"
                )
        return self

    def __str__(self) -> str:
        law = "" if self.coverage_interval is None else "  the law says {:.3f} to {:.3f}".format(*self.coverage_interval)
        if law and self.threshold == 0 and self.coverage > self.coverage_interval[1]:
            law += "; the top label alone is right often enough, so coverage is the accuracy"
        shown = [
            ("rows", f"{self.n:,}"),
            ("alpha", f"{self.alpha:g}"),
            ("coverage", f"{self.coverage:.4f}{law}"),
            ("average size", f"{self.average_size:.4f}"),
            ("singleton ratio", f"{self.singleton_ratio:.4f}"),
            ("singleton coverage", "–" if self.singleton_coverage is None else f"{self.singleton_coverage:.4f}"),
            ("empty ratio", f"{self.empty_ratio:.4f}"),
            ("worst size gap (sscv)", f"{self.sscv:.4f}"),
            ("mean class gap (covgap)", f"{self.covgap:.4f}"),
        ]
        if self.mean_loss is not None:
            shown.append(("mean loss", f"{self.mean_loss:.4f}  at most {self.alpha:g} is promised"))
        if self.promise is not None:
            shown.append(("promise", self.promise))
        width = max(len(name) for name, _ in shown)
        lines = [f"{name:<{width}}  {value}" for name, value in shown]
        return "\n".join(lines + self._group_lines())

    def _group_lines(self) -> list[str]:
        """A table of the groups, worst coverage first, and what the worst of them says."""
        if not self.groups:
            return []
        worst = sorted(self.groups.items(), key=lambda item: item[1]["coverage"])
        cells = [("group", "rows", "coverage", "", "interval", "size")]
        for name, group in worst[:_SHOWN_GROUPS]:
            low, high = group["interval"]
            counted = (f"{group['n']:,}", f"{group['coverage']:.4f}", _bar(group["coverage"]))
            cells.append((str(name), *counted, f"{low:.3f} to {high:.3f}", f"{group['average_size']:.4f}"))
        widths = [max(map(len, column)) for column in zip(*cells)]
        aligned = zip("<>><<>", widths)
        form = "  ".join(f"{{:{side}{width}}}" for side, width in aligned)
        lines = ["", *(form.format(*row).rstrip() for row in cells)]
        if len(worst) > _SHOWN_GROUPS:
            lines.append(f"… {len(worst) - _SHOWN_GROUPS:,} more with a coverage no lower: see `groups`")
        wanted = 1 - self.alpha
        short = wanted - worst[0][1]["coverage"]
        if short > 0 and self.mean_loss is None:
            lines.append(
                f"The worst of {len(worst):,} groups is {short:.4f} short of {wanted:g}. The worst of many always looks bad: "
                f"only an interval that ends below {wanted:g} says more than chance, and they hold for all groups at once."
            )
        return lines

    def __getitem__(self, key: str) -> Any:
        if key not in self._names():
            raise KeyError(key)
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    @classmethod
    def _names(cls) -> list[str]:
        return [field.name for field in fields(cls)]


def _bar(share: float) -> str:
    """A bar of up to sixteen characters for a share between 0 and 1."""
    eighths = round(min(max(share, 0.0), 1.0) * 16 * 8)
    return "█" * (eighths // 8) + ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8]


def without_law(metrics: dict[str, Any]) -> dict[str, Any]:
    """What was measured, with nothing said of what the law would have it be."""
    found = {**metrics, "coverage_interval": None, "verdict": None}
    if groups := metrics.get("groups"):
        found["groups"] = {name: {**group, "verdict": None} for name, group in groups.items()}
    return found


def evaluate_sets(sets: Any, labels: Any, alpha: Any, strata: Sequence[int] | None = None, **more: Any) -> Evaluation:
    """Every metric at once."""
    sets = _as_sets(sets)
    truth = as_labels(labels, sets.n_classes, sets.classes, sets.labels_are)
    found = _conformax.evaluate(
        sets.n_classes, sets.offsets, sets.indices, truth, level(alpha), None if strata is None else list(strata)
    )
    return Evaluation(**found, **more)


def coverage_rate(sets: Any, labels: Any) -> float:
    """Fraction of rows whose set holds the true label. `sets` may also be a mask of rows × classes.

    >>> import conformax
    >>> conformax.coverage_rate([[True, False], [True, True]], [1, 0])
    0.5
    """
    return evaluate_sets(sets, labels, 0.5).coverage


def average_size(sets: Any) -> float:
    """Mean number of labels in a set.

    >>> import conformax
    >>> conformax.average_size([[True, False], [True, True]])
    1.5
    """
    return float(_sizes(sets).mean())


def singleton_ratio(sets: Any) -> float:
    """Fraction of sets with exactly one label.

    >>> import conformax
    >>> conformax.singleton_ratio([[True, False], [True, True]])
    0.5
    """
    return float((_sizes(sets) == 1).mean())


def size_stratified_coverage(sets: Any, labels: Any, strata: Sequence[int] | None = None) -> list[dict[str, Any]]:
    """Coverage of the sets of similar size. `strata` are the first sizes of each, 0, 1, 2, 4, 7, 11 by default.

    >>> import conformax
    >>> conformax.size_stratified_coverage([[True, False], [True, True]], [1, 0], strata=[0, 2])
    [{'from': 0, 'to': 1, 'n': 1, 'coverage': 0.0}, {'from': 2, 'to': None, 'n': 1, 'coverage': 1.0}]
    """
    return evaluate_sets(sets, labels, 0.5, strata).strata


def sscv(sets: Any, labels: Any, alpha: Any = 0.1, strata: Sequence[int] | None = None) -> float:
    """Size-stratified coverage violation: the largest distance of a stratum's coverage from 1 − alpha.

    >>> import conformax
    >>> conformax.sscv([[True, False], [True, True]], [1, 0], alpha=0.1)
    0.9
    """
    return evaluate_sets(sets, labels, alpha, strata).sscv


def covgap(sets: Any, labels: Any, alpha: Any = 0.1) -> float:
    """Mean distance of a class's coverage from 1 − alpha, over the classes present.

    >>> import conformax
    >>> conformax.covgap([[True, False], [True, True]], [1, 0], alpha=0.5)
    0.5
    """
    return evaluate_sets(sets, labels, alpha).covgap


def coverage_interval(
    n: int, alpha: Any = 0.1, *, probability: float = 0.95, rows: int | None = None
) -> tuple[float, float]:
    """Where realised coverage lies after calibration on `n` rows: the central interval of its exact law.

    With `rows`, of the coverage measured on that many test rows; without, of the coverage itself.

    >>> import conformax
    >>> low, high = conformax.coverage_interval(1000, 0.1)
    >>> f"{low:.3f} to {high:.3f}"
    '0.881 to 0.918'
    >>> conformax.coverage_interval(1000, 0.1, rows=500)
    (0.866, 0.93)
    """
    return _conformax.coverage_interval(n, level(alpha), probability, rows)


def conformal_rank(n: int, alpha: Any) -> int | None:
    """`⌈(n + 1)(1 − alpha)⌉` in exact arithmetic, or None where that exceeds `n` and sets are full.

    >>> import conformax
    >>> conformax.conformal_rank(149, 0.18), conformax.conformal_rank(8, 0.1)
    (123, None)
    """
    return _conformax.conformal_rank(n, level(alpha))


def _as_sets(sets: Any) -> PredictionSets:
    return sets if isinstance(sets, PredictionSets) else PredictionSets.from_mask(sets)


def _sizes(sets: Any) -> np.ndarray:
    sizes = _as_sets(sets).sizes
    if not len(sizes):
        raise ValueError("metrics need at least one row, got none")
    return sizes
