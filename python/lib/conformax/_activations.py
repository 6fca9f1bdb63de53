"""Softmax and its sparse relatives on NumPy arrays, along any axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _conformax
from ._inputs import Logits, as_array
from ._parameters import as_number


def entmax(z: Any, gamma: float = 1.5, axis: int = -1) -> np.ndarray:
    """γ-entmax: probabilities, exactly zero for labels far below the top.

    `gamma` is 1 for softmax, 1.5 for entmax15, 2 for sparsemax, and anything up to 16. The result is `float64` where
    `z` is, and `float32` for narrower floats.

    >>> import conformax
    >>> conformax.entmax([1.0, 0.5, -2.0], gamma=2)
    array([0.75, 0.25, 0.  ])
    """
    array = as_array(z)
    if array.ndim == 0:
        raise ValueError("wanted at least one dimension, got a scalar")
    moved = np.moveaxis(array, axis, -1)
    rows = Logits.of(moved.reshape(-1, moved.shape[-1])).array()
    p = _conformax.entmax(rows, as_number(gamma, "gamma")).reshape(moved.shape)
    return np.moveaxis(p, -1, axis)


def softmax(z: Any, axis: int = -1) -> np.ndarray:
    """Softmax: `exp(z)` over its sum.

    >>> import conformax
    >>> conformax.softmax([0.0, 0.0])
    array([0.5, 0.5])
    """
    return entmax(z, 1.0, axis)


def sparsemax(z: Any, axis: int = -1) -> np.ndarray:
    """Sparsemax: the Euclidean projection onto the simplex.

    >>> import conformax
    >>> conformax.sparsemax([[1.0, 0.5], [0.0, 3.0]])
    array([[0.75, 0.25],
           [0.  , 1.  ]])
    """
    return entmax(z, 2.0, axis)


def entmax15(z: Any, axis: int = -1) -> np.ndarray:
    """1.5-entmax, between softmax and sparsemax.

    >>> import conformax
    >>> conformax.entmax15([3.0, 3.0, 0.0])
    array([0.5, 0.5, 0. ])
    """
    return entmax(z, 1.5, axis)
