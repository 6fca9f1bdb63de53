"""Expressions of Polars: `import conformax.polars` gives them the namespace `conformax`.

>>> import polars as pl
>>> import conformax, conformax.polars
>>> model = conformax.SplitConformalClassifier(alpha=0.2).calibrate(
...     [[3, 1, 0], [0.5, 2, 1.5], [1, 0, 4], [2, 2.5, 0]], [0, 2, 2, 0]
... )
>>> frame = pl.DataFrame({"logits": [[2.0, 1.75, -1.0], [0.0, 5.0, 1.0]]})
>>> frame.lazy().select(pl.col("logits").conformax.sets(model)).collect().to_dict(as_series=False)
{'logits': [[0, 1], [1]]}

They run in the lazy and in the streaming engine, block by block: an expression is one function of its own row, and says
so. Logits are an Array or a List of numbers, or a Struct of a column per class, which are known by their names. A row
that is null has a null for its set.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from . import _arrow
from ._classifier import SplitConformalClassifier

__all__ = ["ConformaxExpressions"]


@pl.api.register_expr_namespace("conformax")
class ConformaxExpressions:
    """What `pl.col("logits").conformax` has."""

    def __init__(self, expression: pl.Expr) -> None:
        self._expression = expression

    def sets(self, model: SplitConformalClassifier, *, alpha: Any = None, labels: str | None = None) -> pl.Expr:
        """The prediction set of every row, best label first.

        `labels` says what a label is: "indices" gives List(UInt32), "names" List(String) and "enum" List(Enum); names
        where the classes have names and indices where they have none, if None. `alpha` asks for another level than the
        classifier's own.
        """
        _expect_logits_alone(model)
        kind, names = _label_kind(model, labels), _names(model)
        wanted, several = model._levels(alpha)
        if several:
            raise ValueError(f"a column of sets is of one level, got {len(wanted)}: give `alpha`")
        model._warn_if_few(wanted[0])
        dtype = {"indices": pl.UInt32(), "names": pl.String(), "enum": pl.Enum(names or [])}[kind]
        light = model.clone().set_params(alpha=wanted[0], confidence_level=None)
        light._calibration = model._calibration.for_prediction(wanted)
        light._names, light._columns = model._names, model._columns
        return self._expression.map_batches(
            partial(_by_row, partial(_sets, light, dtype)), return_dtype=pl.List(dtype), is_elementwise=True
        )

    def p_values(self, model: SplitConformalClassifier) -> pl.Expr:
        """The p-value of every label, in the order of the classes: Array(Float64)."""
        _expect_logits_alone(model)
        model._expect_p_values()
        if model.scores_ is None:
            raise ValueError("p-values need the calibration scores, which were left out of the file")
        return self._expression.map_batches(
            partial(_by_row, partial(_p_values, model)),
            return_dtype=pl.Array(pl.Float64(), model.n_classes_),
            is_elementwise=True,
        )


def _expect_logits_alone(model: SplitConformalClassifier) -> None:
    """An expression of the logits has nothing that comes beside them: that is said when it is made, not in the plan."""
    model._check_calibrated()
    beside = {"group": "groups", "row_weight": "weights"}.get(model._calibration.by)
    if beside is not None:
        raise ValueError(f"thresholds go by {beside}, and an expression has the logits alone: call `predict_set`")


def _label_kind(model: SplitConformalClassifier, labels: str | None) -> str:
    if labels is None:
        model._check_calibrated()
        return "indices" if model._names is None else "names"
    if labels not in ("indices", "names", "enum"):
        raise ValueError(f"labels are given as \"indices\", \"names\" or \"enum\", got {labels!r}")
    if labels != "indices" and _names(model) is None:
        raise ValueError(f"labels cannot be given as {labels}: the classes have no names")
    return labels


def _names(model: SplitConformalClassifier) -> list[str] | None:
    model._check_calibrated()
    return None if model._names is None else [str(name) for name in model._names.tolist()]


def _by_row(function: Any, series: pl.Series) -> pl.Series:
    """The function of the rows that are there, and null for the others."""
    if not series.null_count():
        return function(series)
    there = series.is_not_null()
    found = function(series.filter(there))
    places = (there.cum_sum().cast(pl.Int64) - 1).to_frame("at").select(pl.when(there).then("at")).to_series()
    return found.gather(places)


def _sets(model: SplitConformalClassifier, dtype: Any, series: pl.Series) -> pl.Series:
    sets = model.predict_set(_rows(model, series))
    values = pl.Series(sets.indices)
    if dtype != pl.UInt32():
        values = pl.Series(_names(model), dtype=dtype).gather(values)
    lists = pa.LargeListArray.from_arrays(pa.array(sets.offsets), values.to_arrow())
    return pl.Series(series.name, lists).cast(pl.List(dtype))


def _p_values(model: SplitConformalClassifier, series: pl.Series) -> pl.Series:
    p = model.predict_p(_rows(model, series))
    return pl.Series(series.name, p, dtype=pl.Array(pl.Float64(), model.n_classes_))


def _rows(model: SplitConformalClassifier, series: pl.Series) -> np.ndarray | pl.DataFrame:
    if series.dtype.base_type() is pl.Struct:
        return series.struct.unnest()
    try:
        return _arrow.matrix(series.to_arrow(), model.n_classes_)
    except _arrow.RowError as error:
        raise ValueError(f"{error} (of a block of {len(series)} rows)") from None
