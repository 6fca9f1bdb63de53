"""Arrow columns as matrices and labels: every kind of list, slices of them, and rows that cannot be read."""

from __future__ import annotations

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")

from conformax import _arrow  # noqa: E402
from conformax._inputs import as_labels  # noqa: E402

LISTS = [[0.5, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0, 8.0], [9.0, 10.0, 11.5]]
KINDS = [pa.list_(pa.float32()), pa.large_list(pa.float64()), pa.list_(pa.float16(), 3), pa.list_(pa.int64())]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_lists_and_slices_of_them(kind):
    column = pa.array([[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]], kind)
    wanted = np.arange(1, 13).reshape(4, 3)
    assert np.array_equal(_arrow.matrix(column), wanted)
    assert np.array_equal(_arrow.matrix(column.slice(1, 2), 3), wanted[1:3])
    assert _arrow.matrix(column.slice(4), 3).shape == (0, 3)
    assert _arrow.matrix(column).dtype.kind == "f"


def test_floats_are_not_copied():
    column = pa.array(LISTS, pa.list_(pa.float32()))
    assert np.shares_memory(_arrow.matrix(column), column.values.to_numpy())


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ([[1.0, 2.0], None], "row 101 has no logits"),
        ([[1.0, 2.0], [1.0]], "row 101 has 1 classes, and 2 are wanted"),
        ([[1.0, 2.0], [1.0, None]], "logit at row 101, class 1 is missing"),
    ],
)
def test_rows_that_cannot_be_read_are_named(lists, message):
    with pytest.raises(_arrow.RowError, match=message) as caught:
        _arrow.matrix(pa.array(lists), first_row=100)
    assert caught.value.row == 101


@pytest.mark.parametrize("column", [pa.array([1.0]), pa.array([["a"]]), pa.array(["a"]).dictionary_encode()], ids=str)
def test_what_is_no_list_of_numbers_is_refused(column):
    with pytest.raises(TypeError, match="logits must be lists of numbers, got"):
        _arrow.matrix(column)


@pytest.mark.parametrize("labels_are", [None, "indices", "names"])
@pytest.mark.parametrize("names", [None, ["cat", "dog", "owl"], [0, 1, 2], [10, 20, 30], ["no", "false", "true"]])
@pytest.mark.parametrize(
    "labels",
    [[2, 0, 0], [10, 20], [1.0, 2.0], [1.5], [float("nan")], [1e300], [True, False], ["owl", "cat"], ["2", "1.0"], ["10"]]
    + [["True", "false"], ["bird"], [3], [-1]],
    ids=str,
)
def test_labels_are_read_by_one_rule(labels, names, labels_are):
    read = lambda given, function: _outcome(lambda: function(given, 3, names, labels_are).tolist())
    assert read(pa.array(labels), _arrow.labels) == read(labels, as_labels)


def _outcome(work):
    try:
        return work()
    except (TypeError, ValueError) as error:
        return str(error)


def test_labels():
    assert _arrow.labels(pa.array([2, 0], pa.int8()), 3).tolist() == [2, 0]
    assert _arrow.labels(pa.array(["b", "a"], pa.large_string()), 2, ["a", "b"]).tolist() == [1, 0]
    assert _arrow.labels(pa.array([30, 10]), 2, [10, 30], "names").tolist() == [1, 0]
    assert _arrow.labels(pa.array([1, 0]), 2, [10, 30], "indices").tolist() == [1, 0]
    assert _arrow.labels(pa.array([], pa.int64()), 2).tolist() == []
    assert _arrow.labels(pa.array(["c", "b", "a", "b"]).dictionary_encode().slice(1), 2, ["a", "b"]).tolist() == [1, 0, 1]
    assert _arrow.labels(pa.chunked_array([[2, 0], [0, 1]]), 3).tolist() == [2, 0, 0, 1]
    assert _arrow.labels(pa.array([], pa.string()), 2, ["a", "b"]).tolist() == []
    for column, names, message in [
        (pa.array([0, None]), None, "label at row 8 is missing"),
        (pa.array([0, -1]), None, "label at row 8 is -1, but with 3 classes labels lie in 0..3"),
        (pa.array(["a", "owl"]), ["a", "b", "c"], "label at row 8 is 'owl', which is none of the 3 classes"),
    ]:
        with pytest.raises(_arrow.RowError, match=message) as caught:
            _arrow.labels(column, 3, names, first_row=7)
        assert caught.value.row == 8
