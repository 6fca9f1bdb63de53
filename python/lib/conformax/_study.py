"""Procedures compared over random splits, as records that pandas reads: `pd.DataFrame(compare(logits, labels))`."""

from __future__ import annotations

import json
import warnings
from os import PathLike
from typing import Any

from . import _conformax
from ._exceptions import ConformaxWarning
from ._inputs import GIVE_INPUT, as_labels, as_logits, doubted
from ._levels import level
from ._parameters import as_count, as_seed, as_threads


def compare(
    logits: Any,
    labels: Any,
    *,
    alpha: Any = 0.1,
    splits: int = 20,
    random_state: int = 0,
    n_threads: int | None = None,
    input: str = "logits",
) -> list[dict[str, Any]]:
    """Every procedure on your own logits: one record each, of means over random splits.

    `input` says what the numbers are, as for `SplitConformalClassifier`.

    Each split calibrates on 40 % of the rows and tests on the rest; tuned procedures tune on rows of their own. A
    metric `m` comes with its standard deviation over the splits, `m_std`. `best` is true of a procedure whose sets are
    smaller than every other's by more than three standard errors of the paired difference; it may be true of none.

    >>> import numpy as np, conformax
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(5, size=400)
    >>> records = conformax.compare(rng.normal(size=(400, 5)) + np.eye(5)[labels], labels, splits=3)
    >>> [record["procedure"] for record in records]
    ['InvProb', 'RAPS', 'log-margin', '1.5-entmax', 'sparsemax', 'opt-entmax']
    """
    if as_count(splits, "splits") < 1:
        raise ValueError("splits must be at least 1, got 0")
    rows = doubted(as_logits(logits, input), input, GIVE_INPUT)
    found = json.loads(
        _conformax.compare(
            rows.array(),
            as_labels(labels, rows.shape[1]),
            level(alpha),
            splits=splits,
            seed=as_seed(random_state),
            n_threads=as_threads(n_threads),
        )
    )
    return [_flat(record) for record in found["procedures"]]


def study(
    path: str | PathLike[str] | None = None,
    *,
    benchmarks: str | PathLike[str] | None = None,
    splits: int | None = None,
    n_threads: int | None = None,
) -> list[dict[str, Any]]:
    """Runs a study, the paper's own by default: one record per benchmark, procedure, level and split.

    `path` is a study in TOML; `benchmarks` the folder of the benchmarks that do not ship with the package; `splits`
    fewer or more random splits than the study says. The command `conformax study` writes the report.
    """
    threads = as_threads(n_threads)
    found = json.loads(_conformax.run_study(path, benchmarks=benchmarks, splits=splits, n_threads=threads))
    for benchmark in found["benchmarks"]:
        if benchmark["doubtful"]:
            warnings.warn(
                f"the rows of {benchmark['title']} are not negative and sum to 1, as probabilities do, and were taken for "
                'logits: give input = "probabilities" under its name in the study if that is what they are',
                ConformaxWarning,
                stacklevel=2,
            )
    return [_flat(record) for record in found["records"]]


def _flat(record: dict[str, Any]) -> dict[str, Any]:
    """Means and deviations as columns of their own; infinities, which JSON has not, as floats."""
    flat: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, dict) and "deviation" in value:
            flat[name], flat[f"{name}_std"] = value["mean"], value["deviation"]
        elif name == "larger_than_smallest":
            flat[name], flat[f"{name}_se"] = (None, None) if value is None else (value["mean"], value["standard_error"])
        elif name == "threshold":
            flat[name] = float(value)
        else:
            flat[name] = value
    return flat
