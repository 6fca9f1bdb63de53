"""The names and signatures of the package `entmax` 1.3, so that changing the import is all there is to do.

    from conformax.torch.compat import entmax15, sparsemax, EntmaxBisect, SparsemaxLoss

This is the one place where `alpha` is the index of the family, as it is there: any number above 0, and for normmax
above 1. Results are exact, so `k`, `n_iter` and `ensure_sum_one`, which trade accuracy for time there, are accepted and
change nothing.

>>> import torch
>>> entmax_bisect(torch.tensor([1.0, 0.5, -2.0]), alpha=2.0)
tensor([0.7500, 0.2500, 0.0000])
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from . import _activation, _any_index, _loss, _modules
from ._normmax import budget, normmax, normmax_loss

__all__ = [
    "BudgetBisect",
    "Entmax15",
    "Entmax15Loss",
    "EntmaxBisect",
    "EntmaxBisectLoss",
    "NormmaxBisect",
    "NormmaxBisectLoss",
    "Sparsemax",
    "SparsemaxBisect",
    "SparsemaxBisectLoss",
    "SparsemaxLoss",
    "budget_bisect",
    "entmax15",
    "entmax15_loss",
    "entmax_bisect",
    "entmax_bisect_loss",
    "normmax_bisect",
    "normmax_bisect_loss",
    "sparsemax",
    "sparsemax_bisect",
    "sparsemax_bisect_loss",
    "sparsemax_loss",
]


def sparsemax(X: Tensor, dim: int = -1, k: int | None = None) -> Tensor:
    """Sparsemax along a dimension."""
    return _activation.sparsemax(X, dim)


def entmax15(X: Tensor, dim: int = -1, k: int | None = None) -> Tensor:
    """1.5-entmax along a dimension."""
    return _activation.entmax15(X, dim)


def sparsemax_bisect(X: Tensor, dim: int = -1, n_iter: int = 50, ensure_sum_one: bool = True) -> Tensor:
    """Sparsemax along a dimension."""
    return _activation.sparsemax(X, dim)


def entmax_bisect(
    X: Tensor, alpha: Any = 1.5, dim: int = -1, n_iter: int = 50, ensure_sum_one: bool = True
) -> Tensor:
    """α-entmax along a dimension, differentiable in `alpha` too."""
    return (_activation if _is_in_core(alpha) else _any_index).entmax(X, alpha, dim)


def normmax_bisect(X: Tensor, alpha: Any = 2, dim: int = -1, n_iter: int = 50) -> Tensor:
    """α-normmax along a dimension: `argmax ⟨x, p⟩ − ‖p‖_α` over the simplex."""
    return normmax(X, alpha, dim)


def budget_bisect(X: Tensor, budget: Any = 2, dim: int = -1, n_iter: int = 50) -> Tensor:
    """Sparsemax with entries in [0, 1] that sum to a budget."""
    return _budget(X, budget, dim)


_budget = budget


def sparsemax_loss(X: Tensor, target: Tensor, k: int | None = None) -> Tensor:
    """The loss of sparsemax, row by row."""
    return _loss.sparsemax_loss(X, target)


def sparsemax_bisect_loss(X: Tensor, target: Tensor, n_iter: int = 50) -> Tensor:
    """The loss of sparsemax, row by row."""
    return _loss.sparsemax_loss(X, target)


def entmax15_loss(X: Tensor, target: Tensor, k: int | None = None) -> Tensor:
    """The loss of 1.5-entmax, row by row."""
    return _loss.entmax15_loss(X, target)


def entmax_bisect_loss(X: Tensor, target: Tensor, alpha: Any = 1.5, n_iter: int = 50) -> Tensor:
    """The loss of α-entmax, row by row."""
    return (_loss if _is_in_core(alpha) else _any_index).entmax_loss(X, target, alpha)


def normmax_bisect_loss(X: Tensor, target: Tensor, alpha: Any = 2, n_iter: int = 50) -> Tensor:
    """The loss of α-normmax, row by row."""
    return normmax_loss(X, target, alpha)


def _is_in_core(alpha: Any) -> bool:
    """Whether the core computes this index, which must be above 0."""
    index = alpha if isinstance(alpha, Tensor) else torch.tensor(alpha, dtype=torch.float64)
    if not bool((index > 0).all()):
        raise ValueError(f"alpha must be greater than 0, got {index.detach().flatten()[:8].tolist()}")
    return bool(((index >= 1) & (index <= 16)).all())


class _Layer(nn.Module):
    """Holds a function's keywords and applies it."""

    def __init__(self, function: Any, **keywords: Any) -> None:
        super().__init__()
        self._function, self._keywords = function, tuple(keywords)
        for name, value in keywords.items():
            setattr(self, name, value)

    def forward(self, X: Tensor) -> Tensor:
        return self._function(X, **{name: getattr(self, name) for name in self._keywords})


class Sparsemax(_Layer):
    """Sparsemax as a layer."""

    def __init__(self, dim: int = -1, k: int | None = None) -> None:
        super().__init__(sparsemax, dim=dim, k=k)


class Entmax15(_Layer):
    """1.5-entmax as a layer."""

    def __init__(self, dim: int = -1, k: int | None = None) -> None:
        super().__init__(entmax15, dim=dim, k=k)


class SparsemaxBisect(_Layer):
    """Sparsemax as a layer."""

    def __init__(self, dim: int = -1, n_iter: int | None = None) -> None:
        super().__init__(sparsemax_bisect, dim=dim, n_iter=n_iter)


class EntmaxBisect(_Layer):
    """α-entmax as a layer; a parameter as `alpha` is learned."""

    def __init__(self, alpha: Any = 1.5, dim: int = -1, n_iter: int = 50) -> None:
        super().__init__(entmax_bisect, alpha=alpha, dim=dim, n_iter=n_iter)


class NormmaxBisect(_Layer):
    """α-normmax as a layer."""

    def __init__(self, alpha: Any = 2, dim: int = -1, n_iter: int = 50) -> None:
        super().__init__(normmax_bisect, alpha=alpha, dim=dim, n_iter=n_iter)


class BudgetBisect(_Layer):
    """Sparsemax with a budget as a layer."""

    def __init__(self, budget: Any = 2, dim: int = -1, n_iter: int = 50) -> None:
        super().__init__(budget_bisect, budget=budget, dim=dim, n_iter=n_iter)


class _CompatLoss(_modules.EntmaxLoss):
    """A loss of one index, with the reductions' names of `entmax`."""

    def __init__(self, alpha: Any, ignore_index: int, reduction: str, **kept: Any) -> None:
        super().__init__(alpha, ignore_index, reduction)
        for name, value in kept.items():
            setattr(self, name, value)


class SparsemaxLoss(_CompatLoss):
    """The loss of sparsemax."""

    def __init__(
        self, k: int | None = None, ignore_index: int = -100, reduction: str = "elementwise_mean"
    ) -> None:
        super().__init__(2.0, ignore_index, reduction, k=k)


class SparsemaxBisectLoss(_CompatLoss):
    """The loss of sparsemax."""

    def __init__(self, n_iter: int = 50, ignore_index: int = -100, reduction: str = "elementwise_mean") -> None:
        super().__init__(2.0, ignore_index, reduction, n_iter=n_iter)


class Entmax15Loss(_CompatLoss):
    """The loss of 1.5-entmax."""

    def __init__(self, k: int = 100, ignore_index: int = -100, reduction: str = "elementwise_mean") -> None:
        super().__init__(1.5, ignore_index, reduction, k=k)


class EntmaxBisectLoss(_CompatLoss):
    """The loss of α-entmax."""

    def __init__(
        self, alpha: Any = 1.5, n_iter: int = 50, ignore_index: int = -100, reduction: str = "elementwise_mean"
    ) -> None:
        super().__init__(alpha, ignore_index, reduction, n_iter=n_iter)
        self.alpha = alpha

    def loss(self, z: Tensor, target: Tensor) -> Tensor:
        """Row by row."""
        return entmax_bisect_loss(z, target, self.alpha)


class NormmaxBisectLoss(_CompatLoss):
    """The loss of α-normmax."""

    def __init__(
        self, alpha: Any = 2, n_iter: int = 50, ignore_index: int = -100, reduction: str = "elementwise_mean"
    ) -> None:
        super().__init__(alpha, ignore_index, reduction, n_iter=n_iter)
        self.alpha = alpha

    def loss(self, z: Tensor, target: Tensor) -> Tensor:
        """Row by row."""
        return normmax_loss(z, target, self.alpha)
