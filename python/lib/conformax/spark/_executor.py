"""What runs on the executors: Arrow batches of a partition into an accumulator, or into sets.

Everything here is pickled by its name and its few fields, so executors need the package and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from .. import _arrow, _conformax, _schemes
from .._classifier import SplitConformalClassifier, without_prior
from .._inputs import Logits, as_logits, look_like_probabilities
from .._tuning import grid_over

#: Bytes of an accumulator beyond which a partition sends what it has and begins anew: half of what one value of a
#: column may hold is far away, and executors stay small however large a partition is.
PIECE = 1 << 25

#: What a partition sends: the number of classes it found, its own number, whether its first rows look like
#: probabilities, and the bytes of its accumulator.
SCHEMA = "classes int, partition int, doubtful boolean, partial binary"


class BadRowError(ValueError):
    """A row of a data frame that cannot be read; the message names its partition and its key columns."""


@dataclass(frozen=True)
class Calibration:
    """Makes a calibrator: a score, and what thresholds go by."""

    rule: dict[str, Any]
    masked: str
    scheme: _schemes.Scheme
    kind: str
    names: list[Any] | None
    groups: int = 0

    def __call__(self, classes: int) -> _conformax.Partial:
        names = None if self.names is None else np.asarray(self.names)
        options = _schemes.options_of(self.scheme, self.kind, names, classes, groups=self.groups)
        rule = _conformax.Rule(**options)
        empty = _conformax.Calibrator(_score(self.rule), classes, masked=self.masked, rule=rule)
        return _conformax.Partial.from_bytes(empty.to_bytes())


def search(rule: dict[str, Any], alphas: list[str], masked: str, classes: int) -> _conformax.Partial:
    """Of thresholds alone."""
    return _conformax.Partial.search(_score(rule), classes, alphas, masked=masked)


def tuner(parameters: dict[str, Any], over: Any, grid: Any, alpha: str, classes: int) -> _conformax.Partial:
    """Of candidates."""
    cp = SplitConformalClassifier(**parameters)
    return _conformax.Partial.tuner(grid_over(over, grid, classes, cp), classes, alpha, masked=cp.masked)


def given(empty: bytes, classes: int) -> _conformax.Partial:
    """Of whatever the bytes are of."""
    return _conformax.Partial.from_bytes(empty)


def _score(rule: dict[str, Any]) -> _conformax.Score:
    return SplitConformalClassifier(**rule)._rule()


@dataclass
class Accumulation:
    """Batches of a partition into accumulators, and these as records of `SCHEMA`."""

    make: Callable[[int], _conformax.Partial]
    classes: int | None
    names: list[Any] | None
    key: tuple[str, ...]
    n_threads: int
    #: What integers among the labels mean, where that was said.
    labels_are: str | None = None
    #: Names of the groups in order, where rows have some.
    groups: list[str] = field(default_factory=list)
    bytes_per_row: int = 0
    #: What the numbers are, and the prior that is taken out of them.
    input: str = "logits"
    prior: Any = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        partition, rows, held = _partition(), 0, None
        classes, doubtful = self.classes, None
        for batch in batches:
            if not batch.num_rows:
                continue
            with _Naming(partition, batch, rows, self.key):
                logits = _arrow.matrix(batch.column("logits"), classes, first_row=rows)
                classes = logits.shape[1]
                if doubtful is None:
                    doubtful = self.input == "logits" and look_like_probabilities(_at(logits, rows))
                logits = without_prior(as_logits(_at(logits, rows), self.input), self.prior).array()
                given = batch.column("label")
                labels = _arrow.labels(given, classes, self.names, self.labels_are, first_row=rows)
                held = held or self.make(classes)
                beside = _beside(batch, self.groups, rows)
                held.extend(logits, labels, **beside, n_threads=self.n_threads, first_row=rows)
            rows += batch.num_rows
            if held.n * self.bytes_per_row >= PIECE:
                yield _record(classes, partition, doubtful, held)
                held = None
        if held is not None:
            yield _record(classes, partition, doubtful, held)


@dataclass
class Prediction:
    """Batches of a partition into their sets."""

    model: SplitConformalClassifier
    kept: list[str]
    several: bool
    probabilities: bool
    key: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        partition, rows = _partition(), 0
        names = None if self.model._names is None else pa.array([str(name) for name in self.model._names.tolist()])
        for batch in batches:
            with _Naming(partition, batch, rows, self.key):
                logits = _arrow.matrix(batch.column("logits"), self.model.n_classes_, first_row=rows)
                by_level = self._sets(batch, _at(logits, rows), rows)
            rows += batch.num_rows
            yield self._joined(batch, [self._columns(sets, names) for sets in by_level])

    def _sets(self, batch: pa.RecordBatch, logits: Logits, first_row: int) -> Any:
        names = self.model._calibration.group_names
        beside = _beside(batch, names, first_row)
        if "groups" in beside:
            # The classifier takes groups by name.
            beside["groups"] = np.asarray(names, dtype=object)[beside["groups"]]
        return self.model.predict_set(logits, **beside)

    def _columns(self, sets: Any, names: Any) -> dict[str, Any]:
        columns = {
            "labels": _arrow.lists(sets.offsets, sets.indices.view(np.int32), names),
            "size": pa.array(sets.sizes.astype(np.int32)),
        }
        if self.probabilities:
            columns["probabilities"] = _arrow.lists(sets.offsets, sets.probabilities)
        if self.several:
            columns["alpha"] = pa.array(np.full(len(sets), sets.alpha))
        return columns

    def _joined(self, batch: pa.RecordBatch, by_level: list[dict[str, Any]]) -> pa.RecordBatch:
        kept = {name: batch.column(f"kept_{place}") for place, name in enumerate(self.kept)}
        levels = [pa.table({**kept, **columns}) for columns in by_level]
        if len(levels) == 1:
            return levels[0].combine_chunks().to_batches()[0] if batch.num_rows else _empty(levels[0])
        # The levels of a row follow one another.
        order = np.arange(len(levels) * batch.num_rows).reshape(len(levels), -1).T.ravel()
        joined = pa.concat_tables(levels).take(order).combine_chunks()
        return joined.to_batches()[0] if batch.num_rows else _empty(joined)


def _beside(batch: pa.RecordBatch, names: list[str], first_row: int) -> dict[str, np.ndarray]:
    """The groups and weights that come with rows."""
    there, beside = batch.schema.names, {}
    if "group" in there:
        known = {name: number for number, name in enumerate(names)}
        beside["groups"] = _arrow.groups(batch.column("group"), known, first_row=first_row)
    if "weight" in there:
        beside["weights"] = _arrow.weights(batch.column("weight"), first_row=first_row)
    return beside


def _empty(table: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=table.schema)


def _at(block: np.ndarray, first_row: int) -> Logits:
    """Rows that are counted from elsewhere in messages."""
    return Logits(block.shape, lambda: iter([(first_row, block)]), first_row=first_row)


def _record(classes: int, partition: int, doubtful: bool, held: _conformax.Partial) -> pa.RecordBatch:
    columns = [
        pa.array([classes], pa.int32()),
        pa.array([partition], pa.int32()),
        pa.array([doubtful], pa.bool_()),
        pa.array([held.to_bytes()], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["classes", "partition", "doubtful", "partial"])


def _partition() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


@dataclass
class _Naming:
    """Adds to an error which partition and row it is of."""

    partition: int
    batch: pa.RecordBatch
    first_row: int
    key: tuple[str, ...]

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if not isinstance(error, (ValueError, TypeError)):
            return
        where = [f"partition {self.partition}"]
        row = getattr(error, "row", None)
        if row is not None and self.key:
            of_row = self.batch.column("key")[row - self.first_row].as_py()
            where += [f"{name} = {of_row[name]!r}" for name in self.key]
        raise BadRowError(f"{', '.join(where)}: {error}") from error
