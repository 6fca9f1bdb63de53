"""Columns of Arrow batches as the matrices and labels that the compiled module reads.

A batch travels in pieces, so a row that cannot be read is named by its place in the batch; whoever knows more of it
(a partition, a key) adds that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ._inputs import RowError, classes_of
from ._schemes import group_text


def matrix(column: Any, classes: int | None = None, *, first_row: int = 0) -> np.ndarray:
    """Lists of numbers, of fixed size or not, as rows × classes; floats are not copied.

    >>> matrix(pa.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[1., 2.],
           [3., 4.]])
    >>> matrix(pa.array([[1.0, 2.0], [3.0]]))
    Traceback (most recent call last):
    ...
    conformax._inputs.RowError: row 1 has 1 classes, and 2 are wanted
    """
    if not _is_list(column.type) or not _is_number(column.type.value_type):
        raise TypeError(f"logits must be lists of numbers, got {column.type}")
    if column.null_count:
        row = first_row + _first(column.is_null())
        raise RowError(f"row {row} has no logits", row)
    if not len(column):
        return np.empty((0, classes or 0))
    sizes, values = _parts(column)
    wanted = int(sizes[0]) if classes is None else classes
    odd = np.flatnonzero(sizes != wanted)
    if len(odd):
        row = first_row + int(odd[0])
        raise RowError(f"row {row} has {sizes[odd[0]]} classes, and {wanted} are wanted", row)
    if values.null_count:
        row, place = divmod(_first(values.is_null()), wanted)
        raise RowError(f"logit at row {first_row + row}, class {place} is missing", first_row + row)
    return _floats(values).reshape(len(column), wanted)


def _parts(column: Any) -> tuple[np.ndarray, Any]:
    """How many values each list has, and the values end to end; a slice of a column begins within them."""
    if pa.types.is_fixed_size_list(column.type):
        width = column.type.list_size
        return np.full(len(column), width), column.values.slice(column.offset * width, len(column) * width)
    offsets = column.offsets.to_numpy()
    return np.diff(offsets), column.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))


def _is_list(kind: Any) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _is_number(kind: Any) -> bool:
    return pa.types.is_floating(kind) or pa.types.is_integer(kind)


def _floats(values: Any) -> np.ndarray:
    numbers = values.to_numpy(zero_copy_only=False)
    return numbers if numbers.dtype.kind == "f" else numbers.astype(np.float64)


def labels(
    column: Any,
    classes: int,
    names: Sequence[Any] | None = None,
    labels_are: str | None = None,
    *,
    first_row: int = 0,
) -> np.ndarray:
    """Class indices as `uint32`, by the rule of `as_labels`.

    >>> labels(pa.array(["b", "a"]), 2, ["a", "b"])
    array([1, 0], dtype=uint32)
    >>> labels(pa.array([1.0, 0.0]), 2, ["a", "b"])
    array([1, 0], dtype=uint32)
    >>> labels(pa.array([0, 7]), 3)
    Traceback (most recent call last):
    ...
    conformax._inputs.RowError: label at row 1 is 7, but with 3 classes labels lie in 0..3
    """
    column = _decoded(column)
    if column.null_count:
        row = first_row + _first(column.is_null())
        raise RowError(f"label at row {row} is missing", row)
    distinct, places = _distinct(column)
    # Each is read where it comes first: an assignment to several places keeps the last.
    first = np.empty(len(distinct), dtype=np.int64)
    first[places[::-1]] = np.arange(len(places))[::-1]
    values = distinct.to_numpy(zero_copy_only=False)
    return classes_of(values, (first_row + first).tolist(), classes, names, labels_are)[places]


def _decoded(column: Any) -> Any:
    """A dictionary may hold its values in any order, and those of no row."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _distinct(column: Any) -> tuple[Any, np.ndarray]:
    """The values of a column in the order in which they come first, and the place of each row's among them."""
    encoded = column.dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    return encoded.dictionary, encoded.indices.to_numpy()


def lists(offsets: np.ndarray, indices: np.ndarray, names: Any = None) -> Any:
    """Packed sets as lists of class indices, or of names."""
    values: Any = pa.array(indices)
    if names is not None:
        values = pa.DictionaryArray.from_arrays(values, names).dictionary_decode()
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)


def _first(mask: Any) -> int:
    return int(np.flatnonzero(mask.to_numpy(zero_copy_only=False))[0])


def groups(column: Any, known: dict[str, int], *, first_row: int = 0) -> np.ndarray:
    """The numbers of the groups of rows, which are known by their texts.

    >>> groups(pa.array(["north", "south", "north"]), {"north": 0, "south": 1}).tolist()
    [0, 1, 0]
    """
    column = _decoded(column)
    if column.null_count:
        row = first_row + _first(column.is_null())
        raise RowError(f"row {row} has no group: leave it out, or name its group", row)
    # Few groups and many rows: each value is looked up once.
    distinct, of_row = _distinct(column)
    places = []
    for place, value in enumerate(distinct.to_pylist()):
        number = known.get(group_text(value))
        if number is None:
            row = first_row + int(np.flatnonzero(of_row == place)[0])
            raise RowError(f"the group of row {row} is {value!r}, which is none of those that calibrated", row)
        places.append(number)
    return np.asarray(places, dtype=np.uint32)[of_row]


def weights(column: Any, *, first_row: int = 0) -> np.ndarray:
    """The weights of rows."""
    if column.null_count:
        row = first_row + _first(column.is_null())
        raise RowError(f"row {row} has no weight", row)
    return np.ascontiguousarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
