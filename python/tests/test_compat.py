"""What users of the package `entmax` rely on, of `conformax.torch.compat`: any index, dimension, mask and loss."""

from __future__ import annotations

from functools import partial

import pytest

torch = pytest.importorskip("torch")

from torch.autograd import gradcheck

from conformax.torch import compat, entmax_loss

pytestmark = pytest.mark.peers

#: On both sides of softmax, and beyond what the core is made for.
ALPHAS = [0.05, 0.2, 0.5, 0.75, 0.999, 1.0, 1.2, 1.5, 1.75, 2.0, 2.25, 5.0, 16.0]
LARGE = [16.5, 30.0, 1000.0]

LOSSES = [
    compat.SparsemaxLoss,
    partial(compat.SparsemaxLoss, k=5),
    compat.Entmax15Loss,
    partial(compat.Entmax15Loss, k=5),
    compat.SparsemaxBisectLoss,
    compat.EntmaxBisectLoss,
    partial(compat.EntmaxBisectLoss, alpha=0.4),
    partial(compat.EntmaxBisectLoss, alpha=1.2),
    compat.NormmaxBisectLoss,
]


def normal(*shape: int, seed: int = 0, kind: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, dtype=kind, generator=torch.Generator().manual_seed(seed))


def indices(*shape: int) -> torch.Tensor:
    """One index per row, from 0.05 to 2.55, so that some lie below 1."""
    return 0.05 + 2.5 * torch.rand(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("alpha", ALPHAS + LARGE)
def test_results_solve_the_problem(alpha):
    # On the support p^{α − 1}/(α − 1) − x is one number τ, and off it x + τ is not above zero. Large indices need
    # gaps in proportion to have more than one label.
    x = normal(7, 6) / max(alpha, 1.0) ** 2
    p = compat.entmax_bisect(x, alpha)
    torch.testing.assert_close(p.sum(dim=-1), torch.ones(7, dtype=torch.float64), rtol=0, atol=1e-12)
    level = (torch.log(p) if alpha == 1 else p ** (alpha - 1) / (alpha - 1)) - x
    for row in range(7):
        held = level[row][p[row] > 1e-3]
        assert (held.max() - held.min()).abs() < 1e-6
        if alpha <= 1:
            assert (p[row] > 0).all()
        else:
            assert (x[row][p[row] == 0] <= -held.mean() + 1e-9).all()


@pytest.mark.parametrize("alpha", [0.2, 0.5, 0.75, 0.999, 1.0, 1.2, 1.5, 1.75, 2.25])
def test_gradients_in_logits_and_index(alpha):
    index = torch.tensor(alpha, dtype=torch.float64, requires_grad=True)
    x = normal(4, 6).requires_grad_()
    if alpha == 1:
        # The numerical difference would ask for an index on either side, of which one half is another formula.
        assert gradcheck(lambda x: compat.entmax_bisect(x, alpha), (x,), eps=1e-5)
    else:
        assert gradcheck(compat.entmax_bisect, (x, index), eps=1e-5)


@pytest.mark.parametrize("dim", [0, 1, 2, 3])
def test_an_index_for_every_row_of_any_dimension(dim):
    shape = [3, 4, 2, 5]
    x = normal(*shape).requires_grad_()
    shape[dim] = 1
    alpha = indices(*shape).requires_grad_()
    assert (alpha < 1).any() and (alpha > 1).any()
    found = compat.entmax_bisect(x, alpha, dim=dim)
    rows, singles = x.movedim(dim, -1).reshape(-1, x.shape[dim]), alpha.movedim(dim, -1).reshape(-1)
    alone = torch.stack([compat.entmax_bisect(row, index.item()) for row, index in zip(rows, singles)])
    torch.testing.assert_close(found.movedim(dim, -1).reshape(alone.shape), alone, rtol=0, atol=1e-12)
    assert gradcheck(partial(compat.entmax_bisect, dim=dim), (x, alpha), eps=1e-5)


def test_indices_meet_where_the_formulas_change():
    x = normal(5, 6)
    for alpha, other in [(1.0, 1 - 1e-9), (16.0, 16 + 1e-9)]:
        found = [compat.entmax_bisect(x / alpha, index) for index in (alpha, other)]
        torch.testing.assert_close(found[1], found[0], rtol=0, atol=1e-7)


@pytest.mark.parametrize("alpha", LARGE)
def test_a_large_index_gives_ties_their_share_and_no_nan(alpha):
    x = torch.tensor([[1.0, 1.0, 0.0], [3.0, 0.0, -torch.inf], [0.0, 0.0, 0.0]], requires_grad=True)
    p = compat.entmax_bisect(x, alpha)
    wanted = torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]])
    torch.testing.assert_close(p, wanted, rtol=0, atol=1e-6)
    p[:, 0].sum().backward()
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize(
    "function",
    [compat.Sparsemax(dim=1), compat.Entmax15(dim=1), compat.Sparsemax(dim=1, k=512), compat.sparsemax_bisect]
    + [partial(compat.entmax_bisect, alpha=alpha) for alpha in (0.5, 1.25, 1.5, 2.25, 20.0)],
)
def test_masked_classes_change_nothing(function, kind):
    x = normal(2, 6, kind=torch.float32).to(kind)
    x[:, 3:] = -torch.inf
    p = function(x)
    assert p.dtype == kind and not p[:, 3:].any()
    torch.testing.assert_close(p[:, :3], function(x[:, :3]))


@pytest.mark.parametrize("coefficient", [1e-5, 0.5, 1e4])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_bisection_and_a_first_guess_of_the_support_change_nothing(dim, coefficient):
    x = coefficient * normal(3, 4, 5)
    for name, alpha in (("sparsemax", 2.0), ("entmax15", 1.5)):
        exact = getattr(compat, name)(x, dim)
        assert torch.equal(exact, getattr(compat, name)(x, dim, k=2))
        assert torch.equal(exact, compat.entmax_bisect(x, alpha, dim))


def test_normmax_and_budget_by_their_published_values():
    x = torch.tensor([0, 0.25, 0.5, 0.75, 1])
    for function, wanted in [
        (partial(compat.normmax_bisect, alpha=2), [0.0, 0.0239, 0.1746, 0.3254, 0.4761]),
        (partial(compat.normmax_bisect, alpha=1000), [0.0, 0.0, 0.3330, 0.3334, 0.3336]),
        (partial(compat.budget_bisect, budget=2), [0.0, 0.125, 0.375, 0.625, 0.875]),
        (lambda x: compat.budget_bisect(2 * x, budget=3), [0.0, 0.25, 0.75, 1.0, 1.0]),
    ]:
        torch.testing.assert_close(function(x), torch.tensor(wanted), rtol=0, atol=2e-4)
    torch.testing.assert_close(compat.budget_bisect(3 * x, budget=1), compat.sparsemax(3 * x), rtol=0, atol=1e-6)


@pytest.mark.parametrize("alpha", [1.2, 1.5, 2.0, 5.0, 10.0])
def test_gradients_of_normmax(alpha):
    assert gradcheck(partial(compat.normmax_bisect, alpha=alpha), (normal(4, 6).requires_grad_(),), eps=1e-5)


@pytest.mark.parametrize("budget", range(7))
def test_gradients_of_a_budget(budget):
    assert gradcheck(partial(compat.budget_bisect, budget=budget), (normal(4, 6).requires_grad_(),), eps=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_are_not_negative_and_have_gradients(loss):
    for seed in range(2):
        x, target = normal(4, 10, seed=seed).requires_grad_(), normal(4, 10, seed=100 + seed).argmax(dim=1)
        assert (loss(reduction="none")(x, target) >= 0).all()
        for reduction in ("sum", "elementwise_mean"):
            for ignored in (-100, int(target[0])):
                assert gradcheck(loss(ignore_index=ignored, reduction=reduction), (x, target), eps=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_ignored_rows_count_for_nothing(loss):
    x, target = normal(20, 6), normal(20, 6, seed=1).argmax(dim=1)
    each = loss(reduction="none")(x, target)
    ignored = int(target[each.argmax()])
    total = loss(reduction="sum", ignore_index=ignored)(x, target)
    torch.testing.assert_close(total, each[target != ignored].sum())
    assert total < each.sum()


def test_messages_speak_of_alpha():
    x, target = normal(2, 3), torch.tensor([0, 1])
    for alpha in (0, -0.5, float("nan"), torch.tensor([[1.5], [-1.0]])):
        for call in (lambda: compat.entmax_bisect(x, alpha), lambda: compat.entmax_bisect_loss(x, target, alpha)):
            with pytest.raises(ValueError, match="alpha must be greater than 0, got"):
                call()


@pytest.mark.parametrize("gamma", [1.0, 1.2, 1.5, 2.0, 3.0])
def test_the_losses_gamma_has_a_gradient(gamma):
    x, target, step = normal(5, 6).requires_grad_(), torch.tensor([0, 1, 2, 3, 5]), 1e-6
    index = torch.tensor(gamma, dtype=torch.float64, requires_grad=True)
    entmax_loss(x, target, index).sum().backward()
    # Above gamma alone, for it must not be below 1.
    near = [entmax_loss(x, target, gamma + times * step).sum().item() for times in range(3)]
    slope = (-3 * near[0] + 4 * near[1] - near[2]) / (2 * step)
    assert index.grad.item() == pytest.approx(slope, rel=1e-4, abs=1e-6)
    each = torch.linspace(1.1, 2.4, 5, dtype=torch.float64).unsqueeze(1).requires_grad_()
    assert gradcheck(lambda x, each: entmax_loss(x, target, each), (x, each))
