"""Our CUDA kernels as torch operations, along the last dimension: `torch.ops.conformax.*`.

They run on the current stream, take their outputs from torch's allocator, copy nothing to the host and wait for
nothing, so that CUDA graphs can capture them. What PyTorch needs to trace them (shapes, gradients) is registered with
them.
"""

from __future__ import annotations

import contextlib
import ctypes
import glob
import importlib.util
import os
import warnings
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from .. import _conformax
from .._exceptions import ConformaxWarning
from . import _operations

_CODES = {torch.float32: 0, torch.float64: 1, torch.float16: 2, torch.bfloat16: 3}

# What a row of the loss keeps for its backward pass.
_KEPT = 6


def usable(z: Tensor) -> bool:
    """Whether the kernels take this tensor. Where they cannot run, a warning says why, once."""
    return z.is_cuda and z.dtype in _CODES and _ready()


_found: list[bool] = []


# Known before tracing begins: a compiled function is not asked again.
@torch.compiler.assume_constant_result
def _ready() -> bool:
    if not _found:
        _found.append(_look())
    return _found[0]


def _look() -> bool:
    reason = problem()
    if reason is not None:
        warnings.warn(
            f"CUDA tensors are computed in torch operations, many times slower than conformax's kernels: {reason}",
            ConformaxWarning,
            stacklevel=6,
        )
    return reason is None


def problem() -> str | None:
    """Why the kernels cannot run on this machine, or None where they can."""
    if torch.version.cuda is None:
        return "this torch is built without CUDA"
    _load_compiler()
    return _conformax.cuda_problem()


def _load_compiler() -> None:
    """Opens the NVRTC that belongs to this torch, which the compiled module then finds by its name."""
    major = (torch.version.cuda or "").partition(".")[0]
    name = f"libnvrtc.so.{major}"
    for folder in _library_folders(major):
        # Its other half it asks for by name, which need not lie where the loader looks.
        for path in [*glob.glob(os.path.join(folder, "libnvrtc-builtins.so.*")), os.path.join(folder, name)]:
            if os.path.exists(path):
                with contextlib.suppress(OSError):
                    ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        if os.path.exists(os.path.join(folder, name)):
            return


def _library_folders(major: str) -> list[str]:
    folders = [os.path.join(os.path.dirname(torch.__file__), "lib")]
    packages = importlib.util.find_spec("nvidia")
    for root in (packages.submodule_search_locations or []) if packages else []:
        folders += [os.path.join(root, f"cu{major}", "lib"), os.path.join(root, "cuda_nvrtc", "lib")]
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            folders.append(os.path.join(os.environ[variable], "lib64"))
    return [*folders, "/usr/local/cuda/lib64"]


def _eager(z: Tensor) -> bool:
    """Whether a call may go straight to the driver: nobody is tracing, and the tensor has memory."""
    return (
        type(z) in (Tensor, torch.nn.Parameter)
        and not torch.compiler.is_compiling()
        and torch._C._len_torch_dispatch_stack() == 0
        and torch._C._functorch.peek_interpreter_stack() is None
    )


def entmax(z: Tensor, gamma: float, gammas: Tensor | None) -> Tensor:
    """γ-entmax of the last dimension; `gammas`, one for all rows or one each in float64, replaces `gamma`."""
    if not _eager(z):
        return _entmax(z, gamma, gammas)
    if torch.is_grad_enabled() and (z.requires_grad or (gammas is not None and gammas.requires_grad)):
        return _Eager.apply(z, gamma, gammas)
    return _run_forward(z, gamma, gammas)


def entmax_loss(z: Tensor, target: Tensor, gamma: float, gammas: Tensor | None) -> Tensor:
    """The loss of every row, in float32 or, for float64 logits, in float64."""
    if not _eager(z):
        return _loss(z, target, gamma, gammas)[0]
    if torch.is_grad_enabled() and (z.requires_grad or (gammas is not None and gammas.requires_grad)):
        return _EagerLoss.apply(z, target, gamma, gammas)
    return _run_loss(z, target, gamma, gammas)[0]


def _place(z: Tensor) -> tuple[int, int, int]:
    device = z.device.index
    return device, torch._C._cuda_getCurrentRawStream(device), _CODES[z.dtype]


def _check_place(z: Tensor, other: Tensor, what: str) -> None:
    """A kernel takes addresses: one of another device would be read as if it were of this one."""
    if other.device != z.device:
        raise ValueError(f"wanted {what} on {z.device} as the logits are, got {other.device}")


def _each(gammas: Tensor | None) -> tuple[int, int]:
    """Address and step of a γ per row."""
    return (0, 0) if gammas is None else (gammas.data_ptr(), int(gammas.numel() > 1))


def _run_forward(z: Tensor, gamma: float, gammas: Tensor | None) -> Tensor:
    z = z.contiguous()
    p = torch.empty_like(z)
    classes = z.shape[-1]
    if z.numel():
        _conformax.cuda_entmax(
            *_place(z), z.data_ptr(), p.data_ptr(), z.numel() // classes, classes, gamma, *_each(gammas)
        )
    return p


def _run_backward(
    p: Tensor, upstream: Tensor, gamma: float, gammas: Tensor | None, in_gamma: bool
) -> tuple[Tensor, Tensor]:
    _check_place(p, upstream, "the upstream gradient")
    upstream = upstream.to(p.dtype).contiguous()
    out = torch.empty_like(p)
    classes = p.shape[-1]
    rows = p.numel() // classes if p.numel() else 0
    slopes = torch.empty(rows if in_gamma else 0, dtype=torch.float64, device=p.device)
    if rows:
        _conformax.cuda_entmax_backward(
            *_place(p), p.data_ptr(), upstream.data_ptr(), out.data_ptr(), slopes.data_ptr() if in_gamma else 0,
            rows, classes, gamma, *_each(gammas),
        )  # fmt: skip
    return out, slopes


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32


def _run_loss(z: Tensor, target: Tensor, gamma: float, gammas: Tensor | None) -> tuple[Tensor, Tensor]:
    _check_place(z, target, "targets")
    z = z.contiguous()
    target = target.to(torch.int64).contiguous()
    rows, classes = z.shape
    losses = torch.empty(rows, dtype=_wide(z.dtype), device=z.device)
    kept = torch.empty((rows, _KEPT), dtype=torch.float64, device=z.device)
    if rows:
        _conformax.cuda_entmax_loss(
            *_place(z), z.data_ptr(), target.data_ptr(), losses.data_ptr(), kept.data_ptr(), rows, classes, gamma,
            *_each(gammas),
        )  # fmt: skip
    return losses, kept


def _run_loss_backward(
    z: Tensor, target: Tensor, kept: Tensor, upstream: Tensor, gamma: float, gammas: Tensor | None
) -> Tensor:
    z = z.contiguous()
    target = target.to(torch.int64).contiguous()
    upstream = upstream.to(_wide(z.dtype))
    out = torch.empty_like(z)
    if z.numel():
        _conformax.cuda_entmax_loss_backward(
            *_place(z), z.data_ptr(), target.data_ptr(), kept.data_ptr(), upstream.data_ptr(), upstream.stride(0),
            out.data_ptr(), *z.shape, gamma, *_each(gammas),
        )  # fmt: skip
    return out


def _sum_of(slopes: Tensor, gammas: Tensor) -> Tensor:
    return slopes.sum().reshape(gammas.shape) if gammas.numel() == 1 else slopes.reshape(gammas.shape)


def _loss_in_gamma(z: Tensor, upstream: Tensor, gamma: float, gammas: Tensor, run: Any) -> Tensor:
    """The losses' gradient in γ, from the probabilities, which the loss itself does not write."""
    p = run(z.detach(), gamma, gammas.detach()).to(_wide(z.dtype))
    index = gammas.detach().to(p.dtype).reshape(-1, 1)
    slopes = _operations.entropy_gamma_derivative(p, index).squeeze(-1) * upstream
    return _sum_of(slopes, gammas).to(gammas.dtype)


class _Eager(Function):
    """The same as the traced operation with less to do on the way: a call takes a few microseconds."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, gamma: float, gammas: Tensor | None) -> Tensor:
        p = _run_forward(z, gamma, gammas)
        ctx.gamma = gamma
        ctx.save_for_backward(p, gammas)
        return p

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, Tensor | None]:
        p, gammas = ctx.saved_tensors
        in_gamma = ctx.needs_input_grad[2]
        in_z, slopes = _run_backward(p, upstream, ctx.gamma, gammas, in_gamma)
        return in_z, None, _sum_of(slopes, gammas) if in_gamma else None


class _EagerLoss(Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, target: Tensor, gamma: float, gammas: Tensor | None) -> Tensor:
        losses, kept = _run_loss(z, target, gamma, gammas)
        ctx.gamma = gamma
        ctx.save_for_backward(z, target, kept, gammas)
        return losses

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, None, None, Tensor | None]:
        z, target, kept, gammas = ctx.saved_tensors
        in_z = in_gamma = None
        if ctx.needs_input_grad[0]:
            in_z = _run_loss_backward(z, target, kept, upstream, ctx.gamma, gammas)
        if ctx.needs_input_grad[3]:
            in_gamma = _loss_in_gamma(z, upstream, ctx.gamma, gammas, _run_forward)
        return in_z, None, None, in_gamma


def _plain(like: Tensor) -> Tensor:
    return torch.empty_like(like, memory_format=torch.contiguous_format)


@torch.library.custom_op("conformax::entmax", mutates_args=(), device_types="cuda")
def _entmax(z: Tensor, gamma: float, gammas: Tensor | None) -> Tensor:
    return _run_forward(z, gamma, gammas)


@_entmax.register_fake
def _(z: Tensor, gamma: float, gammas: Tensor | None) -> Tensor:
    return _plain(z)


@torch.library.custom_op("conformax::entmax_backward", mutates_args=(), device_types="cuda")
def _entmax_backward(
    p: Tensor, upstream: Tensor, gamma: float, gammas: Tensor | None, in_gamma: bool
) -> tuple[Tensor, Tensor]:
    return _run_backward(p, upstream, gamma, gammas, in_gamma)


@_entmax_backward.register_fake
def _(
    p: Tensor, upstream: Tensor, gamma: float, gammas: Tensor | None, in_gamma: bool
) -> tuple[Tensor, Tensor]:
    rows = p.numel() // p.shape[-1] if in_gamma else 0
    return _plain(p), torch.empty(rows, dtype=torch.float64, device=p.device)


def _save(ctx: Any, inputs: Any, output: Tensor) -> None:
    _, ctx.gamma, gammas = inputs
    ctx.save_for_backward(output, gammas)


def _traced_backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, Tensor | None]:
    p, gammas = ctx.saved_tensors
    in_gamma = ctx.needs_input_grad[2]
    in_z, slopes = _entmax_backward(p, upstream, ctx.gamma, gammas, in_gamma)
    return in_z, None, _sum_of(slopes, gammas) if in_gamma else None


_entmax.register_autograd(_traced_backward, setup_context=_save)


@torch.library.custom_op("conformax::entmax_loss", mutates_args=(), device_types="cuda")
def _loss(z: Tensor, target: Tensor, gamma: float, gammas: Tensor | None) -> tuple[Tensor, Tensor]:
    return _run_loss(z, target, gamma, gammas)


@_loss.register_fake
def _(z: Tensor, target: Tensor, gamma: float, gammas: Tensor | None) -> tuple[Tensor, Tensor]:
    rows = z.shape[0]
    kept = torch.empty((rows, _KEPT), dtype=torch.float64, device=z.device)
    return torch.empty(rows, dtype=_wide(z.dtype), device=z.device), kept


@torch.library.custom_op("conformax::entmax_loss_backward", mutates_args=(), device_types="cuda")
def _loss_backward(
    z: Tensor, target: Tensor, kept: Tensor, upstream: Tensor, gamma: float, gammas: Tensor | None
) -> Tensor:
    return _run_loss_backward(z, target, kept, upstream, gamma, gammas)


@_loss_backward.register_fake
def _(
    z: Tensor, target: Tensor, kept: Tensor, upstream: Tensor, gamma: float, gammas: Tensor | None
) -> Tensor:
    return _plain(z)


def _save_loss(ctx: Any, inputs: Any, output: tuple[Tensor, Tensor]) -> None:
    z, target, ctx.gamma, gammas = inputs
    ctx.save_for_backward(z, target, output[1], gammas)


def _traced_loss_backward(ctx: Any, upstream: Tensor, _: Tensor) -> tuple[Tensor, None, None, Tensor | None]:
    z, target, kept, gammas = ctx.saved_tensors
    in_z = _loss_backward(z, target, kept, upstream, ctx.gamma, gammas)
    in_gamma = _loss_in_gamma(z, upstream, ctx.gamma, gammas, _entmax) if ctx.needs_input_grad[3] else None
    return in_z, None, None, in_gamma


_loss.register_autograd(_traced_loss_backward, setup_context=_save_loss)
