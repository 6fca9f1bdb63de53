"""Which columns of a data frame are what, settled from the schema alone, before any job starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DoubleType,
    FloatType,
    IntegerType,
    IntegralType,
    StringType,
    StructField,
)

from .._classifier import SplitConformalClassifier, _class_names
from .._inputs import Logits, in_order, integers_are_names
from .._schemes import group_text
from . import _executor


@dataclass(frozen=True)
class Rows:
    """A data frame of which the executors see `logits`, `label`, `group`, `weight`, and `key` for messages."""

    df: Any
    logits: Any
    label: Any
    key: list[str]
    #: Names of the columns, where there is one per class.
    columns: list[str] | None
    #: Names of the classes, and their number where it is known.
    names: np.ndarray | None
    classes: int | None
    #: What integers among the labels mean, where that was said.
    labels_are: str | None = None
    #: The columns of groups and of weights, where thresholds go by one of them.
    groups: str | None = None
    weights: str | None = None
    #: The rows that count, or None for all.
    only: Any = None

    @classmethod
    def of(
        cls,
        df: Any,
        logits: Any,
        label: str | None,
        *,
        classes: Sequence[Any] | None = None,
        key: Any = (),
        groups: str | None = None,
        weights: str | None = None,
        labels_are: str | None = None,
        model: SplitConformalClassifier | None = None,
    ) -> Rows:
        if groups is not None:
            _field(df, groups)
        if weights is not None and not _is_number(_field(df, weights)):
            kind = df.schema[weights].dataType.simpleString()
            raise TypeError(f"weights must be numbers, and {weights!r} is {kind}")
        keys = [key] if isinstance(key, str) else list(key)
        for name in keys:
            _field(df, name)
        columns = None if isinstance(logits, str) else _distinct(list(logits))
        if model is not None:
            names, number, labels_are = model._names, model.n_classes_, model.labels_are
            if columns is not None and len(columns) != number:
                raise ValueError(f"wanted {number} classes, got {len(columns)} columns")
        else:
            if columns and classes is None and label is not None and _is_text(df, label):
                classes = columns
            number = len(columns) if columns else None if classes is None else len(classes)
            names = None if classes is None else _class_names(classes, number)
        if columns is None:
            numbers = _arrays(df, logits)
        else:
            order = range(len(columns)) if model is None else _order(columns, model)
            numbers = _array_of(df, [columns[place] for place in order])
        labels = None if label is None else _labels(df, label, names, labels_are)
        return cls(df, numbers, labels, keys, columns, names, number, labels_are, groups, weights)

    def selected(self) -> Any:
        """What goes to the executors."""
        df = self.df if self.only is None else self.df.filter(self.only)
        return df.select(self.logits.alias("logits"), self.label.alias("label"), *self._beside())

    def with_columns(self, kept: list[str]) -> Any:
        """The same with columns that come back as they are, and without labels."""
        columns = [F.col(_quoted(name)).alias(f"kept_{place}") for place, name in enumerate(kept)]
        return self.df.select(self.logits.alias("logits"), *columns, *self._beside())

    def group_names(self) -> list[str]:
        """The texts of all groups, in order: one job, before any other."""
        found = self.df.select(F.col(_quoted(self.groups)).alias("group")).distinct().collect()
        # A row without a group is told by its key, where it is met.
        return sorted({group_text(row["group"]) for row in found if row["group"] is not None})

    def _beside(self) -> list[Any]:
        """What comes with the logits of a row."""
        columns = []
        if self.groups is not None:
            columns.append(F.col(_quoted(self.groups)).alias("group"))
        if self.weights is not None:
            columns.append(F.col(_quoted(self.weights)).cast(DoubleType()).alias("weight"))
        if self.key:
            columns.append(F.struct(*(F.col(_quoted(name)) for name in self.key)).alias("key"))
        return columns

    def work(
        self, make: Any, *, n_threads: int | None, groups: Sequence[str] = ()
    ) -> _executor.Accumulation:
        """What an executor does with these rows and the accumulator that `make` makes."""
        names = None if self.names is None else self.names.tolist()
        key, threads = tuple(self.key), n_threads or 1
        return _executor.Accumulation(make, self.classes, names, key, threads, self.labels_are, list(groups))

    def names_of(self, classes: int) -> np.ndarray | None:
        """Names of the classes, which must be as many as were found."""
        return None if self.names is None else _class_names(self.names, classes)


def which(rows: Rows, column: Any) -> tuple[Rows, Rows]:
    """The rows where a column says yes, and the others."""
    if isinstance(column, str):
        _field(rows.df, column)
        column = F.col(_quoted(column))
    kind = rows.df.select(column.alias("it")).schema["it"].dataType
    if not isinstance(kind, BooleanType):
        raise TypeError(f"`tuning` must be a boolean column, got {kind.simpleString()}")
    neither = F.raise_error(F.lit("`tuning` is null in some row: every row either tunes or calibrates"))
    says = F.coalesce(column, neither.cast("boolean"))
    return replace(rows, only=says), replace(rows, only=~says)


def kept_columns(df: Any, logits: Any, keep: Sequence[str] | None) -> list[str]:
    """The columns that come along with the sets."""
    if keep is not None:
        names = [keep] if isinstance(keep, str) else list(keep)
        for name in names:
            _field(df, name)
        return _distinct(names) if names else []
    used = {logits} if isinstance(logits, str) else set(logits)
    return [name for name in df.columns if name not in used]


def set_fields(model: SplitConformalClassifier, *, several: bool, probabilities: bool) -> list[StructField]:
    """The columns that prediction adds."""
    named = model._names is not None
    fields = [
        StructField("labels", ArrayType(StringType() if named else IntegerType(), False), False),
        StructField("size", IntegerType(), False),
    ]
    if probabilities:
        fields.append(StructField("probabilities", ArrayType(DoubleType(), False), False))
    return fields + ([StructField("alpha", DoubleType(), False)] if several else [])


def _field(df: Any, name: Any) -> Any:
    if not isinstance(name, str):
        raise TypeError(f"columns are given by name, got {name!r}")
    if df.columns.count(name) != 1:
        raise ValueError(f"there is no column {name!r}; there are {', '.join(df.columns)}")
    return df.schema[name].dataType


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _arrays(df: Any, name: str) -> Any:
    """A column of arrays or ML vectors as arrays of floats."""
    kind = _field(df, name)
    column = F.col(_quoted(name))
    if type(kind).__name__ == "VectorUDT":
        from pyspark.ml.functions import vector_to_array

        return F.when(column.isNotNull(), vector_to_array(column))
    if not isinstance(kind, ArrayType) or not _is_number(kind.elementType):
        raise TypeError(f"logits must be arrays of numbers or ML vectors, and {name!r} is {kind.simpleString()}")
    return column if _is_float(kind.elementType) else column.cast(ArrayType(DoubleType()))


def _array_of(df: Any, names: list[str]) -> Any:
    """A column per class as one of arrays."""
    kinds = [_field(df, name) for name in names]
    for name, kind in zip(names, kinds):
        if not _is_number(kind):
            raise TypeError(f"logits must be numbers, and {name!r} is {kind.simpleString()}")
    wide = FloatType() if all(isinstance(kind, FloatType) for kind in kinds) else DoubleType()
    return F.array(*(F.col(_quoted(name)).cast(wide) for name in names))


def _is_number(kind: Any) -> bool:
    return _is_float(kind) or isinstance(kind, IntegralType)


def _is_float(kind: Any) -> bool:
    return isinstance(kind, (FloatType, DoubleType))


def _is_text(df: Any, name: str) -> bool:
    return isinstance(_field(df, name), StringType)


def _labels(df: Any, name: str, names: np.ndarray | None, labels_are: str | None) -> Any:
    """The column of labels, which the executors read by the rule of `as_labels`; what its type tells is told here."""
    kind = _field(df, name)
    shown = kind.simpleString()
    if not (isinstance(kind, (StringType, BooleanType)) or _is_number(kind)):
        raise TypeError(f"labels must be numbers, text or booleans, and {name!r} is {shown}")
    if names is None and labels_are == "names":
        raise ValueError('labels_are="names" needs `classes`, their names in the order of the logits')
    if names is None and isinstance(kind, StringType):
        raise ValueError(f"labels in {name!r} are text: give `classes`, their names in the order of the logits")
    if _is_number(kind) and labels_are is None and integers_are_names(names):
        raise ValueError(
            f"labels in {name!r} are {shown}, indices or names, for classes have integers for names: say "
            'labels_are="indices" or labels_are="names"'
        )
    return F.col(_quoted(name))


def _distinct(names: list[str]) -> list[str]:
    if not names:
        raise ValueError("wanted at least one column, got none")
    for place, name in enumerate(names):
        if name in names[:place]:
            raise ValueError(f"there are two columns {name!r}")
    return names


def _order(columns: list[str], model: SplitConformalClassifier) -> list[int]:
    """The places of the columns as they were at calibration, by their names."""
    places = Logits((1, len(columns)), lambda: iter([(0, np.arange(len(columns))[np.newaxis])]), columns)
    return in_order(places, model._columns, model._names).array()[0].tolist()
