"""Two more projections that `entmax` has: α-normmax and sparsemax with a budget.

Normmax: `argmax ⟨x, p⟩ − ‖p‖_α` over the simplex. With `w = [x − τ]₊^{1/(α − 1)}` and `τ` such that `Σw^α = 1`, the
solution is `w/Σw`. Moving `x` by `dx` moves `τ` by `⟨p, dx⟩`, from which the backward product below follows.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from ._operations import bisect
from ._rows import check_floats, wide


def normmax(x: Tensor, alpha: Any, dim: int = -1) -> Tensor:
    """α-normmax along a dimension, for α > 1."""
    check_floats(x)
    return _Normmax.apply(x.movedim(dim, -1), _per_row(alpha, x, dim)).movedim(-1, dim)


def normmax_loss(x: Tensor, target: Tensor, alpha: Any) -> Tensor:
    """`⟨p − e_y, x⟩ + 1 − ‖p‖_α` of each row; its gradient is `p − e_y`."""
    index = _per_row(alpha, x, -1)
    p = normmax(x.detach(), alpha)
    gradient = p - torch.zeros_like(p).scatter_(-1, target.unsqueeze(-1), 1.0)
    constant = 1 - (p**index).sum(dim=-1) ** (1 / index.squeeze(-1) if index.dim() else 1 / index)
    # Linear in x at fixed p, so that autograd sees the gradient and nothing of the projection.
    return (gradient * x).sum(dim=-1) + constant


def budget(x: Tensor, total: Any, dim: int = -1) -> Tensor:
    """The point of [0, 1]^K with sum `total` nearest to `x`, along a dimension."""
    check_floats(x)
    return _Budget.apply(x.movedim(dim, -1), _per_row(total, x, dim)).movedim(-1, dim)


def _per_row(value: Any, x: Tensor, dim: int) -> Tensor:
    tensor = torch.as_tensor(value, dtype=wide(x).dtype, device=x.device)
    return tensor.movedim(dim, -1) if tensor.dim() == x.dim() else tensor


class _Normmax(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, alpha: Tensor) -> Tensor:
        z = wide(x)
        top = z.amax(dim=-1, keepdim=True)

        def w(tau: Tensor) -> Tensor:
            return torch.clamp(z - tau, min=0) ** (1 / (alpha - 1))

        # At the maximum − 1 the top label alone gives 1; with all labels equal each gives K^{−1/α}.
        high = top - torch.tensor(1.0 / z.shape[-1], dtype=z.dtype, device=z.device) ** (alpha - 1)
        tau = bisect(lambda tau: (w(tau) ** alpha).sum(dim=-1, keepdim=True) - 1, top - 1, high)
        held = w(tau)
        ctx.kind = x.dtype
        ctx.save_for_backward(held, alpha)
        return (held / held.sum(dim=-1, keepdim=True)).to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        w, alpha = ctx.saved_tensors
        upstream = upstream.to(w.dtype)
        total = w.sum(dim=-1, keepdim=True)
        p = w / total
        slope = torch.where(w > 0, torch.where(w > 0, w, 1.0) ** (2 - alpha), 0.0) / (alpha - 1)
        pull = slope * (upstream - (p * upstream).sum(dim=-1, keepdim=True)) / total
        return (pull - p * pull.sum(dim=-1, keepdim=True)).to(ctx.kind), None


class _Budget(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, total: Tensor) -> Tensor:
        z = wide(x)
        share = total / z.shape[-1]
        low, high = z.amin(dim=-1, keepdim=True) - share, z.amax(dim=-1, keepdim=True) - share

        def p(tau: Tensor) -> Tensor:
            return torch.clamp(z - tau, min=0, max=1)

        found = p(bisect(lambda tau: p(tau).sum(dim=-1, keepdim=True) - total, low, high))
        ctx.kind = x.dtype
        ctx.save_for_backward(found)
        return found.to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        (p,) = ctx.saved_tensors
        inside = (p > 0) & (p < 1)
        upstream = upstream.to(p.dtype)
        mean = (upstream * inside).sum(dim=-1, keepdim=True) / inside.sum(dim=-1, keepdim=True).clamp(min=1)
        return torch.where(inside, upstream - mean, 0.0).to(ctx.kind), None
