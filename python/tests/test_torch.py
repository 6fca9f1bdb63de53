"""The torch activations: gradients, both ways of computing them, and the drop-in for `entmax`."""

from __future__ import annotations

import inspect
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import conformax
from conformax import torch as ct
from conformax.torch import _kernels, _operations, adasplash, compat

pytestmark = pytest.mark.peers

SINGLE, DOUBLE = 1e-5, 1e-10
GAMMAS = [1.0, 1.1, 1.3, 1.5, 2.0, 2.5]


@pytest.fixture
def z() -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(2).normal(size=(6, 9)) * 2)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_gradients_in_the_logits(z, gamma):
    assert torch.autograd.gradcheck(lambda z: ct.entmax(z, gamma), z.requires_grad_())


@pytest.mark.parametrize("gamma", [1.001, 1.1, 1.3, 1.5, 2.0, 2.5])
def test_gradients_in_gamma(z, gamma):
    index = torch.tensor(gamma, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda index: ct.entmax(z, index), index)


def test_gradients_in_gamma_per_row(z):
    index = torch.linspace(1.1, 2.2, 6, dtype=torch.float64).unsqueeze(1).requires_grad_()
    assert torch.autograd.gradcheck(lambda z, index: ct.entmax(z, index), (z.requires_grad_(), index))


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize(("kind", "close"), [(torch.float32, SINGLE), (torch.float64, DOUBLE)])
def test_rust_and_operations_agree(z, gamma, kind, close):
    z = z.to(kind)
    z[2] = z[2, 0]
    z[3, 4:] = -torch.inf
    upstream = torch.from_numpy(np.random.default_rng(3).normal(size=(6, 9))).to(kind)
    index = torch.tensor(gamma, dtype=kind)
    p = ct.entmax(z, gamma)
    other = _operations.forward(z, index)
    torch.testing.assert_close(p, other, rtol=0, atol=close)
    inside = z.clone().requires_grad_()
    learned = index.clone().requires_grad_()
    (ct.entmax(inside, learned) * upstream).sum().backward()
    torch.testing.assert_close(inside.grad, _operations.backward(p, upstream, index), rtol=0, atol=close)
    slope = (upstream * _operations.gamma_derivative(p, index)).sum()
    torch.testing.assert_close(learned.grad, slope, rtol=10 * close, atol=10 * close)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_cuda_agrees_with_the_cpu(z):
    for gamma in GAMMAS:
        torch.testing.assert_close(ct.entmax(z.cuda(), gamma).cpu(), ct.entmax(z, gamma), rtol=0, atol=DOUBLE)


def test_values_are_those_of_the_arrays(z):
    for gamma in GAMMAS:
        assert np.array_equal(ct.entmax(z, gamma).numpy(), conformax.entmax(z.numpy(), gamma))


@pytest.mark.parametrize("dim", [0, 1, 2, -2])
def test_any_dimension(dim):
    z = torch.from_numpy(np.random.default_rng(4).normal(size=(3, 4, 5)))
    for function in (ct.softmax, ct.sparsemax, ct.entmax15):
        p = function(z, dim=dim)
        torch.testing.assert_close(p.sum(dim=dim), torch.ones_like(p.sum(dim=dim)))
        torch.testing.assert_close(p, function(z.movedim(dim, -1)).movedim(-1, dim))
    index = torch.linspace(1.2, 2.0, 12, dtype=torch.float64).reshape(3, 4, 1)
    torch.testing.assert_close(ct.entmax(z, index)[1, 2], ct.entmax(z[1, 2], float(index[1, 2])))
    across = ct.entmax(z.movedim(-1, 0), index.movedim(-1, 0), dim=0)
    torch.testing.assert_close(across.movedim(0, -1), ct.entmax(z, index))


def test_half_precision_keeps_its_type(z):
    for kind in (torch.float16, torch.bfloat16):
        narrow = z.to(kind).requires_grad_()
        p = ct.entmax15(narrow)
        assert p.dtype == kind
        torch.testing.assert_close(p.float(), ct.entmax15(narrow.detach().float()), rtol=0, atol=4e-3)
        p.sum().backward()
        assert narrow.grad.dtype == kind


def test_autocast_computes_in_single(z):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        p = ct.entmax15(z.bfloat16())
        loss = ct.Entmax15Loss()(z.bfloat16(), torch.zeros(6, dtype=torch.long))
    assert p.dtype == loss.dtype == torch.float32
    torch.testing.assert_close(p, ct.entmax15(z.bfloat16().float()), rtol=0, atol=SINGLE)


def test_bad_tensors_are_refused(z):
    with pytest.raises(TypeError, match="floats"):
        ct.entmax(torch.zeros(3, dtype=torch.long))
    with pytest.raises(ValueError, match="gamma must lie between 1 and 16"):
        ct.entmax(z, 0.5)
    with pytest.raises(ValueError, match="gamma must lie between 1 and 16"):
        ct.entmax(z, torch.full((6, 1), 0.5, dtype=torch.float64))
    z[1, 2] = torch.nan
    with pytest.raises(ValueError, match="row 1, class 2 is NaN"):
        ct.entmax(z)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_losses(z, gamma):
    target = torch.tensor([0, 3, 8, 1, 1, 2])
    loss = ct.EntmaxLoss(gamma, reduction="none")
    assert torch.autograd.gradcheck(lambda z: loss(z, target), z.requires_grad_())
    operated = ct._loss._operate(z.detach(), target, gamma)[0]
    torch.testing.assert_close(loss(z, target).detach(), operated, rtol=0, atol=DOUBLE)
    if gamma == 1:
        torch.testing.assert_close(loss(z, target), torch.nn.functional.cross_entropy(z, target, reduction="none"))


def test_losses_reduce_and_ignore(z):
    target = torch.tensor([0, 3, -100, 1, -100, 2])
    rows = ct.SparsemaxLoss(reduction="none")(z, target)
    assert rows[2] == rows[4] == 0
    torch.testing.assert_close(ct.SparsemaxLoss()(z, target), rows.sum() / 4)
    torch.testing.assert_close(ct.SparsemaxLoss(reduction="sum")(z, target), rows.sum())
    z.requires_grad_()
    ct.Entmax15Loss()(z, target).backward()
    assert not z.grad[[2, 4]].any()
    with pytest.raises(ValueError, match="targets must lie in 0..9"):
        ct.entmax_loss(z, torch.full((6,), 9))


def test_modules_learn_gamma(z):
    layer = ct.Entmax(torch.nn.Parameter(torch.tensor(1.3, dtype=torch.float64)))
    layer(z)[:, 0].sum().backward()
    assert layer.gamma.grad is not None and layer.gamma.grad.shape == ()
    assert str(ct.Sparsemax()) == "Sparsemax(gamma=2, dim=-1)"


class TestAgainstEntmax:
    """The package `entmax` 1.3, with the places where it is wrong."""

    @pytest.fixture(autouse=True)
    def peer(self):
        self.entmax = pytest.importorskip("entmax")

    def test_every_name_has_its_signature(self):
        names = [name for name in vars(self.entmax) if not name.startswith("_") and callable(vars(self.entmax)[name])]
        assert sorted(compat.__all__) == sorted(names)
        for name in names:
            theirs, ours = getattr(self.entmax, name), getattr(compat, name)
            assert inspect.isclass(theirs) == inspect.isclass(ours), name

            def shape(function):
                return [(it.name, it.kind, it.default) for it in inspect.signature(function).parameters.values()]

            assert shape(ours) == shape(theirs), name

    def pairs(self, z):
        target = torch.tensor([0, 3, 8, 1, 1, 2])
        for name, args in [
            ("sparsemax", ()), ("entmax15", ()), ("sparsemax_bisect", ()), ("entmax_bisect", (1.3,)),
            ("entmax_bisect", (1.5,)), ("entmax_bisect", (2.2,)), ("normmax_bisect", (2,)), ("normmax_bisect", (1.5,)),
            ("budget_bisect", (2,)), ("budget_bisect", (3.5,)), ("sparsemax_loss", (target,)),
            ("sparsemax_bisect_loss", (target,)), ("entmax15_loss", (target,)), ("entmax_bisect_loss", (target, 1.3)),
            ("normmax_bisect_loss", (target, 2)),
        ]:  # fmt: skip
            yield name, (lambda z, n=name, a=args: getattr(self.entmax, n)(z, *a)), (
                lambda z, n=name, a=args: getattr(compat, n)(z, *a)
            )

    def test_values_and_gradients(self, z):
        upstream = torch.from_numpy(np.random.default_rng(5).normal(size=(6, 9)))
        for name, theirs, ours in self.pairs(z):
            found = []
            for function in (theirs, ours):
                x = z.clone().requires_grad_()
                out = function(x)
                (out * (upstream if out.dim() == 2 else upstream[:, 0])).sum().backward()
                found.append((out.detach(), x.grad))
            torch.testing.assert_close(found[1][0], found[0][0], rtol=0, atol=1e-9, msg=lambda m: f"{name}: {m}")
            torch.testing.assert_close(found[1][1], found[0][1], rtol=0, atol=1e-7, msg=lambda m: f"{name}: {m}")

    def test_gradients_in_alpha(self, z):
        found = []
        for function in (self.entmax.entmax_bisect, compat.entmax_bisect):
            alpha = torch.linspace(1.2, 2.0, 6, dtype=torch.float64).unsqueeze(1).requires_grad_()
            function(z, alpha)[:, 0].sum().backward()
            found.append(alpha.grad)
        torch.testing.assert_close(found[1], found[0], rtol=1e-7, atol=1e-9)

    def test_modules_and_losses(self, z):
        target = torch.tensor([0, 3, 8, 1, 1, 2])
        for name in compat.__all__:
            theirs, ours = getattr(self.entmax, name), getattr(compat, name)
            if not inspect.isclass(theirs):
                continue
            # Its SparsemaxBisect passes None as the number of steps; the number is ignored on the way.
            call = (z, target) if name.endswith("Loss") else (z,)
            torch.testing.assert_close(ours()(*call), theirs()(*call), rtol=0, atol=1e-9, msg=lambda m: f"{name}: {m}")
            if name.endswith("Loss"):
                torch.testing.assert_close(
                    ours(ignore_index=1)(z, target), theirs(ignore_index=1)(z, target), rtol=0, atol=1e-9
                )

    def test_where_it_differs(self, z):
        # At α = 1 its bisection works on zeros and returns the uniform distribution; the limit is softmax.
        torch.testing.assert_close(self.entmax.entmax_bisect(z, 1.0), torch.full_like(z, 1 / 9))
        torch.testing.assert_close(compat.entmax_bisect(z, 1.0), torch.softmax(z, dim=-1))
        # A masked class makes 0 · ∞ in its loss.
        masked, target = torch.tensor([[1.0, -torch.inf, 0.0]]), torch.tensor([0])
        assert torch.isnan(self.entmax.entmax15_loss(masked, target)).all()
        torch.testing.assert_close(
            compat.entmax15_loss(masked, target), compat.entmax15_loss(masked[:, [0, 2]], target)
        )
        # A row of masked classes alone ends in an index error there, in a message here.
        with pytest.raises(RuntimeError, match="out of bounds"):
            self.entmax.sparsemax(torch.full((1, 3), -torch.inf))
        with pytest.raises(ValueError, match="every logit of row 0 is -inf"):
            compat.sparsemax(torch.full((1, 3), -torch.inf))

    def test_its_gradient_in_alpha_fades_near_one(self, z):
        slopes = []
        for function in (self.entmax.entmax_bisect, compat.entmax_bisect):
            alpha = torch.tensor(1.001, requires_grad=True)
            function(z.float(), alpha)[:, 0].sum().backward()
            slopes.append(alpha.grad.item())
        exact = torch.tensor(1.001, dtype=torch.float64, requires_grad=True)
        compat.entmax_bisect(z, exact)[:, 0].sum().backward()
        assert abs(slopes[1] - exact.grad) < 1e-4 * abs(exact.grad)
        assert abs(slopes[0] - exact.grad) > 1e-3 * abs(exact.grad)


class TestAdasplash:
    """`conformax.torch.adasplash`: the names and keywords of the package."""

    #: What each name computes, and what else may be given.
    NAMES = {
        "triton_entmax": (1.5, {"n_iter": 3, "use_histogram": False, "fast_math": True}),
        "triton_entmax_v1": (1.5, {"n_iter": 12, "fast_math": False}),
        "triton_entmax_v2": (1.5, {"n_iter": 3, "use_histogram": False, "fast_math": True}),
        "triton_sparsemax": (2.0, {}),
        "triton_entmax15": (1.5, {}),
    }

    def test_these_are_all(self):
        assert sorted(self.NAMES) == sorted(adasplash.__all__)

    @pytest.mark.parametrize("name", NAMES)
    def test_values_and_gradients(self, z, name):
        function, (gamma, more) = getattr(adasplash, name), self.NAMES[name]
        upstream = torch.linspace(-1, 1, z.numel(), dtype=z.dtype).reshape(z.shape)
        ours, theirs = z.clone().requires_grad_(), z.clone().requires_grad_()
        p = function(theirs, **more)
        assert torch.equal(p, ct.entmax(ours, gamma))
        (ct.entmax(ours, gamma) * upstream).sum().backward()
        (p * upstream).sum().backward()
        assert torch.equal(ours.grad, theirs.grad)
        if "alpha" in inspect.signature(function).parameters:
            assert torch.equal(function(z, alpha=1.3), ct.entmax(z, 1.3))
            assert torch.equal(function(z, 1.3), ct.entmax(z, 1.3))


class TestWithoutKernels:
    """What a machine that cannot run the kernels is told."""

    @pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
    def test_says_why(self):
        reason = _kernels.problem()
        known = "this torch is built without CUDA", "there is no CUDA driver (libcuda)", "CUDA's cu"
        assert reason is not None and reason.startswith(known), reason
        assert torch.version.cuda is None or not reason.startswith(known[0])

    def test_warns_once(self, monkeypatch):
        monkeypatch.setattr(_kernels, "_found", [])
        monkeypatch.setattr(_kernels, "problem", lambda: "there is no CUDA driver (libcuda) on this machine")
        tensor = SimpleNamespace(is_cuda=True, dtype=torch.float32)
        wanted = "computed in torch operations, many times slower than conformax's kernels: there is no CUDA driver"
        with pytest.warns(conformax.ConformaxWarning, match=wanted) as said:
            assert not any(_kernels.usable(tensor) for _ in range(3))
        assert len(said) == 1

    def test_says_nothing_of_tensors_that_no_kernel_takes(self, monkeypatch, recwarn):
        monkeypatch.setattr(_kernels, "_found", [])
        monkeypatch.setattr(_kernels, "problem", lambda: pytest.fail("nobody wants a kernel"))
        for is_cuda, dtype in ((False, torch.float32), (True, torch.int64)):
            assert not _kernels.usable(SimpleNamespace(is_cuda=is_cuda, dtype=dtype))
        assert not recwarn.list
