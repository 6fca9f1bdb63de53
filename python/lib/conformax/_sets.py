"""`PredictionSets`: the labels of every set, stored end to end."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ._inputs import as_array, as_labels


class PredictionSets(Sequence):
    """One set of labels per row, best first.

    Indexing and iteration give a row's labels (names, where the classes have names); a slice gives the sets of those
    rows. `(row, label) in sets` asks for one label. Packed storage is `offsets` and `indices`: the class indices of
    row `i` are `indices[offsets[i]:offsets[i + 1]]`.

    >>> sets = PredictionSets([0, 2, 3], [2, 0, 1], n_classes=3)
    >>> sets
    PredictionSets(2 rows, 3 classes, average size 1.5)
      0: {2, 0}
      1: {1}
    >>> sets.sizes
    array([2, 1])
    >>> (0, 2) in sets, 1 in sets[0]
    (True, False)
    """

    def __init__(
        self,
        offsets: Any,
        indices: Any,
        *,
        n_classes: int,
        classes: Sequence[Any] | None = None,
        labels_are: str | None = None,
        alpha: float | None = None,
        threshold: float | None = None,
        probabilities: np.ndarray | Callable[[], np.ndarray] | None = None,
    ) -> None:
        _check(np.asarray(offsets, dtype=np.int64), np.asarray(indices), int(n_classes))
        self.offsets = np.asarray(offsets, dtype=np.int64)
        self.indices = np.asarray(indices, dtype=np.uint32)
        self.n_classes = int(n_classes)
        self.classes = None if classes is None else np.asarray(classes)
        self.labels_are = labels_are
        self.alpha = alpha
        self.threshold = threshold
        self._probabilities = probabilities

    @classmethod
    def _of(cls, offsets: np.ndarray, indices: np.ndarray, **about: Any) -> PredictionSets:
        """Sets that are known to be right, and so are not looked through."""
        # One without rows has nothing to look through.
        sets = cls([0], [], **about)
        sets.offsets, sets.indices = np.asarray(offsets, dtype=np.int64), np.asarray(indices, dtype=np.uint32)
        return sets

    @classmethod
    def from_mask(cls, mask: Any, **about: Any) -> PredictionSets:
        """Sets from a rows × classes array of booleans, labels in index order.

        >>> PredictionSets.from_mask([[True, False], [True, True]]).sizes
        array([1, 2])
        """
        mask = np.asarray(as_array(mask), dtype=bool)
        if mask.ndim != 2:
            raise ValueError(f"a mask must have two dimensions, rows and classes, got {mask.ndim}")
        offsets = np.concatenate([[0], np.cumsum(mask.sum(axis=1))])
        return cls._of(offsets, np.nonzero(mask)[1], n_classes=mask.shape[1], **about)

    @property
    def sizes(self) -> np.ndarray:
        """Number of labels in each set."""
        return np.diff(self.offsets)

    @property
    def mask(self) -> np.ndarray:
        """Rows × classes booleans; a byte per row and class, so rather not for many classes."""
        mask = np.zeros((len(self), self.n_classes), dtype=bool)
        mask[self._rows(), self.indices] = True
        return mask

    @property
    def probabilities(self) -> np.ndarray:
        """The probability of each label of each set, in the order of `indices`.

        They are worked out on first use, from a copy of the logits of these labels.
        """
        if self._probabilities is None:
            raise AttributeError("these sets were made without logits and have no probabilities")
        if callable(self._probabilities):
            self._probabilities = self._probabilities()
        return self._probabilities

    def labels(self, names: Sequence[Any] | None = None) -> list[list[Any]]:
        """The sets as lists of names, or of indices where there are no names.

        >>> PredictionSets([0, 2, 3], [2, 0, 1], n_classes=3).labels(["cat", "dog", "owl"])
        [['owl', 'cat'], ['dog']]
        """
        values = self._values(names).tolist()
        return [values[first:last] for first, last in zip(self.offsets[:-1].tolist(), self.offsets[1:].tolist())]

    def covers(self, labels: Any) -> np.ndarray:
        """Whether each row's set holds its label.

        >>> PredictionSets([0, 2, 3], [2, 0, 1], n_classes=3).covers([0, 2])
        array([ True, False])
        """
        truth = as_labels(labels, self.n_classes, self.classes, self.labels_are)
        if len(truth) != len(self):
            raise ValueError(f"there are {len(self)} sets but {len(truth)} labels")
        found = np.zeros(len(self), dtype=bool)
        found[self._rows()[self.indices == np.repeat(truth, self.sizes)]] = True
        return found

    def to_csr(self) -> tuple[np.ndarray, np.ndarray]:
        """Offsets and class indices, not copied."""
        return self.offsets, self.indices

    def to_scipy(self) -> Any:
        """A SciPy sparse boolean matrix of rows × classes."""
        from scipy.sparse import csr_array

        held = np.ones(len(self.indices), dtype=bool)
        matrix = csr_array((held, self.indices.astype(np.int64), self.offsets), shape=(len(self), self.n_classes))
        matrix.sort_indices()
        return matrix

    def to_arrow(self) -> Any:
        """An Arrow table with the columns of the command's own files: row, labels, size."""
        import pyarrow as pa

        columns = {
            "row": pa.array(np.arange(len(self), dtype=np.uint64)),
            "labels": pa.LargeListArray.from_arrays(pa.array(self.offsets), pa.array(self._values(None))),
            "size": pa.array(self.sizes.astype(np.uint32)),
        }
        if self._probabilities is not None:
            columns["probabilities"] = pa.LargeListArray.from_arrays(
                pa.array(self.offsets), pa.array(self.probabilities)
            )
        return pa.table(columns)

    def to_pandas(self) -> Any:
        """A data frame with a list of labels and a size per row."""
        import pandas as pd

        return pd.DataFrame({"labels": self.labels(), "size": self.sizes})

    def __getstate__(self) -> dict[str, Any]:
        # What works them out is a function, which cannot be pickled.
        return {**vars(self), "_probabilities": None if self._probabilities is None else self.probabilities}

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._slice(*index.indices(len(self)))
        row = range(len(self))[index]
        return self._values(None, slice(self.offsets[row], self.offsets[row + 1]))

    def __iter__(self) -> Iterator[np.ndarray]:
        values = self._values(None)
        for first, last in zip(self.offsets[:-1].tolist(), self.offsets[1:].tolist()):
            yield values[first:last]

    def __contains__(self, row_and_label: Any) -> bool:
        try:
            row, label = row_and_label
        except (TypeError, ValueError):
            raise TypeError("ask `(row, label) in sets`, or `label in sets[row]`") from None
        return bool(np.any(self[row] == label))

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, PredictionSets):
            return NotImplemented
        return (
            self.n_classes == other.n_classes
            and np.array_equal(self.offsets, other.offsets)
            and np.array_equal(self.indices, other.indices)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = [f"  {row}: {_braces(self[row])}" for row in range(min(len(self), 5))]
        more = [f"  … {len(self) - 5} more"] if len(self) > 5 else []
        return "\n".join([self._summary(), *shown, *more])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{row}</th><td>{len(self[row])}</td><td>{html.escape(_braces(self[row]))}</td></tr>"
            for row in range(min(len(self), 10))
        )
        more = f"<caption>the first 10 of {len(self)} rows</caption>" if len(self) > 10 else ""
        head = "<tr><th>row</th><th>size</th><th>labels, best first</th></tr>"
        return f"<p>{html.escape(self._summary())}</p><table>{more}<thead>{head}</thead><tbody>{rows}</tbody></table>"

    def _summary(self) -> str:
        about = [f"{len(self)} rows", f"{self.n_classes} classes"]
        if self.alpha is not None:
            about.append(f"alpha {self.alpha:g}")
        if len(self):
            about.append(f"average size {self.sizes.mean():.4g}")
        return f"PredictionSets({', '.join(about)})"

    def _values(self, names: Sequence[Any] | None, where: slice = slice(None)) -> np.ndarray:
        names = self.classes if names is None else np.asarray(names)
        if names is not None and len(names) != self.n_classes:
            raise ValueError(f"there are {self.n_classes} classes but {len(names)} names")
        return self.indices[where] if names is None else names[self.indices[where]]

    def _rows(self) -> np.ndarray:
        return np.repeat(np.arange(len(self)), self.sizes)

    def _slice(self, first: int, last: int, step: int) -> PredictionSets:
        rows = np.arange(first, last, step)
        sizes = self.sizes[rows]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        places = np.repeat(self.offsets[rows] - offsets[:-1], sizes) + np.arange(offsets[-1])
        probabilities = None if self._probabilities is None else (lambda: self.probabilities[places])
        return PredictionSets._of(
            offsets,
            self.indices[places],
            n_classes=self.n_classes,
            classes=self.classes,
            labels_are=self.labels_are,
            alpha=self.alpha,
            threshold=self.threshold,
            probabilities=probabilities,
        )


def _check(offsets: np.ndarray, indices: np.ndarray, n_classes: int) -> None:
    if offsets.ndim != 1 or indices.ndim != 1 or not len(offsets) or offsets[0] != 0:
        raise ValueError("offsets and indices must have one dimension, and offsets start at 0")
    sizes = np.diff(offsets)
    if (sizes < 0).any() or offsets[-1] != len(indices):
        count, last = len(indices), offsets[-1]
        raise ValueError(f"offsets must rise from 0 to the number of indices, {count}, got {last} at the end")
    if not len(indices):
        return
    if indices.min() < 0 or indices.max() >= n_classes:
        low, high = indices.min(), indices.max()
        raise ValueError(f"with {n_classes} classes indices lie in 0..{n_classes}, got {low} to {high}")
    rows = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((indices, rows))
    again = np.flatnonzero((np.diff(rows[order]) == 0) & (np.diff(indices[order]) == 0))
    if again.size:
        place = order[again[0]]
        raise ValueError(f"the set of row {rows[place]} holds label {indices[place]} twice")


def _braces(labels: np.ndarray) -> str:
    shown = ", ".join(str(label) for label in labels[:8].tolist())
    return f"{{{shown}, … {len(labels) - 8} more}}" if len(labels) > 8 else f"{{{shown}}}"
