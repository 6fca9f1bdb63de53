"""What a NumPy call and the command cost over the Rust call they make, as the ratio of the best times.

    python benches/overhead.py [LOGITS.npy LABELS.npy] [--command CONFORMAX]

20,000 × 1,000 float32 and 2,000,000 × 10. Both sides alternate, so that whatever else the machine does hits both. With
files, their rows are tiled to 20,000; without, rows are drawn so that the top label wins by about as much as on ImageNet.
The command evaluates an .npy file that is in the page cache; what an empty evaluation takes is taken off, since a
process starts once and not once a row.
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


def data(arguments: list[str]) -> tuple[np.ndarray, np.ndarray]:
    if arguments:
        logits, labels = (np.load(path) for path in arguments)
        tiles = -(-ROWS // len(logits))
        return (
            np.tile(logits, (tiles, 1))[:ROWS].astype(np.float32),
            np.tile(labels, tiles)[:ROWS].astype(np.uint32),
        )
    return drawn(ROWS, CLASSES, 5.0)


def drawn(rows: int, classes: int, lead: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
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
    for logits, labels in (data(arguments.files), drawn(NARROW_ROWS, NARROW_CLASSES, 2.0)):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            files = [str(folder / name) for name in ("logits", "labels")]
            logits.tofile(files[0])
            labels.tofile(files[1])
            for threads in (1, 2):
                command = [direct, *files, str(logits.shape[1]), str(threads)]
                compare(logits, labels, command, threads, arguments.command, folder)


def evaluation(command: str, folder: Path, logits: np.ndarray, labels: np.ndarray, threads: int):
    """Evaluates the rows, or the first of them alone, by the command."""
    model = folder / "model.json"
    if not model.exists():
        conformax.SplitConformalClassifier().calibrate(logits, labels).save(model)
        for name, rows in (("all", len(logits)), ("one", 1)):
            np.save(folder / f"{name}-logits.npy", logits[:rows])
            np.save(folder / f"{name}-labels.npy", labels[:rows])

    def job(name: str) -> None:
        files = ["--logits", folder / f"{name}-logits.npy", "--labels", folder / f"{name}-labels.npy"]
        words = [command, "evaluate", model, *files, "--allow-seen", "--json", "--quiet", "--threads", threads]
        subprocess.run(list(map(str, words)), check=True, capture_output=True)

    return job


def compare(
    logits: np.ndarray, labels: np.ndarray, command: list[str], threads: int, measured: str | None, folder: Path
) -> None:
    cp = conformax.SplitConformalClassifier(n_threads=threads).calibrate(logits, labels)
    jobs = {
        "score_labels": lambda: conformax.scores(logits, labels, n_threads=threads),
        "predict": lambda: cp.predict_set(logits),
    }
    shape = f"{len(logits):,} x {logits.shape[1]:,}"
    rust = dict.fromkeys([*jobs, "evaluate"], float("inf"))
    python = dict(rust)
    run = None if measured is None else evaluation(measured, folder, logits, labels, threads)
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
