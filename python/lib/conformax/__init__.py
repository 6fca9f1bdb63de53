"""Prediction sets with a coverage guarantee, from the logits of any trained classifier.

A label is in the set exactly when temperature-scaled γ-entmax gives it non-zero probability, and split conformal
calibration picks the temperature.

>>> import numpy as np
>>> from conformax import SplitConformalClassifier
>>> rng = np.random.default_rng(0)
>>> labels = rng.integers(10, size=2000)
>>> logits = rng.normal(size=(2000, 10)) + 3 * np.eye(10)[labels]
>>> cp = SplitConformalClassifier("entmax", gamma=1.5, alpha=0.1).calibrate(logits[:1000], labels[:1000])
>>> sets = cp.predict_set(logits[1000:])
>>> sets.labels()[0]
[5]
>>> cp.evaluate(logits[1000:], labels[1000:]).coverage
0.898

`conformax.torch` has the activations with gradients, `conformax.sklearn` an estimator.
"""

from __future__ import annotations

from typing import Any

from ._activations import entmax, entmax15, softmax, sparsemax
from ._classifier import SplitConformalClassifier
from ._conformax import VERSION as __version__
from ._exceptions import ConformaxWarning, NotFittedError
from ._functions import scores, sets
from ._metrics import (
    Evaluation,
    average_size,
    conformal_rank,
    coverage_interval,
    coverage_rate,
    covgap,
    singleton_ratio,
    size_stratified_coverage,
    sscv,
)
from ._plan import plan
from ._rules import ApsScore, EntmaxScore, InvProbScore, MarginScore, RapsScore, SapsScore, TopKScore
from ._schemes import label_weights, pac_rank
from ._sets import PredictionSets
from ._streams import AdaptiveLevel, Alarm, Stream
from ._study import compare, study

__all__ = [
    "AdaptiveLevel",
    "Alarm",
    "ApsScore",
    "ConformaxWarning",
    "EntmaxScore",
    "Evaluation",
    "InvProbScore",
    "MarginScore",
    "NotFittedError",
    "PredictionSets",
    "RapsScore",
    "SapsScore",
    "SplitConformalClassifier",
    "Stream",
    "TopKScore",
    "WrapClassifier",
    "__version__",
    "average_size",
    "compare",
    "conformal_rank",
    "coverage_interval",
    "coverage_rate",
    "covgap",
    "entmax",
    "entmax15",
    "label_weights",
    "pac_rank",
    "plan",
    "scores",
    "sets",
    "singleton_ratio",
    "size_stratified_coverage",
    "softmax",
    "sparsemax",
    "sscv",
    "study",
]


def __getattr__(name: str) -> Any:
    if name == "WrapClassifier":
        # scikit-learn takes a second to import and is optional.
        from .sklearn import WrapClassifier

        return WrapClassifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
