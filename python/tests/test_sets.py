"""`PredictionSets` in every form it can be had in."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import conformax
from conformax import PredictionSets, SplitConformalClassifier


@pytest.fixture
def sets() -> PredictionSets:
    return PredictionSets([0, 2, 2, 5], [2, 0, 1, 0, 3], n_classes=4)


def test_lengths_rows_and_membership(sets):
    assert len(sets) == 3
    assert [row.tolist() for row in sets] == [[2, 0], [], [1, 0, 3]]
    assert sets[-1].tolist() == [1, 0, 3]
    assert (0, 2) in sets and (1, 2) not in sets and 3 in sets[2]
    with pytest.raises(IndexError):
        sets[3]
    with pytest.raises(TypeError, match=r"\(row, label\) in sets"):
        2 in sets  # noqa: B015


def test_slices_keep_rows_and_probabilities(rows):
    logits, labels = rows
    sets = SplitConformalClassifier().calibrate(logits, labels).predict_set(logits)
    part = sets[10:100:7]
    assert part.labels() == sets.labels()[10:100:7]
    assert np.array_equal(part.probabilities[: part.sizes[0]], sets.probabilities[sets.offsets[10] : sets.offsets[11]])
    assert sets[::-1].labels() == sets.labels()[::-1]


@pytest.mark.parametrize("score", ["entmax", "log_margin", "lac", "raps"])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_probabilities_are_those_of_the_rows_that_were_given(rows, score, kind):
    logits, labels = rows[0].astype(kind), rows[1]
    cp = SplitConformalClassifier(score, alpha=[0.02, 0.3]).calibrate(logits, labels)
    wanted = [proba[sets.mask] for proba, sets in zip(cp.predict_proba(logits), cp.predict_set(logits))]
    buffer = logits.copy()
    found = cp.predict_set(buffer)
    # The next batch goes where this one was.
    buffer[...] = buffer[::-1].copy()
    for sets, expected in zip(found, wanted):
        mask = np.zeros(sets.mask.shape)
        mask[np.repeat(np.arange(len(sets)), sets.sizes), sets.indices] = sets.probabilities
        assert np.array_equal(mask[sets.mask], expected)


def test_pickles_hold_everything(rows):
    sets = SplitConformalClassifier("raps").calibrate(*rows).predict_set(rows[0])
    for made in (sets, sets[3:17], conformax.sets(rows[0], 1.0), PredictionSets([0, 1], [0], n_classes=2)):
        copy = pickle.loads(pickle.dumps(made))
        assert copy == made and copy.threshold == made.threshold and copy.alpha == made.alpha
        assert (copy._probabilities is None) == (made._probabilities is None)
        assert made._probabilities is None or np.array_equal(copy.probabilities, made.probabilities)


@pytest.mark.parametrize(
    ("offsets", "indices", "message"),
    [
        ([0, 3], [0, 0, 0], "the set of row 0 holds label 0 twice"),
        ([0, 1, 3], [0, 1, 1], "the set of row 1 holds label 1 twice"),
        ([0, 2], [0], "offsets must rise from 0 to the number of indices, 1, got 2 at the end"),
        ([0, 2, 1, 2], [0, 1], "offsets must rise"),
        ([1, 2], [0, 1], "offsets start at 0"),
        ([], [], "offsets start at 0"),
        ([0, 1], [2], "with 2 classes indices lie in 0..2, got 2 to 2"),
        ([0, 1], [-1], "with 2 classes indices lie in 0..2, got -1 to -1"),
    ],
)
def test_sets_that_cannot_be_are_refused(offsets, indices, message):
    with pytest.raises(ValueError, match=message):
        conformax.coverage_rate(PredictionSets(offsets, indices, n_classes=2), [0])


def test_mask_and_back(sets):
    mask = sets.mask
    assert mask.tolist() == [[True, False, True, False], [False] * 4, [True, True, False, True]]
    assert np.array_equal(PredictionSets.from_mask(mask).mask, mask)


def test_csr_is_not_copied(sets):
    offsets, indices = sets.to_csr()
    assert offsets is sets.offsets and indices is sets.indices


def test_scipy(sets):
    pytest.importorskip("scipy")
    assert np.array_equal(sets.to_scipy().toarray(), sets.mask)


def test_arrow(sets):
    pytest.importorskip("pyarrow")
    table = sets.to_arrow()
    assert table.column_names == ["row", "labels", "size"]
    assert table["labels"].to_pylist() == [[2, 0], [], [1, 0, 3]]
    assert table["size"].to_pylist() == [2, 0, 3]


def test_arrow_carries_probabilities_and_names(rows):
    pytest.importorskip("pyarrow")
    logits, labels = rows
    names = list("abcdefghij")
    cp = SplitConformalClassifier().calibrate(logits, np.array(names)[labels], classes=names)
    sets = cp.predict_set(logits)
    table = sets.to_arrow()
    assert table["labels"].to_pylist() == sets.labels()
    assert np.array_equal(table["probabilities"].combine_chunks().flatten().to_numpy(), sets.probabilities)


def test_pandas(sets):
    pytest.importorskip("pandas")
    frame = sets.to_pandas()
    assert frame["labels"].tolist() == [[2, 0], [], [1, 0, 3]] and frame["size"].tolist() == [2, 0, 3]


def test_repr_shows_the_first_sets_and_counts_the_rest():
    sets = PredictionSets(np.arange(8), np.zeros(7), n_classes=2, alpha=0.1)
    assert repr(sets).splitlines()[0] == "PredictionSets(7 rows, 2 classes, alpha 0.1, average size 1)"
    assert repr(sets).splitlines()[-1] == "  … 2 more"
    wide = PredictionSets([0, 10], np.arange(10), n_classes=10)
    assert "{0, 1, 2, 3, 4, 5, 6, 7, … 2 more}" in repr(wide)


def test_html_escapes_names():
    sets = PredictionSets([0, 1], [0], n_classes=1, classes=["<b>&"])
    assert "&lt;b&gt;&amp;" in sets._repr_html_() and "<b>" not in sets._repr_html_()


def test_names_must_match_the_classes(sets):
    assert sets.labels(list("abcd")) == [["c", "a"], [], ["b", "a", "d"]]
    with pytest.raises(ValueError, match="there are 4 classes but 3 names"):
        sets.labels(list("abc"))


def test_sets_without_logits_have_no_probabilities(sets):
    with pytest.raises(AttributeError, match="made without logits"):
        sets.probabilities


def test_metrics_by_hand(sets):
    labels = [0, 1, 2]
    assert conformax.coverage_rate(sets, labels) == 1 / 3
    assert conformax.average_size(sets) == 5 / 3
    assert conformax.singleton_ratio(sets) == 0
    assert conformax.covgap(sets, labels, alpha=0.1) == pytest.approx((0.1 + 0.9 + 0.9) / 3)
    assert conformax.sscv(sets, labels, alpha=0.1) == 0.9
    strata = conformax.size_stratified_coverage(sets, labels)
    assert [(s["from"], s["n"], s["coverage"]) for s in strata] == [
        (0, 1, 0.0), (1, 0, None), (2, 2, 0.5), (4, 0, None), (7, 0, None), (11, 0, None),
    ]  # fmt: skip
    assert conformax.coverage_rate(sets.mask, labels) == 1 / 3
    with pytest.raises(ValueError, match="there are 3 rows of logits but 2 labels"):
        conformax.coverage_rate(sets, labels[:2])


def test_evaluation_is_a_mapping(rows):
    logits, labels = rows
    found = SplitConformalClassifier().calibrate(logits[:300], labels[:300]).evaluate(logits[300:], labels[300:])
    assert dict(found)["coverage"] == found.coverage == found["coverage"]
    assert {"average_size", "singleton_ratio", "sscv", "covgap", "strata"} <= set(found)
    low, high = found.coverage_interval
    assert low < 0.9 < high
    with pytest.raises(KeyError):
        found["coverge"]
