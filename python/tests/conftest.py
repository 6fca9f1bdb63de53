"""Fixtures shared by the tests: where the golden values are, and data that every test may draw on."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest

# Without it scikit-learn leaves out one of its checks of estimators; SciPy reads it when it is imported.
os.environ["SCIPY_ARRAY_API"] = "1"

# Spark has an environment of its own, in which `scripts/check-spark` runs its tests.
collect_ignore = [] if importlib.util.find_spec("pyspark") else ["spark"]

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


def pytest_configure(config):
    config.addinivalue_line("markers", "peers: needs torch or another library to compare with")


#: What a machine may lack all the same: a GPU, and Spark, which has an environment and a script of its own.
MAY_BE_ABSENT = ("GPU", "pyspark")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    return _expected(item.config, (yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    return _expected(collector.config, (yield))


def _expected(config, report):
    """The report, which is of a failure where CI skips something: it has installed all that is tested."""
    told = os.environ.get("CI") == "true" and config.option.markexpr != "not peers"
    if told and report.skipped and not hasattr(report, "wasxfail"):
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not any(word in why for word in MAY_BE_ABSENT):
            report.outcome, report.longrepr = "failed", f"{why}; CI skips nothing"
    return report


@pytest.fixture(scope="session")
def golden() -> dict:
    return json.loads((FIXTURES / "golden" / "golden.json").read_text())


@pytest.fixture(scope="session")
def experiment() -> dict:
    run = json.loads((FIXTURES / "golden" / "experiment.json").read_text())
    for name in ("logits", "labels", "u"):
        run[name] = np.load(FIXTURES / "golden" / f"{name}.npy")
    return run


@pytest.fixture
def rows() -> tuple[np.ndarray, np.ndarray]:
    """600 rows of 10 classes on a coarse grid, so that ties happen."""
    rng = np.random.default_rng(7)
    labels = rng.integers(10, size=600)
    logits = rng.normal(size=(600, 10)) + 2 * np.eye(10)[labels]
    return (logits * 16).round().astype(np.float32) / 16, labels


@pytest.fixture
def default_sigint():
    """Ctrl-C as a terminal has it, also for processes started from here.

    What a script starts in the background inherits that it is ignored; a signal that is handled here is at its default
    in whatever is run.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
