"""The activations and losses as modules."""

from __future__ import annotations

from torch import Tensor, nn

from ._activation import entmax
from ._loss import entmax_loss
from ._rows import single


class Entmax(nn.Module):
    """γ-entmax as a layer. A `torch.nn.Parameter` as `gamma` is learned.

    >>> import torch
    >>> layer = Entmax(gamma=torch.nn.Parameter(torch.tensor(1.3)))
    >>> [tuple(p.shape) for p in layer.parameters()]
    [()]
    """

    def __init__(self, gamma: float | Tensor = 1.5, dim: int = -1) -> None:
        super().__init__()
        self.gamma = gamma
        self.dim = dim

    def forward(self, z: Tensor) -> Tensor:
        return entmax(z, self.gamma, self.dim)

    def extra_repr(self) -> str:
        return f"gamma={single(self.gamma):g}, dim={self.dim}" if _is_single(self.gamma) else f"dim={self.dim}"


class Entmax15(Entmax):
    """1.5-entmax as a layer."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__(1.5, dim)


class Sparsemax(Entmax):
    """Sparsemax as a layer."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__(2.0, dim)


class EntmaxLoss(nn.Module):
    """The loss of γ-entmax, averaged ("mean"), summed ("sum") or row by row ("none").

    Rows whose target is `ignore_index` count for nothing.

    >>> import torch
    >>> EntmaxLoss(gamma=2.0)(torch.tensor([[1.0, 0.5], [0.0, 3.0]]), torch.tensor([0, 1]))
    tensor(0.0312)
    """

    def __init__(self, gamma: float | Tensor = 1.5, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__()
        if reduction not in ("mean", "elementwise_mean", "sum", "none"):
            raise ValueError(f"reduction must be mean, sum or none, got {reduction!r}")
        self.gamma = gamma
        self.ignore_index = ignore_index
        self.reduction = reduction

    def loss(self, z: Tensor, target: Tensor) -> Tensor:
        """Row by row."""
        return entmax_loss(z, target, self.gamma)

    def forward(self, z: Tensor, target: Tensor) -> Tensor:
        ignored = target == self.ignore_index
        losses = self.loss(z, target.masked_fill(ignored, 0)).masked_fill(ignored, 0.0)
        if self.reduction == "none":
            return losses
        return losses.sum() if self.reduction == "sum" else losses.sum() / (~ignored).sum()


class Entmax15Loss(EntmaxLoss):
    """The loss of 1.5-entmax."""

    def __init__(self, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(1.5, ignore_index, reduction)


class SparsemaxLoss(EntmaxLoss):
    """The loss of sparsemax."""

    def __init__(self, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(2.0, ignore_index, reduction)


def _is_single(gamma: float | Tensor) -> bool:
    return not isinstance(gamma, Tensor) or gamma.numel() == 1
