"""Comparisons and studies come back as records, the same ones whatever the threads."""

from __future__ import annotations

import numpy as np
import pytest

import conformax


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(0)
    labels = rng.integers(8, size=500)
    logits = rng.normal(size=(500, 8)) + 1.5 * np.eye(8)[labels]
    return logits, labels, conformax.compare(logits, labels, alpha=0.2, splits=5)


def test_every_procedure_has_a_record(records):
    names = [record["procedure"] for record in records[2]]
    assert len(names) == len(set(names)) >= 5 and "InvProb" in names
    for record in records[2]:
        assert abs(record["coverage"] - 0.8) < 0.1 and record["coverage_std"] > 0
        assert record["alpha"] == 0.2 and record["average_size"] >= 0.8


def test_at_most_one_is_best(records):
    assert sum(record["best"] for record in records[2]) <= 1
    assert sum(record["larger_than_smallest"] is None for record in records[2]) == 1


def test_seed_and_threads(records):
    logits, labels, found = records
    assert conformax.compare(logits, labels, alpha=0.2, splits=5, n_threads=1) == found
    assert conformax.compare(logits, labels, alpha=0.2, splits=5, random_state=1) != found


def test_no_splits_decide_nothing(records):
    with pytest.raises(ValueError, match="splits must be at least 1, got 0"):
        conformax.compare(*records[:2], splits=0)


def test_pandas_reads_them(records):
    pd = pytest.importorskip("pandas")
    assert pd.DataFrame(records[2]).set_index("procedure")["coverage"].between(0.7, 0.9).all()


def test_the_papers_study_runs_on_the_benchmarks_that_ship():
    found = conformax.study(splits=1)
    assert {"cifar10", "cifar100", "newsgroups"} <= {record["benchmark"] for record in found}
    assert all(record["split"] == 0 for record in found)


def test_bad_studies_are_refused(tmp_path):
    (tmp_path / "study.toml").write_text("levels = 3")
    with pytest.raises(ValueError, match="study.toml"):
        conformax.study(tmp_path / "study.toml")
    with pytest.raises(ValueError, match="row 0, class 0 is NaN"):
        conformax.compare([[np.nan, 1.0]] * 30, [0] * 30)
