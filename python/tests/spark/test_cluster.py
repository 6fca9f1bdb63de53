"""`conformax.spark` on a standalone cluster of two workers, and with executors that are killed in the middle."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from cluster import PATIENCE, SMALL, session
from pyspark.sql import functions as F

import conformax.spark as cs
from conformax import SplitConformalClassifier
from conformax.spark import _driver


@pytest.fixture(scope="module")
def spark(cluster):
    settings = {
        **SMALL,
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        # Nothing runs before both executors are there.
        "spark.cores.max": "2",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{PATIENCE}s",
    }
    spark = session(cluster.address, **settings)
    yield spark
    spark.stop()


@pytest.fixture(scope="module")
def data(spark, rows):
    records = zip(range(len(rows[1])), rows[0].tolist(), rows[1].tolist())
    return spark.createDataFrame(list(records), "id long, logits array<float>, label int").repartition(6, "id")


def of_executor(work):
    """Calls `work` with the process of the executor that a task belongs to. What runs there knows nothing of this file."""

    def call():
        # The process of a task was forked by a daemon, which the executor started.
        daemon = Path(f"/proc/{os.getppid()}/stat").read_text()
        work(int(daemon.rpartition(")")[2].split()[1]))

    return call


def killing_its_executor(mark: Path):
    """Kills the executor of the task that calls it, the first time that it is called at all."""

    def kill(executor):
        try:
            mark.touch(exist_ok=False)
        except FileExistsError:
            return
        os.kill(executor, signal.SIGKILL)

    return of_executor(kill)


def killing_once(df, mark: Path):
    """The same rows; the first time that the middle of partition 3 is reached, the executor that reads it is killed."""
    kill = killing_its_executor(mark)

    def pass_on(batches):
        from pyspark import TaskContext

        for place, batch in enumerate(batches):
            if TaskContext.get().partitionId() == 3 and place == 2:
                kill()
            yield batch

    return df.mapInArrow(pass_on, df.schema)


@pytest.fixture
def killed(data, tmp_path):
    return killing_once(data, tmp_path / "killed"), tmp_path / "killed"


def test_both_workers_take_part_and_the_bytes_are_those_of_one_machine(data, rows, tmp_path):
    """Both are there before anything runs, and have one core each: of six tasks each has the next that is left."""

    note = of_executor(lambda executor: (tmp_path / str(executor)).touch())

    def noting(batches):
        note()
        yield from batches

    wanted = SplitConformalClassifier().calibrate(*rows)
    found = cs.calibrate(data.mapInArrow(noting, data.schema), logits="logits", label="label")
    assert found._calibration.to_json() == wanted._calibration.to_json()
    assert len(list(tmp_path.iterdir())) == 2


def test_a_killed_executor_does_not_show_in_the_model(killed, rows):
    df, mark = killed
    found = cs.calibrate(df, logits="logits", label="label")
    assert mark.exists()
    assert found._calibration.to_json() == SplitConformalClassifier().calibrate(*rows)._calibration.to_json()


def test_a_killed_executor_does_not_show_in_thresholds(killed, rows):
    df, mark = killed
    found = cs.calibrate(df, logits="logits", label="label", thresholds_only=True)
    assert mark.exists()
    wanted = SplitConformalClassifier().calibrate(*rows)
    assert (found.threshold_, found.n_calibration_) == (wanted.threshold_, wanted.n_calibration_)


def test_a_killed_executor_does_not_show_in_a_choice(killed, data):
    df, mark = killed
    given = {"logits": "logits", "label": "label", "tuning": F.col("id") % 2 == 0, "grid": [1.2, 1.5]}
    found = cs.tune(df, **given)
    assert mark.exists()
    assert found._calibration.to_json() == cs.tune(data, **given)._calibration.to_json()


def test_a_killed_executor_does_not_show_in_an_evaluation(killed, rows):
    df, mark = killed
    model = SplitConformalClassifier().calibrate(*(part[:2000] for part in rows))
    found = cs.evaluate(model, df.filter("id >= 2000"), logits="logits", label="label")
    assert mark.exists()
    assert repr(dict(found)) == repr(dict(model.evaluate(*(part[2000:] for part in rows))))


def test_an_executor_killed_while_it_merges_does_not_show(data, rows, tmp_path, monkeypatch):
    """Six partitions are merged by threes on the executors, of which one is killed when it has begun."""
    mark, plain = tmp_path / "killed", _driver._either
    kill = killing_its_executor(mark)

    def either(one, other):
        from pyspark import TaskContext

        # The driver merges what is left at the end.
        if one is not None and other is not None and TaskContext.get() is not None:
            kill()
        return plain(one, other)

    monkeypatch.setattr(_driver, "TREE", 2)
    monkeypatch.setattr(_driver, "_either", either)
    found = cs.calibrate(data, logits="logits", label="label", thresholds_only=True)
    assert mark.exists()
    wanted = SplitConformalClassifier().calibrate(*rows)
    assert (found.threshold_, found.n_calibration_) == (wanted.threshold_, wanted.n_calibration_)


def test_a_killed_executor_does_not_show_in_the_sets(killed, rows):
    df, mark = killed
    model = SplitConformalClassifier().calibrate(*rows)
    found = cs.predict(model, df, logits="logits", keep=["id"]).sort(F.col("id")).collect()
    assert mark.exists()
    assert [row["labels"] for row in found] == model.predict_set(rows[0]).labels()
