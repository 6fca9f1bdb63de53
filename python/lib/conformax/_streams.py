"""Streams, levels that adapt and an alarm, for rows that come one by one after calibration."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from . import _conformax
from ._classifier import SplitConformalClassifier
from ._inputs import as_labels
from ._levels import level
from ._parameters import as_number, as_seed
from ._sets import PredictionSets


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


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
        decay = None if decay is None else as_number(decay, "decay")
        self._compiled = _conformax.AdaptiveLevel(level(alpha), as_number(step, "step"), decay)

    def __repr__(self) -> str:
        return f"AdaptiveLevel(level {self.level:.4g} after {_count(self.rows, 'row')}, {self.misses} missed)"

    def __getstate__(self) -> bytes:
        return self._compiled.to_bytes()

    def __setstate__(self, state: bytes) -> None:
        self._compiled = _conformax.AdaptiveLevel.from_bytes(state)

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

    It began at 1. As long as nothing changes it ever reaches `1/δ` with probability at most `δ`, so that a capital of
    20 is evidence at the level of one in twenty. `jump` is the share of the capital that changes its bet after every
    row, `seed` that of the draws that break ties.

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
        self._compiled = _conformax.Alarm(calibrating, as_number(jump, "jump"), as_seed(seed))

    def __repr__(self) -> str:
        return f"Alarm(log capital {self.log_capital:.4g}, {_count(self.rows, 'score')} seen)"

    def __getstate__(self) -> bytes:
        return self._compiled.to_bytes()

    def __setstate__(self, state: bytes) -> None:
        self._compiled = _conformax.Alarm.from_bytes(state)

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


class Feedback(NamedTuple):
    """What became of a label."""

    #: "counted", "repeated" (the row has had its label) or "unknown" (no such row waits).
    outcome: str
    #: Whether it was in the set that was given; None where it does not count.
    covered: bool | None
    #: Its p-value against the calibrating scores; None where it does not count.
    p_value: float | None
    #: Whether the alarm rose with it.
    rose: bool


def _name(id: Any) -> str:
    """An id as text. A whole number is its digits, however it is held; one with a fraction is none."""
    if isinstance(id, Integral) and not isinstance(id, bool):
        return str(int(id))
    if isinstance(id, (bool, np.bool_, Real)):
        whole = isinstance(id, Real) and not isinstance(id, bool) and float(id).is_integer()
        # From there on two integers may have one floating-point form.
        if not whole or abs(id) >= 2**53:
            raise ValueError(f"an id must be text or a whole number, got {id!r}")
        return str(int(id))
    return str(id)


class Stream:
    """A calibrated classifier among rows that keep changing: sets now, labels later or never.

    Labels move the level, so that misses come at the rate asked for whatever happens, and feed an alarm that rises when
    rows stop being like those that calibrated: as long as nothing changes, with probability at most `delta`. A `step`
    of 0 keeps the level; without `decay` every step is as large. `window` bounds what is kept, in rows: those waiting
    for a label, those averaged over, and those the alarm compares with before it starts over. Pickles go on with the
    same bits.

    >>> import numpy as np
    >>> from conformax import SplitConformalClassifier, Stream
    >>> rng = np.random.default_rng(0)
    >>> logits, labels = rng.normal(size=(200, 3)), rng.integers(3, size=200)
    >>> model = SplitConformalClassifier(alpha=0.1).calibrate(logits, labels)
    >>> stream = Stream(model, step=0.05, decay=None)
    >>> sets = stream.predict_set([[2.0, 1.0, -3.0]], ids=["first"])
    >>> stream.update("first", 0).covered
    True
    >>> round(stream.level, 3)
    0.105
    >>> stream.update("first", 0).outcome
    'repeated'
    """

    def __init__(
        self,
        model: SplitConformalClassifier,
        alpha: Any = None,
        *,
        step: float = 0.2,
        decay: float | None = 0.6,
        window: int | None = None,
        delta: Any = 0.01,
        seed: int = 0,
    ) -> None:
        model._check_calibrated()
        # A copy: what happens to the classifier later is another model's business.
        self._model = model.__new__(type(model))
        self._model.__setstate__(model.__getstate__())
        wanted = None if alpha is None else level(alpha)
        self._compiled = _conformax.Stream(
            self._model._calibration,
            wanted,
            as_number(step, "step"),
            None if decay is None else as_number(decay, "decay"),
            window,
            level(delta, "delta"),
            as_seed(seed),
        )

    def predict_set(self, logits: Any, *, ids: Sequence[Any] | None = None, groups: Any = None) -> PredictionSets:
        """The sets of rows at the current level. Each row waits for its label under its id, or under its number.

        An id is text, a whole number or something else with a text of its own; 7, 7.0 and "7" are one.
        """
        rows = self._model._rows(self._model._given_again(logits))
        n = rows.shape[0]
        names = None if ids is None else [_name(id) for id in ids]
        if names is not None and len(names) != n:
            raise ValueError(f"there are {n} rows of logits but {len(names)} ids")
        numbers = self._model._beside(n, groups, None)["groups"]
        array = np.ascontiguousarray(rows.array(), dtype=np.float64)
        offsets, indices, at = self._compiled.predict(array, names, numbers)
        return PredictionSets._of(
            offsets,
            indices,
            n_classes=self._model.n_classes_,
            classes=self._model._names,
            labels_are=self._model.labels_are,
            alpha=at,
        )

    def update(self, id: Any, label: Any) -> Feedback:
        """Takes in the label of the row that was predicted under this id."""
        index = as_labels([label], self._model.n_classes_, self._model._names, self._model.labels_are)[0]
        return Feedback(*self._compiled.update(_name(id), int(index)))

    @property
    def level(self) -> float:
        """The level of the next row."""
        return self.status["level"]

    @property
    def alarm(self) -> bool:
        """Whether the alarm has risen."""
        return self.status["alarm"]

    @property
    def status(self) -> dict[str, Any]:
        """Where it stands: rows, labels, coverage, sizes, level and alarm, by the names that the service uses."""
        return self._compiled.status()

    @property
    def trace(self) -> dict[str, np.ndarray]:
        """How it went, at no more than 512 points: labels so far, coverage, size, level and log capital as arrays."""
        columns = ("labelled", "coverage", "size", "level", "log_capital")
        points = self._compiled.trace()
        return {name: np.array([point[place] for point in points]) for place, name in enumerate(columns)}

    def __getstate__(self) -> dict[str, Any]:
        return {"model": self._model, "stream": self._compiled.to_bytes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._model, self._compiled = state["model"], _conformax.Stream.from_bytes(state["stream"])

    def __repr__(self) -> str:
        status = self.status
        labels = status["labelled"]
        coverage = f"coverage {status['covered'] / labels:.4g}" if labels else "no label yet"
        alarm = "alarm" if status["alarm"] else "no alarm"
        rows, labels = _count(status["predicted"], "row"), _count(labels, "label")
        return f"Stream({rows}, {labels}, {coverage}, level {status['level']:.4g}, {alarm})"
