"""The grids that tuning searches."""

from __future__ import annotations

import itertools
from typing import Any

from . import _conformax
from ._parameters import as_count, as_number
from ._rules import ALIASES


def grid_over(over: Any, grid: Any, n_classes: int, params: Any) -> list[_conformax.Score]:
    """The candidates, in the order in which ties are resolved."""
    names = [over] if isinstance(over, str) else list(over)
    names = [ALIASES.get(name, name) for name in names]
    if names == ["gamma"]:
        _expect(params, "entmax", over)
        values = _conformax.GRID_GAMMAS if grid is None else _values(grid, "gamma")
        return [_conformax.Score("entmax", gamma=as_number(gamma, "gamma")) for gamma in values]
    if not names or not set(names) <= {"lambda_", "k_reg"}:
        raise ValueError(f"tuning goes over gamma, lambda_, k_reg or (lambda_, k_reg), got {over!r}")
    _expect(params, "raps", over)
    return _raps_grid(names, grid, n_classes, params)


def _expect(params: Any, wanted: str, over: Any) -> None:
    """The classifier's own score is what is tuned; another one would be calibrated behind its back."""
    name = params._rule().name
    if wanted == "entmax" and params.score in ("sparsemax", "log_margin"):
        raise ValueError(f"{params.score!r} is entmax at one gamma: tune the score 'entmax' over gamma")
    family = ("entmax", "log_margin", "sparsemax")
    if name != wanted and not (wanted == "entmax" and name in family):
        raise ValueError(f"tuning over {over!r} is of the score {wanted!r}, and this classifier's is {name!r}")


def _raps_grid(names: list[str], grid: Any, n_classes: int, params: Any) -> list[_conformax.Score]:
    if isinstance(grid, dict) and set(grid) != set(names):
        wanted, found = ", ".join(names), ", ".join(map(str, grid))
        raise ValueError(f"grid must have values for {wanted}, and has some for {found}")
    rule = params._rule()
    lambdas: Any = [rule.lambda_]
    orders: Any = [rule.k_reg]
    if "lambda_" in names:
        lambdas = _conformax.GRID_LAMBDAS if grid is None else _values(grid, "lambda_")
        lambdas = [as_number(value, "lambda_") for value in lambdas]
    if "k_reg" in names:
        orders = _conformax.GRID_K_REGS if grid is None else _values(grid, "k_reg")
        orders = [as_count(value, "k_reg") for value in orders]
    drawn = {"penalty": rule.penalty, "randomized": rule.randomized, "seed": rule.seed or 0}
    every = [
        _conformax.Score("raps", lambda_=lambda_, k_reg=k_reg, **drawn)
        for lambda_, k_reg in itertools.product(lambdas, orders)
    ]
    return [score for score in every if grid is not None or score.fits(n_classes)]


def particulars(rules: list[_conformax.Score]) -> list[dict[str, Any]]:
    """What candidates differ by: their parameters, and the score where they are of several."""
    several = len({rule.name for rule in rules}) > 1

    def of(rule: _conformax.Score) -> dict[str, Any]:
        named = {"gamma": rule.gamma, "lambda_": rule.lambda_, "k_reg": rule.k_reg}
        differ = {name: value for name, value in named.items() if value is not None}
        return {"score": rule.name, **differ} if several else differ

    return [of(rule) for rule in rules]


def _values(grid: Any, name: str) -> list[Any]:
    return list(grid[name]) if isinstance(grid, dict) else list(grid)
