"""The independent oracle's values arrive through Python to the last digit it can promise."""

from __future__ import annotations

import numpy as np

import conformax
from conformax import SplitConformalClassifier

ROUNDING = 1e-12
PROBABILITY = 1e-12


def numbers(values) -> np.ndarray:
    return np.array([float(value) for value in values])


def test_scores_sets_and_probabilities(golden):
    assert len(golden["scores"]) == 228
    for case in golden["scores"]:
        logits = numbers(case["logits"]).astype(np.float32)[None]
        found = conformax.scores(logits, gamma=case["gamma"])[0]
        np.testing.assert_allclose(found, numbers(case["scores"]), rtol=ROUNDING, atol=0, err_msg=case["row"])
        for at in case["at"]:
            sets = conformax.sets(logits, float(at["q"]), gamma=case["gamma"])
            assert sorted(sets[0].tolist()) == at["set"], case["row"]
            if "probabilities" in at:
                p = np.zeros(logits.shape[1])
                p[sets[0]] = sets.probabilities
                np.testing.assert_allclose(p, numbers(at["probabilities"]), rtol=0, atol=PROBABILITY)


def test_sets_on_the_boundary(golden):
    assert len(golden["boundary"]) == 13
    for case in golden["boundary"]:
        logits = numbers(case["logits"]).astype(np.float32)[None]
        found = conformax.sets(logits, float(case["q"]), gamma=case["gamma"])
        assert sorted(found[0].tolist()) == sorted(case["set"]), case


def test_ranks(golden):
    assert len(golden["ranks"]) == 240
    for case in golden["ranks"]:
        assert conformax.conformal_rank(case["n"], case["alpha"]) == case["rank"]
        assert conformax.conformal_rank(case["n"], float(case["alpha"])) == case["rank"]


def parameters(result: dict) -> dict:
    kind, arg = result["kind"], result["arg"]
    return {
        "lac": lambda: {"score": "inv_prob"},
        "aps": lambda: {"score": "aps"},
        "aps0": lambda: {"score": "aps", "randomized": False},
        "raps": lambda: {"score": "raps", "lambda_": arg[0], "k_reg": int(arg[1])},
        "saps": lambda: {"score": "saps", "lambda_": arg},
        "top_k": lambda: {"score": "top_k"},
        "margin": lambda: {"score": "margin"},
        "entmax": lambda: {"score": "entmax", "gamma": arg},
    }[kind]()


def test_a_whole_run(experiment):
    n = experiment["n_cal"]
    logits, labels, u = experiment["logits"], experiment["labels"], experiment["u"]
    assert len(experiment["results"]) == 60
    for result in experiment["results"]:
        name = f"{result['procedure']} at {result['alpha']}"
        cp = SplitConformalClassifier(**parameters(result), alpha=result["alpha"])
        cp.calibrate(logits[:n], labels[:n], u=u[:n])
        assert abs(cp.threshold_ - result["threshold"]) <= ROUNDING * abs(result["threshold"]), name
        assert cp.predict_set(logits[n:], u=u[n:]).sizes.tolist() == result["sizes"], name
        found = cp.evaluate(logits[n:], labels[n:], u=u[n:])
        for metric in ("coverage", "average_size", "singleton_ratio", "singleton_coverage"):
            assert found[metric] == result[metric], (name, metric)
        assert abs(found.sscv - result["sscv"]) <= ROUNDING, name
        assert [stratum["n"] for stratum in found.strata] == [stratum["n"] for stratum in result["strata"]], name
