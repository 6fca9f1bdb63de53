"""Scores as objects: what a score is called and its parameters, for those who prefer types to names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import _conformax
from ._parameters import as_count, as_number, as_seed, as_truth


class ScoreRule:
    """What every score object is; see its subclasses."""

    def _compiled(self) -> _conformax.Score:
        raise NotImplementedError


@dataclass(frozen=True)
class EntmaxScore(ScoreRule):
    """`(Σ_k (z_k − z_y)₊^δ)^{1/δ}` with `δ = 1/(gamma − 1)`; gamma 1 is the log-margin, 2 sparsemax.

    >>> EntmaxScore(gamma=2)
    EntmaxScore(gamma=2)
    """

    gamma: float = 1.5

    def _compiled(self) -> _conformax.Score:
        return _conformax.Score("entmax", gamma=as_number(self.gamma, "gamma"))


@dataclass(frozen=True)
class InvProbScore(ScoreRule):
    """One minus the softmax probability; others call it LAC or THR."""

    def _compiled(self) -> _conformax.Score:
        return _conformax.Score("inv_prob")


@dataclass(frozen=True)
class ApsScore(ScoreRule):
    """Softmax summed from the top down to the label, less a random part of its own."""

    randomized: bool = True
    random_state: int = 0

    def _compiled(self) -> _conformax.Score:
        return _conformax.Score("aps", **_draw(self))


@dataclass(frozen=True)
class RapsScore(ScoreRule):
    """APS with `lambda_` added for every rank beyond `k_reg`.

    `penalty` says whether a label's own penalty is part of the random term: "randomized", as in the definition, or
    "fixed", as TorchCP has it.
    """

    lambda_: float = 0.01
    k_reg: int = 5
    penalty: str = "randomized"
    randomized: bool = True
    random_state: int = 0

    def _compiled(self) -> _conformax.Score:
        return _conformax.Score(
            "raps",
            lambda_=as_number(self.lambda_, "lambda_"),
            k_reg=as_count(self.k_reg, "k_reg"),
            penalty=self.penalty,
            **_draw(self),
        )


@dataclass(frozen=True)
class SapsScore(ScoreRule):
    """The top probability, plus `lambda_` for every rank after it."""

    lambda_: float = 0.1
    randomized: bool = True
    random_state: int = 0

    def _compiled(self) -> _conformax.Score:
        return _conformax.Score("saps", lambda_=as_number(self.lambda_, "lambda_"), **_draw(self))


@dataclass(frozen=True)
class TopKScore(ScoreRule):
    """The rank."""

    def _compiled(self) -> _conformax.Score:
        return _conformax.Score("top_k")


@dataclass(frozen=True)
class MarginScore(ScoreRule):
    """The lead of the best other label in softmax probability."""

    def _compiled(self) -> _conformax.Score:
        return _conformax.Score("margin")


def _draw(score: ApsScore | RapsScore | SapsScore) -> dict[str, Any]:
    """What a score draws with; a seed without a draw would go unheard."""
    drawn = {"randomized": as_truth(score.randomized, "randomized"), "seed": as_seed(score.random_state)}
    if drawn["seed"] and not drawn["randomized"]:
        raise ValueError(f"random_state is the seed of the draws, and {score} draws nothing: leave one out")
    return drawn


ALIASES = {"lam_reg": "lambda_", "kreg": "k_reg"}


def canonical(aliases: dict[str, Any], **given: Any) -> dict[str, Any]:
    """Parameters by our names, from those given by them and from other libraries' names.

    >>> canonical({"kreg": 5}, lambda_=0.1)
    {'lambda_': 0.1, 'k_reg': 5}
    """
    found = {name: value for name, value in given.items() if value is not None}
    for name, value in aliases.items():
        if name == "penalty":
            raise TypeError("penalty is RapsScore's, and \"randomized\" or \"fixed\"; what TorchCP calls so is lambda_")
        if name not in ALIASES:
            raise TypeError(f"there is no parameter {name!r}")
        if ALIASES[name] in found:
            raise TypeError(f"give {ALIASES[name]} or {name}, not both")
        found[ALIASES[name]] = value
    return found


def compiled_score(
    score: Any,
    *,
    gamma: float | None = None,
    lambda_: float | None = None,
    k_reg: int | None = None,
    randomized: bool = True,
    random_state: int = 0,
) -> _conformax.Score:
    """The compiled score of a name with parameters, or of an object, which carries its own.

    `random_state` seeds more than draws, so beside an object it may say the same as that.

    >>> compiled_score(ApsScore(), random_state=7)
    Traceback (most recent call last):
    ...
    ValueError: ApsScore(randomized=True, random_state=0) has a seed of its own, so random_state=7 would not reach its \
draws: give it to the score object too
    """
    if isinstance(score, ScoreRule):
        given = {"gamma": gamma, "lambda_": lambda_, "k_reg": k_reg, "randomized": None if randomized else randomized}
        for name, value in given.items():
            if value is not None:
                raise ValueError(f"{name} belongs to the score object, {score}; it must not be given beside it")
        seed = as_seed(random_state)
        if seed and getattr(score, "random_state", seed) != seed:
            raise ValueError(
                f"{score} has a seed of its own, so random_state={seed} would not reach its draws: give it to the score "
                "object too"
            )
        return score._compiled()
    if not isinstance(score, str):
        raise TypeError(f"score must be a name or a score object, got {type(score).__name__}")
    return _conformax.Score(
        score,
        gamma=None if gamma is None else as_number(gamma, "gamma"),
        lambda_=None if lambda_ is None else as_number(lambda_, "lambda_"),
        k_reg=None if k_reg is None else as_count(k_reg, "k_reg"),
        randomized=as_truth(randomized, "randomized"),
        seed=as_seed(random_state),
    )


def parameters_of(rule: _conformax.Score) -> dict[str, Any]:
    """The classifier's parameters that make this score."""
    drawn = {} if rule.randomized is None else {"randomized": rule.randomized, "random_state": rule.seed or 0}
    if rule.penalty == "fixed":
        return {"score": RapsScore(rule.lambda_, rule.k_reg, "fixed", **drawn)}
    given = {"gamma": rule.gamma if rule.name == "entmax" else None, "lambda_": rule.lambda_, "k_reg": rule.k_reg}
    return {"score": rule.name, **given, **drawn}
