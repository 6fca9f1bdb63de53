"""The Fenchel–Young loss of γ-entmax: `⟨p − e_y, z⟩ + H_γ(p)`, whose gradient is `p − e_y`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from .. import _conformax
from . import _kernels, _operations
from ._rows import check_floats, gamma_tensor, in_rust, index_of, rows_of, single, wide


def entmax_loss(z: Tensor, target: Tensor, gamma: float | Tensor = 1.5) -> Tensor:
    """The loss of each row of `z` (rows × classes) at its target; zero exactly where all mass is on the target.

    At γ = 1 it is the cross-entropy. It is differentiable in `z` and, where it is a tensor, in `gamma`.

    >>> import torch
    >>> entmax_loss(torch.tensor([[1.0, 0.5], [0.0, 3.0]]), torch.tensor([0, 1]), gamma=2.0)
    tensor([0.0625, 0.0000])
    """
    check_floats(z)
    if z.dim() != 2 or target.shape != z.shape[:1]:
        raise ValueError(f"wanted logits of rows × classes and a target per row, got {z.shape} and {target.shape}")
    if z.is_cuda and _kernels.usable(z):
        return _on_gpu(z, target, gamma)
    return _Loss.apply(z, target, gamma)


def _on_gpu(z: Tensor, target: Tensor, gamma: float | Tensor) -> Tensor:
    autocast = torch.is_autocast_enabled("cuda")
    losses = _kernels.entmax_loss(z, target, *index_of(gamma, z))
    return losses if autocast else losses.to(z.dtype)


def sparsemax_loss(z: Tensor, target: Tensor) -> Tensor:
    """The loss of sparsemax, row by row."""
    return entmax_loss(z, target, 2.0)


def entmax15_loss(z: Tensor, target: Tensor) -> Tensor:
    """The loss of 1.5-entmax, row by row."""
    return entmax_loss(z, target, 1.5)


class _Loss(Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, target: Tensor, gamma: Any) -> Tensor:
        one_gamma = not isinstance(gamma, Tensor) or gamma.numel() == 1
        if in_rust(z) and one_gamma:
            losses, gradient = _rust(z, target, single(gamma))
        else:
            losses, gradient = _operate(z, target, gamma)
        ctx.kind = z.dtype
        ctx.gamma = gamma if ctx.needs_input_grad[2] else None
        ctx.save_for_backward(gradient, *([target] if ctx.needs_input_grad[2] else []))
        return losses.to(z.dtype if not torch.is_autocast_enabled(z.device.type) else torch.float32)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, Tensor | None]:
        gradient, *target = ctx.saved_tensors
        upstream = upstream.to(gradient.dtype).unsqueeze(-1)
        in_gamma = None
        if target:
            index = gamma_tensor(ctx.gamma, gradient)
            p = gradient + torch.zeros_like(gradient).scatter_(-1, target[0].unsqueeze(-1), 1.0)
            slope = upstream * _operations.entropy_gamma_derivative(p, index)
            in_gamma = (slope.sum() if index.numel() == 1 else slope.sum_to_size(index.shape)).reshape(ctx.gamma.shape)
            in_gamma = in_gamma.to(ctx.gamma.dtype)
        return (upstream * gradient).to(ctx.kind), None, in_gamma


def _rust(z: Tensor, target: Tensor, gamma: float) -> tuple[Tensor, Tensor]:
    if target.numel() and (int(target.min()) < 0 or int(target.max()) >= z.shape[-1]):
        raise ValueError(f"targets must lie in 0..{z.shape[-1]}")
    losses, gradient = _conformax.entmax_loss(rows_of(z), target.detach().numpy().astype(np.uint32), gamma)
    return torch.from_numpy(losses), torch.from_numpy(gradient).reshape(z.shape)


def _operate(z: Tensor, target: Tensor, gamma: Any) -> tuple[Tensor, Tensor]:
    with torch.autocast(z.device.type, enabled=False):
        x = wide(z)
        index = gamma_tensor(gamma, x)
        p = _operations.forward(x, index)
        own = torch.zeros_like(p).scatter_(-1, target.unsqueeze(-1), 1.0)
        gradient = p - own
        # −∞ logits have no mass and would make 0 · ∞.
        product = torch.where(gradient != 0, gradient * x, 0.0).sum(dim=-1)
        return product + _operations.entropy(p, index).squeeze(-1), gradient
