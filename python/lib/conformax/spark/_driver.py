"""What the driver does: one job over the partitions, and their accumulators merged into one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from .. import _conformax
from ._columns import Rows
from ._executor import SCHEMA, Accumulation, BadRowError

#: Partitions from which on accumulators are merged on the executors before they reach the driver.
TREE = 32


@dataclass
class Found:
    """An accumulator, the number of classes it saw, a partition that it came from, and whether it looks as if every
    partition held probabilities."""

    classes: int
    partition: int
    doubtful: bool
    partial: _conformax.Partial

    def to_bytes(self) -> bytes:
        return self.partial.to_bytes()

    def merge(self, other: Found) -> Found:
        if self.classes != other.classes:
            raise BadRowError(
                f"rows of partition {self.partition} have {self.classes} classes, "
                f"and rows of partition {other.partition} have {other.classes}"
            )
        self.partial.merge(other.partial)
        self.doubtful = self.doubtful and other.doubtful
        return self


def growing(rows: Rows, work: Accumulation, *, bytes_per_row: int) -> Found:
    """Accumulators that grow with their rows: they come in pieces, and merging elsewhere would make them no smaller."""
    frame = rows.selected().mapInArrow(replace(work, bytes_per_row=bytes_per_row), SCHEMA)
    return _one((_found(row) for row in _told(frame.collect)))


def constant(rows: Rows, work: Accumulation) -> Found:
    """Accumulators of one size: where there are many, executors merge them first, in a tree."""
    return _merged(rows.selected().mapInArrow(work, SCHEMA).rdd.map(_found))


@contextmanager
def keeping_scores(rows: Rows, work: Accumulation) -> Iterator[Any]:
    """The scores of all rows, in pieces that stay on the executors' disks for as long as this lasts."""
    from pyspark import StorageLevel

    frame = rows.selected().mapInArrow(replace(work, bytes_per_row=8), SCHEMA)
    kept = _told(lambda: frame.rdd).persist(StorageLevel.DISK_ONLY)
    try:
        yield kept
    finally:
        kept.unpersist()


def in_scores(kept: Any, make: Callable[[int], _conformax.Partial]) -> Found:
    """The search that `make` begins, in scores that were kept."""
    return _merged(kept.mapPartitions(partial(_counted, make)))


def _counted(make: Callable[[int], _conformax.Partial], pieces: Iterable[Any]) -> Iterator[Found]:
    whole = None
    for piece in map(_found, pieces):
        found = Found(piece.classes, piece.partition, piece.doubtful, make(piece.classes))
        found.partial.extend_scored(piece.partial)
        whole = _either(whole, found)
    if whole is not None:
        yield whole


def _merged(pieces: Any) -> Found:
    if _told(pieces.getNumPartitions) < TREE:
        return _one(_told(pieces.collect))
    # The first value is none at all, as a partition may have no rows.
    merged = _told(lambda: pieces.treeAggregate(None, _either, _either))
    return _one([] if merged is None else [merged])


def _found(row: Any) -> Found:
    held = _conformax.Partial.from_bytes(bytes(row["partial"]))
    return Found(row["classes"], row["partition"], row["doubtful"], held)


def _either(one: Found | None, other: Found | None) -> Found | None:
    return other if one is None else one if other is None else one.merge(other)


def _one(pieces: Any) -> Found:
    whole = None
    for piece in pieces:
        whole = piece if whole is None else whole.merge(piece)
    if whole is None:
        raise ValueError("there are no rows")
    return whole


def _told(job: Any) -> Any:
    """What a job gives, or the error of the row that stopped it."""
    try:
        return job()
    except Exception as error:
        found = re.search(r"BadRowError: (.*)", str(error))
        if found is None:
            raise
        raise BadRowError(found[1]) from None
