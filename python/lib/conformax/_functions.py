"""Scores and sets without a classifier object."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from . import _blocks, _conformax
from ._inputs import Logits, as_draws, as_labels
from ._parameters import as_number
from ._rules import canonical, compiled_score
from ._sets import PredictionSets


def scores(
    logits: Any,
    labels: Any = None,
    *,
    score: Any = "entmax",
    gamma: float | None = None,
    lambda_: float | None = None,
    k_reg: int | None = None,
    randomized: bool = True,
    random_state: int = 0,
    u: Any = None,
    n_threads: int | None = None,
    **aliases: Any,
) -> np.ndarray:
    """How strange labels look: one label per row, or every label where `labels` is None. Larger is stranger.

    `u` are uniform draws of the caller's own, one per row in [0, 1), for randomised scores; without them a row draws
    from the seed and its own logits.

    >>> import conformax
    >>> conformax.scores([[1.0, 3.0], [2.0, 0.0]], [0, 0])
    array([2., 0.])
    >>> conformax.scores([[3.0, 2.0, 1.0]], score="sparsemax")
    array([[0., 1., 3.]])
    """
    given = {"gamma": gamma, **canonical(aliases, lambda_=lambda_, k_reg=k_reg)}
    rule = compiled_score(score, **given, randomized=randomized, random_state=random_state)
    rows = Logits.of(logits)
    if labels is None:
        return _blocks.score_all(rule, rows, as_draws(u), n_threads=n_threads)
    return _blocks.score_labels(rule, rows, as_labels(labels, rows.shape[1]), as_draws(u), n_threads=n_threads)


def sets(
    logits: Any,
    threshold: float,
    *,
    score: Any = "entmax",
    gamma: float | None = None,
    lambda_: float | None = None,
    k_reg: int | None = None,
    randomized: bool = True,
    random_state: int = 0,
    u: Any = None,
    n_threads: int | None = None,
    **aliases: Any,
) -> PredictionSets:
    """The labels whose score is at most `threshold`.

    >>> import conformax
    >>> conformax.sets([[2.0, 1.5, -1.0]], threshold=0.5).labels()
    [[0, 1]]
    """
    threshold = as_number(threshold, "threshold")
    if np.isnan(threshold):
        raise ValueError("threshold must be a number, got nan")
    given = {"gamma": gamma, **canonical(aliases, lambda_=lambda_, k_reg=k_reg)}
    rule = compiled_score(score, **given, randomized=randomized, random_state=random_state)
    rows, draws = Logits.of(logits), as_draws(u)
    [(offsets, indices, held)] = _blocks.predict(rule, [threshold], rows, draws, n_threads=n_threads)
    return PredictionSets._of(
        offsets,
        indices,
        n_classes=rows.shape[1],
        threshold=threshold,
        probabilities=partial(_conformax.set_probabilities, rule, threshold, offsets, held),
    )
