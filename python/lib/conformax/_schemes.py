"""What thresholds go by: classes, groups, clusters, weights or a loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _blocks, _conformax
from ._inputs import Logits, as_labels, doubted, in_order, names_of_columns, refuse_masked
from ._levels import level
from ._parameters import as_number, as_numbers


class Scheme:
    """What a classifier was asked for, checked as far as it can be without rows."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self.by, self.clusters = parameters["by"], parameters["clusters"]
        self.truncate_ranks, pac = parameters["truncate_ranks"], parameters["pac"]
        self.pac = None if pac is None else level(pac, "pac")
        self.label_weights, self.severity = parameters["label_weights"], parameters["severity"]
        self.cost, self.prior = parameters["cost"], parameters["prior"]
        asked = {
            "by": self.by is not None,
            "clusters": self.clusters is not None,
            "truncate_ranks": bool(self.truncate_ranks) and self.by != "class",
            "label_weights": self.label_weights is not None,
            "severity": self.severity is not None,
            "cost": self.cost is not None,
        }
        given = [name for name, is_given in asked.items() if is_given]
        if len(given) > 1:
            raise ValueError(f"give one of {' and '.join(given)}, not both")
        if self.pac is not None and given and given[0] in ("label_weights", "severity", "cost"):
            raise ValueError(f"pac cannot be had with {given[0]}")
        wrong = not isinstance(self.clusters, (int, np.integer)) or self.clusters < 1
        if self.clusters is not None and self.clusters is not True and wrong:
            raise ValueError(f"clusters must be True or a number of clusters of at least 1, got {self.clusters!r}")
        if not isinstance(self.truncate_ranks, (bool, np.bool_)):
            raise TypeError(f"truncate_ranks must be True or False, got {self.truncate_ranks!r}")
        if isinstance(self.by, str) and self.by not in ("class", "group"):
            raise ValueError(f'by must be "class", "group" or the cluster of each class, got {self.by!r}')

    @property
    def is_plain(self) -> bool:
        """One threshold for all rows, on logits as they come."""
        return self.kind(None) == "all" and self.pac is None and self.prior is None and not self.truncate_ranks

    @property
    def chooses(self) -> bool:
        """Whether some of the rows find clusters or choose ranks."""
        return self.clusters is not None or bool(self.truncate_ranks)

    def kind(self, weights: Any) -> str:
        """What thresholds go by."""
        if weights is not None:
            if self.kind(None) != "all" or self.pac is not None:
                raise ValueError("weights of rows cannot be had with another way to thresholds")
            return "row_weight"
        if self.by is not None:
            return self.by if isinstance(self.by, str) else "cluster"
        if self.clusters is not None:
            return "cluster"
        if self.truncate_ranks:
            return "class"
        for name, value in (("label_weight", self.label_weights), ("severity", self.severity), ("cost", self.cost)):
            if value is not None:
                return name
        return "all"

    def prior_of(self, names: np.ndarray | None, n_classes: int) -> np.ndarray | None:
        """The shares of the classes, in their order."""
        if self.prior is None:
            return None
        shares = per_class(self.prior, "prior", names, n_classes)
        for place in np.flatnonzero(~(np.isfinite(shares) & (shares > 0)))[:1]:
            raise ValueError(f"the prior of class {place} must be a positive number, got {shares[place]}")
        return shares


def calibrate(
    scheme: Scheme,
    score: _conformax.Score,
    rows: Logits,
    labels: np.ndarray,
    *,
    names: np.ndarray | None,
    alphas: list[str],
    u: np.ndarray | None,
    groups: Any,
    weights: Any,
    masked: str,
    input: str,
    n_threads: int | None,
) -> _conformax.Calibration:
    """The calibration of these rows, of which some may choose clusters or ranks and the others calibrate."""
    n_classes, kind = rows.shape[1], scheme.kind(weights)
    # A pandas column says where groups or weights come from, so that the command finds them.
    column = getattr(groups if groups is not None else weights, "name", None)
    if (kind == "group") != (groups is not None):
        raise ValueError(
            'by="group" needs the groups of the rows' if kind == "group" else 'groups of rows need by="group"'
        )
    group_names, numbers = learned(groups, rows.shape[0])
    weights = as_weights(weights, rows.shape[0])
    # A file knows the classes of a data frame by its columns, as the command does.
    kept = names_of_columns(rows.columns) if names is None else [str(name) for name in names.tolist()]
    options = options_of(scheme, kind, names, n_classes, groups=len(group_names), kept=kept)
    calibrator = _conformax.Calibrator(score, n_classes, masked=masked, rule=_conformax.Rule(**options))
    _blocks.extend(calibrator, rows, labels, u, groups=numbers, weights=weights, n_threads=n_threads)
    prior = scheme.prior_of(names, n_classes)
    return calibrator.finish(
        alphas,
        names=kept,
        input=input,
        delta=scheme.pac,
        column=None if column is None else str(column),
        groups=group_names,
        estimated=bool(getattr(scheme.label_weights, "estimated", False)),
        prior=None if prior is None else prior.tolist(),
    )


def options_of(
    scheme: Scheme,
    kind: str,
    names: np.ndarray | None,
    n_classes: int,
    *,
    groups: int = 0,
    kept: list[str] | None = None,
) -> dict[str, Any]:
    """What the core is told of a scheme, as far as it needs nothing of the rows but how many groups they are of.

    `kept` are the names that the file will have, which may be those of columns.
    """
    options: dict[str, Any] = {"by": kind, "groups": groups}
    if kind == "label_weight":
        weights, of = scheme.label_weights, getattr(scheme.label_weights, "classes", None)
        if of is not None and kept is not None:
            weights, names = dict(zip(map(str, of), weights)), np.asarray(kept)
        options["label_weights"] = per_class(weights, "label_weights", names, n_classes).tolist()
    elif kind == "severity":
        options["severity"] = per_class(scheme.severity, "severity", names, n_classes).tolist()
    elif kind == "cost":
        options["cost"] = _matrix(scheme.cost, names, n_classes).tolist()
    elif kind == "cluster" and scheme.by is not None:
        options["clusters"] = clusters_of(scheme.by, names, n_classes)
    elif kind == "cluster":
        options["by"], options["count"] = "found_cluster", None if scheme.clusters is True else int(scheme.clusters)
    elif scheme.truncate_ranks:
        options["by"] = "ranked_class"
    return options


def learned(groups: Any, n: int) -> tuple[list[str], np.ndarray | None]:
    """The names of groups, in order, and the number of each row's."""
    if groups is None:
        return [], None
    names = group_texts(groups, n)
    known = sorted(set(names))
    return known, numbers_of(names, known)


def numbers_of(names: Sequence[str], known: Sequence[str]) -> np.ndarray:
    """The numbers of groups by name."""
    place = {name: number for number, name in enumerate(known)}
    for row, name in enumerate(names):
        if name not in place:
            raise ValueError(f"the group of row {row} is {name!r}, which is none of those that calibrated")
    return np.asarray([place[name] for name in names], dtype=np.uint32)


def group_texts(groups: Any, n: int) -> list[str]:
    """Groups as text, whole numbers alike in every type."""
    refuse_masked(groups, "groups")
    if isinstance(groups, np.ndarray) and groups.dtype.kind == "M":
        # In nanoseconds they would come as numbers.
        groups = groups.astype("datetime64[us]")
    # A list goes by its own values: NumPy would make texts of whatever stands beside a text.
    values = groups.tolist() if hasattr(groups, "tolist") else list(groups)
    if np.ndim(groups) != 1 and not isinstance(groups, (list, tuple)) or len(values) != n:
        raise ValueError(f"there are {n} rows of logits but groups of shape {np.shape(groups)}")
    return [group_text(value, row) for row, value in enumerate(values)]


def group_text(value: Any, row: int | None = None) -> str:
    """What a group is known by, as a table of any format says it."""
    if value is None or type(value).__name__ == "NAType" or value != value or value == "":
        who = "a row" if row is None else f"row {row}"
        raise ValueError(f"{who} has no group: leave it out, or name its group")
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def as_weights(weights: Any, n: int) -> np.ndarray | None:
    """The weight of each row."""
    if weights is None:
        return None
    values = as_numbers(weights, "weights", "row {}".format)
    if values.shape != (n,):
        raise ValueError(f"there are {n} rows of logits but weights of shape {values.shape}")
    return values


def per_class(values: Any, what: str, names: np.ndarray | None, n_classes: int) -> np.ndarray:
    """A number for each class, from a list in their order, or a dictionary or a pandas series by name."""
    refuse_masked(values, what)
    values = _by_name(values, what, names)
    known = list(range(n_classes)) if names is None else names.tolist()
    if isinstance(values, Mapping):
        for name in values:
            if name not in known:
                raise ValueError(f"{what}: {name!r} is none of the {n_classes} classes")
        for name in known:
            if name not in values:
                raise ValueError(f"{what}: the class {name!r} is left out")
        values = [values[name] for name in known]
    numbers = as_numbers(values, what, lambda place: _class_at(place, known))
    if numbers.shape != (n_classes,):
        raise ValueError(f"{what}: wanted {n_classes} numbers, one per class, got shape {numbers.shape}")
    return numbers


def clusters_of(by: Any, names: np.ndarray | None, n_classes: int) -> list[int]:
    """The cluster of each class; whatever they are called, they are numbered in the order of the classes."""
    by = _by_name(by, "by", names)
    if isinstance(by, Mapping):
        known = list(range(n_classes)) if names is None else names.tolist()
        missing = [name for name in known if name not in by]
        if missing:
            raise ValueError(f"by: the class {missing[0]!r} is left out")
        by = [by[name] for name in known]
    refuse_masked(by, "by")
    called = by.tolist() if hasattr(by, "tolist") else list(by)
    if len(called) != n_classes:
        raise ValueError(f"by: wanted the cluster of each of {n_classes} classes, got {by!r}")
    for place, name in enumerate(called):
        if name is None or name != name:
            raise ValueError(f"by: the class {place if names is None else names[place]!r} has no cluster")
    order: dict[Any, int] = {}
    return [order.setdefault(name, len(order)) for name in called]


def _by_name(values: Any, what: str, names: np.ndarray | None) -> Any:
    """A pandas series as a dictionary where its index has the names of the classes, and by place where it counts them."""
    index = getattr(values, "index", None)
    if index is None or callable(index):
        return values
    entries = index.tolist()
    if entries == list(range(len(entries))):
        return values.to_numpy()
    if names is None or _sorted(entries) != _sorted(names):
        raise ValueError(f"{what}: the index of the series must be the names of the classes, or count them")
    return dict(zip(entries, values.tolist()))


def _matrix(values: Any, names: np.ndarray | None, n_classes: int) -> np.ndarray:
    """A number for each pair of classes, from rows in their order or a pandas frame by name."""
    columns = getattr(values, "columns", None)
    if columns is not None and columns.tolist() != list(range(n_classes)):
        if names is None or _sorted(columns) != _sorted(names) or _sorted(values.index) != _sorted(names):
            raise ValueError("cost: index and columns of the frame must be the names of the classes, or count them")
        values = values.loc[names.tolist(), names.tolist()]
    if columns is not None:
        values = values.to_numpy()
    refuse_masked(values, "cost")
    wanted = f"cost: wanted {n_classes} rows of {n_classes} numbers"
    if not np.iterable(values) or isinstance(values, (str, bytes)):
        raise ValueError(f"{wanted}, got {values!r}")
    rows = list(values)
    if len(rows) != n_classes:
        raise ValueError(f"{wanted}, got {len(rows)} rows")
    known = list(range(n_classes)) if names is None else names.tolist()
    costs = np.empty((n_classes, n_classes))
    # Row by row, so that one that is too short or holds a text is named.
    for place, row in enumerate(rows):
        numbers = as_numbers(row, f"cost: row {place}", lambda at: _class_at(at, known))
        if numbers.shape != (n_classes,):
            raise ValueError(f"{wanted}, got shape {numbers.shape} in row {place}")
        costs[place] = numbers
    return costs


def _class_at(place: int, known: Sequence[Any]) -> str:
    """What the class at a place is called, in a message."""
    return f"class {known[place]!r}" if place < len(known) else f"place {place}"


def _sorted(names: Any) -> list[str]:
    return sorted(map(str, names))


_GIVE_LOGARITHMS = "give their logarithms if that is what they are"


class LabelWeights(np.ndarray):
    """Weights of labels that know that they were estimated, and of which classes they are."""

    estimated = True
    classes: list[Any] | None = None


def label_weights(
    logits: Any, labels: Any, target_logits: Any, method: str = "em", *, class_names: Any = None
) -> np.ndarray:
    """How much likelier each label is among unlabelled target rows than among the labelled ones.

    What a label looks like must not have changed, only how often it comes. Labels are class indices, or names where
    `class_names` has them in the order of the logits (the names of columns are taken where there are some). `method` is "em" (expectation and
    maximisation on softmax) or "bbse" (by the confusion matrix of the top labels). Give the weights to
    `SplitConformalClassifier(label_weights=…)`; as they are estimated, what is promised then holds approximately.

    >>> import conformax
    >>> conformax.label_weights([[9, 0], [0, 9]], [0, 1], [[9, 0], [9, 0], [9, 0], [0, 9]], method="bbse").tolist()
    [1.5, 0.5]
    """
    rows = doubted(Logits.of(logits, class_names), "logits", _GIVE_LOGARITHMS)
    target = in_order(Logits.of(target_logits, class_names), rows.columns, None)
    source = np.ascontiguousarray(rows.array(), dtype=np.float64)
    goal = np.ascontiguousarray(target.array(), dtype=np.float64)
    names = rows.columns if class_names is None else class_names
    names = None if names is None else np.asarray(names)
    found = _conformax.label_weights(source, as_labels(labels, rows.shape[1], names), goal, method)
    weights = np.asarray(found).view(LabelWeights)
    weights.classes = None if names is None else names.tolist()
    return weights


def pac_rank(n: int, alpha: Any, delta: float) -> int | None:
    """The smallest rank at which coverage is at least `1 − alpha` with probability `1 − delta` over the calibration rows.

    None where no rank of `n` rows will do.

    >>> import conformax
    >>> conformax.pac_rank(99, 0.1, 0.05), conformax.conformal_rank(99, 0.1)
    (95, 90)
    """
    if n < 0:
        raise ValueError(f"n must be at least 0, got {n}")
    return _conformax.pac_rank(n, level(alpha), as_number(delta, "delta"))
