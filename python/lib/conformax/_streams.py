"""Levels that adapt and an alarm, for labelled rows that come one by one after calibration."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _conformax
from ._inputs import as_seed
from ._levels import level


class AdaptiveLevel:
    """A miscoverage level that adapts, so that misses come at the rate asked for whatever the sequence.

    After every row the level becomes `level + step · (alpha − miss)`; with `decay` the step is `step · t**−decay`, and
    the level settles where nothing changes. It may leave (0, 1): at 0 and below sets are full, at 1 and above empty.

    >>> from conformax import AdaptiveLevel
    >>> adaptive = AdaptiveLevel(0.1, step=0.05)
    >>> adaptive.update(0.02)  # a p-value of at most the level is a miss
    True
    >>> round(adaptive.level, 3)
    0.055
    """

    def __init__(self, alpha: Any = 0.1, step: float = 0.05, decay: float | None = None) -> None:
        self._compiled = _conformax.AdaptiveLevel(level(alpha), float(step), decay)

    @property
    def level(self) -> float:
        """The level of the next row."""
        return self._compiled.level

    @property
    def rows(self) -> int:
        """Labelled rows so far."""
        return self._compiled.rows

    @property
    def misses(self) -> int:
        """How many of them were missed."""
        return self._compiled.misses

    @property
    def bound(self) -> float:
        """How far the share of misses may be from `alpha`, whatever came."""
        return self._compiled.bound

    def update(self, p_value: float) -> bool:
        """Takes in the p-value of a true label; whether its set missed it."""
        if not 0 <= p_value <= 1:
            raise ValueError(f"a p-value must lie between 0 and 1, got {p_value}")
        return self._compiled.update(float(p_value))


class Alarm:
    """Capital that grows when scores stop being exchangeable with those that calibrated.

    It began at 1. As long as nothing changes it ever reaches `1/δ` with probability at most `δ`, so that a capital of 20
    is evidence at the level of one in twenty. `jump` is the share of the capital that changes its bet after every row,
    `seed` that of the draws that break ties.

    >>> from conformax import Alarm
    >>> alarm = Alarm([1.0, 2.0, 3.0, 4.0])
    >>> for strange in range(5, 60):
    ...     capital = alarm.update(strange)
    >>> capital > 20
    True
    """

    def __init__(self, scores: Any, jump: float = 0.01, seed: int = 0) -> None:
        calibrating = np.ascontiguousarray(scores, dtype=np.float64)
        if calibrating.ndim != 1:
            raise ValueError(f"scores must have one dimension, got {calibrating.ndim}")
        self._compiled = _conformax.Alarm(calibrating, float(jump), as_seed(seed))

    def update(self, score: float, u: float | None = None) -> float:
        """Takes in the score of a true label; the capital. `u` is a draw of the caller's own that breaks ties."""
        return self._compiled.update(float(score), u)

    @property
    def capital(self) -> float:
        """The capital; it may overflow where its logarithm does not."""
        return self._compiled.capital

    @property
    def log_capital(self) -> float:
        """The logarithm of the capital."""
        return self._compiled.log_capital

    @property
    def rows(self) -> int:
        """Scores seen, those that calibrated included."""
        return self._compiled.rows
