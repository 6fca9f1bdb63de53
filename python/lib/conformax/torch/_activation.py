"""The activations with gradients, in the logits and in γ."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from .. import _conformax
from . import _kernels, _operations
from ._rows import check_floats, gamma_tensor, in_rust, index_of, rows_of, single, tensor_of, wide


def entmax(z: Tensor, gamma: float | Tensor = 1.5, dim: int = -1) -> Tensor:
    """γ-entmax along a dimension, differentiable in `z` and, where it is a tensor, in `gamma`.

    `gamma` is a number, a tensor with one entry, or a tensor that broadcasts against `z` with one entry along `dim`.

    >>> import torch
    >>> entmax(torch.tensor([1.0, 0.5, -2.0], dtype=torch.float64), gamma=2.0)
    tensor([0.7500, 0.2500, 0.0000], dtype=torch.float64)
    """
    check_floats(z)
    if z.is_cuda and _kernels.usable(z):
        return _on_gpu(z, gamma, dim)
    last = z.movedim(dim, -1)
    if isinstance(gamma, Tensor) and gamma.numel() != 1:
        per_row = gamma.movedim(dim, -1) if gamma.dim() == z.dim() else gamma
        p = _InOperations.apply(last, per_row)
    elif in_rust(z):
        p = _InRust.apply(last, gamma, single(gamma))
    else:
        p = _InOperations.apply(last, gamma)
    return p.movedim(-1, dim)


def softmax(z: Tensor, dim: int = -1) -> Tensor:
    """Softmax along a dimension, by the same arithmetic as the others."""
    return entmax(z, 1.0, dim)


def sparsemax(z: Tensor, dim: int = -1) -> Tensor:
    """Sparsemax along a dimension: the Euclidean projection onto the simplex."""
    return entmax(z, 2.0, dim)


def entmax15(z: Tensor, dim: int = -1) -> Tensor:
    """1.5-entmax along a dimension."""
    return entmax(z, 1.5, dim)


def _on_gpu(z: Tensor, gamma: float | Tensor, dim: int) -> Tensor:
    if torch.is_autocast_enabled("cuda") and z.dtype in (torch.float16, torch.bfloat16):
        z = z.float()
    if dim == -1 or dim == z.dim() - 1:
        return _kernels.entmax(z, *index_of(gamma, z, dim))
    last = z.movedim(dim, -1)
    return _kernels.entmax(last, *index_of(gamma, z, dim)).movedim(-1, dim)


class _InRust(Function):
    """One γ for all rows, on the CPU."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, gamma: Any, value: float) -> Tensor:
        p = torch.from_numpy(_conformax.entmax(rows_of(z), value)).reshape(z.shape)
        ctx.value = value
        ctx.gamma = gamma if isinstance(gamma, Tensor) else None
        ctx.kind = z.dtype
        ctx.save_for_backward(p)
        return p.to(z.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        (p,) = ctx.saved_tensors
        upstream = upstream.to(p.dtype)
        in_z = in_gamma = None
        if ctx.needs_input_grad[0]:
            product = _conformax.entmax_backward(rows_of(p), rows_of(upstream), ctx.value)
            in_z = tensor_of(product, p).to(ctx.kind)
        if ctx.needs_input_grad[1]:
            slope = tensor_of(_conformax.entmax_gamma_derivative(rows_of(p), ctx.value), p)
            in_gamma = (upstream * slope).sum().to(ctx.gamma.dtype).reshape(ctx.gamma.shape)
        return in_z, in_gamma, None


class _InOperations(Function):
    """Anything else: other devices, autocast, a γ per row."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, gamma: Any) -> Tensor:
        kind = torch.float32 if torch.is_autocast_enabled(z.device.type) else z.dtype
        with torch.autocast(z.device.type, enabled=False):
            x = wide(z)
            index = gamma_tensor(gamma, x)
            p = _operations.forward(x, index)
        ctx.gamma = gamma if isinstance(gamma, Tensor) else None
        ctx.kind = z.dtype
        ctx.save_for_backward(p, index)
        return p.to(kind)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, Tensor | None]:
        p, index = ctx.saved_tensors
        upstream = upstream.to(p.dtype)
        in_z = in_gamma = None
        with torch.autocast(p.device.type, enabled=False):
            if ctx.needs_input_grad[0]:
                in_z = _operations.backward(p, upstream, index).to(ctx.kind)
            if ctx.needs_input_grad[1]:
                slope = upstream * _operations.gamma_derivative(p, index)
                in_gamma = slope.sum_to_size(index.shape).to(ctx.gamma.dtype)
        return in_z, in_gamma
