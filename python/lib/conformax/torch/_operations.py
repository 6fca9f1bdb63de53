"""γ-entmax in torch operations, along the last dimension: any device, any γ, one γ per row if need be.

`p = [(γ − 1)(z − max z) − τ]₊^δ` with `δ = 1/(γ − 1)`; the root `τ` lies between −1 and `−K^{−1/δ}`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

# Halvings after which the bracket, at most one wide, is below the type's resolution.
_STEPS = {torch.float32: 30, torch.float64: 60}

# Above γ = 2 the weight of a vanishing mass is unbounded; beyond this it would only overflow.
_HEAVIEST = {torch.float32: 1e30, torch.float64: 1e300}


def bisect(total: Callable[[Tensor], Tensor], low: Tensor, high: Tensor) -> Tensor:
    """Where a falling function of `low..high`, one per row, crosses zero; from the side where it is positive."""
    width = high - low
    for _ in range(_STEPS[low.dtype]):
        width = width / 2
        middle = low + width
        low = torch.where(total(middle) >= 0, middle, low)
    return low


def forward(z: Tensor, gamma: Tensor) -> Tensor:
    """Probabilities of each row; `gamma` broadcasts against `z` with one entry in the last dimension."""
    z = z - z.amax(dim=-1, keepdim=True)
    soft = torch.softmax(z, dim=-1)
    if bool((gamma == 1).all()):
        return soft
    # γ = 1 is another formula; any other value keeps its rows finite until they are replaced.
    safe = torch.where(gamma == 1, 1.5, gamma)
    delta = 1 / (safe - 1)
    x = z * (safe - 1)
    high = -torch.pow(torch.tensor(1.0 / z.shape[-1], dtype=z.dtype, device=z.device), safe - 1)
    low = torch.full_like(x[..., :1], -1.0)

    def mass(tau: Tensor) -> Tensor:
        return torch.clamp(x - tau, min=0) ** delta

    p = mass(bisect(lambda tau: mass(tau).sum(dim=-1, keepdim=True) - 1, low, high.expand_as(low)))
    return torch.where(gamma == 1, soft, p / p.sum(dim=-1, keepdim=True))


def weights(p: Tensor, gamma: Tensor) -> Tensor:
    """`p^{2 − γ}` on the support, 0 elsewhere."""
    held = torch.where(p > 0, p, 1.0) ** (2 - gamma)
    return torch.where(p > 0, held.clamp(max=_HEAVIEST[p.dtype]), 0.0)


def backward(p: Tensor, upstream: Tensor, gamma: Tensor) -> Tensor:
    """`Jᵀ·upstream`: on the support, `s·(u − ū)` with weights `s` and `ū` the mean of `u` under them."""
    return _centred(weights(p, gamma), upstream)


def gamma_derivative(p: Tensor, gamma: Tensor) -> Tensor:
    """`∂p/∂γ`: `s·(b − b̄)` with `b = −ln²p · ∫₀¹ t·p^{(γ − 1)t} dt`, which needs no limit at γ = 1."""
    log = torch.log(torch.where(p > 0, p, 1.0))
    return _centred(weights(p, gamma), -log * log * _moment((1 - gamma) * log))


def entropy(p: Tensor, gamma: Tensor) -> Tensor:
    """Generalised entropy `(1 − Σp^γ)/(γ(γ − 1))`, Shannon's at γ = 1."""
    shannon = -torch.where(p > 0, p * torch.log(torch.where(p > 0, p, 1.0)), 0.0).sum(dim=-1, keepdim=True)
    safe = torch.where(gamma == 1, 1.5, gamma)
    tsallis = (1 - (p**safe).sum(dim=-1, keepdim=True)) / (safe * (safe - 1))
    return torch.where(gamma == 1, shannon, tsallis)


def entropy_gamma_derivative(p: Tensor, gamma: Tensor) -> Tensor:
    """`∂H_γ(p)/∂γ` at fixed `p`, which is also the loss's, since `p` maximises what the loss is made of.

    With `H = −(1/γ)·Σ p·ln p·∫₀¹ p^{(γ − 1)t} dt` it is `−(H + Σ p·ln²p·∫₀¹ t·p^{(γ − 1)t} dt)/γ`, at γ = 1 too.
    """
    log = torch.log(torch.where(p > 0, p, 1.0))
    bent = (p * log * log * _moment((1 - gamma) * log)).sum(dim=-1, keepdim=True)
    return -(entropy(p, gamma) + bent) / gamma


def _centred(weight: Tensor, values: Tensor) -> Tensor:
    # Scaled by the largest, so that sums of the heaviest stay finite.
    share = weight / weight.amax(dim=-1, keepdim=True)
    mean = (share * values).sum(dim=-1, keepdim=True) / share.sum(dim=-1, keepdim=True)
    return torch.where(weight > 0, weight * (values - mean), 0.0)


def _moment(x: Tensor) -> Tensor:
    """`∫₀¹ t·e^{−xt} dt = (1 − (1 + x)e^{−x})/x²`, by its series where that cancels."""
    series = torch.zeros_like(x)
    for n in range(10, -1, -1):
        series = 1 / (n + 2) - x / (n + 1) * series if n else 0.5 - x * series
    far = x.abs() > 0.5
    large = torch.where(far, x, 1.0)
    closed: Any = (1 - (1 + large) * torch.exp(-large)) / (large * large)
    return torch.where(far, closed, series)
