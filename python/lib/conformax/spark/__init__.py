"""Calibration, tuning, prediction and evaluation of Spark data frames: PySpark 4, in plain `mapInArrow`.

Each partition feeds its Arrow batches to an accumulator of the compiled core and sends back its bytes; these are merged
to the very bits of one machine that saw all rows. Nothing but `conformax` and `pyarrow` is needed on the executors.

    import conformax.spark as cs

    model = cs.calibrate(calibration, logits="logits", label="label", score="entmax", alpha=0.1)
    sets = cs.predict(model, new, logits="logits", keep=["id"])       # id, labels, size
    print(cs.evaluate(model, test, logits="logits", label="label"))
    model.save("model.json")

Logits are a column of arrays or of ML vectors, or a list of columns, one per class. A row that cannot be read is an
error that names its partition and its `key` columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from .. import _conformax
from .._classifier import SplitConformalClassifier, _judge_seen, _texts
from .._levels import level as level_of
from .._metrics import Evaluation
from .._rules import parameters_of
from . import _executor
from ._columns import Rows, kept_columns, set_fields, which
from ._driver import BadRowError, constant, growing

__all__ = ["BadRowError", "calibrate", "evaluate", "predict", "tune"]


def calibrate(
    df: Any,
    *,
    logits: Any,
    label: str,
    classes: Sequence[Any] | None = None,
    key: Any = (),
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
        The column of true labels: class indices, or names where `classes` are given. Text labels are looked up among
        the names of the columns where there is a column per class.
    classes : list, optional
        Names of the classes in the order of the logits.
    key : str or list of str
        Columns by which a row that cannot be read is named.
    thresholds_only : bool, default False
        Find the thresholds without keeping the scores, as a rule in two passes over the rows: executors and driver take
        a few megabytes whatever the number of rows, where otherwise the driver takes eight bytes a row. The model then
        knows its own levels alone and no p-values.
    **parameters
        Those of `SplitConformalClassifier`: `score`, `alpha`, `gamma`, `masked`, `by="class"`, `pac` and so on. Groups,
        clusters, weights, losses and priors are not there for data frames.
    """
    cp, levels = _classifier(parameters)
    rule = parameters_of(cp._rule())
    rows = Rows.of(df, logits, label, classes=classes, key=key)
    work = partial(rows.work, n_threads=cp.n_threads)
    if thresholds_only and not cp._scheme().is_plain:
        raise ValueError("thresholds_only finds one threshold for all rows, averaged over calibrations: leave out by and pac")
    if not thresholds_only:
        by = cp._scheme().kind(None)
        found = growing(rows, work(partial(_executor.calibrator, rule, cp.masked, by)), bytes_per_row=8)
        calibrator = _conformax.Calibrator.from_bytes(found.to_bytes())
        names = rows.names_of(found.classes)
        delta = None if cp.pac is None else level_of(cp.pac)
        return cp._calibrated(calibrator.finish(levels, names=_texts(names), delta=delta), names, rows.columns)
    found = constant(rows, work(partial(_executor.search, rule, levels, cp.masked)))
    while (following := found.partial.next_pass()) is not None:
        found = constant(rows, work(partial(_executor.given, following.to_bytes())))
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
    whole = Rows.of(df, logits, label, classes=classes, key=key)
    work = partial(whole.work, n_threads=cp.n_threads)
    make = partial(_executor.tuner, cp.get_params(), over, grid, level)
    choosing, calibrating = (whole, None) if rows == "all" else which(whole, tuning)
    scored = growing(choosing, work(make), bytes_per_row=128)
    following = scored.partial.pairs_pass() if rows == "all" else scored.partial.next_pass()
    counted = constant(choosing, work(partial(_executor.given, following.to_bytes())))
    if counted.partial.n != scored.partial.n:
        raise ValueError(
            f"{scored.partial.n} rows tuned in one pass and {counted.partial.n} in the next: "
            "`tuning` must depend on the row alone"
        )
    names = whole.names_of(counted.classes)
    if rows == "all":
        return cp._calibrated(counted.partial.selected(names=_texts(names)), names, whole.columns)
    rule = parameters_of(counted.partial.chosen())
    found = growing(calibrating, work(partial(_executor.calibrator, rule, cp.masked, "all")), bytes_per_row=8)
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
    key: Any = (),
) -> Any:
    """A data frame with the set of every row: `labels` best first (names, where the classes have names), and `size`.

    `keep` are columns of `df` that come along, all but the logits if None. With several levels there is a record for
    each row and level, and a column `alpha`. With `probabilities` there is that column too, one for each label. Nothing
    is computed before the result is used.
    """
    rows = Rows.of(df, logits, None, key=key, model=model)
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
    key: Any = (),
) -> Any:
    """What `model.evaluate` says of the same rows; a list of `Evaluation` where there is a list of levels."""
    rows = Rows.of(df, logits, label, key=key, model=model)
    wanted, several = model._levels(alpha)
    for level in wanted:
        model._warn_if_few(level)
    apart = "class" if model._calibration.by == "class" else None
    evaluator = _conformax.Evaluator(model._calibration, wanted, masked=model.masked, empty=model.empty, by=apart)
    make = partial(_executor.given, evaluator.to_bytes())
    evaluator.merge_bytes(constant(rows, rows.work(make, n_threads=model.n_threads)).to_bytes())
    metrics, (n, seen, first, same_data) = evaluator.finish(None if strata is None else list(strata))
    # Rows have no numbers here, so that the first cannot be told.
    if not _judge_seen(n, seen, first, same_data, allow_seen, first_is=""):
        metrics = [{**of_level, "coverage_interval": None, "verdict": None} for of_level in metrics]
    found = [Evaluation(**of_level) for of_level in metrics]
    return found if several else found[0]


def _classifier(parameters: dict[str, Any]) -> tuple[SplitConformalClassifier, list[str]]:
    """The classifier of these parameters and its levels, all of which are tried out before any job starts."""
    cp = SplitConformalClassifier(**parameters)
    levels = cp._levels(None)[0]
    for level in levels:
        _conformax.rows_needed(level)
    _conformax.Calibrator(cp._rule(), 2, masked=cp.masked)
    scheme = cp._scheme()
    there = scheme.kind(None) in ("all", "class") and scheme.prior is None and not scheme.truncate_ranks
    if not there or cp.input != "logits":
        raise ValueError(
            "data frames are calibrated on logits, with one threshold or one per class: groups, clusters, weights, losses "
            "and priors are not there for them"
        )
    return cp, levels


def _schema(df: Any, kept: list[str], fields: list[Any]) -> Any:
    from pyspark.sql.types import StructType

    return StructType([*(df.schema[name] for name in kept), *fields])
