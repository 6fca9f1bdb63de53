"""Prediction sets here and by the PyPI packages entmax and torchcp, and activations here over torch's softmax: the same
rows, the same sets, two threads each.

    python benches/peers.py LOGITS.npy LABELS.npy

One line per comparison: name, bar, ratio (how many times faster; for activations, how many times as long), note;
separated by tabs.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import time
import types
from pathlib import Path

import entmax
import numpy as np
import torch

import conformax

ROWS, ROUNDS = 20_000, 3


def best(job, rounds: int = ROUNDS) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return min(times)


def tiled(paths: list[str]) -> tuple[np.ndarray, np.ndarray]:
    logits, labels = (np.load(path) for path in paths)
    tiles = -(-ROWS // len(logits))
    return np.tile(logits, (tiles, 1))[:ROWS].astype(np.float32), np.tile(labels, tiles)[:ROWS].astype(np.int64)


def against_entmax(logits: np.ndarray, labels: np.ndarray, gamma: float, activation, bar: str, name: str) -> None:
    cp = conformax.SplitConformalClassifier("entmax", gamma=gamma, n_threads=2).calibrate(logits, labels)
    scaled = torch.from_numpy(logits) * cp.temperature_
    ours, theirs = cp.predict_set(logits).mask, (activation(scaled) > 0).numpy()
    # Labels on the threshold are in the set and have no mass, and f32 rounds their neighbours either way.
    differ = int((ours != theirs).sum())
    if differ > 0.0005 * ours.sum():
        raise SystemExit(f"{name}: {differ} labels differ")
    ratio = best(lambda: activation(scaled)) / best(lambda: cp.predict_set(logits), 15)
    print(f"{name}\t{bar}\t{ratio}\tmean size {ours.sum() / ROWS:.2f}, {differ} labels on the edge differ")


def torchcp_scores():
    """TorchCP's scores by themselves: its `__init__`s import losses and graphs with dependencies of their own."""
    found = importlib.util.find_spec("torchcp")
    for name in ("torchcp", "torchcp.classification"):
        shell = types.ModuleType(name)
        shell.__path__ = [str(Path(found.submodule_search_locations[0], *name.split(".")[1:]))]
        sys.modules[name] = shell
    return importlib.import_module("torchcp.classification.score")


def against_torchcp(logits: np.ndarray) -> None:
    few = 20
    rows, score = torch.from_numpy(logits[:few]), torchcp_scores().EntmaxScore(gamma=1.5)
    own = conformax.scores(logits[:few], gamma=1.5)
    if not np.allclose(own, score(rows).numpy(), rtol=1e-4, atol=1e-4):
        raise SystemExit("torchcp scores differ")
    ratio = best(lambda: score(rows), 1) / best(lambda: conformax.scores(logits[:few], gamma=1.5), 5)
    print(f"torchcp EntmaxScore, all labels of {few} rows\tnone\t{ratio}\tthe same scores")


def over_softmax(logits: np.ndarray) -> None:
    """Into memory that is new to each call, as torch's is."""
    rows, taken = torch.from_numpy(logits), {}
    jobs = {gamma: lambda gamma=gamma: conformax.entmax(logits, gamma) for gamma in (1.5, 1.3)}
    jobs[None] = lambda: torch.softmax(rows, dim=-1)
    for _ in range(7):
        for gamma, job in jobs.items():
            taken[gamma] = min(taken.get(gamma, float("inf")), best(job, 1))
    for gamma, bar in ((1.5, "<= 1"), (1.3, "<= 1.5")):
        note = f"{taken[gamma] * 1e3:.1f} ms, softmax {taken[None] * 1e3:.1f} ms"
        print(f"entmax forward, gamma {gamma}, over torch.softmax\t{bar}\t{taken[gamma] / taken[None]}\t{note}")


def main() -> None:
    torch.set_num_threads(2)
    logits, labels = tiled(sys.argv[1:])
    against_entmax(logits, labels, 1.5, lambda z: entmax.entmax15(z, dim=-1), ">= 200", "entmax15 of PyPI entmax, sets")
    bisect = lambda z: entmax.entmax_bisect(z, alpha=1.5, dim=-1)
    against_entmax(logits, labels, 1.5, bisect, ">= 800", "entmax_bisect of PyPI entmax, sets")
    against_torchcp(logits)
    over_softmax(logits)


if __name__ == "__main__":
    main()
