"""Whatever holds logits or labels, as NumPy arrays that the compiled module can read.

Arrays that are floats already arrive without a copy, whatever their strides; everything else is converted a block of
rows at a time, so that a data frame larger than memory's half still works.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

# Numbers in a converted block: 16 MB as float64.
_BLOCK = 1 << 21


Blocks = Callable[[], Iterator[tuple[int, np.ndarray]]]


class Logits:
    """A matrix of logits as blocks of rows.

    >>> logits = Logits.of([[1, 2], [3, 4]])
    >>> logits.shape
    (2, 2)
    >>> [(first, block.dtype.name) for first, block in logits.blocks()]
    [(0, 'float64')]
    """

    def __init__(self, shape: tuple[int, int], blocks: Blocks, columns: list[Any] | None = None) -> None:
        self.shape = shape
        #: Yields the first row of each block and the block; an empty matrix is one empty block.
        self.blocks = blocks
        #: What the columns of a data frame are called.
        self.columns = columns

    @classmethod
    def of(cls, data: Any) -> Logits:
        """Reads arrays, tensors, data frames, Arrow lists and plain nested lists. One dimension is one row."""
        if isinstance(data, Logits):
            return data
        data = from_device(data)
        package = type(data).__module__.partition(".")[0]
        if package == "torch":
            return _of_array(_torch_view(data))
        if package == "pandas":
            return _of_pandas(data)
        if package == "polars":
            return _of_polars(data)
        if package == "pyarrow":
            return _of_arrow(data)
        return _of_array(as_array(data))

    def array(self) -> np.ndarray:
        """All rows as one array; a copy where they came in blocks."""
        parts = [block for _, block in self.blocks()]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def reordered(self, order: list[int]) -> Logits:
        """The same rows with the columns in another order."""
        return Logits(self.shape, lambda: ((first, block[:, order]) for first, block in self.blocks()))


# How DLPack calls a CUDA device.
_CUDA = 2


def from_device(data: Any) -> Any:
    """Arrays of other libraries on a CUDA device as torch tensors of the same memory; anything else as it is."""
    if isinstance(data, (np.ndarray, list, tuple)) or not hasattr(type(data), "__dlpack_device__"):
        return data
    if type(data).__module__.partition(".")[0] == "torch" or data.__dlpack_device__()[0] != _CUDA:
        return data
    try:
        import torch
    except ImportError:
        raise TypeError(
            f"wanted an array of the host, or PyTorch to read a {type(data).__name__} on a CUDA device with"
        ) from None
    return torch.from_dlpack(data)


def in_order(rows: Logits, columns: list[Any] | None, names: np.ndarray | None) -> Logits:
    """Rows with their columns as they were at calibration: those of a data frame are known by name.

    `columns` are those of the data frame that calibrated, if it was one, and `names` those of the classes. A frame
    whose columns merely count, and one whose columns have nothing to do with the classes' names, is read as it stands.

    >>> rows = Logits(2 * (2,), lambda: iter([(0, np.array([[1, 2], [3, 4]]))]), columns=["dog", "cat"])
    >>> in_order(rows, ["cat", "dog"], None).array().tolist()
    [[2, 1], [4, 3]]
    >>> in_order(rows, ["cat", "owl"], None)
    Traceback (most recent call last):
    ...
    ValueError: column 'owl' was there at calibration and is missing here; 'dog' was not
    """
    found = rows.columns
    if found is None or found == (wanted := columns or _names_among(names, found) or list(range(len(found)))):
        return rows
    places = {name: place for place, name in enumerate(found)}
    missing = [name for name in wanted if name not in places]
    if not missing:
        return rows.reordered([places[name] for name in wanted])
    if columns is None and not _names_among(names, found) or _count(found) or _count(wanted):
        return rows
    unknown = next(name for name in found if name not in wanted)
    raise ValueError(f"column {missing[0]!r} was there at calibration and is missing here; {unknown!r} was not")


def _names_among(names: np.ndarray | None, columns: list[Any]) -> list[Any] | None:
    """The classes' names, where some of the columns have them."""
    known = [] if names is None else names.tolist()
    return known if set(known) & set(columns) else None


def _count(columns: list[Any]) -> bool:
    """Whether the columns are merely counted, as pandas and Polars do where nobody has named them."""
    return columns in (list(range(len(columns))), [f"column_{place}" for place in range(len(columns))])


def _of_array(array: np.ndarray) -> Logits:
    if array.ndim == 1:
        array = array[np.newaxis]
    if array.ndim != 2:
        raise ValueError(f"logits must have two dimensions, rows and classes, got {array.ndim}")
    if array.dtype.name == "bfloat16":
        array = array.view(np.uint16)
    elif array.dtype not in (np.float16, np.float32, np.float64) and not isinstance(array, _Bits):
        wide = _float_for(array.dtype)
        return _converted(array.shape, lambda first, last: array[first:last].astype(wide))
    return Logits(array.shape, lambda: iter([(0, array)]))


def _converted(
    shape: tuple[int, int], read: Callable[[int, int], np.ndarray], columns: list[Any] | None = None
) -> Logits:
    rows, classes = shape
    step = max(_BLOCK // max(classes, 1), 1)

    def blocks() -> Iterator[tuple[int, np.ndarray]]:
        for first in range(0, max(rows, 1), step):
            yield first, read(first, min(first + step, rows))

    return Logits(shape, blocks, columns)


def _of_pandas(frame: Any) -> Logits:
    if frame.ndim != 2:
        raise ValueError(f"logits must have two dimensions, rows and classes, got {frame.ndim}")
    kinds = [getattr(kind, "numpy_dtype", kind) for kind in frame.dtypes]
    wide = np.result_type(*map(_float_for, kinds)) if kinds else np.dtype(np.float64)
    return _converted(
        frame.shape,
        lambda first, last: frame.iloc[first:last].to_numpy(dtype=wide, na_value=np.nan),
        _distinct(frame.columns.tolist()),
    )


def _distinct(columns: list[Any]) -> list[Any]:
    """Names of columns, each of which must be another."""
    repeated = [name for place, name in enumerate(columns) if name in columns[:place]]
    if repeated:
        raise ValueError(f"there are two columns {repeated[0]!r}")
    return columns


def _of_polars(data: Any) -> Logits:
    if hasattr(data, "collect"):
        raise TypeError("logits are a lazy frame: collect it first")
    if not hasattr(data, "columns"):
        return _of_arrow(data.to_arrow())
    return _converted(data.shape, lambda first, last: _floats(data[first:last].to_numpy()), data.columns)


def _of_arrow(data: Any) -> Logits:
    import pyarrow as pa

    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        return _of_columns(data)
    chunks = [_arrow_matrix(chunk) for chunk in getattr(data, "chunks", [data])]
    if len(chunks) == 1:
        return _of_array(chunks[0])
    starts = [0, *itertools.accumulate(len(chunk) for chunk in chunks)]
    return Logits((starts[-1], data.type.list_size), lambda: zip(starts, chunks))


def _of_columns(table: Any) -> Logits:
    def read(first: int, last: int) -> np.ndarray:
        columns = table.slice(first, last - first).columns
        return _floats(np.stack([column.to_numpy() for column in columns], axis=1))

    return _converted((table.num_rows, table.num_columns), read, _distinct(table.column_names))


class _Bits(np.ndarray):
    """`uint16` that holds the bits of bfloat16, for which NumPy has no type of its own."""


def as_array(data: Any) -> np.ndarray:
    """A NumPy view of an array or tensor of any library, on the CPU; a copy of anything else."""
    if isinstance(data, np.ma.MaskedArray):
        # What a mask hides is still in the array, and would be read as if it were valid.
        if np.ma.is_masked(data):
            place = tuple(int(axis[0]) for axis in np.nonzero(np.ma.getmaskarray(data)))
            raise ValueError(f"the entry at {place} is masked: fill masked entries, or leave their rows out")
        return data.data
    if isinstance(data, np.ndarray):
        return data
    if type(data).__module__.partition(".")[0] == "torch":
        data = data.detach().cpu()
        return data.float().numpy() if str(data.dtype) == "torch.bfloat16" else data.numpy()
    if hasattr(data, "__dlpack__") and not hasattr(data, "__array__"):
        return np.from_dlpack(data)
    return np.asarray(data)


def _torch_view(tensor: Any) -> np.ndarray:
    import torch

    tensor = tensor.detach().cpu()
    if tensor.dtype != torch.bfloat16:
        return tensor.numpy()
    return tensor.view(torch.int16).numpy().view(np.uint16).view(_Bits)


def _arrow_matrix(chunk: Any) -> np.ndarray:
    import pyarrow as pa

    if not pa.types.is_fixed_size_list(chunk.type):
        raise TypeError(f"an Arrow array of logits must be a fixed-size list of floats, got {chunk.type}")
    values = chunk.values.slice(chunk.offset * chunk.type.list_size, len(chunk) * chunk.type.list_size)
    if chunk.null_count or values.null_count:
        raise ValueError("logits hold nulls")
    return values.to_numpy(zero_copy_only=True).reshape(len(chunk), chunk.type.list_size)


def _floats(block: np.ndarray) -> np.ndarray:
    return block.astype(_float_for(block.dtype), copy=False)


def _float_for(kind: Any) -> np.dtype:
    """The float type in which numbers of this type are read."""
    if isinstance(kind, np.dtype):
        if kind.kind == "f" and kind.itemsize <= 8:
            return kind.newbyteorder("=")
        if kind.kind in "iub":
            return np.dtype(np.float64)
    raise TypeError(f"logits must be real numbers of at most 64 bits, got {kind}")


def as_labels(data: Any, classes: int, names: Sequence[Any] | None = None) -> np.ndarray:
    """Class indices as `uint32`, from integers, or from names where the classes have names.

    >>> as_labels([0, 2], 3)
    array([0, 2], dtype=uint32)
    >>> as_labels(["b", "a"], 2, ["a", "b"])
    array([1, 0], dtype=uint32)
    >>> as_labels([0, -1], 3)
    Traceback (most recent call last):
    ...
    ValueError: label at row 1 is -1, but with 3 classes labels lie in 0..3
    """
    labels = np.atleast_1d(as_array(data))
    if labels.ndim != 1:
        raise ValueError(f"labels must have one dimension, a class per row, got {labels.ndim}")
    if names is not None:
        return _indices_of_names(labels, names)
    if labels.size == 0:
        return labels.astype(np.uint32)
    if labels.dtype.kind not in "iu":
        raise TypeError(f"labels must be integers (or names, where `classes` are given), got {labels.dtype}")
    outside = np.flatnonzero((labels < 0) | (labels >= classes))
    if outside.size:
        row = int(outside[0])
        raise ValueError(
            f"label at row {row} is {labels[row]}, but with {classes} classes labels lie in 0..{classes}"
        )
    return labels.astype(np.uint32)


def _indices_of_names(labels: np.ndarray, names: Sequence[Any]) -> np.ndarray:
    index = {name: place for place, name in enumerate(np.asarray(names).tolist())}
    out = np.empty(len(labels), dtype=np.uint32)
    for row, label in enumerate(labels.tolist()):
        if label not in index:
            raise ValueError(f"label at row {row} is {label!r}, which is none of the {len(index)} classes")
        out[row] = index[label]
    return out


def as_draws(u: Any) -> np.ndarray | None:
    """One uniform draw per row as `float64`, or None."""
    return None if u is None else np.ascontiguousarray(as_array(u), dtype=np.float64)


#: More threads than any machine has cores; starting a million of them takes the machine down.
MOST_THREADS = 1024


def as_threads(n_threads: Any) -> int | None:
    """A number of threads, or None for one per core."""
    if n_threads is None:
        return None
    count = _whole(n_threads, "n_threads")
    if not 1 <= count <= MOST_THREADS:
        raise ValueError(f"n_threads must lie between 1 and {MOST_THREADS}, or be None for one per core, got {count}")
    return count


def as_seed(random_state: Any) -> int:
    """The seed of the draws: whoever wants other draws gives another number, for the same rows have the same ones.

    >>> as_seed(None)
    Traceback (most recent call last):
    ...
    TypeError: random_state must be a whole number, got None
    """
    seed = _whole(random_state, "random_state")
    if not 0 <= seed < 1 << 64:
        raise ValueError(f"random_state must lie between 0 and 2**64 - 1, got {seed}")
    return seed


def _whole(value: Any, name: str) -> int:
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    return operator.index(value)
