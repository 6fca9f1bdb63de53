"""Tensors as the rows that the compiled module reads, and back, without a copy where none is needed."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def in_rust(z: Tensor) -> bool:
    """Whether the Rust core computes this tensor: on the CPU, not traced, not under autocast."""
    if z.device.type != "cpu" or torch.compiler.is_compiling():
        return False
    return not torch.is_autocast_enabled("cpu")


def rows_of(z: Tensor) -> np.ndarray:
    """The last dimension as rows; bfloat16 as its bits."""
    flat = z.detach().reshape(-1, z.shape[-1])
    if flat.dtype == torch.bfloat16:
        return flat.contiguous().view(torch.int16).numpy().view(np.uint16)
    return flat.numpy()


def tensor_of(rows: np.ndarray, like: Tensor) -> Tensor:
    """Flat results in the shape and type of a tensor."""
    return torch.from_numpy(rows).reshape(like.shape).to(like.dtype)


def wide(z: Tensor) -> Tensor:
    """In the type that the arithmetic is done in: at least float32."""
    return z if z.dtype in (torch.float32, torch.float64) else z.float()


def check_floats(z: Tensor) -> None:
    if not z.dtype.is_floating_point:
        raise TypeError(f"wanted a tensor of floats, got {z.dtype}")
    if z.dim() == 0:
        raise ValueError("wanted at least one dimension, got a scalar")


def single(gamma: float | Tensor) -> float:
    """The one value of γ."""
    return gamma.detach().item() if isinstance(gamma, Tensor) else float(gamma)


def gamma_tensor(gamma: float | Tensor, like: Tensor) -> Tensor:
    """γ as a tensor that broadcasts against the rows, checked."""
    tensor = torch.as_tensor(gamma, dtype=like.dtype, device=like.device)
    if not bool(((tensor >= 1) & (tensor <= 16)).all()):
        raise ValueError(f"gamma must lie between 1 and 16, got {tensor.detach().flatten()[:8].tolist()}")
    return tensor


def index_of(gamma: float | Tensor, z: Tensor, dim: int = -1) -> tuple[float, Tensor | None]:
    """γ as the kernels take it: a number, or float64 on the device, one for all rows or one each.

    A γ on the device is not looked at here, since that would wait for it: rows whose γ is outside 1..16 come out NaN.
    """
    if not isinstance(gamma, Tensor):
        return float(gamma), None
    if gamma.numel() == 1:
        if not gamma.is_cuda and not gamma.requires_grad:
            return gamma.item(), None
        return 0.0, gamma.to(z.device, torch.float64).reshape(1)
    per_row = gamma.movedim(dim, -1) if gamma.dim() == z.dim() else gamma
    rows = z.movedim(dim, -1).shape[:-1]
    return 0.0, per_row.to(z.device, torch.float64).broadcast_to((*rows, 1)).reshape(-1).contiguous()
