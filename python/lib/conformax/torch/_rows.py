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
