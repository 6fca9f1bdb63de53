"""`conformax calibrate` on each format over the reader of pyarrow or NumPy for it, two threads each.

    python benches/formats.py CONFORMAX LOGITS.npy LABELS.npy [--rows 50000] [--only parquet,arrow,…]

The rows are tiled and written once in each format into a folder of their own; files are in the page cache. Both sides take
turns, and the ratio is of best times. A process of `calibrate` starts, reads, scores and writes a file, while the readers
run in this one. One line per format: name, bar, ratio, note; separated by tabs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.json
import pyarrow.parquet

THREADS, ROUNDS = 2, 5
# Texts take ten bytes a number, and readers of them are slow.
ROWS_OF_TEXT = 5_000


class Case:
    """A file in some format, the arguments that name it, and the reader it is measured against."""

    def __init__(self, name: str, bar: str, words: list[str], read: Callable[[], object]) -> None:
        self.name, self.bar, self.words, self.read = name, bar, words, read


def tiled(paths: list[str], rows: int) -> tuple[np.ndarray, np.ndarray]:
    logits, labels = (np.load(path) for path in paths)
    tiles = -(-rows // len(logits))
    return np.tile(logits, (tiles, 1))[:rows].astype(np.float32), np.tile(labels, tiles)[:rows].astype(np.int64)


def table_of(logits: np.ndarray, labels: np.ndarray) -> pa.Table:
    starts = np.arange(0, logits.size + 1, logits.shape[1], dtype=np.int32)
    lists = pa.ListArray.from_arrays(pa.array(starts), pa.array(logits.reshape(-1)))
    return pa.table({"logits": lists, "label": pa.array(labels)})


def parquet(folder: Path, logits: np.ndarray, labels: np.ndarray) -> list[Case]:
    cases = []
    for groups, compression in ((1, "snappy"), (10, "snappy"), (1, "none"), (10, "none")):
        path = folder / f"{groups}-{compression}.parquet"
        size = -(-len(labels) // groups)
        pa.parquet.write_table(
            table_of(logits, labels), path, row_group_size=size, compression=compression, use_dictionary=False
        )
        name = f"Parquet list column, row groups: {groups}, {compression}"
        cases.append(Case(name, "<= 1.2", [str(path)], lambda path=path: pa.parquet.read_table(path)))
    return cases


def arrow(folder: Path, logits: np.ndarray, labels: np.ndarray) -> list[Case]:
    path = folder / "rows.arrow"
    with pa.ipc.new_file(path, (table := table_of(logits, labels)).schema) as writer:
        writer.write_table(table, max_chunksize=5000)

    def read() -> pa.Table:
        # Into memory, as from a file: a map reads nothing until somebody looks.
        with pa.OSFile(str(path)) as file:
            return pa.ipc.open_file(file).read_all()

    return [Case("Arrow", "<= 2", [str(path)], read)]


def npz(folder: Path, logits: np.ndarray, labels: np.ndarray) -> list[Case]:
    path = folder / "rows.npz"
    np.savez_compressed(path, logits=logits, labels=labels)
    return [Case("npz, deflated", "<= 1", [str(path)], lambda: dict(np.load(path)))]


def csv(folder: Path, logits: np.ndarray, labels: np.ndarray) -> list[Case]:
    path, logits, labels = folder / "rows.csv", logits[:ROWS_OF_TEXT], labels[:ROWS_OF_TEXT]
    columns = {f"c{k}": logits[:, k] for k in range(logits.shape[1])}
    pa.csv.write_csv(pa.table({"label": [f"c{label}" for label in labels], **columns}), path)
    return [Case("CSV", "<= 1", [str(path)], lambda: pa.csv.read_csv(path))]


def json_lines(folder: Path, logits: np.ndarray, labels: np.ndarray) -> list[Case]:
    path, logits, labels = folder / "rows.jsonl", logits[:ROWS_OF_TEXT], labels[:ROWS_OF_TEXT]
    with path.open("w") as file:
        for row, label in zip(logits, labels):
            # The shortest text of each single.
            file.write(json.dumps({"logits": [float(str(z)) for z in row], "label": int(label)}) + "\n")
    block = pa.json.ReadOptions(block_size=1 << 24)
    return [Case("JSON Lines", "<= 1", [str(path)], lambda: pa.json.read_json(path, read_options=block))]


FORMATS = {"parquet": parquet, "arrow": arrow, "npz": npz, "csv": csv, "jsonl": json_lines}


def best_pair(one: Callable[[], object], other: Callable[[], object]) -> tuple[float, float]:
    best = [float("inf")] * 2
    for _ in range(ROUNDS):
        for side, job in enumerate((one, other)):
            start = time.perf_counter()
            job()
            best[side] = min(best[side], time.perf_counter() - start)
    return best[0], best[1]


def calibrate(command: str, folder: Path, words: list[str]) -> None:
    out = folder / "model.json"
    flags = ["--alpha", "0.1", "--threads", str(THREADS), "--force", "-o", str(out)]
    subprocess.run([command, "--quiet", "calibrate", *words, *flags], check=True, stdout=subprocess.DEVNULL)


def orders(command: str, folder: Path, logits: np.ndarray, labels: np.ndarray) -> None:
    """Fortran order over C order, both by `calibrate`."""
    np.save(folder / "labels.npy", labels)
    np.save(folder / "c.npy", logits)
    np.save(folder / "fortran.npy", np.asfortranarray(logits))
    words = {order: ["--logits", str(folder / f"{order}.npy"), "--labels", str(folder / "labels.npy")]
             for order in ("c", "fortran")}  # fmt: skip
    ours, plain = best_pair(*(lambda order=order: calibrate(command, folder, words[order]) for order in ("fortran", "c")))
    print(f"Fortran-order npy over C order\t<= 1.5\t{ours / plain}\t{logits.nbytes / ours / 1e9:.2f} GB/s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command")
    parser.add_argument("data", nargs=2)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--only", default=",".join([*FORMATS, "fortran"]))
    chosen = parser.parse_args()
    pa.set_cpu_count(THREADS)
    logits, labels = tiled(chosen.data, chosen.rows)
    for name in chosen.only.split(","):
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            if name == "fortran":
                orders(chosen.command, folder, logits, labels)
                continue
            for case in FORMATS[name](folder, logits, labels):
                ours, theirs = best_pair(lambda: calibrate(chosen.command, folder, case.words), case.read)
                note = f"{ours:.3f} s, the reader {theirs:.3f} s"
                print(f"{case.name}, calibrate over the reader\t{case.bar}\t{ours / theirs}\t{note}", flush=True)


if __name__ == "__main__":
    main()
