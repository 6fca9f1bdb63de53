"""What a NumPy call and the command cost over the Rust call they make, as the ratio of the best times.

    python benches/overhead.py [LOGITS.npy LABELS.npy] [--command CONFORMAX]

20,000 × 1,000 float32 and 2,000,000 × 10. Both sides alternate, so that whatever else the machine does hits both. With
files, half of their rows calibrate and the others are tiled to 20,000; without, rows are drawn so that the top label
wins by about as much as on ImageNet. The command evaluates an .npy file that is in the page cache; what an empty
evaluation takes is taken off, since a process starts once and not once a row. Both sides look for rows that calibrated.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

import conformax

HERE = Path(__file__).resolve().parent
ROWS, CLASSES, ROUNDS, REPEATS = 20_000, 1_000, 5, 15
NARROW_ROWS, NARROW_CLASSES = 2_000_000, 10
BAR = 1.10


Rows = tuple[np.ndarray, np.ndarray]


def data(arguments: list[str]) -> tuple[Rows, Rows]:
    """Rows that calibrate, and others."""
    if arguments:
        logits, labels = (np.load(path) for path in arguments)
        half = len(logits) // 2
        tiles = -(-ROWS // (len(logits) - half))
        return (
            (logits[:half].astype(np.float32), labels[:half].astype(np.uint32)),
            (
                np.tile(logits[half:], (tiles, 1))[:ROWS].astype(np.float32),
                np.tile(labels[half:], tiles)[:ROWS].astype(np.uint32),
            ),
        )
    return drawn(2_500, CLASSES, 5.0, seed=1), drawn(ROWS, CLASSES, 5.0, seed=0)


def narrow(arguments: list[str]) -> tuple[Rows, Rows]:
    """Ten classes: of each row of a file the nine likeliest and the true one, as in the library's own benchmark."""
    if not arguments:
        return drawn(20_000, NARROW_CLASSES, 5.0, seed=1), drawn(NARROW_ROWS, NARROW_CLASSES, 5.0, seed=0)
    logits, labels = (np.load(path) for path in arguments)
    every, places = np.arange(len(labels)), np.arange(len(labels)) % NARROW_CLASSES
    others = logits.astype(np.float32)
    true = others[every, labels].copy()
    others[every, labels] = -np.inf
    best = -np.sort(-others, axis=1)[:, : NARROW_CLASSES - 1]
    few = np.stack([np.insert(row, place, own) for row, place, own in zip(best, places, true)])
    half = len(few) // 2
    tiles = -(-NARROW_ROWS // (len(few) - half))
    given = np.tile(few[half:], (tiles, 1))[:NARROW_ROWS], np.tile(places[half:], tiles)[:NARROW_ROWS]
    return (few[:half], places[:half].astype(np.uint32)), (given[0], given[1].astype(np.uint32))


def drawn(rows: int, classes: int, lead: float, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=rows).astype(np.uint32)
    logits = rng.normal(size=(rows, classes)).astype(np.float32)
    logits[np.arange(rows), labels] += rng.normal(lead, 2, size=rows).astype(np.float32)
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="logits and labels, as .npy")
    parser.add_argument("--command", help="a release build of the command, to be measured too")
    arguments = parser.parse_args()
    direct = binary()
    for held, given in (data(arguments.files), narrow(arguments.files)):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            files = []
            for place, array in enumerate((*held, *given)):
                array.tofile(folder / str(place))
                files.append(str(folder / str(place)))
            for threads in (1, 2):
                command = [direct, *files, str(given[0].shape[1]), str(threads)]
                compare(held, given, command, threads, arguments.command, folder)


def evaluation(command: str, folder: Path, held: Rows, given: Rows, threads: int):
    """Evaluates the rows, or the first of them alone, by the command."""
    model = folder / "model.json"
    if not model.exists():
        conformax.SplitConformalClassifier().calibrate(*held).save(model)
        for name, rows in (("all", len(given[0])), ("one", 1)):
            np.save(folder / f"{name}-logits.npy", given[0][:rows])
            np.save(folder / f"{name}-labels.npy", given[1][:rows])

    def job(name: str) -> None:
        files = ["--logits", folder / f"{name}-logits.npy", "--labels", folder / f"{name}-labels.npy"]
        words = [command, "evaluate", model, *files, "--json", "--quiet", "--threads", threads]
        subprocess.run(list(map(str, words)), check=True, capture_output=True)

    return job


def compare(held: Rows, given: Rows, command: list[str], threads: int, measured: str | None, folder: Path) -> None:
    logits, labels = given
    cp = conformax.SplitConformalClassifier(n_threads=threads).calibrate(*held)
    jobs = {
        "score_labels": lambda: conformax.scores(logits, labels, n_threads=threads),
        "predict": lambda: cp.predict_set(logits),
    }
    shape = f"{len(logits):,} x {logits.shape[1]:,}"
    rust = dict.fromkeys([*jobs, "evaluate"], float("inf"))
    python = dict(rust)
    run = None if measured is None else evaluation(measured, folder, held, given, threads)
    whole = empty = float("inf")
    for _ in range(ROUNDS):
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        for name, seconds in map(str.split, lines):
            rust[name] = min(rust[name], float(seconds))
        for name, job in jobs.items():
            python[name] = min(python[name], best(job))
        if run is not None:
            whole, empty = min(whole, best(lambda: run("all"))), min(empty, best(lambda: run("one")))
    for name in jobs:
        show(f"Python's {name}, {shape}", threads, rust[name], python[name])
    if run is not None:
        show(f"the command's evaluate, {shape}", threads, rust["evaluate"], whole - empty)


def show(name: str, threads: int, rust: float, other: float) -> None:
    ratio = other / rust
    verdict = "within" if ratio <= BAR else "over"
    print(
        f"{name}, {threads} thread(s): Rust {rust * 1e3:.2f} ms, there {other * 1e3:.2f} ms, "
        f"ratio {ratio:.3f} ({verdict} the bar of {BAR:.2f})"
    )


if __name__ == "__main__":
    main()
