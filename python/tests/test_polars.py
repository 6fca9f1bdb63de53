"""Expressions in Polars' own engines: the sets of the classifier, in the types that users of Polars expect."""

from __future__ import annotations

import re

import numpy as np
import pytest

from conformax import ConformaxWarning, SplitConformalClassifier

pl = pytest.importorskip("polars")
pytest.importorskip("pyarrow")

import conformax.polars  # noqa: E402, F401

NAMES = [f"class {place}" for place in range(10)]


@pytest.fixture(params=["in-memory", "streaming"])
def engine(request):
    """Either engine; the streaming one with so few rows in a block that there are several."""
    with pl.Config(streaming_chunk_size=64):
        yield request.param


@pytest.fixture
def model(rows):
    return SplitConformalClassifier().calibrate(*rows)


@pytest.fixture
def named(rows):
    return SplitConformalClassifier().calibrate(rows[0], [NAMES[label] for label in rows[1]], classes=NAMES)


@pytest.fixture
def frame(rows):
    return pl.DataFrame({"id": np.arange(len(rows[0])), "logits": rows[0]})


def kinds(frame):
    """The logits as every type that they may have."""
    column = pl.col("logits")
    yield frame
    yield frame.with_columns(column.arr.to_list())
    yield frame.with_columns(column.cast(pl.Array(pl.Float64, 10)))
    yield frame.with_columns(column.cast(pl.List(pl.Float64)))
    yield frame.with_columns(column.arr.to_struct(fields=NAMES))


def test_sets_of_every_type(frame, model, rows, engine):
    wanted = model.predict_set(rows[0]).labels()
    for each in kinds(frame):
        lazy = each.lazy().with_columns(sets=pl.col("logits").conformax.sets(model))
        assert lazy.collect_schema()["sets"] == pl.List(pl.UInt32)
        found = lazy.collect(engine=engine)
        assert found.schema["sets"] == pl.List(pl.UInt32)
        assert found["sets"].to_list() == wanted, each.schema


def test_names_and_enumerations(frame, named, rows, engine):
    wanted = named.predict_set(rows[0]).labels()
    types = {None: pl.String(), "names": pl.String(), "enum": pl.Enum(NAMES)}
    for labels, inner in types.items():
        lazy = frame.lazy().select(pl.col("logits").conformax.sets(named, labels=labels))
        found = lazy.collect(engine=engine)
        assert found.schema["logits"] == lazy.collect_schema()["logits"] == pl.List(inner)
        assert found["logits"].to_list() == wanted
    indices = frame.select(pl.col("logits").conformax.sets(named, labels="indices")).to_series()
    assert indices.dtype == pl.List(pl.UInt32)
    assert [[NAMES[label] for label in labels] for labels in indices] == wanted


def test_probabilities_that_are_taken_for_logits_are_warned_of(rows, model, engine):
    frame = pl.DataFrame({"logits": np.exp(rows[0]) / np.exp(rows[0]).sum(axis=1, keepdims=True)})
    for of in ("sets", "p_values"):
        lazy = frame.lazy().select(getattr(pl.col("logits").conformax, of)(model))
        with pytest.warns(ConformaxWarning, match="sum to 1, as probabilities do, and are taken for logits"):
            lazy.collect(engine=engine)


def test_p_values(frame, model, rows, engine):
    found = frame.lazy().select(pl.col("logits").conformax.p_values(model)).collect(engine=engine).to_series()
    assert found.dtype == pl.Array(pl.Float64, 10)
    assert found.to_numpy().tobytes() == model.predict_p(rows[0]).tobytes()


def test_levels(frame, model, rows):
    found = frame.select(pl.col("logits").conformax.sets(model, alpha=0.02)).to_series()
    assert found.to_list() == model.predict_set(rows[0], alpha=0.02).labels()
    several = SplitConformalClassifier(alpha=[0.1, 0.2]).calibrate(*rows)
    with pytest.raises(ValueError, match="of one level, got 2"):
        pl.col("logits").conformax.sets(several)
    assert frame.select(pl.col("logits").conformax.sets(several, alpha=0.2)).height == len(rows[0])


def test_the_streaming_engine_streams(frame, model, tmp_path):
    """The plan has a node of the streaming engine for it, and none that falls back to memory."""
    lazy = frame.lazy().select("id", pl.col("logits").conformax.sets(model))
    graph = lazy.show_graph(engine="streaming", plan_stage="physical", raw_output=True)
    nodes = graph.partition("label=<<BR/>")[0] + graph.partition("fallback>")[2]
    assert "python_udf" in nodes
    assert "in-memory-map" not in nodes
    lazy.sink_parquet(tmp_path / "sets.parquet")
    assert pl.read_parquet(tmp_path / "sets.parquet").equals(lazy.collect())


def test_blocks_come_one_by_one(frame, model, engine, monkeypatch):
    sizes, whole = [], conformax.polars._by_row
    monkeypatch.setattr(conformax.polars, "_by_row", lambda work, rows: sizes.append(len(rows)) or whole(work, rows))
    frame.lazy().select(pl.col("logits").conformax.sets(model)).collect(engine=engine)
    assert sum(sizes) == 600 and (len(sizes) > 1) == (engine == "streaming"), sizes


def test_filters_groups_and_slices(frame, model, rows):
    wanted = model.predict_set(rows[0]).labels()
    sets = pl.col("logits").conformax.sets(model)
    even = frame.lazy().with_columns(sets=sets).filter(pl.col("id") % 2 == 0).select("sets").collect()
    assert even["sets"].to_list() == wanted[::2]
    assert frame[100:200].select(sets).to_series().to_list() == wanted[100:200]
    assert frame[:0].select(sets).to_series().to_list() == []
    sizes = frame.group_by(pl.col("id") // 300, maintain_order=True).agg(sets.list.len().alias("sizes"))
    assert sizes["sizes"].to_list() == [list(map(len, wanted[:300])), list(map(len, wanted[300:]))]


def test_columns_are_known_by_their_names(frame, named, rows):
    backwards = frame.with_columns(pl.col("logits").arr.to_struct(fields=NAMES)).unnest("logits")
    found = backwards.select(pl.struct(*NAMES[::-1]).conformax.sets(named)).to_series()
    assert found.to_list() == named.predict_set(rows[0]).labels()


def test_rows_that_are_null_have_null_for_their_set(frame, model, named, rows, engine):
    # Here and there, and for longer than a block.
    there = (pl.col("id") % 3 > 0) & ~pl.col("id").is_between(200, 399)
    holes, held = frame.with_columns(pl.when(there).then("logits")), frame.select(there).to_series().to_list()
    for each in (model, named):
        found = holes.lazy().select(pl.col("logits").conformax.sets(each)).collect(engine=engine).to_series()
        wanted = each.predict_set(rows[0]).labels()
        assert found.to_list() == [labels if held[place] else None for place, labels in enumerate(wanted)]
    found = holes.lazy().select(pl.col("logits").conformax.p_values(model)).collect(engine=engine).to_series()
    wanted = model.predict_p(rows[0]).tolist()
    assert found.to_list() == [p if held[place] else None for place, p in enumerate(wanted)]
    empty = pl.DataFrame({"logits": [None, None]}, schema={"logits": pl.List(pl.Float32)})
    assert empty.select(pl.col("logits").conformax.sets(model)).to_series().to_list() == [None, None]


def test_wrong_logits_are_refused(frame, model, engine):
    lists = frame.with_columns(pl.col("logits").arr.to_list())
    row, logits = pl.col("id") == 33, pl.col("logits")

    def error_of(column):
        with pytest.raises(Exception) as caught:
            lists.lazy().select(column.conformax.sets(model)).collect(engine=engine)
        return str(caught.value)

    # The engine decides where a block begins, and so what the number of the row is.
    not_a_number = logits.list.eval(pl.element() * float("nan"))
    assert re.search(r"logit at row \d+, class 0", error_of(pl.when(row).then(not_a_number).otherwise(logits)))
    short = pl.when(row).then(logits.list.head(9)).otherwise(logits)
    assert re.search(r"row \d+ has 9 classes, and 10 are wanted \(of a block of \d+ rows\)", error_of(short))
    missing = pl.when(row).then(logits.list.eval(pl.when(pl.element() < -99).then(pl.element()))).otherwise(logits)
    assert re.search(r"logit at row \d+, class 0 is missing", error_of(missing))
    assert "logits must be lists of numbers, got int64" in error_of(pl.col("id"))
    assert "logits must be lists of numbers, got" in error_of(pl.concat_list(pl.col("id").cast(pl.String)))


def test_what_cannot_be_is_refused_at_once(model, rows, tmp_path):
    with pytest.raises(ValueError, match="the classes have no names"):
        pl.col("logits").conformax.sets(model, labels="enum")
    with pytest.raises(ValueError, match='"indices", "names" or "enum", got \'strings\''):
        pl.col("logits").conformax.sets(model, labels="strings")
    with pytest.raises(ValueError, match="not calibrated"):
        pl.col("logits").conformax.sets(SplitConformalClassifier())
    groups = np.arange(len(rows[1])) % 2
    by_group = SplitConformalClassifier(by="group").calibrate(*rows, groups=groups)
    by_weight = SplitConformalClassifier().calibrate(*rows, weights=1.0 + groups)
    for beside, each in (("groups", by_group), ("weights", by_weight)):
        for make in (pl.col("logits").conformax.sets, pl.col("logits").conformax.p_values):
            with pytest.raises(ValueError, match=f"thresholds go by {beside}, and an expression has the logits alone"):
                make(each)
