"""Plans: the numbers of `conformax plan`, from Python."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import conformax
from patience import HANG


def command(*words):
    ran = subprocess.run(
        [sys.executable, "-m", "conformax", "plan", "--json", *words], capture_output=True, text=True, timeout=HANG
    )
    return json.loads(ran.stdout)


@pytest.mark.parametrize(
    "words, asked",
    [
        ([], {}),
        (["--alpha", "0.03"], {"alpha": 0.03}),
        (["--confidence", "0.95", "--n", "30,1000"], {"confidence_level": 0.95, "n": [30, 1000]}),
        (["--alpha", "0.2", "--precision", "0.02"], {"alpha": "0.20", "precision": 0.02}),
        (["--n", "5", "--probability", "0.5"], {"n": 5, "probability": 0.5}),
        (["--pac", "0.05"], {"pac": 0.05}),
        (["--alpha", "0.05", "--pac", "0.1", "--n", "20,500"], {"alpha": 0.05, "pac": "0.10", "n": [20, 500]}),
    ],
)
def test_numbers_are_the_commands(words, asked):
    found = conformax.plan(**asked)
    # Tuples and lists are the same in JSON.
    assert json.loads(json.dumps(found)) == command(*words)


@pytest.mark.parametrize("more", [{}, {"pac": 0.05}])
def test_numbers_of_groups_are_the_commands(more, tmp_path):
    rng = np.random.default_rng(3)
    labels, region = rng.integers(3, size=60), rng.choice(["east", "north", "west"], size=60, p=[0.2, 0.7, 0.1])
    path = tmp_path / "cal.npz"
    np.savez(path, logits=rng.normal(size=(60, 3)).astype(np.float32), labels=labels, region=region)
    words = [word for key, value in more.items() for word in (f"--{key}", str(value))]
    for by, groups in (("class", labels), ("region", region)):
        found = json.loads(json.dumps(conformax.plan(0.2, groups=groups, **more)))
        for group in found["groups"]:
            group["group"] = str(group["group"])
        assert found == command("--alpha", "0.2", *words, "--by", by, str(path))


@pytest.mark.parametrize(
    "asked, message",
    [
        ({"alpha": 1.5}, "alpha must lie strictly between 0 and 1"),
        ({"alpha": 0.1, "confidence_level": 0.9}, "not both"),
        ({"alpha": [0.1, 0.2]}, "one level"),
        ({"n": 0}, "n must be at least 1, got 0"),
        ({"n": 10, "probability": 95.0}, "95"),
        ({"precision": 0.0}, "precision"),
        ({"precision": 0.02, "pac": 0.05}, "not both"),
        ({"pac": 2}, "pac must lie strictly between 0 and 1"),
        ({"groups": ["a", None, "b"]}, "row 1 has no group"),
        ({"groups": np.array([0.0, 1.0, np.nan])}, "row 2 has no group"),
    ],
)
def test_what_cannot_be_planned_says_why(asked, message):
    with pytest.raises(ValueError, match=message):
        conformax.plan(**asked)
