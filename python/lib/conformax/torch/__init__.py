"""Softmax's sparse relatives for PyTorch, with gradients, and the losses that belong to them.

>>> import torch
>>> from conformax.torch import entmax
>>> z = torch.tensor([[1.0, 0.5, -2.0]], requires_grad=True)
>>> p = entmax(z, gamma=2.0)
>>> p.tolist()
[[0.75, 0.25, 0.0]]
>>> p[0, 0].backward()
>>> z.grad.tolist()
[[0.5, -0.5, 0.0]]

CPU tensors are computed by the Rust core and CUDA tensors by kernels of our own, with any γ, one per row too; on the
CPU, autocast and a γ per row run in torch operations. `conformax.torch.compat` has the names and signatures of the
package `entmax`, `conformax.torch.adasplash` those of `adasplash`'s activations.
"""

from __future__ import annotations

from ._activation import entmax, entmax15, softmax, sparsemax
from ._loss import entmax15_loss, entmax_loss, sparsemax_loss
from ._modules import Entmax, Entmax15, Entmax15Loss, EntmaxLoss, Sparsemax, SparsemaxLoss

__all__ = [
    "Entmax",
    "Entmax15",
    "Entmax15Loss",
    "EntmaxLoss",
    "Sparsemax",
    "SparsemaxLoss",
    "entmax",
    "entmax15",
    "entmax15_loss",
    "entmax_loss",
    "softmax",
    "sparsemax",
    "sparsemax_loss",
]
