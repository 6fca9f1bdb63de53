"""Prediction sets here and by the PyPI packages entmax and torchcp: the same rows, the same sets, two threads each.

    python benches/peers.py LOGITS.npy LABELS.npy

One line per comparison: name, bar, how many times faster, note; separated by tabs.
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


def main() -> None:
    torch.set_num_threads(2)
    logits, labels = tiled(sys.argv[1:])
    against_entmax(logits, labels, 1.5, lambda z: entmax.entmax15(z, dim=-1), ">= 120", "entmax15 of PyPI entmax, sets")
    bisect = lambda z: entmax.entmax_bisect(z, alpha=1.5, dim=-1)
    against_entmax(logits, labels, 1.5, bisect, ">= 400", "entmax_bisect of PyPI entmax, sets")
    against_torchcp(logits)


if __name__ == "__main__":
    main()
