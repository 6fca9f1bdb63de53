"""The activations and losses on a CUDA device: against the CPU's, against autograd's own numbers, and under every way
in which PyTorch runs an operation. Without a device there is nothing to test."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no GPU here", allow_module_level=True)

import conformax  # noqa: E402
from conformax import _conformax  # noqa: E402
from conformax.torch import _kernels, _operations, adasplash, compat, entmax, entmax_loss  # noqa: E402

GAMMAS = [1.0, 1.02, 1.1, 1.3, 1.5, 1.7, 2.0, 3.0, 8.0, 16.0]
CLASSES = [1, 2, 3, 10, 31, 32, 33, 100, 128, 129, 256, 257, 999, 1000, 1024, 1025, 4096, 5000, 20_001]
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
# Half a unit in the last place of a mass, plus what the arithmetic adds.
ERRORS = {torch.float32: 2e-7, torch.float64: 1e-14, torch.float16: 5e-4, torch.bfloat16: 4e-3}

GPU = torch.device("cuda")


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    """What a test draws is the same each time."""
    torch.manual_seed(0)


# After so many rows tempers repeat.
TEMPERS = 10


def rows(n: int, classes: int, dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    """Rows of every temper: ordinary, tied, masked, all equal, large, small, near the end of the type, subnormal."""
    generator, limits = torch.Generator(device=GPU).manual_seed(seed), torch.finfo(dtype)
    z = torch.randn((n, classes), device=GPU, generator=generator, dtype=torch.float64) * 2
    kind = torch.arange(n, device=GPU) % TEMPERS
    z = torch.where((kind == 1)[:, None], (z * 2).round() / 2, z)
    masked = (kind == 2)[:, None] & (torch.rand((n, classes), device=GPU, generator=generator) < 0.5)
    masked[:, 0] = False
    z = torch.where((kind == 3)[:, None], z[:, :1], z)
    z = torch.where((kind == 4)[:, None], z * 1000, z)
    z = torch.where((kind == 5)[:, None], z * 1e-4, z)
    z = torch.where((kind == 6)[:, None], z / 4, z)
    # None of these numbers is as large as sixteen deviations.
    z = torch.where((kind == 8)[:, None], z * (limits.max / 8 / 32), z)
    z = torch.where((kind == 9)[:, None], z * (limits.tiny / 32), z)
    z = torch.where(masked, -torch.inf, z)
    return z.to(dtype)


def is_tight(n: int) -> torch.Tensor:
    """Which of these rows have all labels within any reach."""
    kind = torch.arange(n, device=GPU) % TEMPERS
    return (kind == 5) | (kind == 9)


def on_cpu(z: torch.Tensor, gamma: float) -> torch.Tensor:
    """The core's probabilities, in float64."""
    p = _conformax.entmax(z.double().cpu().numpy(), gamma)
    return torch.from_numpy(p).reshape(z.shape).to(GPU)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("gamma", GAMMAS)
def test_probabilities_are_the_cpus(dtype: torch.dtype, gamma: float) -> None:
    for classes in CLASSES:
        z = rows(64, classes, dtype, classes)
        p, wanted = entmax(z, gamma), on_cpu(z, gamma)
        assert p.dtype == dtype and p.shape == z.shape
        error = (p.double() - wanted).abs().max().item()
        # Softmax has no list to be exact on: a unit in the last place more. Above γ = 2 the edge is steep.
        allowed = ERRORS[dtype] * {1.0: 2}.get(gamma, 1) if gamma <= 2 else max(ERRORS[dtype], 1e-12)
        assert error <= allowed, (classes, error)
        assert ((p.double().sum(dim=-1) - 1).abs() <= max(ERRORS[dtype] * 8, 1e-6)).all()


@pytest.mark.parametrize("gamma", [1.3, 1.5, 2.0])
def test_supports_are_the_cpus_beyond_an_ulp_of_the_edge(gamma: float) -> None:
    for classes in CLASSES:
        z = rows(4096 if classes == 1000 else 256, classes, torch.float32, classes)
        p, wanted = entmax(z, gamma), on_cpu(z, gamma)
        differ = (p > 0) != (wanted > 0)
        # A slack of one ulp of 1 is a mass of that to the power δ.
        edge = 2.0 ** (-23 / (gamma - 1))
        assert not (differ & (torch.maximum(p.double(), wanted) > edge)).any(), classes


def test_rows_in_many_shapes_and_strides() -> None:
    z = rows(24, 50, torch.float32).reshape(2, 3, 4, 50)
    wanted = entmax(z, 1.5)
    for dim in range(4):
        moved = z.movedim(-1, dim)
        assert torch.equal(entmax(moved, 1.5, dim=dim), wanted.movedim(-1, dim))
    wide = torch.randn(6, 200, device=GPU)
    assert torch.equal(entmax(wide[:, 50:150], 1.3), entmax(wide[:, 50:150].contiguous(), 1.3))
    assert torch.equal(entmax(wide[:, ::2], 2.0), entmax(wide[:, ::2].contiguous(), 2.0))
    offset = torch.randn(600 * 1000 + 1, device=GPU)[1:].reshape(600, 1000)
    for gamma in (1.3, 1.5, 2.0):
        assert torch.equal(entmax(offset, gamma), entmax(offset.clone(), gamma))
    assert entmax(torch.empty(0, 5, device=GPU)).shape == (0, 5)
    assert entmax(torch.empty(5, 0, device=GPU)).shape == (5, 0)
    assert entmax(torch.tensor([3.0], device=GPU)).tolist() == [1.0]


def beside(z: torch.Tensor, by: int) -> torch.Tensor:
    """The same numbers, so many elements after a boundary of 16 bytes."""
    held = torch.empty(z.numel() + by, dtype=z.dtype, device=GPU)[by:].view_as(z)
    return held.copy_(z)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("gamma", [1.0, 1.02, 1.3, 1.5, 2.0, 3.0, None])
def test_results_do_not_depend_on_where_a_row_lies(dtype: torch.dtype, gamma: float | None) -> None:
    """To the bit: rows beside a boundary have the same probabilities, losses and gradients, and long rows the same
    probabilities in another place of the matrix. None is a γ for each row."""
    if gamma is None:
        gamma = torch.tensor([1.0, 1.3, 1.5, 2.0, 2.5, 1.7, 1.02, 3.0, 1.4, 16.0], device=GPU)[:, None]
    for classes in (24, 40, 504, 1000, 2001, 20_003):
        z = rows(TEMPERS, classes, dtype, classes)
        upstream = torch.randn(z.shape, device=GPU).to(dtype)
        target = torch.arange(TEMPERS, device=GPU) * 7 % classes

        def all_of(z: torch.Tensor, upstream: torch.Tensor, gamma=gamma, target=target) -> list[torch.Tensor]:
            z = z.requires_grad_()
            p = entmax(z, gamma)
            losses = entmax_loss(z, target, gamma if isinstance(gamma, float) else gamma.reshape(-1, 1))
            (product,) = torch.autograd.grad(p, z, upstream)
            (slope,) = torch.autograd.grad(losses.sum(), z)
            return [it.detach().nan_to_num() for it in (p, product, losses, slope)]

        wanted = all_of(z.clone(), upstream)
        for by in (1, 3) if dtype != torch.float64 else (1,):
            for found, held in zip(all_of(beside(z, by), beside(upstream, by)), wanted):
                assert torch.equal(found, held), (classes, by)
        # Rows of a few threads share a warp, whose rows choose their way together.
        if isinstance(gamma, float) and classes > 256:
            for place in range(TEMPERS):
                p = entmax(z[place : place + 1].detach().clone(), gamma)
                assert torch.equal(p.nan_to_num(), wanted[0][place : place + 1]), (classes, place)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one GPU here")
def test_each_tensor_is_computed_on_its_own_device() -> None:
    assert torch.cuda.current_device() == 0
    z, target = torch.randn(64, 1000), torch.arange(64)
    wanted = entmax(z.to("cuda:0"), 1.5).cpu()
    for number in range(torch.cuda.device_count()):
        other = z.to(f"cuda:{number}").requires_grad_()
        with torch.cuda.device((number + 1) % torch.cuda.device_count()):
            p = entmax(other, 1.5)
            entmax_loss(other, target.to(other.device), 1.3).sum().backward()
        assert p.device == other.device == other.grad.device and torch.equal(p.detach().cpu(), wanted)


def test_refuses_what_lies_on_another_device() -> None:
    z = torch.randn(3, 10, device=GPU)
    for logits in (z, z.clone().requires_grad_()):
        with pytest.raises(ValueError, match="targets on cuda:0 as the logits are, got cpu"):
            entmax_loss(logits, torch.tensor([0, 1, 2]))
    with pytest.raises(ValueError, match="upstream gradient on cuda:0"):
        torch.ops.conformax.entmax_backward(z, torch.ones(3, 10), 1.5, None, False)
    assert entmax(z).isfinite().all()


@pytest.mark.parametrize("gamma", [1.0, 1.02, 1.3, 1.5, 2.0, 3.0])
def test_losses_have_gradients_in_gamma(gamma: float) -> None:
    z = rows(7, 40, torch.float64, 2)
    z, target = torch.where(z.isinf(), -5.0, z)[[0, 1, 6]], torch.tensor([0, 5, 7], device=GPU)
    for shape in ((), (3, 1)):
        index, host = (torch.full(shape, gamma, dtype=torch.float64, device=it).requires_grad_() for it in (GPU, "cpu"))
        entmax_loss(z, target, index).sum().backward()
        for held in (z.cpu(), z.cpu().requires_grad_()):
            host.grad = None
            entmax_loss(held, target.cpu(), host).sum().backward()
            assert index.grad.shape == host.grad.shape and (index.grad.cpu() - host.grad).abs().max() < 1e-9
    if gamma > 1:
        leaf, index = z.clone().requires_grad_(), torch.full((3, 1), gamma, dtype=torch.float64, device=GPU)
        both = (leaf, index.requires_grad_())
        assert torch.autograd.gradcheck(lambda z, g: entmax_loss(z, target, g), both, eps=1e-7, atol=1e-5)
        step = torch.compile(lambda z, g: entmax_loss(z, target, g).sum(), fullgraph=True)
        sums = (step(*both), entmax_loss(leaf, target, index).sum())
        found, wanted = (torch.autograd.grad(it, index)[0] for it in sums)
        assert torch.allclose(found, wanted, atol=1e-10)


def test_rows_that_have_no_answer_are_nan() -> None:
    for classes in (3, 100, 1000, 5000, 20_000):
        for gamma in GAMMAS:
            z = torch.zeros(4, classes, device=GPU)
            z[0, classes // 2] = torch.nan
            z[1, 0] = torch.inf
            z[2] = -torch.inf
            p = entmax(z, gamma)
            assert p[:3].isnan().all() and not p[3].isnan().any(), (classes, gamma)


def test_a_gamma_for_each_row() -> None:
    for classes in (7, 40, 300, 3000):
        z = rows(len(GAMMAS), classes, torch.float32, 1)
        gammas = torch.tensor(GAMMAS, device=GPU)[:, None]
        wanted = torch.cat([entmax(z[i : i + 1], gamma) for i, gamma in enumerate(GAMMAS)])
        assert (entmax(z, gammas) - wanted).abs().max() < 4e-7
        learned = torch.tensor(1.3, device=GPU)
        assert (entmax(z, learned) - entmax(z, 1.3)).abs().max() < 4e-7
    outside = torch.tensor([0.5, 1.5, 17.0], device=GPU)[:, None]
    p = entmax(torch.zeros(3, 4, device=GPU), outside)
    assert p[0].isnan().all() and p[1].tolist() == [0.25] * 4 and p[2].isnan().all()


@pytest.mark.parametrize("gamma", [1.0, 1.02, 1.3, 1.5, 2.0, 3.0])
def test_gradients_agree_with_differences(gamma: float) -> None:
    generator = torch.Generator(device=GPU).manual_seed(3)
    for classes in (5, 40, 200):
        z = torch.randn((3, classes), device=GPU, dtype=torch.float64, generator=generator).requires_grad_()
        assert torch.autograd.gradcheck(lambda z: entmax(z, gamma), z, eps=1e-7, atol=1e-6)
        if gamma > 1:
            index = torch.full((3, 1), gamma, device=GPU, dtype=torch.float64).requires_grad_()
            assert torch.autograd.gradcheck(entmax, (z, index), eps=1e-7, atol=1e-5)
        labels = torch.tensor([0, 1, 2], device=GPU)
        assert torch.autograd.gradcheck(lambda z: entmax_loss(z, labels, gamma), z, eps=1e-7, atol=1e-6)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_backward_products_are_the_cpus(gamma: float) -> None:
    for classes in CLASSES:
        z = rows(32, classes, torch.float64, classes).requires_grad_()
        upstream = torch.randn_like(z)
        entmax(z, gamma).backward(upstream)
        p = on_cpu(z.detach(), gamma)
        wanted = _conformax.entmax_backward(p.cpu().numpy(), upstream.cpu().numpy(), gamma)
        wanted = torch.from_numpy(wanted).reshape(z.shape).to(GPU)
        scale = wanted.abs().amax(dim=-1, keepdim=True).clamp(min=1)
        assert ((z.grad - wanted).abs() / scale).max() < (1e-6 if gamma > 2 else 1e-9), classes


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_gradients_in_the_narrower_types(dtype: torch.dtype) -> None:
    for classes in (10, 100, 1000, 5000):
        for gamma in (1.0, 1.3, 1.5, 2.0):
            z = rows(64, classes, dtype, classes)
            upstream = torch.randn(z.shape, device=GPU).to(dtype)
            narrow, wide = z.clone().requires_grad_(), z.double().requires_grad_()
            p, exact = entmax(narrow, gamma), entmax(wide, gamma)
            p.backward(upstream)
            exact.backward(upstream.double())
            assert narrow.grad.dtype == dtype
            # A mass that the type rounds to nothing takes its label out of the support. At γ = 2 a whole share of the
            # gradient goes with it, however small it was; below, a share that is as small as any other error.
            lost = (p > 0) != (exact > 0)
            assert (exact[lost] < 1e-7).all(), (classes, gamma)
            same = ~lost.any(dim=1) if gamma == 2 else torch.ones(len(z), dtype=torch.bool, device=GPU)
            assert same.sum() > len(z) / 2, (classes, gamma)
            tolerance = {torch.float32: 4e-6, torch.float16: 1e-2, torch.bfloat16: 3e-2}[dtype]
            assert (narrow.grad.double() - wide.grad)[same].abs().max() < tolerance, (classes, gamma)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_losses_are_the_cpus(gamma: float) -> None:
    for classes in CLASSES:
        for dtype in (torch.float64, torch.float32, torch.bfloat16):
            z = rows(64, classes, dtype, classes + 1)
            z = torch.where(z.isinf(), -50.0, z)
            target = torch.arange(64, device=GPU) % classes
            leaf = z.clone().requires_grad_()
            losses = entmax_loss(leaf, target, gamma)
            losses.float().sum().backward()
            wanted, gradient = _conformax.entmax_loss(
                z.double().cpu().numpy(), target.cpu().numpy().astype(np.uint32), gamma
            )
            wanted = torch.from_numpy(wanted).to(GPU)
            gradient = torch.from_numpy(gradient).reshape(z.shape).to(GPU)
            tolerance = {torch.float64: 1e-12, torch.float32: 2e-6, torch.bfloat16: 8e-3}[dtype]
            error = ((losses.double() - wanted).abs() / wanted.clamp(min=1)).max().item()
            assert error < tolerance, (classes, dtype, error)
            assert (leaf.grad.double() - gradient).abs().max() < max(tolerance, 2e-7), (classes, dtype)


def test_the_loss_of_softmax_is_the_cross_entropy() -> None:
    z = torch.randn(50, 300, device=GPU, requires_grad=True)
    target = torch.randint(300, (50,), device=GPU)
    ours = entmax_loss(z, target, 1.0)
    theirs = torch.nn.functional.cross_entropy(z, target, reduction="none")
    assert (ours - theirs).abs().max() < 1e-5


def test_losses_of_labels_that_are_no_class_are_nan() -> None:
    z = torch.randn(3, 10, device=GPU, requires_grad=True)
    losses = entmax_loss(z, torch.tensor([-1, 3, 10], device=GPU))
    assert losses.isnan().tolist() == [True, False, True]
    ignoring = conformax.torch.Entmax15Loss(ignore_index=-1)
    assert torch.isfinite(ignoring(z, torch.tensor([-1, 3, 4], device=GPU)))


def test_golden_values(golden: dict) -> None:
    """The oracle's probabilities at a threshold q are the activation at the temperature δ/q."""
    checked = 0
    for case in golden["scores"]:
        z = torch.tensor([float(z) for z in case["logits"]], device=GPU).double()
        gamma = float(case["gamma"])
        for at in case["at"]:
            q = float(at["q"])
            if "probabilities" in at and gamma > 1 and 0 < q < float("inf"):
                wanted = torch.tensor([float(p) for p in at["probabilities"]], device=GPU, dtype=torch.float64)
                found = entmax(z * (1 / (gamma - 1) / q), gamma)
                assert (found - wanted).abs().max() < 1e-9, case["row"]
                checked += 1
    assert checked > 100


def test_torch_traces_the_operations() -> None:
    z = torch.randn(6, 40, device=GPU, requires_grad=True)
    gammas = torch.full((6,), 1.4, dtype=torch.float64, device=GPU, requires_grad=True)
    labels = torch.randint(40, (6,), device=GPU)
    torch.library.opcheck(torch.ops.conformax.entmax.default, (z, 1.5, None))
    torch.library.opcheck(torch.ops.conformax.entmax.default, (z, 0.0, gammas))
    torch.library.opcheck(torch.ops.conformax.entmax_loss.default, (z, labels, 1.5, None))
    torch.library.opcheck(torch.ops.conformax.entmax_loss.default, (z, labels, 0.0, gammas))
    _, kept = torch.ops.conformax.entmax_loss(z.detach(), labels, 1.5, None)
    upstream = torch.ones(6, device=GPU)
    torch.library.opcheck(
        torch.ops.conformax.entmax_loss_backward.default, (z.detach(), labels, kept, upstream, 1.5, None)
    )
    p = entmax(z.detach(), 1.5)
    torch.library.opcheck(torch.ops.conformax.entmax_backward.default, (p, torch.ones_like(p), 1.5, None, True))


def test_compiles_whole() -> None:
    z = torch.randn(32, 1000, device=GPU, requires_grad=True)
    target = torch.randint(1000, (32,), device=GPU)

    def step(z: torch.Tensor) -> torch.Tensor:
        return (entmax(z * 2, 1.5) ** 2).sum() + entmax_loss(z, target, 1.3).mean()

    eager = step(z)
    (wanted,) = torch.autograd.grad(eager, z)
    compiled = torch.compile(step, fullgraph=True)(z)
    (found,) = torch.autograd.grad(compiled, z)
    assert torch.allclose(eager, compiled, atol=1e-5) and torch.allclose(wanted, found, atol=1e-6)


def test_autocast_answers_in_single() -> None:
    z = torch.randn(4, 100, device=GPU, dtype=torch.bfloat16)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert entmax(z).dtype == torch.float32
        assert entmax_loss(z, torch.zeros(4, dtype=torch.int64, device=GPU)).dtype == torch.float32


def test_graphs_capture_it() -> None:
    z = torch.randn(64, 1000, device=GPU)
    entmax(z, 1.5)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        p = entmax(z, 1.5)
        # Compiled and loaded inside the capture.
        q = entmax(z[:, :77].contiguous(), 1.9)
    z.copy_(torch.randn_like(z))
    graph.replay()
    assert torch.equal(p, entmax(z, 1.5)) and torch.equal(q, entmax(z[:, :77].contiguous(), 1.9))


def test_runs_on_the_current_stream() -> None:
    stream = torch.cuda.Stream()
    z = torch.zeros(512, 1000, device=GPU)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        z += torch.randn_like(z)
        p = entmax(z, 1.5)
    stream.synchronize()
    assert torch.equal(p, entmax(z, 1.5))


@pytest.fixture
def large() -> Iterator[int]:
    """How many rows of 1,024 classes are a little more than 2³¹ elements, where the device has room for four times that."""
    if torch.cuda.get_device_properties(0).total_memory < 40e9:
        pytest.skip("needs 20 GB of the GPU")
    yield 2**31 // 1024 + 3
    # Tests in other processes need it too.
    torch.cuda.empty_cache()


def test_more_than_two_to_the_31_elements(large: int) -> None:
    z = torch.zeros(large, 1024, device=GPU, dtype=torch.bfloat16)
    z[-1, -1] = 9.0
    p = entmax(z, 1.5)
    assert p[-1, -1] == 1.0 and p[-1, 0] == 0.0 and (p[-2] == p[0]).all()
    # Rows so long that every probability is near the smallest step that 1 − p could tell.
    flat = z.reshape(-1)[: 3 * 715_828_000].reshape(3, -1)
    for gamma in (2.0, 1.5):
        p = entmax(flat, gamma)
        assert (p == p[0, 0]).all() and abs(p[0, 0].item() * flat.shape[1] - 1) < 4e-3


def test_gradients_of_more_than_two_to_the_31_elements(large: int) -> None:
    z = torch.zeros(large, 1024, device=GPU, dtype=torch.bfloat16)
    z[-1, 3] = 9.0
    upstream = torch.zeros_like(z)
    for row in (0, -2, -1):
        upstream[row, 5] = 1.0
    (product,) = torch.autograd.grad(entmax(z.requires_grad_(), 1.5), z, upstream)
    # Of equal masses 1/1024: their roots times the distance from the mean of upstream.
    assert torch.equal(product[0], ((upstream[0].float() - 2.0**-10) / 32).bfloat16())
    assert torch.equal(product[-2], product[0])
    # Elsewhere upstream is zero, or a label has all the mass.
    assert not product[1:-2].any() and not product[-1].any()


def test_losses_of_more_than_two_to_the_31_elements(large: int) -> None:
    z = torch.zeros(large, 1024, device=GPU, dtype=torch.bfloat16)
    z[-1, 3] = 9.0
    target = torch.zeros(large, device=GPU, dtype=torch.int64)
    target[-1] = 3
    losses = entmax_loss(z.requires_grad_(), target, 1.5)
    assert losses[0] > 1 and losses[-1] == 0 and (losses[:-1] == losses[0]).all()
    (slopes,) = torch.autograd.grad(losses, z, torch.ones_like(losses))
    wanted = torch.full((1024,), 2.0**-10, device=GPU, dtype=torch.bfloat16)
    wanted[0] = 2.0**-10 - 1
    assert torch.equal(slopes[0], wanted) and (slopes[:-1] == slopes[0]).all() and not slopes[-1].any()


def test_losses_write_no_probabilities() -> None:
    z = torch.randn(2048, 8192, device=GPU, requires_grad=True)
    target, held = torch.randint(8192, (2048,), device=GPU), z.numel() * z.element_size()
    gammas = torch.full((2048, 1), 1.3, device=GPU, dtype=torch.float64)
    for gamma in (1.0, 1.3, 1.5, 2.0, 3.0, gammas):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        losses = entmax_loss(z, target, gamma)
        assert torch.cuda.max_memory_allocated() - before < held / 16
        # The gradient alone has the size of the logits.
        (slopes,) = torch.autograd.grad(losses.sum(), z)
        assert torch.cuda.max_memory_allocated() - before < held * 1.25
        del losses, slopes


def emptied(device: torch.device | str) -> list[tuple[int, ...]]:
    """Shapes of what comes of no rows, forward and backward, and of rows without classes."""
    found = []
    for gamma in (1.5, torch.full((0, 1), 1.3, device=device, dtype=torch.float64, requires_grad=True)):
        z = torch.empty(0, 5, device=device, requires_grad=True)
        p, losses = entmax(z, gamma), entmax_loss(z, torch.empty(0, device=device, dtype=torch.int64), gamma)
        for result in (p, losses):
            found += [it.shape for it in (result, *torch.autograd.grad(result.sum(), z))]
    z = torch.empty(5, 0, device=device, requires_grad=True)
    p = entmax(z)
    return [*found, p.shape, torch.autograd.grad(p.sum(), z)[0].shape]


def test_nothing_has_gradients_of_its_shape() -> None:
    assert emptied(GPU) == [(0, 5), (0, 5), (0,), (0, 5)] * 2 + [(5, 0), (5, 0)]


def test_peers_names_run_on_the_kernels() -> None:
    z = torch.randn(8, 64, device=GPU)
    assert torch.equal(compat.entmax15(z), entmax(z, 1.5))
    assert torch.equal(compat.sparsemax(z), entmax(z, 2.0))
    assert torch.equal(adasplash.triton_entmax(z, alpha=1.5), entmax(z, 1.5))
    assert torch.equal(adasplash.triton_sparsemax(z), entmax(z, 2.0))


@pytest.mark.parametrize("name", compat.__all__)
def test_peers_names_give_what_they_give_on_the_cpu(name: str) -> None:
    """Functions, layers and losses, with their gradients."""
    z = torch.randn(8, 64, device=GPU, dtype=torch.float64)
    target = torch.arange(8, device=GPU) * 7
    offered = getattr(compat, name)
    for given in ({}, {"alpha": 1.3}, {"alpha": 3.0}):
        if given and "alpha" not in inspect.signature(offered).parameters:
            continue
        found = []
        for place in (GPU, "cpu"):
            # A copy, so that either has a gradient of its own.
            logits = z.to(place, copy=True).requires_grad_()
            call = (logits, target.to(place)) if name.lower().endswith("loss") else (logits,)
            result = offered(**given)(*call) if inspect.isclass(offered) else offered(*call, **given)
            weights = torch.linspace(-1, 1, result.numel(), device=place, dtype=result.dtype).reshape(result.shape)
            (slope,) = torch.autograd.grad((result * weights).sum(), logits)
            assert result.device == slope.device == logits.device
            found.append((result.detach().cpu(), slope.cpu()))
        for on_gpu, on_cpu in zip(*found, strict=True):
            torch.testing.assert_close(on_gpu, on_cpu, rtol=0, atol=1e-7)


def test_refuses_what_is_out_of_range() -> None:
    z = torch.randn(2, 3, device=GPU)
    for gamma in (0.5, 17.0, float("nan")):
        with pytest.raises(ValueError, match="gamma"):
            entmax(z, gamma)


def test_falls_back_to_torch_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    z = torch.randn(8, 64, device=GPU)
    kernels = entmax(z, 1.5)
    monkeypatch.setattr(_kernels, "_found", [])
    monkeypatch.setattr(_kernels, "problem", lambda: "there is no CUDA driver (libcuda) on this machine")
    with pytest.warns(conformax.ConformaxWarning, match="libcuda"):
        slow = entmax(z, 1.5)
    assert (slow - kernels).abs().max() < 1e-6
    assert torch.equal(slow, _operations.forward(z, torch.tensor(1.5, device=GPU)))


# A million rows, fewer the wider they are, and the widest that a vocabulary has.
MILLION = {
    1: 100_000, 2: 200_000, 3: 200_000, 10: 300_000, 32: 100_000, 100: 90_000, 257: 7_000, 1000: 2_500, 5000: 400,
    32_000: 60, 128_256: 40,
}  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("gamma", GAMMAS)
def test_a_million_random_rows(dtype: torch.dtype, gamma: float) -> None:
    assert sum(MILLION.values()) >= 1_000_000
    for classes, count in MILLION.items():
        z = rows(count, classes, dtype, 7)
        p, wanted = entmax(z, gamma), on_cpu(z, gamma)
        error = (p.double() - wanted).abs().max().item()
        allowed = ERRORS[dtype] * {1.0: 2}.get(gamma, 1) if gamma <= 2 else max(ERRORS[dtype], 1e-12)
        assert error <= allowed, (classes, error)


@pytest.mark.parametrize("gamma", [1.5, 2.0])
@pytest.mark.parametrize("dtype", DTYPES)
def test_long_rows_of_every_temper(dtype: torch.dtype, gamma: float) -> None:
    """Rows whose labels within reach fit their list, rows where all are, rows without an answer, odd beginnings."""
    for classes in (16_385, 20_000, 128_256, 128_257):
        z = rows(700, classes, dtype, 3)
        z[11, 5], z[12, classes - 1], z[13] = torch.nan, torch.inf, -torch.inf
        z[14, 7] = -torch.tensor(torch.nan, device=GPU)
        p = entmax(z, gamma)
        assert p[11:15].isnan().all() and not p[:11].isnan().any() and not p[15:].isnan().any()
        assert torch.equal(p.nan_to_num(), entmax(z, gamma).nan_to_num()), "not the same each time"
        part = torch.cat([z[:11], z[15:40], z[-8:]])
        error = (torch.cat([p[:11], p[15:40], p[-8:]]).double() - on_cpu(part, gamma)).abs().max().item()
        assert error <= ERRORS[dtype], (classes, error)


def test_indices_next_to_one() -> None:
    """Where δ is in the thousands and beyond, the family is all but softmax."""
    z = rows(64, 300, torch.float32, 5)
    for gamma in (1.003, 1.001, 1 + 1e-6):
        assert (entmax(z, gamma).double() - on_cpu(z, gamma)).abs().max() < 4e-7, gamma


@pytest.mark.parametrize("gamma", [1.0, 1.3, 1.5, 2.0, 3.0])
def test_masked_labels_take_no_part_in_losses(gamma: float) -> None:
    for classes in (10, 100, 1000, 5000):
        z = torch.randn(32, classes, device=GPU, dtype=torch.float64) * 2
        target = torch.arange(32, device=GPU) % classes
        masked = torch.rand(z.shape, device=GPU) < 0.4
        # The first row's own label is masked, the others' are not.
        masked[torch.arange(32, device=GPU), target] = torch.arange(32, device=GPU) == 0
        z = torch.where(masked, -torch.inf, z)
        gpu, cpu = z.clone().requires_grad_(), z.cpu().requires_grad_()
        losses, wanted = entmax_loss(gpu, target, gamma), entmax_loss(cpu, target.cpu(), gamma)
        assert losses[0] == torch.inf and wanted[0] == torch.inf, classes
        assert (losses[1:].cpu() - wanted[1:]).abs().max() < 1e-11, classes
        losses[1:].sum().backward()
        wanted[1:].sum().backward()
        assert not gpu.grad[masked].any()
        assert (gpu.grad.cpu() - cpu.grad).abs().max() < 1e-11, classes


@pytest.mark.parametrize("gamma", GAMMAS)
def test_losses_in_half_precision_are_the_cpus(gamma: float) -> None:
    for classes in CLASSES:
        z = rows(64, classes, torch.float16, classes + 2)
        z = torch.where(z.isinf(), -50.0, z)
        target = torch.arange(64, device=GPU) % classes
        leaf = z.clone().requires_grad_()
        losses = entmax_loss(leaf, target, gamma)
        losses.sum().backward()
        assert losses.dtype == leaf.grad.dtype == torch.float16
        wanted, gradient = _conformax.entmax_loss(
            z.double().cpu().numpy(), target.cpu().numpy().astype(np.uint32), gamma
        )
        wanted, gradient = (torch.from_numpy(it).to(GPU) for it in (wanted, gradient))
        # Half a unit in the last place.
        assert ((losses.double() - wanted).abs() / wanted.clamp(min=1)).max() < 5e-4, classes
        assert (leaf.grad.double() - gradient.reshape(z.shape)).abs().max() < 5e-4, classes


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_gives_the_values_of_single(dtype: torch.dtype) -> None:
    # An odd number, so that a thread has the same labels in either type, and sums have one order.
    z, target = rows(16, 301, dtype, 6), torch.arange(16, device=GPU)
    z = torch.where(z.isinf(), -50.0, z)
    upstream = torch.randn(16, 301, device=GPU)
    narrow, wide = z.clone().requires_grad_(), z.float().requires_grad_()
    with torch.autocast("cuda", dtype=dtype):
        p, losses = entmax(narrow, 1.5), entmax_loss(narrow, target, 1.5)
    assert torch.equal(p, entmax(wide, 1.5)) and torch.equal(losses, entmax_loss(wide, target, 1.5))
    for found, wanted in ((p, entmax(wide, 1.5)), (losses, entmax_loss(wide, target, 1.5))):
        weights = upstream if found.dim() == 2 else upstream[:, 0]
        (found,) = torch.autograd.grad((found * weights).sum(), narrow)
        (wanted,) = torch.autograd.grad((wanted * weights).sum(), wide)
        assert found.dtype == dtype and torch.equal(found, wanted.to(dtype))


def step(z: torch.Tensor, target: torch.Tensor, gammas: torch.Tensor) -> list[torch.Tensor]:
    """Probabilities, losses, and the gradients of both in the logits and in a γ for each row."""
    p, losses = entmax(z, gammas), entmax_loss(z, target, 1.5)
    return [p, losses, *torch.autograd.grad((p**2).sum() + losses.sum(), (z, gammas))]


def test_graphs_and_streams_go_backward() -> None:
    z = torch.randn(64, 1000, device=GPU, requires_grad=True)
    gammas = torch.linspace(1.1, 2.5, 64, device=GPU, dtype=torch.float64)[:, None].requires_grad_()
    target = torch.randint(1000, (64,), device=GPU)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        aside = step(z, target, gammas)
    torch.cuda.current_stream().wait_stream(stream)
    for found, wanted in zip(aside, step(z, target, gammas), strict=True):
        assert torch.equal(found, wanted)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step(z, target, gammas)
    with torch.no_grad():
        z.copy_(torch.randn_like(z))
    graph.replay()
    for found, wanted in zip(captured, step(z, target, gammas), strict=True):
        assert torch.equal(found, wanted)


def test_torch_traces_the_losses_gradient_with_a_gamma_for_each_row() -> None:
    z, labels = torch.randn(6, 40, device=GPU), torch.randint(40, (6,), device=GPU)
    gammas = torch.linspace(1.1, 2.5, 6, dtype=torch.float64, device=GPU)
    _, kept = torch.ops.conformax.entmax_loss(z, labels, 0.0, gammas)
    operation = torch.ops.conformax.entmax_loss_backward.default
    torch.library.opcheck(operation, (z, labels, kept, torch.ones(6, device=GPU), 0.0, gammas))
    torch.library.opcheck(operation, (z, labels, kept, torch.ones((), device=GPU).expand(6), 0.0, gammas))
