"""Whatever holds logits or labels, as NumPy arrays that the compiled module can read.

Arrays that are floats already arrive without a copy, whatever their strides; everything else is converted a block of
rows at a time, so that there is never a second copy of a whole data frame.
"""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from . import _conformax
from ._exceptions import ConformaxWarning

# Numbers in a converted block: 16 MB as float64.
_BLOCK = 1 << 21


Blocks = Callable[[], Iterator[tuple[int, np.ndarray]]]


class RowError(ValueError):
    """A row that cannot be read: `row` is its place, counted from the first row of the first batch."""

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message)
        self.row = row


class Logits:
    """A matrix of logits as blocks of rows.

    >>> logits = Logits.of([[1, 2], [3, 4]])
    >>> logits.shape
    (2, 2)
    >>> [(first, block.dtype.name) for first, block in logits.blocks()]
    [(0, 'float64')]
    """

    def __init__(
        self, shape: tuple[int, int], blocks: Blocks, columns: list[Any] | None = None, *, first_row: int = 0
    ) -> None:
        self.shape = shape
        #: What the first row is counted as: rows may be a part of more.
        self.first_row = first_row
        #: Yields the first row of each block and the block; an empty matrix is one empty block.
        self.blocks = blocks
        #: What the columns of a data frame are called.
        self.columns = columns

    @classmethod
    def of(cls, data: Any, known: Collection[Any] | None = None) -> Logits:
        """Reads arrays, tensors, data frames, Arrow lists and plain nested lists. One dimension is one row.

        `known` are classes, whatever a column of such a name looks like.
        """
        if isinstance(data, Logits):
            return data
        data = from_device(data)
        package = type(data).__module__.partition(".")[0]
        if package == "torch":
            return _of_array(_torch_view(data))
        if package == "pandas":
            return _expect_classes(_of_pandas(data), known)
        if package == "polars":
            return _expect_classes(_of_polars(data), known)
        if package == "pyarrow":
            return _expect_classes(_of_arrow(data), known)
        array = as_array(data)
        if array.ndim == 0:
            sparse = "; a sparse matrix is made one by .toarray()" if hasattr(data, "toarray") else ""
            raise TypeError(f"logits must be an array of rows and classes, got {type(data).__name__}{sparse}")
        return _of_array(array)

    def array(self) -> np.ndarray:
        """All rows as one array; a copy where they came in blocks."""
        parts = [block for _, block in self.blocks()]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def reordered(self, order: list[int]) -> Logits:
        """The same rows with the columns in another order."""
        blocks = lambda: ((first, block[:, order]) for first, block in self.blocks())  # noqa: E731
        return Logits(self.shape, blocks, first_row=self.first_row)


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


def names_of_columns(columns: list[Any] | None) -> list[str] | None:
    """The columns of a data frame as names of classes, where they are names and do not merely count."""
    if not columns or _count(columns) or not all(isinstance(name, str) for name in columns):
        return None
    return columns


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
        _of_classes(frame.columns.tolist()),
    )


def _of_classes(columns: list[Any]) -> list[Any]:
    """Names of columns, each of which must be another, and a class: one that is none would be in every set.

    >>> _of_classes(["cat", "dog", "label"])
    Traceback (most recent call last):
    ...
    ValueError: column 'label' would be a class: leave it out of the logits
    """
    strangers = [name for name in columns if name in ("label", "labels")]
    # What pandas calls a column that has no name in a file, as the index of the frame that was written there has none.
    strangers += [name for name in columns if isinstance(name, str) and re.fullmatch(r"Unnamed: \d+", name)]
    if strangers:
        raise ValueError(f"column {strangers[0]!r} would be a class: leave it out of the logits")
    repeated = [name for place, name in enumerate(columns) if name in columns[:place]]
    if repeated:
        raise ValueError(f"there are two columns {repeated[0]!r}")
    return columns


#: Names of columns that identify or number rows, the command's own.
_IDENTIFIERS = ("id", "index", "idx", "row")

#: Rows that are looked at for identifiers.
_LOOK = 32


def _expect_classes(rows: Logits, known: Collection[Any] | None) -> Logits:
    """The same rows, of which no column is called as identifiers are and holds whole numbers: it would be in every set.

    >>> rows = Logits((2, 2), lambda: iter([(0, np.array([[17.0, 2.5], [4.0, 0.5]]))]), ["row_id", "cat"])
    >>> _expect_classes(rows, ["row_id", "cat"]) is rows
    True
    >>> _expect_classes(rows, None)
    Traceback (most recent call last):
    ...
    ValueError: column 'row_id' holds whole numbers and would be a class: leave it out of the logits, or name it among \
`classes` if it is one
    """
    named = () if known is None else list(known)
    for place, name in enumerate(rows.columns or ()):
        if not isinstance(name, str) or name in named:
            continue
        if name.lower() in _IDENTIFIERS or name.lower().endswith("_id"):
            cells = next(block[:_LOOK, place] for _, block in rows.blocks())
            if len(cells) and (np.isfinite(cells) & (np.floor(cells) == cells)).all():
                raise ValueError(
                    f"column {name!r} holds whole numbers and would be a class: leave it out of the logits, or name it "
                    "among `classes` if it is one"
                )
    return rows


def _of_polars(data: Any) -> Logits:
    if hasattr(data, "collect"):
        raise TypeError("logits are a lazy frame: collect it first")
    if not hasattr(data, "columns"):
        return _of_arrow(data.to_arrow())
    return _converted(data.shape, lambda first, last: _floats(data[first:last].to_numpy()), _of_classes(data.columns))


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

    return _converted((table.num_rows, table.num_columns), read, _of_classes(table.column_names))


class _Bits(np.ndarray):
    """`uint16` that holds the bits of bfloat16, for which NumPy has no type of its own."""


def refuse_masked(data: Any, what: str = "") -> None:
    """What a mask hides is still in the array, and would be read as if it were valid."""
    if np.ma.is_masked(data):
        place = tuple(int(axis[0]) for axis in np.nonzero(np.ma.getmaskarray(data)))
        of = f"{what}: " if what else ""
        raise ValueError(f"{of}the entry at {place} is masked: fill masked entries, or leave their rows out")


def as_array(data: Any) -> np.ndarray:
    """A NumPy view of an array or tensor of any library, on the CPU; a copy of anything else."""
    if isinstance(data, np.ma.MaskedArray):
        refuse_masked(data)
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


def as_labels(data: Any, classes: int, names: Sequence[Any] | None = None, labels_are: str | None = None) -> np.ndarray:
    """Class indices as `uint32`, by the command's one rule.

    An integer (1 and 1.0 alike, as a number or as text) is an index, unless classes have integers for names: then it
    may mean either, and `labels_are` says which. Other labels are names. True and false are names where classes are
    called so, and 1 and 0 otherwise.

    >>> as_labels([0, 2], 3)
    array([0, 2], dtype=uint32)
    >>> as_labels(["b", "a", 1], 2, ["a", "b"])
    array([1, 0, 1], dtype=uint32)
    >>> as_labels([1, 2], 2, [1, 2])
    Traceback (most recent call last):
    ...
    ValueError: label at row 0 is 1, an index or a name, for classes have integers for names: say labels_are="indices" \
or labels_are="names"
    >>> as_labels([1, 2], 2, [1, 2], "names")
    array([0, 1], dtype=uint32)
    >>> as_labels([0, -1], 3)
    Traceback (most recent call last):
    ...
    ValueError: label at row 1 is -1, but with 3 classes labels lie in 0..3
    """
    labels = np.atleast_1d(_label_array(data))
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise ValueError(f"labels must have one dimension, a class per row, got {labels.ndim}")
    try:
        return classes_of(labels, range(len(labels)), classes, names, labels_are)
    except RowError as error:
        raise ValueError(str(error)) from None


def classes_of(
    labels: np.ndarray, rows: Sequence[int], classes: int, names: Sequence[Any] | None, labels_are: str | None
) -> np.ndarray:
    """The class of each label by that rule; one that is none is a `RowError` of its row."""
    if labels_are not in (None, "indices", "names"):
        raise ValueError(f'labels_are must be "indices" or "names", got {labels_are!r}')
    if labels_are == "names" and names is None:
        raise ValueError('labels_are="names" needs the names of the classes, which are not known')
    if labels.dtype.kind in "iu" and labels_are != "names":
        return _checked_indices(labels, rows, classes, names, labels_are)
    index = _index_of(names)
    # Labels repeat, so each is looked up once.
    found: dict[Any, int] = {}
    out = np.empty(len(labels), dtype=np.uint32)
    for place, label in enumerate(labels.tolist()):
        key = (type(label), label)
        if key not in found:
            found[key] = _class_of(label, rows[place], classes, names, index, labels_are)
        out[place] = found[key]
    return out


def _label_array(data: Any) -> np.ndarray:
    """Labels as an array that keeps each as it is: NumPy would turn the 1 of `["a", 1]` into text."""
    if isinstance(data, (list, tuple)) and len({type(label) for label in data}) > 1:
        mixed = np.empty(len(data), dtype=object)
        mixed[:] = data
        return mixed
    return as_array(data)


def _checked_indices(
    labels: np.ndarray, rows: Sequence[int], classes: int, names: Sequence[Any] | None, labels_are: str | None
) -> np.ndarray:
    if labels.size and labels_are is None:
        _ask_about_integers(int(labels[0]), rows[0], names)
    outside = np.flatnonzero((labels < 0) | (labels >= classes))
    if outside.size:
        _outside(labels[outside[0]], rows[outside[0]], classes)
    return labels.astype(np.uint32)


def _class_of(
    label: Any, row: int, classes: int, names: Sequence[Any] | None, index: dict[Any, int], labels_are: str | None
) -> int:
    """The class of one label."""
    if _is_missing(label):
        raise RowError(f"label at row {row} is missing", row)
    if labels_are == "names":
        place = index.get(label, index.get(str(label)))
        if place is None:
            raise RowError(f"label at row {row} is {label!r}, which is none of the {len(names or ())} classes", row)
        return place
    truth = _truth(label)
    if (whole := _whole_number(label)) is not None:
        if labels_are is None:
            _ask_about_integers(label, row, names)
        return whole if 0 <= whole < classes else _outside(label, row, classes)
    if truth is not None and labels_are is None and any(_truth(name) is not None for name in index):
        place = next((place for name, place in index.items() if _truth(name) is truth), None)
    elif truth is not None:
        return int(truth) if truth < classes else _outside(label, row, classes)
    elif labels_are == "indices":
        raise RowError(f"label at row {row} is {label!r}, which is not an index", row)
    else:
        place = index.get(label)
    if place is not None:
        return place
    if isinstance(label, float):
        raise RowError(f"label at row {row} is {label!r}, which is not a whole number", row)
    if names is None:
        raise TypeError(f"label at row {row} is {label!r}, a name, but `classes` are not given: wanted integers")
    raise RowError(f"label at row {row} is {label!r}, which is none of the {len(names)} classes", row)


def _outside(label: Any, row: int, classes: int) -> NoReturn:
    raise RowError(f"label at row {row} is {label}, but with {classes} classes labels lie in 0..{classes}", row)


def _index_of(names: Sequence[Any] | None) -> dict[Any, int]:
    """The place of each name, which labels may also give as text."""
    known = [] if names is None else np.asarray(names).tolist()
    index = {str(name): place for place, name in enumerate(known)}
    index.update({name: place for place, name in enumerate(known)})
    return index


def _ask_about_integers(label: Any, row: int, names: Sequence[Any] | None) -> None:
    """An error where an integer may mean either."""
    if integers_are_names(names):
        raise RowError(
            f"label at row {row} is {label}, an index or a name, for classes have integers for names: say "
            'labels_are="indices" or labels_are="names"',
            row,
        )


def integers_are_names(names: Sequence[Any] | None) -> bool:
    """Whether classes have integers for names, other than those that merely count."""
    known = [] if names is None else [_whole_number(name) for name in np.asarray(names).tolist()]
    return any(name is not None for name in known) and known != list(range(len(known)))


def _whole_number(label: Any) -> int | None:
    """The integer that a label is or reads as; `1.0`, as tools write integers that passed through floats, is one."""
    if isinstance(label, (bool, np.bool_)):
        return None
    if isinstance(label, (int, np.integer)):
        return int(label)
    if isinstance(label, (float, np.floating)):
        return int(label) if float(label).is_integer() and abs(label) < 9e15 else None
    if isinstance(label, str) and (read := re.fullmatch(r"([+-]?[0-9]+)(\.0*)?", label)):
        return int(read[1])
    return None


def _is_missing(label: Any) -> bool:
    """None, NaN and the marks of pandas, which compare as neither equal nor unequal."""
    return label is None or type(label).__name__ in ("NAType", "NaTType") or (label != label) is True


def _truth(label: Any) -> bool | None:
    """True and false in any case, as Python and JSON write them."""
    if isinstance(label, (bool, np.bool_)):
        return bool(label)
    return {"true": True, "false": False}.get(label.lower()) if isinstance(label, str) else None


def as_logits(logits: Any, kind: str, known: Collection[Any] | None = None) -> Logits:
    """Rows of logits, from what the numbers are said to be; probabilities become logarithms, zeros minus infinity.

    >>> as_logits([[1.0, 0.0]], "probabilities").array()
    array([[  0., -inf]])
    >>> as_logits([[0.5, 1.5]], "probabilities").array()
    Traceback (most recent call last):
    ...
    ValueError: the probability at row 0, class 1 must lie between 0 and 1, got 1.5
    """
    if kind not in INPUTS:
        raise ValueError(f"input must be one of {', '.join(map(repr, INPUTS))}, got {kind!r}")
    rows = Logits.of(logits, known)
    if kind == "logits":
        return rows
    made = _logarithms if kind == "probabilities" else _checked_logarithms
    blocks = rows.blocks
    return Logits(rows.shape, lambda: ((first, made(first, block)) for first, block in blocks()), rows.columns)


#: What numbers may be.
INPUTS = ("logits", "probabilities", "log_probabilities")

#: A probability this far above 1, or its logarithm above 0, is still taken for rounding, as the command does.
_ROUNDING = 1e-2


def _logarithms(first: int, block: np.ndarray) -> np.ndarray:
    p = np.ascontiguousarray(_wide(block))
    _refuse(~((p >= 0) & (p <= 1 + _ROUNDING)), p, first, "the probability at {} must lie between 0 and 1, got {}")
    return _conformax.logarithms(p.ravel()).reshape(p.shape)


def _checked_logarithms(first: int, block: np.ndarray) -> np.ndarray:
    wide = _wide(block)
    _refuse(~(wide <= _ROUNDING), wide, first, "the log-probability at {} must be at most 0, got {}")
    return block


def _wide(block: np.ndarray) -> np.ndarray:
    """Numbers as `float64`; `uint16` holds the bits of bfloat16."""
    if block.dtype == np.uint16:
        block = (np.asarray(block).astype(np.uint32) << 16).view(np.float32)
    return np.asarray(block, dtype=np.float64)


def _refuse(wrong: np.ndarray, block: np.ndarray, first: int, message: str) -> None:
    if wrong.any():
        row, label = (int(axis[0]) for axis in np.nonzero(wrong))
        raise ValueError(message.format(f"row {first + row}, class {label}", block[row, label]))


def doubted(rows: Logits, kind: str, advice: str, *, stacklevel: int = 3) -> Logits:
    """The same rows, warned of where they are said to be logits and look like probabilities."""
    if kind == "logits" and look_like_probabilities(rows):
        warn_of_probabilities(advice, stacklevel=stacklevel + 1)
    return rows


def warn_of_probabilities(advice: str, *, stacklevel: int) -> None:
    warnings.warn(
        f"these rows are not negative and sum to 1, as probabilities do, and are taken for logits: {advice}",
        ConformaxWarning,
        stacklevel=stacklevel,
    )


#: What to do about it where the kind of numbers is a parameter.
GIVE_INPUT = 'give input="probabilities" if that is what they are'

#: What to do about probabilities that are held against a classifier of logits.
GIVE_LOGITS = (
    'if that is what they are, give the logits, as at calibration, or calibrate again with input="probabilities"'
)


def look_like_probabilities(rows: Logits) -> bool:
    """Whether the first rows are not negative and sum to one; as a rule the first alone says that they are not."""
    block = next((block for _, block in rows.blocks()), np.empty((0, 0)))
    if block.shape[0] == 0 or block.shape[1] < 2:
        return False
    for wide in (_wide(block[:1]), _wide(block[:100])):
        if not (((wide >= 0) & (wide <= 1)).all() and (np.abs(wide.sum(axis=1) - 1) < 1e-2).all()):
            return False
    return True


def as_draws(u: Any) -> np.ndarray | None:
    """One uniform draw per row as `float64`, or None."""
    return None if u is None else np.ascontiguousarray(as_array(u), dtype=np.float64)
