"""Real Spark: a session on this machine, and a cluster of two workers on loopback."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from cluster import SMALL, Cluster, session


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
        yield


@pytest.fixture(scope="session")
def rows() -> tuple[np.ndarray, np.ndarray]:
    """3,000 rows of 10 classes on a coarse grid, so that ties happen."""
    rng = np.random.default_rng(7)
    labels = rng.integers(10, size=3000)
    logits = rng.normal(size=(3000, 10)) + 2 * np.eye(10)[labels]
    return (logits * 16).round().astype(np.float32) / 16, labels


@pytest.fixture(scope="module")
def spark():
    spark = session("local[2]", **SMALL)
    yield spark
    spark.stop()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.stop()
