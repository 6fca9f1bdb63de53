"""The compiled functions over blocks of rows, with the results joined."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _conformax
from ._inputs import Logits
from ._parameters import as_threads

#: Groups and weights by name, one for each row.
Beside = dict[str, "np.ndarray | None"]


def score_labels(
    score: _conformax.Score, logits: Logits, labels: np.ndarray, u: np.ndarray | None, **options: Any
) -> np.ndarray:
    """The score of one label per row."""
    if len(labels) != logits.shape[0]:
        raise ValueError(f"there are {logits.shape[0]} rows of logits but {len(labels)} labels")
    return _join(
        _conformax.score_labels(score, block, _part(labels, first, block), _draws(u, first, block, logits),
                                first_row=first, **_checked(options))
        for first, block in logits.blocks()
    )


def score_all(score: _conformax.Score, logits: Logits, u: np.ndarray | None, **options: Any) -> np.ndarray:
    """The score of every label: rows × classes."""
    return _matrix(logits, (
        _conformax.score_all(score, block, _draws(u, first, block, logits), first_row=first, **_checked(options))
        for first, block in logits.blocks()
    ))


def p_values(
    calibration: _conformax.Calibration, logits: Logits, u: np.ndarray | None, *, beside: Beside = {}, **options: Any
) -> np.ndarray:
    """The p-value of every label: rows × classes."""
    return _matrix(logits, (
        calibration.p_values(
            block, _draws(u, first, block, logits), first_row=first, **_parts(beside, first - logits.first_row, block), **_checked(options)
        )
        for first, block in logits.blocks()
    ))


def predict_at(
    calibration: _conformax.Calibration,
    alphas: list[str],
    logits: Logits,
    u: np.ndarray | None,
    *,
    beside: Beside,
    **options: Any,
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Offsets, labels and the logits of these labels, of the sets at each level."""
    parts = [
        calibration.predict(
            alphas, block, _draws(u, first, block, logits), first_row=first, **_parts(beside, first - logits.first_row, block),
            **_checked(options)
        )
        for first, block in logits.blocks()
    ]
    return [_pack([sets[level] for sets in parts]) for level in range(len(alphas))]


def probabilities_at(
    calibration: _conformax.Calibration,
    alpha: str,
    logits: Logits,
    u: np.ndarray | None,
    *,
    beside: Beside,
    **options: Any,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Offsets, labels and probabilities of the sets at a level."""
    return _pack([
        calibration.predict_probabilities(
            alpha, block, _draws(u, first, block, logits), first_row=first, **_parts(beside, first - logits.first_row, block),
            **_checked(options)
        )
        for first, block in logits.blocks()
    ])


def predict(
    score: _conformax.Score, thresholds: list[float], logits: Logits, u: np.ndarray | None, **options: Any
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Offsets, labels and the logits of these labels, of the sets at each threshold."""
    parts = []
    for first, block in logits.blocks():
        draws = _draws(u, first, block, logits)
        parts.append(_conformax.predict(score, thresholds, block, draws, first_row=first, **_checked(options)))
    return [_pack([sets[level] for sets in parts]) for level in range(len(thresholds))]


def extend(
    accumulator: Any,
    logits: Logits,
    labels: np.ndarray,
    u: np.ndarray | None,
    *,
    groups: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    **options: Any,
) -> None:
    """Gives labelled rows to an accumulator."""
    if len(labels) != logits.shape[0]:
        raise ValueError(f"there are {logits.shape[0]} rows of logits but {len(labels)} labels")
    for first, block in logits.blocks():
        draws = _draws(u, first, block, logits)
        beside = _parts({"groups": groups, "weights": weights}, first, block)
        accumulator.extend(block, _part(labels, first, block), draws, **beside, **_checked(options))


def top_labels(logits: Logits, **options: Any) -> np.ndarray:
    """The label with the largest logit in each row, the first of equals."""
    # The log-margin is zero for the top label and its ties, which come in index order.
    [(offsets, labels, _)] = predict(_conformax.Score("log_margin"), [0.0], logits, None, **options)
    return labels[offsets[:-1]]


def _draws(u: np.ndarray | None, first: int, block: np.ndarray, logits: Logits) -> np.ndarray | None:
    if u is not None and len(u) != logits.shape[0]:
        raise ValueError(f"there are {logits.shape[0]} rows of logits but {len(u)} uniform draws")
    return None if u is None else _part(u, first, block)


def _part(values: np.ndarray, first: int, block: np.ndarray) -> np.ndarray:
    return values[first : first + len(block)]


def _parts(beside: Beside, first: int, block: np.ndarray) -> dict[str, np.ndarray]:
    """What comes with the rows of a block."""
    return {name: _part(values, first, block) for name, values in beside.items() if values is not None}


def _join(parts: Any) -> np.ndarray:
    parts = list(parts)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _matrix(logits: Logits, parts: Any) -> np.ndarray:
    return _join(parts).reshape(logits.shape)


def _pack(parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Offsets, labels and a number for each label, of all blocks."""
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0] + [len(labels) for _, labels, _ in parts])
    offsets = [np.zeros(1, dtype=np.int64)] + [offsets[1:] + start for (offsets, _, _), start in zip(parts, starts)]
    return np.concatenate(offsets), _join(labels for _, labels, _ in parts), _join(numbers for _, _, numbers in parts)


def _checked(options: dict[str, Any]) -> dict[str, Any]:
    return {**options, "n_threads": as_threads(options.get("n_threads"))}
