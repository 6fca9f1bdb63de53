"""Calibration, tuning, prediction and evaluation of Spark data frames: PySpark 4, in plain `mapInArrow`.

Each partition feeds its Arrow batches to an accumulator of the compiled core and sends back its bytes; these are merged
to the very bits of one machine that saw all rows. Nothing but `conformax` and `pyarrow` is needed on the executors.

    import conformax.spark as cs

    model = cs.calibrate(calibration, logits="logits", label="label", score="entmax", alpha=0.1)
    sets = cs.predict(model, new, logits="logits", keep=["id"])       # id, labels, size
    print(cs.evaluate(model, test, logits="logits", label="label"))
    model.save("model.json")

Logits are a column of arrays or of ML vectors, or a list of columns, one per class. A row that cannot be read is an
error that names its partition and its `key` columns. Rows that look like probabilities and are taken for logits are
warned of, by `predict` in the logs of the executors, as nothing is computed before its result is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from .. import _conformax
from .._classifier import SplitConformalClassifier, _judge_seen, _texts
from .._inputs import GIVE_LOGITS, warn_of_probabilities
from .._metrics import Evaluation, without_law
from .._rules import parameters_of
from . import _executor
from ._columns import Rows, kept_columns, set_fields, which
from ._driver import BadRowError, constant, growing, in_scores, keeping_scores

#: What to do about probabilities, which data frames of rows that calibrate or tune may not hold.
_GIVE_LOGARITHMS = "give their logarithms if that is what they are"

__all__ = ["BadRowError", "calibrate", "evaluate", "predict", "tune"]


def calibrate(
    df: Any,
    *,
    logits: Any,
    label: str,
    classes: Sequence[Any] | None = None,
    key: Any = (),
    by: Any = None,
    weights: str | None = None,
    thresholds_only: bool = False,
    **parameters: Any,
) -> SplitConformalClassifier:
    """The calibrated classifier: byte for byte the one that `SplitConformalClassifier` makes of the same rows.

    Parameters
    ----------
    df : DataFrame
        The calibration rows, in any partitions.
    logits : str or list of str
        A column of arrays or ML vectors, or a column per class.
    label : str
        The column of true labels, read as `SplitConformalClassifier` reads them: an integer (1 and 1.0 alike) is an
        index, unless classes have integers for names, when `labels_are` says which it is; other labels are names. Text
        labels are looked up among the names of the columns where there is a column per class.
    classes : list, optional
        Names of the classes in the order of the logits.
    key : str or list of str
        Columns by which a row that cannot be read is named.
    by : str, list or dict, optional
        A threshold for each: `"class"`, the name of a column of groups, or the cluster of each class.
    weights : str, optional
        The column of weights: how much likelier each row is among those to come.
    thresholds_only : bool, default False
        Find the thresholds without bringing the scores together: they stay on the executors' disks, eight bytes a row
        and at most twelve more, until the thresholds are found, and executors and driver take a few megabytes of memory
        whatever the number of rows, where otherwise the driver takes eight bytes a row. The model then knows its own
        levels alone and no p-values.
    **parameters
        Those of `SplitConformalClassifier`: `score`, `alpha`, `gamma`, `masked`, `labels_are`, `label_weights`,
        `severity`, `cost`, `pac`, `clusters`, `truncate_ranks` and so on. Priors are not there for data frames.
    """
    column = by if isinstance(by, str) and by != "class" else None
    cp, levels = _classifier({**parameters, "by": "group" if column is not None else by})
    scheme, rule = cp._scheme(), parameters_of(cp._rule())
    kind = scheme.kind(weights)
    beside = {"groups": column, "weights": weights, "labels_are": cp.labels_are}
    rows = Rows.of(df, logits, label, classes=classes, key=key, **beside)
    work = partial(rows.work, n_threads=cp.n_threads)
    if thresholds_only and not (scheme.is_plain and weights is None):
        raise ValueError(
            "thresholds_only finds one threshold for all rows, averaged over calibrations: leave out by, weights and pac"
        )
    if not thresholds_only:
        groups = [] if column is None else rows.group_names()
        named = None if rows.names is None else rows.names.tolist()
        make = _executor.Calibration(rule, cp.masked, scheme, kind, named, len(groups))
        kept = 20 if scheme.chooses else 8 if kind in ("all", "class", "group") else 16
        found = growing(rows, work(make, groups=groups), bytes_per_row=kept)
        if found.doubtful:
            warn_of_probabilities(_GIVE_LOGARITHMS, stacklevel=3)
        calibrator = _conformax.Calibrator.from_bytes(found.to_bytes())
        names = rows.names_of(found.classes)
        calibration = calibrator.finish(
            levels,
            names=_texts(names),
            delta=scheme.pac,
            column=column or weights,
            groups=groups,
            estimated=bool(getattr(scheme.label_weights, "estimated", False)),
        )
        return cp._calibrated(calibration, names, rows.columns)
    make = _executor.Calibration(rule, cp.masked, scheme, kind, None)
    with keeping_scores(rows, work(make)) as kept:
        found = in_scores(kept, partial(_executor.search, rule, levels, cp.masked))
        while (following := found.partial.next_pass()) is not None:
            found = in_scores(kept, partial(_executor.given, following.to_bytes()))
    if found.doubtful:
        warn_of_probabilities(_GIVE_LOGARITHMS, stacklevel=3)
    names = rows.names_of(found.classes)
    calibration = found.partial.thresholds(found.classes, names=_texts(names), masked=cp.masked)
    return cp._calibrated(calibration, names, rows.columns)


def tune(
    df: Any,
    *,
    logits: Any,
    label: str,
    tuning: Any = None,
    rows: str = "split",
    over: Any = "gamma",
    grid: Any = None,
    classes: Sequence[Any] | None = None,
    key: Any = (),
    **parameters: Any,
) -> SplitConformalClassifier:
    """Chooses a parameter on the rows where `tuning` holds and calibrates on the others.

    `tuning` is a boolean column, by its name or as an expression: rows of a data frame have no numbers by which they
    could be drawn, and a row must fall on the same side in every pass, so take one that depends on the row alone, such
    as `F.pmod(F.xxhash64("id"), F.lit(10)) < 4`. With `rows="all"` all rows do both, and there is no `tuning`. `over`
    and `grid` are those of `SplitConformalClassifier.tune`; the rest is as in `calibrate`.
    """
    if rows not in ("split", "all"):
        raise ValueError(f'rows is "split" or "all", got {rows!r}')
    if (tuning is None) != (rows == "all"):
        raise ValueError('give `tuning`, which says the rows that choose, or rows="all", and not both')
    cp, _ = _classifier(parameters)
    [level] = cp._single_level("tuning")
    if not cp._scheme().is_plain:
        raise ValueError("tuning chooses a score for one threshold: calibrate the choice with the other parameters")
    whole = Rows.of(df, logits, label, classes=classes, key=key, labels_are=cp.labels_are)
    work = partial(whole.work, n_threads=cp.n_threads)
    make = partial(_executor.tuner, cp.get_params(), over, grid, level)
    # Tried out before any job starts; of a grid for more classes than there are some candidates will be left out.
    make(whole.classes or 1 << 16)
    choosing, calibrating = (whole, None) if rows == "all" else which(whole, tuning)
    scored = growing(choosing, work(make), bytes_per_row=128)
    if scored.doubtful:
        warn_of_probabilities(_GIVE_LOGARITHMS, stacklevel=3)
    n = scored.partial.n

    def again(following: _conformax.Partial, of_rows: Any) -> Any:
        counted = of_rows(choosing, work(partial(_executor.given, following.to_bytes())))
        if counted.partial.n != n:
            raise ValueError(
                f"{n} rows tuned in one pass and {counted.partial.n} in the next: `tuning` must depend on the row alone, "
                "and the data frame give the same rows every time"
            )
        return counted

    if rows == "all":
        counted = again(scored.partial.pairs_pass(), partial(growing, bytes_per_row=64))
        names = whole.names_of(counted.classes)
        return cp._calibrated(counted.partial.selected(names=_texts(names)), names, whole.columns)
    counted = again(scored.partial.next_pass(), constant)
    names = whole.names_of(counted.classes)
    make = _executor.Calibration(parameters_of(counted.partial.chosen()), cp.masked, cp._scheme(), "all", None)
    found = growing(calibrating, work(make), bytes_per_row=8)
    calibration = counted.partial.tuned(found.partial, level, names=_texts(names))
    return cp._calibrated(calibration, names, whole.columns)


def predict(
    model: SplitConformalClassifier,
    df: Any,
    *,
    logits: Any,
    keep: Sequence[str] | None = None,
    alpha: Any = None,
    probabilities: bool = False,
    groups: str | None = None,
    weights: str | None = None,
    key: Any = (),
) -> Any:
    """A data frame with the set of every row: `labels` best first (names, where the classes have names), and `size`.

    `keep` are columns of `df` that come along, all but the logits if None. With several levels there is a record for
    each row and level, and a column `alpha`. With `probabilities` there is that column too, one for each label. Where
    thresholds go by groups or weights, they are in the column that the model names, or in `groups` or `weights`. Nothing
    is computed before the result is used.
    """
    groups, weights = _beside(model, groups, weights)
    rows = Rows.of(df, logits, None, key=key, groups=groups, weights=weights, model=model)
    kept = kept_columns(df, logits, keep)
    wanted, several = model._levels(alpha)
    for level in wanted:
        model._warn_if_few(level)
    fields = set_fields(model, several=several, probabilities=probabilities)
    clash = {field.name for field in fields} & set(kept)
    if clash:
        raise ValueError(
            f"column {min(clash)!r} has the name of one of the results: rename it, or leave it out of `keep`"
        )
    light = model.clone().set_params(alpha=wanted, confidence_level=None, n_threads=model.n_threads or 1)
    light._calibration = model._calibration.for_prediction(wanted)
    light._names, light._columns = model._names, None
    work = _executor.Prediction(light, kept, several, probabilities, tuple(rows.key))
    return rows.with_columns(kept).mapInArrow(work, _schema(df, kept, fields))


def evaluate(
    model: SplitConformalClassifier,
    df: Any,
    *,
    logits: Any,
    label: str,
    alpha: Any = None,
    strata: Any = None,
    allow_seen: bool = False,
    groups: str | None = None,
    weights: str | None = None,
    key: Any = (),
) -> Any:
    """What `model.evaluate` says of the same rows; a list of `Evaluation` where there is a list of levels."""
    groups, weights = _beside(model, groups, weights)
    rows = Rows.of(df, logits, label, key=key, groups=groups, weights=weights, model=model)
    wanted, several = model._levels(alpha)
    for level in wanted:
        model._warn_if_few(level)
    apart = model._calibration.by if model._calibration.by in ("class", "cluster", "group") else None
    known = model._calibration.group_names
    evaluator = _conformax.Evaluator(
        model._calibration, wanted, masked=model.masked, empty=model.empty, by=apart, groups=known
    )
    make = partial(_executor.given, evaluator.to_bytes())
    work = rows.work(make, n_threads=model.n_threads, groups=known)
    found = constant(rows, replace(work, input=model._calibration.input, prior=model._calibration.prior))
    if found.doubtful:
        warn_of_probabilities(GIVE_LOGITS, stacklevel=3)
    evaluator.merge_bytes(found.to_bytes())
    metrics, (n, seen, first, same_data) = evaluator.finish(None if strata is None else list(strata))
    # Rows have no numbers here, so that the first cannot be told.
    if not _judge_seen(n, seen, first, same_data, allow_seen, first_is=""):
        metrics = [without_law(of_level) for of_level in metrics]
    promise = model._calibration.promise_and_limits
    found = [Evaluation(**of_level, promise=promise) for of_level in metrics]
    return found if several else found[0]


def _beside(
    model: SplitConformalClassifier, groups: str | None, weights: str | None
) -> tuple[str | None, str | None]:
    """The columns of groups and weights, where thresholds go by them: as given, or as the model names them."""
    by, own = model._calibration.by, model._calibration.column
    for wanted, name, given in (("group", "groups", groups), ("row_weight", "weights", weights)):
        if by != wanted and given is not None:
            raise ValueError(f"thresholds do not go by {name}: leave out {name}")
        if by == wanted and given is None and own is None:
            raise ValueError(f"thresholds go by {name}: give the column as {name}")
    return (groups or own if by == "group" else None), (weights or own if by == "row_weight" else None)


def _classifier(parameters: dict[str, Any]) -> tuple[SplitConformalClassifier, list[str]]:
    """The classifier of these parameters and its levels, all of which are tried out before any job starts."""
    cp = SplitConformalClassifier(**parameters)
    levels = cp._levels(None)[0]
    for level in levels:
        _conformax.rows_needed(level)
    _conformax.Calibrator(cp._rule(), 2, masked=cp.masked)
    scheme = cp._scheme()
    if scheme.prior is not None or cp.input != "logits":
        raise ValueError(
            "data frames are calibrated on logits as they are: priors and probabilities are not there for them"
        )
    return cp, levels


def _schema(df: Any, kept: list[str], fields: list[Any]) -> Any:
    from pyspark.sql.types import StructType

    return StructType([*(df.schema[name] for name in kept), *fields])
