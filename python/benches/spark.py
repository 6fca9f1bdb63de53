"""Spark against Spark that does nothing but pass the same batches through `mapInArrow`, one executor against two, and
50 million rows of 10 classes. Each line is a row of `scripts/bars`: name, bar, measured, note.

    python python/benches/spark.py [--scale 1.0] [--only passing|executors|fifty-million]

A job and the pass that does nothing take turns, and the best of several rounds counts; the first round, in which
executors start and code is compiled, does not. `--scale` makes the data smaller.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "spark"))
from cluster import PATIENCE, Cluster, session  # noqa: E402
from pyspark.sql import functions as F  # noqa: E402

import conformax.spark as cs  # noqa: E402
from conformax import SplitConformalClassifier, _conformax  # noqa: E402

ROUNDS = 3

#: Jobs that read the rows more than once. Tuning reads all of them three times, and takes 4 in 10 or 6 in 10 of them.
PASSES = {"tune": 3}

#: Rows are a function of their number and of this.
SEED = 20

#: The multipliers of the mixing function, whose results pass for random bits.
FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9


def rows_of(ids: np.ndarray, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Logits and labels of these rows, which depend on their number alone."""
    places = ids.astype(np.uint64)[:, np.newaxis] * np.uint64(classes + 1) + np.arange(classes + 1, dtype=np.uint64)
    mixed = (places + np.uint64(SEED)) * np.uint64(FIRST)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(SECOND)
    bits = mixed >> np.uint64(40)
    labels = (bits[:, -1] % np.uint64(classes)).astype(np.int32)
    logits = bits[:, :-1].astype(np.float32) * np.float32(2.0**-22)
    logits[np.arange(len(labels)), labels] += np.float32(2.5)
    return logits, labels


def rows_in_spark(spark, first: int, last: int, classes: int, partitions: int):
    """The rows of `rows_of`, made by the executors out of nothing but their numbers."""

    def bits(place: int):
        mixed = (F.col("id") * (classes + 1) + (place + SEED)) * F.lit(signed(FIRST))
        mixed = mixed.bitwiseXOR(F.shiftrightunsigned(mixed, 30)) * F.lit(signed(SECOND))
        return F.shiftrightunsigned(mixed, 40)

    def logit(place: int):
        raised = F.when(F.col("label") == place, F.lit(2.5)).otherwise(F.lit(0.0)).cast("float")
        return bits(place).cast("float") * F.lit(2.0**-22).cast("float") + raised

    df = spark.range(first, last, 1, partitions).withColumn("label", (bits(classes) % classes).cast("int"))
    return df.select(F.array(*(logit(place) for place in range(classes))).alias("logits"), "label")


def signed(multiplier: int) -> int:
    """The 64-bit integer of the same bits that Spark has, which knows no unsigned ones."""
    return multiplier - (1 << 64)


def best(jobs: dict, rounds: int = ROUNDS) -> dict[str, float]:
    """Best seconds of each job, which take turns; a round before does not count."""
    found = {name: np.inf for name in jobs}
    for place in range(rounds + 1):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            if place:
                found[name] = min(found[name], time.perf_counter() - start)
    return found


def tell(name: str, bar: str, measured: float, note: str) -> None:
    print(f"{name}\t{bar}\t{measured:.3f}\t{note}", flush=True)


def write(folder: Path, rows: int, classes: int, files: int) -> str:
    """A folder of Parquet files."""
    path = folder / f"rows-{classes}"
    path.mkdir()
    for place in range(files):
        ids = np.arange(place * rows // files, (place + 1) * rows // files)
        logits, labels = rows_of(ids, classes)
        table = pa.table({"id": pa.array(ids), "logits": lists_of(logits), "label": pa.array(labels)})
        pq.write_table(table, path / f"part-{place}.parquet", compression="none", use_dictionary=False)
    return str(path)


def lists_of(logits: np.ndarray) -> pa.ListArray:
    offsets = np.arange(0, logits.size + 1, logits.shape[1], dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(logits.ravel()))


def sink(df) -> None:
    df.write.format("noop").mode("overwrite").save()


def pass_on(batches):
    yield from batches


def passing(folder: Path, scale: float) -> None:
    spark = session("local[2]", **{"spark.driver.memory": "3g"})
    for rows, classes in ((int(2_000_000 * scale), 10), (int(50_000 * scale), 1000)):
        df = spark.read.parquet(write(folder, rows, classes, 8)).select("logits", "label", "id")
        model = cs.calibrate(df, logits="logits", label="label")
        given = {"logits": "logits", "label": "label"}
        jobs = {
            "nothing": lambda: sink(df.drop("id").mapInArrow(pass_on, df.drop("id").schema)),
            "calibrate": lambda: cs.calibrate(df, **given),
            "evaluate": lambda: cs.evaluate(model, df, **given, allow_seen=True),
            "predict": lambda: sink(cs.predict(model, df, logits="logits", keep=["label"])),
            "calibrate, thresholds only": lambda: cs.calibrate(df, **given, thresholds_only=True),
            "tune": lambda: cs.tune(df, **given, tuning=F.pmod(F.xxhash64("id"), F.lit(10)) < 4),
        }
        found = best(jobs)
        nothing = found.pop("nothing")
        for name, seconds in found.items():
            passes = PASSES.get(name, 1)
            note = f"{rows / seconds / 1e3:,.0f} thousand rows a second, {rows * classes * 4 / seconds / 1e6:,.0f} MB/s"
            if passes > 1:
                note += f"; {passes} passes, {seconds / nothing:.2f} in all"
            # Choosing scores every row nine times, which is no pass that does next to nothing.
            bar = "none" if name == "tune" else "<= 1.5"
            what = "a pass of " if passes > 1 else ""
            tell(
                f"Spark local[2], {what}{name} over passing batches on, K = {classes}",
                bar,
                seconds / nothing / passes,
                note,
            )
    spark.stop()


def executors(folder: Path, scale: float) -> None:
    rows, classes = int(120_000 * scale), 1000
    path = write(folder, rows, classes, 16)
    cluster = Cluster(folder, pinned=True, memory="2g")
    try:
        seconds = {}
        for number in (1, 2):
            settings = {
                "spark.executor.memory": "1g",
                "spark.executor.cores": "1",
                "spark.cores.max": str(number),
                "spark.scheduler.minRegisteredResourcesRatio": "1.0",
                "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{PATIENCE}s",
            }
            spark = session(cluster.address, **settings)
            df = spark.read.parquet(path)
            jobs = {
                "calibrate": lambda: cs.calibrate(df, logits="logits", label="label"),
                "nothing": lambda: sink(df.mapInArrow(pass_on, df.schema)),
            }
            seconds[number] = best(jobs)
            spark.stop()
        ratio = {name: seconds[1][name] / seconds[2][name] for name in seconds[1]}
        note = f"{rows / seconds[2]['calibrate'] / 1e3:,.0f} thousand rows a second; passing on {ratio['nothing']:.2f}"
        tell(f"two executors over one, calibrate, K = {classes}", ">= 1.7", ratio["calibrate"], note)
    finally:
        cluster.stop()


def one_machine(ids: range, empty: bytes) -> _conformax.Partial:
    whole = _conformax.Partial.from_bytes(empty)
    for first in range(ids.start, ids.stop, 1_000_000):
        logits, labels = rows_of(np.arange(first, min(first + 1_000_000, ids.stop)), 10)
        whole.extend(logits, labels.astype(np.uint32))
    return whole


def fifty_million(scale: float) -> None:
    rows = int(50_000_000 * scale)
    name = f"Spark local[2], {rows / 1e6:g} million rows of 10 classes"
    # Products of 64 bits wrap around.
    settings = {"spark.driver.memory": "3g", "spark.sql.ansi.enabled": "false"}
    given = {"logits": "logits", "label": "label"}

    spark = session("local[2]", **settings, **{"spark.driver.maxResultSize": "2g"})
    start = time.perf_counter()
    model = cs.calibrate(rows_in_spark(spark, 0, rows, 10, 32), **given)
    seconds = time.perf_counter() - start
    empty = _conformax.Calibrator(SplitConformalClassifier()._rule(), 10)
    whole = _conformax.Calibrator.from_bytes(one_machine(range(rows), empty.to_bytes()).to_bytes())
    assert whole.finish(["0.1"]).to_json() == model._calibration.to_json(), "another model than one machine's"
    tell(f"{name}, calibrate, seconds", "none", seconds, "the bytes of one machine")

    start = time.perf_counter()
    found = cs.evaluate(model, rows_in_spark(spark, rows, 2 * rows, 10, 32), **given)
    seconds = time.perf_counter() - start
    evaluator = _conformax.Evaluator(model._calibration, ["0.1"])
    evaluator.merge_bytes(one_machine(range(rows, 2 * rows), evaluator.to_bytes()).to_bytes())
    [metrics], _ = evaluator.finish()
    assert repr(metrics) == repr({name: found[name] for name in metrics}), "another evaluation than one machine's"
    tell(f"{name}, evaluate, seconds", "none", seconds, f"the numbers of one machine; coverage {found.coverage:.5f}")
    spark.stop()

    # Of 50 million rows the scores alone are 400 MB, which this driver would refuse.
    spark = session("local[2]", **settings, **{"spark.driver.maxResultSize": "128m"})
    start = time.perf_counter()
    slim = cs.calibrate(rows_in_spark(spark, 0, rows, 10, 32), **given, thresholds_only=True)
    seconds = time.perf_counter() - start
    assert (slim.threshold_, slim.n_calibration_) == (model.threshold_, rows), "another threshold than one machine's"
    note = "the same threshold; the driver may receive 128 MB"
    tell(f"{name}, thresholds only, seconds", "none", seconds, note)
    spark.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="how much of the data")
    parser.add_argument("--only", choices=["passing", "executors", "fifty-million"])
    given = parser.parse_args()
    os.environ["PYTHONWARNINGS"] = "ignore"
    runs = {
        "passing": lambda folder: passing(folder, given.scale),
        "executors": lambda folder: executors(folder, given.scale),
        "fifty-million": lambda folder: fifty_million(given.scale),
    }
    for name, run in runs.items():
        if given.only in (None, name):
            with tempfile.TemporaryDirectory() as folder:
                run(Path(folder))


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    main()
