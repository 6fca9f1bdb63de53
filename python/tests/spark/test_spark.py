"""`conformax.spark` in local mode: the bytes of one machine, whatever the partitions, types and columns."""

from __future__ import annotations

import subprocess
import sys
import uuid
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import RDD
from pyspark.ml.linalg import Vectors, VectorUDT
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DoubleType, IntegerType, StringType, StructField, StructType

import conformax.spark as cs
from conformax import ConformaxWarning, SplitConformalClassifier, _conformax
from conformax._tuning import grid_over
from conformax.spark import _driver, _executor

NAMES = [f"class {place}" for place in range(10)]


@pytest.fixture(scope="module")
def data(spark, rows, tmp_path_factory):
    """The rows as a table: id, logits, label, name of the label, and a column per class."""
    logits, labels = rows
    path = str(tmp_path_factory.mktemp("data") / "rows.parquet")
    columns = {
        "id": pa.array(np.arange(len(labels))),
        "logits": pa.FixedSizeListArray.from_arrays(pa.array(logits.ravel()), logits.shape[1]),
        "label": pa.array(labels.astype(np.int32)),
        "name": pa.array([NAMES[label] for label in labels]),
        **{name: pa.array(logits[:, place]) for place, name in enumerate(NAMES)},
    }
    pq.write_table(pa.table(columns), path)
    return spark.read.parquet(path).cache()


@pytest.fixture(autouse=True)
def small_tree(monkeypatch):
    """Accumulators are merged by executors where there are nine partitions, not only where there are many."""
    monkeypatch.setattr(_driver, "TREE", 9)


@pytest.fixture(scope="module")
def model(rows):
    return SplitConformalClassifier(alpha=0.1).calibrate(rows[0][:2000], rows[1][:2000])


def file_of(classifier) -> str:
    return classifier._calibration.to_json()


def skewed(df):
    """One partition with nearly all rows, some with few, and some with none."""
    return df.repartition(8, F.when(F.col("id") < 2500, 0).otherwise(F.col("id") % 3))


PARTITIONS = {
    "one": lambda df: df.coalesce(1),
    "five": lambda df: df.repartition(5, "id"),
    "skewed": skewed,
    "mostly empty": lambda df: df.repartition(9, F.col("id") % 2),
}


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_models_have_the_bytes_of_one_machine(data, rows, partitions):
    df = PARTITIONS[partitions](data)
    sizes = [len(part) for part in df.rdd.glom().collect()]
    assert (0 in sizes) == (partitions in ("skewed", "mostly empty")), sizes
    wanted = SplitConformalClassifier(alpha=[0.1, 0.05]).calibrate(*rows)
    found = cs.calibrate(df, logits="logits", label="label", alpha=[0.1, 0.05])
    assert file_of(found) == file_of(wanted)
    assert found.threshold_ == wanted.threshold_
    assert found.get_params() == wanted.get_params()


def test_thresholds_by_class(data, rows):
    clusters = [place % 3 for place in range(10)]
    weights = [1 + place / 10 for place in range(10)]
    for given in (
        {"by": "class"}, {"pac": 0.05}, {"by": clusters}, {"label_weights": weights}, {"severity": weights},
        {"clusters": 2}, {"truncate_ranks": True},
    ):
        wanted = SplitConformalClassifier(alpha=0.1, **given).calibrate(*rows)
        assert file_of(cs.calibrate(data, logits="logits", label="label", alpha=0.1, **given)) == file_of(wanted)
    with pytest.raises(ValueError, match="not there for them"):
        cs.calibrate(data, logits="logits", label="label", prior=weights)
    with pytest.raises(ValueError, match="thresholds_only finds one threshold"):
        cs.calibrate(data, logits="logits", label="label", by="class", thresholds_only=True)


def test_probabilities_that_are_taken_for_logits_are_warned_of(data, model):
    p = F.transform(F.col("logits"), lambda logit: F.exp(logit.cast("double")))
    total = F.aggregate(p, F.lit(0.0), lambda whole, part: whole + part)
    taken = data.select(F.transform(p, lambda part: part / total).alias("logits"), "label", "id").coalesce(3)
    named = {"logits": "logits", "label": "label"}
    told = "sum to 1, as probabilities do, and are taken for logits: "
    with pytest.warns(ConformaxWarning, match=f"{told}give their logarithms"):
        cs.calibrate(taken, **named)
    with pytest.warns(ConformaxWarning, match=f"{told}give their logarithms"):
        cs.calibrate(taken, **named, thresholds_only=True)
    with pytest.warns(ConformaxWarning, match=f"{told}give their logarithms"):
        cs.tune(taken, **named, rows="all")
    with pytest.warns(ConformaxWarning, match=f"{told}if that is what they are, give the logits"):
        cs.evaluate(model, taken, **named)
    # One partition is enough to know better.
    logits = data.select("logits", "label", "id").limit(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConformaxWarning)
        cs.calibrate(taken.union(logits), **named)
        cs.calibrate(taken.repartition(12).union(logits), **named, thresholds_only=True)


@pytest.fixture(scope="module")
def regions(data):
    """The rows with a region that says nothing, and a weight that grows."""
    region = F.element_at(F.array(F.lit("north"), F.lit("south"), F.lit("west")), (F.col("id") % 3 + 1).cast("int"))
    return data.withColumn("region", region).withColumn("weight", 0.5 + (F.col("id") % 7) / 4)


@pytest.mark.parametrize("partitions", ["five", "mostly empty"])
def test_thresholds_by_group(regions, rows, partitions):
    logits, labels = rows
    region = pd.Series(np.array(["north", "south", "west"])[np.arange(len(labels)) % 3], name="region")
    wanted = SplitConformalClassifier(alpha=0.1, by="group").calibrate(logits, labels, groups=region)
    df = PARTITIONS[partitions](regions)
    found = cs.calibrate(df, logits="logits", label="label", alpha=0.1, by="region")
    assert file_of(found) == file_of(wanted)
    sets = wanted.predict_set(logits, groups=region)
    predicted = cs.predict(found, df, logits="logits", keep=["id"]).toPandas().sort_values("id")
    assert [list(labels) for labels in predicted["labels"]] == [list(each) for each in sets]
    renamed = df.withColumnRenamed("region", "where")
    again = cs.predict(found, renamed, logits="logits", keep=["id"], groups="where").toPandas().sort_values("id")
    assert [list(labels) for labels in again["labels"]] == [list(labels) for labels in predicted["labels"]]
    with pytest.warns(ConformaxWarning, match="also calibrated"):
        evaluated = cs.evaluate(found, df, logits="logits", label="label", allow_seen=True)
    with pytest.warns(ConformaxWarning, match="also calibrated"):
        alone = wanted.evaluate(logits, labels, groups=region, allow_seen=True)
    assert repr(dict(evaluated)) == repr(dict(alone))


@pytest.mark.parametrize("partitions", ["five", "skewed"])
def test_thresholds_by_weight(regions, rows, partitions):
    logits, labels = rows
    weights = pd.Series(0.5 + (np.arange(len(labels)) % 7) / 4, name="weight")
    wanted = SplitConformalClassifier(alpha=0.1).calibrate(logits, labels, weights=weights)
    df = PARTITIONS[partitions](regions)
    found = cs.calibrate(df, logits="logits", label="label", alpha=0.1, weights="weight")
    assert file_of(found) == file_of(wanted)
    sets = wanted.predict_set(logits, weights=weights)
    predicted = cs.predict(found, df, logits="logits", keep=["id"]).toPandas().sort_values("id")
    assert [list(labels) for labels in predicted["labels"]] == [list(each) for each in sets]
    with pytest.warns(ConformaxWarning, match="also calibrated"):
        evaluated = cs.evaluate(found, df, logits="logits", label="label", allow_seen=True)
    with pytest.warns(ConformaxWarning, match="also calibrated"):
        alone = wanted.evaluate(logits, labels, weights=weights, allow_seen=True)
    assert repr(dict(evaluated)) == repr(dict(alone))


def test_groups_and_weights_that_are_wrong(regions, model):
    df = regions.limit(300)
    none = F.when(F.col("id") != 17, F.col("region"))
    with pytest.raises(cs.BadRowError, match="id = 17: row .* has no group"):
        cs.calibrate(df.withColumn("region", none), logits="logits", label="label", by="region", key="id")
    negative = F.when(F.col("id") == 17, -1.0).otherwise(1.0)
    with pytest.raises(cs.BadRowError, match="id = 17.*weight"):
        cs.calibrate(df.withColumn("weight", negative), logits="logits", label="label", weights="weight", key="id")
    with pytest.raises(ValueError, match="do not go by groups"):
        cs.predict(model, df, logits="logits", groups="region")
    by_region = cs.calibrate(df, logits="logits", label="label", by="region")
    other = df.withColumn("region", F.when(F.col("id") == 23, "east").otherwise(F.col("region")))
    with pytest.raises(Exception, match="id = 23: the group of row .* is 'east'"):
        cs.predict(by_region, other, logits="logits", keep=["id"], key="id").collect()


@pytest.mark.parametrize("score", ["raps", "inv_prob", "sparsemax"])
def test_every_parameter_of_the_classifier_is_passed_on(data, rows, score):
    given = {"score": score, "alpha": "0.15", "masked": "never"}
    given |= {"lambda_": 0.02, "random_state": 3} if score == "raps" else {}
    wanted = SplitConformalClassifier(**given).calibrate(*rows)
    assert file_of(cs.calibrate(data, logits="logits", label="label", **given)) == file_of(wanted)


def test_pieces_of_a_large_partition_do_not_show(data, rows, monkeypatch):
    pieces = _executor.Accumulation(_calibrator, None, None, (), 1, bytes_per_row=8)
    monkeypatch.setattr(_executor, "PIECE", 8 * 700)
    batches = [batch for batch in pa.table({"logits": list(rows[0]), "label": rows[1]}).to_batches(max_chunksize=97)]
    records = [record.to_pylist()[0] for record in pieces(iter(batches))]
    assert len(records) == 4
    found = _driver._one(map(_driver._found, records))
    whole = _calibrator(10)
    whole.extend(rows[0], rows[1].astype(np.uint32))
    assert found.to_bytes() == whole.to_bytes()


def _calibrator(classes):
    scheme = SplitConformalClassifier()._scheme()
    return _executor.Calibration({"score": "entmax"}, "allowed", scheme, "all", None)(classes)


@pytest.mark.parametrize("partitions", ["five", "mostly empty"])
def test_thresholds_in_constant_memory(data, rows, partitions):
    df = PARTITIONS[partitions](data)
    wanted = SplitConformalClassifier(alpha=[0.1, 0.02]).calibrate(*rows)
    found = cs.calibrate(df, logits="logits", label="label", alpha=[0.1, 0.02], thresholds_only=True)
    assert found.threshold_ == wanted.threshold_
    assert found.scores_ is None
    assert found.n_calibration_ == wanted.n_calibration_
    slim = cs.calibrate(data.coalesce(1), logits="logits", label="label", alpha=[0.1, 0.02], thresholds_only=True)
    assert file_of(found) == file_of(slim)
    assert found.predict_set(rows[0]) == wanted.predict_set(rows[0])


def test_thresholds_have_the_bytes_of_the_commands_file(data, rows, tmp_path):
    np.savez(tmp_path / "rows.npz", logits=rows[0], labels=rows[1].astype(np.int32))
    words = ["calibrate", "rows.npz", "--thresholds-only", "--alpha", "0.1", "--alpha", "0.02", "-o", "model.json"]
    command = [sys.executable, "-c", "from conformax._command import main; main()", *words]
    subprocess.run(command, cwd=tmp_path, check=True)
    found = cs.calibrate(skewed(data), logits="logits", label="label", alpha=[0.1, 0.02], thresholds_only=True)
    found.save(tmp_path / "found.json")
    assert (tmp_path / "found.json").read_text() == (tmp_path / "model.json").read_text()


def test_thresholds_alone_read_the_rows_once(data, tmp_path):
    """Also where the search takes two passes, since the scores stay on disk until it is over."""

    def noting(batches):
        from pyspark import TaskContext

        with open(tmp_path / str(TaskContext.get().partitionId()), "a") as note:
            note.write("1")
        yield from batches

    def kept(df):
        return set(df.sparkSession.sparkContext._jsc.getPersistentRDDs())

    data.count()  # these rows are kept themselves, from their first use on
    df, before = data.repartition(5, "id").mapInArrow(noting, data.schema), kept(data)
    cs.calibrate(df, logits="logits", label="label", thresholds_only=True)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["1"] * 5
    assert kept(data) == before


def test_accumulators_of_one_size_are_merged_by_the_executors(data, model, monkeypatch):
    trees, plain = [], RDD.treeAggregate
    monkeypatch.setattr(RDD, "treeAggregate", lambda *given: trees.append(given) or plain(*given))
    given = {"logits": "logits", "label": "label"}
    for partitions, wanted in ((_driver.TREE - 1, 0), (_driver.TREE, 1)):
        df = data.repartition(partitions, "id")
        for run in (
            lambda: cs.calibrate(df, **given, thresholds_only=True),
            lambda: cs.evaluate(model, df.filter("id >= 2000"), **given),
        ):
            trees.clear()
            run()
            assert bool(trees) == bool(wanted), partitions


def test_what_a_partition_sends_does_not_grow_with_its_rows():
    """All but kept scores, that is: thresholds alone in each of their passes, and evaluations."""
    rng, n = np.random.default_rng(3), 600_000
    logits, labels = rng.normal(size=(n, 2)).astype(np.float32), rng.integers(2, size=n)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(logits.ravel()), 2)
    batches = pa.table({"logits": lists, "label": labels}).to_batches(max_chunksize=50_000)

    def records(make) -> list[dict]:
        [record] = _executor.Accumulation(make, 2, None, (), 1)(iter(batches))
        return record.to_pylist()

    def sent(make) -> bytes:
        return records(make)[0]["partial"]

    def counted(make) -> bytes:
        [found] = _driver._counted(make, records(_calibrator))
        return found.to_bytes()

    small = 4 << 20
    first = counted(partial(_executor.search, {"score": "entmax"}, ["0.1"], "allowed"))
    following = _conformax.Partial.from_bytes(first).next_pass()
    model = SplitConformalClassifier().calibrate(logits[:1000], labels[:1000])
    evaluator = _conformax.Evaluator(model._calibration, ["0.1"])
    assert len(first) < small
    assert len(counted(partial(_executor.given, following.to_bytes()))) < small
    assert len(sent(partial(_executor.given, evaluator.to_bytes()))) < small
    assert len(sent(_calibrator)) > 8 * n > small


@pytest.mark.parametrize("over", ["gamma", "lambda_"])
def test_tuning_has_the_bytes_of_one_machine(data, rows, over):
    given = {"score": "entmax" if over == "gamma" else "raps", "alpha": 0.1}
    tuning = (F.col("id") * 7) % 5 < 2
    found = cs.tune(skewed(data), logits="logits", label="label", tuning=tuning, over=over, **given)
    cp, places = SplitConformalClassifier(**given), np.arange(len(rows[1]))
    chosen = places * 7 % 5 < 2
    wanted = _conformax.tune(
        grid_over(over, None, 10, cp), rows[0], rows[1].astype(np.uint32), places[~chosen], places[chosen], "0.1"
    )
    assert file_of(found) == wanted.to_json()
    assert found.tuning_["n_tuning"] == chosen.sum()


@pytest.mark.parametrize("over", ["gamma", "lambda_"])
def test_all_rows_choose_as_on_one_machine(data, rows, over):
    given = {"score": "entmax" if over == "gamma" else "raps", "alpha": 0.05}
    found = cs.tune(skewed(data), logits="logits", label="label", rows="all", over=over, **given)
    wanted = SplitConformalClassifier(**given).tune(*rows, over=over, rows="all")
    assert file_of(found) == file_of(wanted)
    assert sum(candidate["wins"] for candidate in found.tuning_["candidates"]) == len(rows[1])
    assert found.predict_set(rows[0]) == wanted.predict_set(rows[0])
    sets = cs.predict(found, data, logits="logits", keep=["id"]).orderBy("id").collect()
    assert [row["size"] for row in sets] == wanted.predict_set(rows[0]).sizes.tolist()
    for run in (cs.predict, partial(cs.evaluate, label="label")):
        with pytest.raises(ValueError, match="chosen by all rows at alpha 0.05, and at 0.2 the choice may be another"):
            run(found, data, logits="logits", alpha=0.2)
    with pytest.raises(ValueError, match="and not both"):
        cs.tune(data, logits="logits", label="label", tuning="label", rows="all")
    with pytest.raises(ValueError, match="give `tuning`"):
        cs.tune(data, logits="logits", label="label")


def test_a_row_either_tunes_or_calibrates(data):
    sides = data.withColumn("side", F.when(F.col("id") != 17, F.col("id") % 2 == 0))
    with pytest.raises(Exception, match="null in some row"):
        cs.tune(sides, logits="logits", label="label", tuning="side")
    with pytest.raises(TypeError, match="boolean column, got int"):
        cs.tune(data, logits="logits", label="label", tuning="label")
    with pytest.raises(ValueError, match="one level, got 2"):
        cs.tune(data, logits="logits", label="label", tuning="label", alpha=[0.1, 0.2])


@pytest.mark.parametrize("partitions", ["skewed", "mostly empty"])
def test_evaluations_are_those_of_one_machine(data, model, rows, partitions):
    test = PARTITIONS[partitions](data.filter("id >= 2000"))
    wanted = model.evaluate(rows[0][2000:], rows[1][2000:], alpha=[0.1, 0.2])
    found = cs.evaluate(model, test, logits="logits", label="label", alpha=[0.1, 0.2])
    for one, other in zip(wanted, found):
        assert repr(dict(one)) == repr(dict(other))
        assert str(one) == str(other)


def test_evaluations_read_numbers_as_calibration_did(spark, rows):
    logits, labels = rows[0].astype(np.float64), rows[1]
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    readings = [(p, {"input": "probabilities"}), (np.log(p), {"input": "log_probabilities"}), (logits, {"prior": p[0]})]
    for numbers, parameters in readings:
        model = SplitConformalClassifier(**parameters).calibrate(numbers[:2000], labels[:2000])
        wanted = model.evaluate(numbers[2000:], labels[2000:])
        columns = [(row.tolist(), int(label)) for row, label in zip(numbers, labels)]
        df, test = (spark.createDataFrame(part, ["logits", "label"]).repartition(3) for part in (columns, columns[2000:]))
        found = cs.evaluate(model, test, logits="logits", label="label")
        assert repr(dict(found)) == repr(dict(wanted)), parameters
        with pytest.raises(ValueError, match="2000 of 3000 rows also calibrated or tuned this classifier"):
            cs.evaluate(model, df, logits="logits", label="label")


def test_rows_that_calibrated_are_refused(data, model):
    with pytest.raises(ValueError, match="2000 of 2000 rows also calibrated or tuned this classifier: evaluate"):
        cs.evaluate(model, data.filter("id < 2000"), logits="logits", label="label")
    with pytest.warns(ConformaxWarning, match="flatter"):
        seen = cs.evaluate(model, data.filter("id < 2000"), logits="logits", label="label", allow_seen=True)
    assert seen.coverage_interval is None


@pytest.mark.parametrize("partitions", ["one", "skewed"])
def test_sets_are_those_of_one_machine(data, model, rows, partitions):
    sets = cs.predict(model, PARTITIONS[partitions](data), logits="logits", keep=["id", "name"])
    assert sets.columns == ["id", "name", "labels", "size"]
    assert sets.schema["labels"].dataType == ArrayType(IntegerType(), False)
    found = {row["id"]: row for row in sets.collect()}
    wanted = model.predict_set(rows[0])
    assert [found[place]["labels"] for place in range(len(wanted))] == wanted.labels()
    assert [found[place]["size"] for place in range(len(wanted))] == wanted.sizes.tolist()
    assert [found[place]["name"] for place in range(len(wanted))] == [NAMES[label] for label in rows[1]]


def test_levels_and_probabilities(data, model, rows):
    sets = cs.predict(model, data, logits="logits", keep=["id"], alpha=[0.2, 0.05], probabilities=True)
    found = sets.collect()
    assert [row["alpha"] for row in found[:4]] == [0.2, 0.05, 0.2, 0.05]
    for level, wanted in zip((0.2, 0.05), model.predict_set(rows[0], alpha=[0.2, 0.05])):
        of_level = sorted((row for row in found if row["alpha"] == level), key=lambda row: row["id"])
        assert [row["labels"] for row in of_level] == wanted.labels()
        assert np.concatenate([row["probabilities"] for row in of_level]).tobytes() == wanted.probabilities.tobytes()


def test_what_is_kept(data, model):
    kept = cs.predict(model, data, logits="logits")
    assert kept.columns == ["id", "label", "name", *NAMES, "labels", "size"]
    assert cs.predict(model, data, logits="logits", keep=[]).columns == ["labels", "size"]
    assert cs.predict(model, data.limit(0), logits="logits").collect() == []
    with pytest.raises(ValueError, match="'size' has the name of one of the results"):
        cs.predict(model, data.withColumn("size", F.lit(1)), logits="logits")


def test_names_of_classes(data, rows):
    wanted = SplitConformalClassifier().calibrate(rows[0], [NAMES[label] for label in rows[1]], classes=NAMES)
    found = cs.calibrate(data, logits="logits", label="name", classes=NAMES)
    assert file_of(found) == file_of(wanted)
    sets = cs.predict(found, data, logits="logits", keep=["id"])
    assert sets.schema["labels"].dataType == ArrayType(StringType(), False)
    assert [row["labels"] for row in sets.sort("id").collect()] == wanted.predict_set(rows[0]).labels()


@pytest.mark.parametrize(
    ("column", "given"),
    [
        ("label", {"classes": NAMES}),
        ("cast(label as double)", {}),
        ("cast(label as string)", {"classes": NAMES}),
        ("label + 10", {"classes": list(range(10, 20)), "labels_are": "names"}),
        ("label", {"classes": list(range(10, 20)), "labels_are": "indices"}),
    ],
)
def test_labels_are_read_by_the_rule_of_one_machine(data, rows, column, given):
    df = data.withColumn("it", F.expr(column))
    labels = np.array([row["it"] for row in df.select("id", "it").sort("id").collect()])
    classes, options = given.get("classes"), {key: given[key] for key in given if key != "classes"}
    wanted = SplitConformalClassifier(**options).calibrate(rows[0], labels, classes=classes)
    found = cs.calibrate(df, logits="logits", label="it", **given)
    assert file_of(found) == file_of(wanted)
    with pytest.warns(ConformaxWarning, match="also calibrated"):
        evaluated = cs.evaluate(found, df, logits="logits", label="it", allow_seen=True)
    with pytest.warns(ConformaxWarning, match="also calibrated"):
        assert repr(dict(evaluated)) == repr(dict(wanted.evaluate(rows[0], labels, allow_seen=True)))


def test_true_and_false_are_labels(data, rows):
    wanted = SplitConformalClassifier().calibrate(rows[0][:, :2], rows[1] % 2 == 1)
    df = data.select(F.slice("logits", 1, 2).alias("logits"), (F.col("label") % 2 == 1).alias("odd"))
    assert file_of(cs.calibrate(df, logits="logits", label="odd")) == file_of(wanted)
    halves = df.withColumn("half", F.lit(0.5).cast("double")).coalesce(1)
    with pytest.raises(cs.BadRowError, match="label at row 0 is 0.5, which is not a whole number"):
        cs.calibrate(halves, logits="logits", label="half")


def test_a_column_per_class_is_known_by_its_name(data, rows):
    wanted = SplitConformalClassifier().calibrate(rows[0][:2000], rows[1][:2000])
    train, test = data.filter("id < 2000"), data.filter("id >= 2000")
    found = cs.calibrate(train, logits=NAMES, label="name")
    assert (found.threshold_, found.classes_.tolist()) == (wanted.threshold_, NAMES)
    assert found.predict_set(pd.DataFrame(rows[0], columns=NAMES)[NAMES[::-1]]) == wanted.predict_set(rows[0])
    backwards = cs.evaluate(found, test, logits=NAMES[::-1], label="name")
    assert repr(backwards["class_coverage"]) == repr(wanted.evaluate(rows[0][2000:], rows[1][2000:])["class_coverage"])
    sets = cs.predict(found, test, logits=NAMES[::-1], keep=["id"]).sort("id").collect()
    assert [row["labels"] for row in sets] == wanted.predict_set(rows[0][2000:]).labels(NAMES)
    with pytest.raises(ValueError, match="wanted 10 classes, got 9 columns"):
        cs.predict(found, data, logits=NAMES[1:])


def test_vectors_doubles_and_integers(spark, rows):
    logits, labels = np.round(rows[0][:200] * 16), rows[1][:200].tolist()
    wanted = SplitConformalClassifier().calibrate(logits, labels)
    sets = wanted.predict_set(logits)
    vector = lambda place, row: Vectors.dense(row) if place % 2 else Vectors.sparse(10, dict(enumerate(row)))
    kinds = {
        VectorUDT(): [vector(place, row) for place, row in enumerate(logits.tolist())],
        ArrayType(DoubleType()): logits.tolist(),
        ArrayType(IntegerType()): logits.astype(int).tolist(),
    }
    for kind, values in kinds.items():
        schema = StructType([StructField("id", IntegerType()), StructField("z", kind), StructField("y", IntegerType())])
        df = spark.createDataFrame(list(zip(range(200), values, labels)), schema)
        assert file_of(cs.calibrate(df, logits="z", label="y")) == file_of(wanted), kind
        found = cs.predict(wanted, df, logits="z", keep=["id"]).sort("id").collect()
        assert [row["labels"] for row in found] == sets.labels(), kind


def test_too_few_rows_are_pointed_out(data):
    with pytest.warns(ConformaxWarning, match="5 calibration rows are too few for alpha = 0.1"):
        cs.calibrate(data.filter("id < 5"), logits="logits", label="label")


class NoJobs:
    """Fails where a job is started."""

    def __init__(self, spark) -> None:
        # Of its own: what others started under a name would count.
        self.tracker, self.group = spark.sparkContext, str(uuid.uuid4())

    def __enter__(self) -> None:
        self.tracker.setJobGroup(self.group, "schema errors come first")

    def __exit__(self, *_) -> None:
        assert list(self.tracker.statusTracker().getJobIdsForGroup(self.group)) == []


def test_a_job_is_seen(spark, data):
    with pytest.raises(AssertionError), NoJobs(spark):
        data.count()


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"logits": "nothing"}, ValueError, "no column 'nothing'; there are id, logits, label"),
        ({"logits": "id"}, TypeError, "arrays of numbers or ML vectors, and 'id' is bigint"),
        ({"logits": "texts"}, TypeError, "arrays of numbers or ML vectors, and 'texts' is array<string>"),
        ({"logits": ["class 0", "name"]}, TypeError, "must be numbers, and 'name' is string"),
        ({"logits": ["class 0", "class 0"]}, ValueError, "two columns 'class 0'"),
        ({"logits": []}, ValueError, "at least one column"),
        ({"label": "name"}, ValueError, "labels in 'name' are text: give `classes`"),
        ({"label": "logits"}, TypeError, "numbers, text or booleans, and 'logits' is array<float>"),
        ({"classes": range(10, 20)}, ValueError, "are int, indices or names, for classes have integers for names: say"),
        ({"labels_are": "names"}, ValueError, "needs `classes`"),
        ({"classes": NAMES[:1] * 2, "label": "name"}, ValueError, "differ from one another"),
        ({"logits": NAMES, "classes": NAMES[1:], "label": "name"}, ValueError, "10 classes but 9 names"),
        ({"key": "nobody"}, ValueError, "no column 'nobody'"),
        ({"by": "nowhere"}, ValueError, "there is no column 'nowhere'"),
        ({"weights": "nowhere"}, ValueError, "there is no column 'nowhere'"),
        ({"weights": "name"}, TypeError, "weights must be numbers, and 'name' is string"),
        ({"score": "entropy"}, ValueError, "entropy"),
        ({"alpha": 2}, ValueError, "alpha"),
        ({"masked": "sometimes"}, ValueError, "masked must be"),
        ({"colour": 1}, TypeError, "colour"),
    ],
)
def test_schema_errors_come_before_any_job(spark, data, given, error, message):
    df = data.withColumn("texts", F.array("name"))
    with NoJobs(spark), pytest.raises(error, match=message):
        cs.calibrate(df, **{"logits": "logits", "label": "label", **given})


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"logits": "nothing"}, ValueError, "no column 'nothing'"),
        ({"label": "texts"}, TypeError, "numbers, text or booleans, and 'texts' is array<string>"),
        ({"tuning": "nothing"}, ValueError, "no column 'nothing'"),
        ({"tuning": "label"}, TypeError, "boolean column, got int"),
        ({"grid": []}, ValueError, "candidate"),
        ({"over": "colour"}, ValueError, "over"),
        ({"by": "class"}, ValueError, "for one threshold"),
        ({"alpha": [0.1, 0.2]}, ValueError, "one level, got 2"),
    ],
)
def test_schema_errors_of_tuning_come_before_any_job(spark, data, given, error, message):
    df = data.withColumn("texts", F.array("name"))
    with NoJobs(spark), pytest.raises(error, match=message):
        cs.tune(df, **{"logits": "logits", "label": "label", "tuning": F.col("id") % 2 == 0, **given})


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"logits": "name"}, TypeError, "arrays of numbers or ML vectors, and 'name' is string"),
        ({"logits": NAMES[1:]}, ValueError, "wanted 10 classes, got 9 columns"),
        ({"key": "nobody"}, ValueError, "no column 'nobody'"),
        ({"groups": "name"}, ValueError, "do not go by groups"),
        ({"weights": "id"}, ValueError, "do not go by weights"),
        ({"alpha": 2}, ValueError, "alpha"),
    ],
)
@pytest.mark.parametrize("face", ["predict", "evaluate"])
def test_schema_errors_of_models_in_use_come_before_any_job(spark, data, model, face, given, error, message):
    given = {"logits": "logits", **({"label": "label"} if face == "evaluate" else {}), **given}
    with NoJobs(spark), pytest.raises(error, match=message):
        getattr(cs, face)(model, data, **given)


@pytest.mark.parametrize(
    ("face", "given", "error", "message"),
    [
        ("predict", {"keep": ["nothing"]}, ValueError, "no column 'nothing'"),
        ("predict", {"keep": ["id", "id"]}, ValueError, "two columns 'id'"),
        ("evaluate", {"label": "nothing"}, ValueError, "no column 'nothing'"),
        ("evaluate", {"label": "name"}, ValueError, "are text: give `classes`"),
        ("evaluate", {"label": "logits"}, TypeError, "numbers, text or booleans"),
    ],
)
def test_schema_errors_of_one_face_come_before_any_job(spark, data, model, face, given, error, message):
    with NoJobs(spark), pytest.raises(error, match=message):
        getattr(cs, face)(model, data, **{"logits": "logits", **given})


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("CASE WHEN id = 1234 THEN array_repeat(float('nan'), 10) ELSE logits END", "logit at row .*, class 0"),
        ("CASE WHEN id = 1234 THEN slice(logits, 1, 9) ELSE logits END", "row .* has 9 classes, and 10 are wanted"),
        ("CASE WHEN id = 1234 THEN NULL ELSE logits END", "row .* has no logits"),
        ("CASE WHEN id = 1234 THEN transform(logits, z -> IF(z > -99, NULL, z)) ELSE logits END", "class 0 is missing"),
    ],
)
def test_a_bad_row_names_its_partition_and_key(data, what, message):
    df = data.repartition(4, "id").withColumn("logits", F.expr(what))
    with pytest.raises(cs.BadRowError, match=rf"^partition \d, id = 1234, name = 'class \d': .*{message}"):
        cs.calibrate(df, logits="logits", label="label", key=["id", "name"])


def test_every_face_names_a_bad_row(data, model):
    nan = "CASE WHEN id = 1234 THEN array_repeat(float('nan'), 10) ELSE logits END"
    df = data.repartition(4, "id").withColumn("logits", F.expr(nan))
    part = df.filter("id = 1234").select(F.spark_partition_id()).collect()[0][0]
    named = rf"partition {part}, id = 1234: logit at row \d+, class 0"
    given = {"logits": "logits", "key": "id"}
    for run in (
        lambda: cs.calibrate(df, label="label", thresholds_only=True, **given),
        lambda: cs.tune(df, label="label", tuning=F.col("id") % 2 == 0, grid=[1.2, 1.5], **given),
        lambda: cs.evaluate(model, df, label="label", **given),
    ):
        with pytest.raises(cs.BadRowError, match=f"^{named}"):
            run()
    # Sets are made when they are used, by whoever uses them.
    with pytest.raises(Exception, match=f"BadRowError: {named}"):
        cs.predict(model, df, **given).collect()


@pytest.mark.parametrize(
    ("label", "message"),
    [("10", "label at row .* is 10, but with 10 classes"), ("-1", "is -1, but"), ("NULL", "row .* is missing")],
)
def test_a_bad_label_names_its_partition_and_key(data, label, message):
    df = data.withColumn("label", F.expr(f"CASE WHEN id = 77 THEN {label} ELSE label END"))
    with pytest.raises(cs.BadRowError, match=rf"^partition \d+, id = 77: .*{message}"):
        cs.calibrate(df, logits="logits", label="label", key="id")
    renamed = data.withColumn("name", F.expr("CASE WHEN id = 77 THEN 'owl' ELSE name END"))
    with pytest.raises(cs.BadRowError, match=r"id = 77: label at row \d+ is 'owl', which is none of the 10 classes"):
        cs.calibrate(renamed, logits="logits", label="name", classes=NAMES, key="id")


def test_partitions_that_disagree_and_no_rows_at_all(data):
    first = F.spark_partition_id() == 0
    ragged = data.select(F.lit(0).alias("zero"), "logits").repartition(2)
    ragged = ragged.withColumn("logits", F.when(first, F.col("logits")).otherwise(F.slice("logits", 1, 9)))
    with pytest.raises(cs.BadRowError, match="rows of partition 0 have 10 classes, and rows of partition 1 have 9"):
        cs.calibrate(ragged, logits="logits", label="zero")
    with pytest.raises(ValueError, match="there are no rows"):
        cs.calibrate(data.filter("id < 0"), logits="logits", label="label")
