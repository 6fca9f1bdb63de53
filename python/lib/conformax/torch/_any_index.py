"""α-entmax for any α > 0, in torch operations: `entmax` takes indices that the core, made for 1 to 16, does not.

With `q` the top label's probability and `g` a logit's gap to the top, `p = q·[1 − (α − 1)·g·q^{1 − α}]₊^{1/(α − 1)}`.
All masses rise with `q`, which lies between `1/K` and 1, so halving finds it; the form holds on both sides of α = 1,
has `q·e^{−g}` for a limit there, and neither overflows nor cancels where α is large.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from . import _operations
from ._rows import check_floats, wide

# Halvings after which the bracket is below the type's resolution.
_STEPS = {torch.float32: 30, torch.float64: 60}


def entmax(x: Tensor, alpha: Any, dim: int = -1) -> Tensor:
    """α-entmax along a dimension, differentiable in `x` and, where it is a tensor, in `alpha`."""
    check_floats(x)
    last = x.movedim(dim, -1)
    if isinstance(alpha, Tensor) and alpha.dim() == x.dim():
        alpha = alpha.movedim(dim, -1)
    return _Entmax.apply(last, alpha).movedim(-1, dim)


def entmax_loss(x: Tensor, target: Tensor, alpha: Any) -> Tensor:
    """`⟨p − e_y, x⟩ + H_α(p)` of each row; its gradient in `x` is `p − e_y`."""
    check_floats(x)
    with torch.no_grad():
        index = _index(alpha, wide(x))
        p = forward(wide(x), index)
        gradient = p - torch.zeros_like(p).scatter_(-1, target.unsqueeze(-1), 1.0)
        entropy = _operations.entropy(p, index).squeeze(-1)
    # Linear in x at fixed p, so that autograd sees the gradient and nothing of the projection. −∞ logits have no mass
    # and would make 0 · ∞.
    held = torch.where(gradient != 0, x, 0.0)
    return ((gradient * held).sum(dim=-1) + entropy).to(x.dtype)


def forward(z: Tensor, alpha: Tensor) -> Tensor:
    """Probabilities of each row; `alpha` broadcasts against `z` with one entry in the last dimension."""
    gaps = z.amax(dim=-1, keepdim=True) - z
    power = alpha - 1
    # α = 1 is another formula; any other value keeps its rows finite until they are replaced.
    safe = torch.where(power == 0, 0.5, power)

    def masses(q: Tensor) -> Tensor:
        # A gap of zero times an infinite power is nothing: ties of the top have its probability.
        rest = torch.where(gaps == 0, 0.0, safe * gaps * q ** (-safe))
        return q * torch.exp(torch.log1p(-rest.clamp(max=1)) / safe)

    low = torch.full_like(gaps[..., :1], 1 / z.shape[-1])
    high = torch.ones_like(low)
    for _ in range(_STEPS[z.dtype]):
        middle = (low + high) / 2
        above = masses(middle).sum(dim=-1, keepdim=True) >= 1
        low, high = torch.where(above, low, middle), torch.where(above, middle, high)
    # At a large α the last label of the support jumps from nothing to most of its mass between two neighbouring
    # numbers q; it gets what the others leave.
    below, over = masses(low), masses(high)
    lacking = 1 - below.sum(dim=-1, keepdim=True)
    share = (over - below).clamp(min=0)
    p = below + lacking * share / share.sum(dim=-1, keepdim=True).clamp(min=torch.finfo(z.dtype).tiny)
    return torch.where(power == 0, torch.softmax(z, dim=-1), p / p.sum(dim=-1, keepdim=True))


def _index(alpha: Any, like: Tensor) -> Tensor:
    return torch.as_tensor(alpha, dtype=like.dtype, device=like.device)


class _Entmax(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, alpha: Any) -> Tensor:
        z = wide(x)
        index = _index(alpha, z)
        p = forward(z, index)
        ctx.alpha = alpha if isinstance(alpha, Tensor) else None
        ctx.kind = x.dtype
        ctx.save_for_backward(p, index)
        return p.to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, Tensor | None]:
        p, index = ctx.saved_tensors
        upstream = upstream.to(p.dtype)
        in_x = in_alpha = None
        if ctx.needs_input_grad[0]:
            in_x = _operations.backward(p, upstream, index).to(ctx.kind)
        if ctx.needs_input_grad[1]:
            slope = upstream * _operations.gamma_derivative(p, index)
            in_alpha = slope.sum_to_size(index.shape).to(ctx.alpha.dtype)
        return in_x, in_alpha
