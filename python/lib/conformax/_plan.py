"""How many calibration rows are enough: the exact law of coverage, before there are any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from . import _conformax
from ._levels import level as level_of
from ._levels import levels
from ._schemes import group_text

_USUAL_ROWS = (100, 200, 500, 1_000, 2_000, 5_000, 10_000)
_USUAL_PRECISIONS = (0.05, 0.02, 0.01, 0.005)


def plan(
    alpha: Any = None,
    *,
    confidence_level: Any = None,
    n: int | Iterable[int] | None = None,
    precision: float | Iterable[float] | None = None,
    probability: float = 0.95,
    pac: Any = None,
    groups: Iterable[Any] | None = None,
) -> dict[str, Any]:
    """How far coverage can stray with `n` calibration rows, and how many rows a `precision` takes.

    The law is exact and the same for every classifier and score without ties. `n` and `precision` are one or several;
    without either, the usual ones. The numbers are those of `conformax plan --json`: `rows_needed` below which sets are
    full, `outlooks` with rank, mean, standard deviation, the central interval that holds coverage with `probability`
    and the chance of less than `1 − alpha`, and `needs`, the rows with which coverage is that near to `1 − alpha`.

    With `pac`, coverage is to hold with probability `1 − pac` over the calibration rows rather than on average, as a
    classifier's `pac` promises it: ranks are higher, more rows are needed, and no precision can be asked for.

    With `groups`, the group (or label) of each row that is to calibrate, `groups` says the same of each, fewest rows
    first: what its rows give, where each is to have a threshold of its own.

    >>> import conformax
    >>> plan = conformax.plan(0.1, n=1000, precision=0.02)
    >>> plan["rows_needed"], plan["needs"]
    (9, [{'precision': 0.02, 'n': 854}])
    >>> "{:.3f} to {:.3f}".format(*plan["outlooks"][0]["coverage_interval"])
    '0.881 to 0.918'
    >>> [(each["group"], each["n"], each["rank"]) for each in conformax.plan(0.2, groups=["a"] * 9 + ["b"] * 3)["groups"]]
    [('b', 3, None), ('a', 9, 8)]
    >>> safe = conformax.plan(0.1, n=1000, pac=0.05)
    >>> safe["rows_needed"], safe["outlooks"][0]["rank"]
    (29, 916)
    """
    wanted, several = levels(alpha, confidence_level)
    if several:
        raise ValueError("a plan is for one level, got a list")
    [level] = wanted
    if pac is not None and precision is not None:
        raise ValueError("a precision is about coverage on average: give pac or precision, not both")
    delta = None if pac is None else level_of(pac, "pac")
    unasked = n is None and precision is None and groups is None
    rows = _USUAL_ROWS if unasked else _each(n)
    usual = [near for near in _USUAL_PRECISIONS if near < float(level)] if delta is None else []
    needs = [
        {"precision": near, "n": _conformax.rows_for_precision(level, near, probability)}
        for near in (usual if unasked else _each(precision))
    ]
    found = {"alpha": float(level)} | ({} if delta is None else {"delta": float(delta)})
    found |= {
        "probability": probability,
        "rows_needed": _conformax.rows_needed(level, delta),
        "outlooks": [_outlook(count, level, probability, delta) for count in rows],
        "needs": needs,
    }
    if groups is not None:
        found["groups"] = _groups(groups, level, probability, delta)
    return found


def _groups(groups: Iterable[Any], level: str, probability: float, delta: str | None) -> list[dict[str, Any]]:
    rows = groups.tolist() if hasattr(groups, "tolist") else list(groups)
    n_of = Counter(rows)
    for group in n_of:
        # Calibration refuses a row without a group, so none is planned for.
        group_text(group, rows.index(group))
    counts = sorted(n_of.items(), key=lambda counted: (counted[1], str(counted[0])))
    needed = _conformax.rows_needed(level, delta)
    return [{"group": group, "rows_needed": needed, **_outlook(n, level, probability, delta)} for group, n in counts]


def _outlook(n: int, level: str, probability: float, delta: str | None) -> dict[str, Any]:
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    rank, mean, deviation, interval, below = _conformax.outlook(n, level, probability, delta)
    return {
        "n": n,
        "rank": rank,
        "mean": mean,
        "standard_deviation": deviation,
        "coverage_interval": interval,
        "probability_below": below,
    }


def _each(values: Any) -> list[Any]:
    if values is None:
        return []
    return list(values) if isinstance(values, Iterable) else [values]
