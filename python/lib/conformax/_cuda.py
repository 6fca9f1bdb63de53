"""Calibration, sets and probabilities of the entmax family on CUDA tensors, with the CPU's bits.

A model calibrated on a GPU is byte for byte the one calibrated on a CPU, and so are its sets. Scores outside the family
are worked out on the CPU. Rows that cannot be scored are found by the kernels as they read them and reported when the
host looks at a result anyway: the row is then given to the CPU, whose error names row and class.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _conformax
from ._inputs import as_labels, from_device
from ._sets import PredictionSets

# All bits set: no row.
_NONE = -1

# Labels a row that there is room for before their number is known.
_ROOM = 4

# Scores that a part of the rows with large sets may take at a time.
_SCORED = 1 << 26


def on_gpu(logits: Any, rule: _conformax.Score) -> bool:
    """Whether the kernels take these logits under this score. Imports nothing where torch is not in use."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(logits, torch.Tensor) or not logits.is_cuda or rule.gamma is None:
        return False
    from .torch import _kernels

    return _kernels.usable(logits)


def checked_rows(logits: Any, classes: int | None = None) -> Any:
    """The rows, end to end. One dimension is one row."""
    if logits.dim() == 1:
        logits = logits[None]
    if logits.dim() != 2:
        raise ValueError(f"logits must have two dimensions, rows and classes, got {logits.dim()}")
    if logits.shape[1] == 0:
        raise ValueError("wanted at least one class, got 0")
    if classes is not None and logits.shape[1] != classes:
        raise ValueError(f"wanted {classes} classes, got {logits.shape[1]}")
    return logits.detach().contiguous()


class _Launches:
    """The kernels over one matrix, and the rows that they report: at fault, and one more number of each kernel's own.

    Sets have their reports elsewhere (`reported` false).
    """

    def __init__(self, rule: _conformax.Score, rows: Any, reported: bool = True) -> None:
        import torch

        from .torch import _kernels

        self.rule, self.rows = rule, rows
        self.reports = torch.empty(2, dtype=torch.int64, device=rows.device) if reported else None
        self.compiled = _conformax.CudaRows(
            *_kernels._place(rows),
            rows.data_ptr(),
            *rows.shape,
            rule.gamma,
            0 if self.reports is None else self.reports.data_ptr(),
        )

    def empty(self, shape: Any, dtype: Any) -> Any:
        import torch

        return torch.empty(shape, dtype=dtype, device=self.rows.device)

    def refuse(self, row: int, labels: Any = None, masked: str = "allowed") -> None:
        """Raises what the CPU says about a row that a kernel reported, or about its label where there are labels."""
        from .torch._rows import rows_of

        if labels is None:
            one = rows_of(self.rows[row : row + 1].cpu())
            _conformax.score_labels(self.rule, one, np.zeros(1, dtype=np.uint32), first_row=row)
        else:
            calibrator = _conformax.Calibrator(self.rule, self.rows.shape[1], masked=masked)
            calibrator.extend(
                rows_of(self.rows[: row + 1].cpu()), labels[: row + 1].cpu().numpy().astype(np.uint32)
            )
        raise RuntimeError(f"a kernel reported row {row}, in which the CPU finds nothing wrong")


def score_labels(rule: _conformax.Score, logits: Any, labels: Any, masked: str = "allowed") -> Any:
    """The score of one label per row, float64 on the device."""
    found = LabelScores(rule, logits, labels, masked)
    found.check()
    return found.scores


class LabelScores:
    """Scores on the device that nobody has looked at yet; `check` raises where a row or a label has none.

    Labels are a tensor of integers, one a row.
    """

    def __init__(self, rule: _conformax.Score, logits: Any, labels: Any, masked: str = "allowed") -> None:
        import torch

        rows = checked_rows(logits)
        if labels.shape[0] != rows.shape[0]:
            raise ValueError(f"there are {rows.shape[0]} rows of logits but {labels.shape[0]} labels")
        self._labels = labels.to(rows.device, torch.int64).contiguous()
        self._launches, self._masked = _Launches(rule, rows), masked
        self.scores = self._launches.empty(rows.shape[0], torch.float64)
        if len(rows):
            self._launches.compiled.score_labels(
                self._labels.data_ptr(), self.scores.data_ptr(), masked == "never"
            )

    def check(self) -> None:
        if not len(self.scores):
            return
        fault, bad_label = self._launches.reports.tolist()
        if bad_label != _NONE:
            label, classes = int(self._labels[bad_label]), self._launches.rows.shape[1]
            if not 0 <= label < classes:
                raise ValueError(
                    f"label at row {bad_label} is {label}, but with {classes} classes labels lie in 0..{classes}"
                )
            self._launches.refuse(bad_label, self._labels, self._masked)
        if fault != _NONE:
            self._launches.refuse(fault)


def score_all(rule: _conformax.Score, logits: Any, bound: float = float("inf")) -> Any:
    """The score of every label, rows × classes; +∞ for labels further than `bound` below their row's maximum."""
    import torch

    rows = checked_rows(logits)
    launches = _Launches(rule, rows)
    scores = launches.empty(rows.shape, torch.float64)
    if len(rows):
        launches.compiled.score_all(bound, scores.data_ptr())
        fault, _ = launches.reports.tolist()
        if fault != _NONE:
            launches.refuse(fault)
    return scores


def row_fingerprints(rule: _conformax.Score, logits: Any) -> np.ndarray:
    """A number for each row by which it is known again."""
    import torch

    rows = checked_rows(logits)
    launches = _Launches(rule, rows, reported=False)
    found = launches.empty(rows.shape[0], torch.int64)
    if len(rows):
        launches.compiled.fingerprints(found.data_ptr())
    return found.cpu().numpy().view(np.uint64)


def find_sets(
    rule: _conformax.Score, logits: Any, threshold: float, masked: str = "allowed", empty: str = "allowed"
) -> tuple[Any, Any]:
    """Offsets (int64) and labels (int32, best first) of the sets at a threshold."""
    import torch

    rows = checked_rows(logits)
    if threshold == float("inf"):
        return _full_sets(rule, rows, masked)
    count = rows.shape[0]
    launches = _Launches(rule, rows, reported=False)
    if not count:
        return launches.empty(1, torch.int64).zero_(), launches.empty(0, torch.int32)
    words, first_size = launches.compiled.set_scratch()
    # On a boundary of 8 bytes, as all that torch's allocator gives.
    scratch = launches.empty(words, torch.int32)
    # The device is at work while the host makes the rest ready.
    launches.compiled.find_sets(threshold, empty == "top_label", scratch.data_ptr())
    # Room for most: how many labels there are is known only when the host has looked, which it does once.
    offsets, room = launches.empty(count + 1, torch.int64), _ROOM * count
    packed = launches.empty(room, torch.int32)
    launches.compiled.pack_sets(scratch.data_ptr(), offsets.data_ptr(), packed.data_ptr(), room)
    total, fault, too_many = launches.compiled.set_reports(scratch.data_ptr())
    if fault is not None:
        launches.refuse(fault)
    if too_many is None and total <= room:
        return offsets, packed[:total]
    large = None
    if too_many is not None:
        sizes = scratch[first_size : first_size + count]
        large = _LargeSets(rule, rows, (sizes < 0).nonzero().flatten(), threshold)
        sizes[large.places] = large.sizes.to(torch.int32)
        total += int(large.sizes.sum())
    packed = launches.empty(total, torch.int32)
    launches.compiled.pack_sets(scratch.data_ptr(), offsets.data_ptr(), packed.data_ptr(), total)
    if large is not None:
        large.fill(offsets, packed)
    return offsets, packed


class _LargeSets:
    """The rows with more labels within reach than a team of threads keeps: every label within reach is scored."""

    def __init__(self, rule: _conformax.Score, rows: Any, places: Any, threshold: float) -> None:
        import torch

        self.places = places
        sizes, self._labels = [], []
        step = max(_SCORED // rows.shape[1], 1)
        for first in range(0, len(places), step):
            part = rows[places[first : first + step]]
            held = score_all(rule, part, threshold) <= threshold
            size = held.sum(dim=1)
            order = _best_first(part)
            self._labels.append(order[held.gather(1, order)].to(torch.int32))
            sizes.append(size)
        self.sizes = torch.cat(sizes)

    def fill(self, offsets: Any, packed: Any) -> None:
        import torch

        ends = self.sizes.cumsum(0)
        starts = torch.repeat_interleave(offsets[self.places] - (ends - self.sizes), self.sizes)
        packed[starts + torch.arange(len(starts), device=packed.device)] = torch.cat(self._labels)


def _best_first(rows: Any) -> Any:
    """Labels by falling logit, equal logits by label; adding 0 makes −0 equal to +0."""
    return (rows + 0.0).argsort(dim=1, descending=True, stable=True)


def _full_sets(rule: _conformax.Score, rows: Any, masked: str) -> tuple[Any, Any]:
    import torch

    count, classes = rows.shape
    # Every row is looked at for what cannot be scored, as at any other threshold.
    score_labels(rule, rows, torch.zeros(count, dtype=torch.int64, device=rows.device))
    order = _best_first(rows)
    if masked == "never":
        possible = rows > -torch.inf
        sizes = possible.sum(dim=1)
        labels = order[possible.gather(1, order)]
    else:
        sizes = torch.full((count,), classes, dtype=torch.int64, device=rows.device)
        labels = order.flatten()
    offsets = torch.zeros(count + 1, dtype=torch.int64, device=rows.device)
    torch.cumsum(sizes, 0, out=offsets[1:])
    return offsets, labels.to(torch.int32)


def probabilities(rule: _conformax.Score, logits: Any, threshold: float, offsets: Any, packed: Any) -> Any:
    """The probabilities of the labels of the sets at a threshold, float64, packed as they are."""
    import torch

    rows = checked_rows(logits)
    launches = _Launches(rule, rows, reported=False)
    p, pool = launches.empty(len(packed), torch.float64), launches.empty(len(packed), torch.float64)
    if len(packed):
        launches.compiled.probabilities(
            threshold, offsets.data_ptr(), packed.data_ptr(), p.data_ptr(), pool.data_ptr()
        )
    return p


def dense(offsets: Any, packed: Any, values: Any, shape: Any) -> Any:
    """Packed values as a matrix, zero elsewhere."""
    import torch

    out = torch.zeros(shape, dtype=values.dtype, device=values.device)
    row = torch.repeat_interleave(torch.arange(shape[0], device=values.device), offsets.diff())
    out[row, packed.to(torch.int64)] = values
    return out


def p_values(calibration: _conformax.Calibration, logits: Any) -> Any:
    """The p-value of every label, rows × classes: `(#{i : s_i ≥ s} + 1)/(n + 1)`."""
    import torch

    if calibration.scores is None:
        raise ValueError("p-values need the calibration scores, which were left out of the file")
    scores = score_all(calibration.score, logits)
    known = torch.from_numpy(calibration.scores).to(scores.device)
    at_least = len(known) - torch.searchsorted(known, scores)
    # By a tensor of the device: torch multiplies by the reciprocal of a number, which rounds twice.
    ranks = torch.tensor(len(known) + 1, dtype=torch.float64, device=scores.device)
    return (at_least + 1).to(torch.float64) / ranks


class CudaPredictionSets:
    """One set of labels per row, best first, on the device; `cpu()` gives the `PredictionSets` of the same sets.

    Packed storage is `offsets` and `indices`: the class indices of row `i` are `indices[offsets[i]:offsets[i + 1]]`.
    """

    def __init__(
        self,
        offsets: Any,
        indices: Any,
        *,
        logits: Any,
        rule: _conformax.Score,
        threshold: float,
        alpha: float | None = None,
        classes: Sequence[Any] | None = None,
        labels_are: str | None = None,
    ) -> None:
        self.offsets, self.indices = offsets, indices
        self.n_classes = int(logits.shape[1])
        self.classes = None if classes is None else np.asarray(classes)
        self.labels_are = labels_are
        self.alpha, self.threshold = alpha, threshold
        self._logits, self._rule = logits, rule
        self._probabilities: Any = None

    @property
    def sizes(self) -> Any:
        """Number of labels in each set."""
        return self.offsets.diff()

    @property
    def mask(self) -> Any:
        """Rows × classes booleans."""
        import torch

        held = torch.ones(len(self.indices), dtype=torch.bool, device=self.indices.device)
        return dense(self.offsets, self.indices, held, (len(self), self.n_classes))

    @property
    def probabilities(self) -> Any:
        """The probability of each label of each set, in the order of `indices`; worked out on first use."""
        if self._probabilities is None:
            self._probabilities = probabilities(
                self._rule, self._logits, self.threshold, self.offsets, self.indices
            )
        return self._probabilities

    def covers(self, labels: Any) -> Any:
        """Whether each row's set holds its label."""
        import torch

        known = as_labels(from_device(labels), self.n_classes, self.classes, self.labels_are)
        if len(known) != len(self):
            raise ValueError(f"there are {len(self)} sets but {len(known)} labels")
        truth = torch.from_numpy(known.astype(np.int64)).to(self.indices.device)
        row = torch.repeat_interleave(torch.arange(len(self), device=truth.device), self.sizes)
        found = torch.zeros(len(self), dtype=torch.bool, device=truth.device)
        found[row[self.indices == truth[row]]] = True
        return found

    def cpu(self) -> PredictionSets:
        """The same sets on the host."""
        return PredictionSets(
            self.offsets.cpu().numpy(),
            self.indices.cpu().numpy(),
            n_classes=self.n_classes,
            classes=self.classes,
            labels_are=self.labels_are,
            alpha=self.alpha,
            threshold=self.threshold,
            probabilities=lambda: self.probabilities.cpu().numpy(),
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"Cuda{self.cpu()!r}"


def class_indices(labels: Any, classes: int, names: np.ndarray | None = None, labels_are: str | None = None) -> Any:
    """A tensor of the classes that labels mean by the host's rule.

    Integers that can only be indices stay where they are: the kernels look whether they are classes.
    """
    import torch

    whole = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
    if isinstance(labels, torch.Tensor) and labels.dtype in whole and labels.dim() == 1:
        if names is None and labels_are in (None, "indices"):
            return labels
    return torch.from_numpy(as_labels(labels, classes, names, labels_are).astype(np.int64))


def calibration_of(
    rule: _conformax.Score,
    logits: Any,
    labels: Any,
    *,
    alphas: list[str],
    names: np.ndarray | None,
    labels_are: str | None = None,
    masked: str,
) -> _conformax.Calibration:
    """What calibrating on the device gives: byte for byte what the CPU gives for the same rows."""
    rows = checked_rows(logits)
    found = score_labels(rule, rows, class_indices(labels, rows.shape[1], names, labels_are), masked)
    return _conformax.Calibration.from_scores(
        rule,
        found.cpu().numpy(),
        classes=rows.shape[1],
        alphas=alphas,
        names=None if names is None else [str(name) for name in names.tolist()],
        masked=masked,
        rows=row_fingerprints(rule, rows),
    )


def sets_of(model: Any, logits: Any, wanted: list[str]) -> list[CudaPredictionSets]:
    """The sets of a calibrated classifier at each level."""
    rule, calibration = model._calibration.score, model._calibration
    rows = checked_rows(logits, calibration.classes)
    found = []
    for level in wanted:
        threshold = calibration.thresholds(level)[0]
        offsets, packed = find_sets(rule, rows, threshold, model.masked, model.empty)
        found.append(
            CudaPredictionSets(
                offsets,
                packed,
                logits=rows,
                rule=rule,
                threshold=threshold,
                alpha=float(level),
                classes=model._names,
                labels_are=model.labels_are,
            )
        )
    return found


def extend(
    evaluator: _conformax.Evaluator, model: Any, rows: Any, labels: np.ndarray, wanted: list[str], groups: np.ndarray | None
) -> None:
    """Counts how the sets of a calibrated classifier fare: they go to the host, and the logits do not."""
    if len(labels) != len(rows):
        raise ValueError(f"there are {len(rows)} rows of logits but {len(labels)} labels")
    packed = [
        (sets.offsets.cpu().numpy(), sets.indices.cpu().numpy().astype(np.uint32)) for sets in sets_of(model, rows, wanted)
    ]
    evaluator.extend_with_sets(packed, labels, row_fingerprints(model._calibration.score, rows), groups=groups)


def probabilities_of(model: Any, logits: Any, wanted: list[str]) -> list[Any]:
    """Rows × classes probabilities of a calibrated classifier at each level."""
    return [
        dense(sets.offsets, sets.indices, sets.probabilities, (len(sets), sets.n_classes))
        for sets in sets_of(model, logits, wanted)
    ]


def top_labels(logits: Any) -> Any:
    """The label with the largest logit in each row, the first of equals."""
    import torch

    # At a threshold of 0 a set is the top label and its ties, the first of them first.
    offsets, packed = find_sets(_conformax.Score("log_margin"), logits, 0.0)
    return packed[offsets[:-1]].to(torch.int64)
