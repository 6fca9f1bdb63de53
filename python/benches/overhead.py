"""What a NumPy call costs over the Rust call it makes: 20,000 × 1,000 float32, the ratio of the best times.

    python benches/overhead.py [LOGITS.npy LABELS.npy]

Both sides alternate, so that whatever else the machine does hits both. With files, their rows are tiled to 20,000;
without, rows are drawn so that the top label wins by about as much as on ImageNet.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import conformax

HERE = Path(__file__).resolve().parent
ROWS, CLASSES, ROUNDS, REPEATS = 20_000, 1_000, 5, 15
BAR = 1.10


def data(arguments: list[str]) -> tuple[np.ndarray, np.ndarray]:
    if arguments:
        logits, labels = (np.load(path) for path in arguments)
        tiles = -(-ROWS // len(logits))
        return (
            np.tile(logits, (tiles, 1))[:ROWS].astype(np.float32),
            np.tile(labels, tiles)[:ROWS].astype(np.uint32),
        )
    rng = np.random.default_rng(0)
    labels = rng.integers(CLASSES, size=ROWS).astype(np.uint32)
    logits = rng.normal(size=(ROWS, CLASSES)).astype(np.float32)
    logits[np.arange(ROWS), labels] += rng.normal(5, 2, size=ROWS).astype(np.float32)
    return logits, labels


def best(job) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return min(times)


def binary() -> str:
    built = subprocess.run(
        ["cargo", "build", "--release", "-p", "conformax-python", "--bench", "direct", "--message-format=json"],
        cwd=HERE,
        check=True,
        capture_output=True,
        text=True,
    )
    artifacts = (json.loads(line) for line in built.stdout.splitlines())
    return next(it["executable"] for it in artifacts if it.get("executable"))


def main() -> None:
    logits, labels = data(sys.argv[1:])
    direct = binary()
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / name) for name in ("logits", "labels")]
        logits.tofile(files[0])
        labels.tofile(files[1])
        for threads in (1, 2):
            compare(logits, labels, [direct, *files, str(logits.shape[1]), str(threads)], threads)


def compare(logits: np.ndarray, labels: np.ndarray, command: list[str], threads: int) -> None:
    cp = conformax.SplitConformalClassifier(n_threads=threads).calibrate(logits, labels)
    jobs = {
        "score_labels": lambda: conformax.scores(logits, labels, n_threads=threads),
        "predict": lambda: cp.predict_set(logits),
    }
    rust = dict.fromkeys(jobs, float("inf"))
    python = dict(rust)
    for _ in range(ROUNDS):
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        for name, seconds in map(str.split, lines):
            rust[name] = min(rust[name], float(seconds))
        for name, job in jobs.items():
            python[name] = min(python[name], best(job))
    for name in jobs:
        ratio = python[name] / rust[name]
        verdict = "within" if ratio <= BAR else "over"
        print(
            f"{name}, {threads} thread(s): Rust {rust[name] * 1e3:.2f} ms, Python {python[name] * 1e3:.2f} ms, "
            f"ratio {ratio:.3f} ({verdict} the bar of {BAR:.2f})"
        )


if __name__ == "__main__":
    main()
