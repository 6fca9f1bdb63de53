"""What the road through Python costs an expression of Polars: sets, beside a function that does nothing.

    python python/benches/expressions.py [--scale 1.0]

Both are `map_batches` over the same column in the streaming engine, and so is a query without either, which is taken off:
what is left of the function that does nothing is the road. Best of several rounds in which they take turns. `--scale`
makes the data smaller.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import polars as pl

import conformax
import conformax.polars

ROUNDS = 7


def frame_of(rows: int, classes: int) -> tuple[pl.LazyFrame, conformax.SplitConformalClassifier]:
    rng = np.random.default_rng(0)
    labels = rng.integers(classes, size=rows)
    logits = rng.normal(size=(rows, classes)).astype(np.float32)
    logits[np.arange(rows), labels] += rng.normal(5, 2, size=rows).astype(np.float32)
    model = conformax.SplitConformalClassifier(alpha=0.1).calibrate(logits[:2000], labels[:2000])
    # Tables are written and read in pieces, and so are these.
    pieces = [pl.DataFrame({"logits": part}) for part in np.array_split(logits, 8)]
    return pl.concat(pieces, rechunk=False).lazy(), model


def best(jobs: dict) -> dict[str, float]:
    """Best seconds of each job, which take turns."""
    found = {name: np.inf for name in jobs}
    for _ in range(ROUNDS):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            found[name] = min(found[name], time.perf_counter() - start)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="how much of the data")
    scale = parser.parse_args().scale
    print("| classes | rows | blocks | the road, µs a block | sets, ms a block |\n|---:|---:|---:|---:|---:|")
    for rows, classes in ((int(2_000_000 * scale), 10), (int(50_000 * scale), 1000)):
        frame, model = frame_of(rows, classes)
        logits, blocks = pl.col("logits"), []

        def nothing(series: pl.Series) -> pl.Series:
            blocks.append(len(series))
            return series

        kind = frame.collect_schema()["logits"]
        passing = frame.select(logits.map_batches(nothing, return_dtype=kind, is_elementwise=True))
        jobs = {
            "neither": lambda: frame.select(logits).collect(engine="streaming"),
            "nothing": lambda: passing.collect(engine="streaming"),
            "sets": lambda: frame.select(logits.conformax.sets(model)).collect(engine="streaming"),
        }
        found = best(jobs)
        count = len(blocks) / ROUNDS
        road, sets = ((found[name] - found["neither"]) / count for name in ("nothing", "sets"))
        print(f"| {classes} | {rows} | {count:.0f} | {road * 1e6:.0f} | {sets * 1e3:.2f} |", flush=True)


if __name__ == "__main__":
    main()
