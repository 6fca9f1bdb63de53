"""The names of the activations of the package `adasplash` 0.2, so that changing the import is all there is to do.

    from conformax.torch.adasplash import triton_entmax

As there, `alpha` is the index of the family. Results are exact, so `n_iter`, `fast_math` and `use_histogram`, which
trade accuracy for time there, are accepted and change nothing; any dimension, any index from 1 to 16 and every float
type work, on any device.

>>> import torch
>>> triton_entmax(torch.tensor([1.0, 0.5, -2.0]), alpha=2.0)
tensor([0.7500, 0.2500, 0.0000])
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ._activation import entmax

__all__ = ["triton_entmax", "triton_entmax15", "triton_entmax_v1", "triton_entmax_v2", "triton_sparsemax"]


def triton_entmax(
    x: Tensor, alpha: Any = 1.5, n_iter: int = 2, use_histogram: bool = True, fast_math: bool = False
) -> Tensor:
    """α-entmax along the last dimension."""
    return entmax(x, alpha)


def triton_entmax_v1(x: Tensor, alpha: Any = 1.5, n_iter: int = 10, fast_math: bool = True) -> Tensor:
    """α-entmax along the last dimension."""
    return entmax(x, alpha)


def triton_entmax_v2(
    x: Tensor, alpha: Any = 1.5, n_iter: int = 2, use_histogram: bool = True, fast_math: bool = False
) -> Tensor:
    """α-entmax along the last dimension."""
    return entmax(x, alpha)


def triton_sparsemax(x: Tensor, **unused: Any) -> Tensor:
    """Sparsemax along the last dimension."""
    return entmax(x, 2.0)


def triton_entmax15(x: Tensor, **unused: Any) -> Tensor:
    """1.5-entmax along the last dimension."""
    return entmax(x, 1.5)
