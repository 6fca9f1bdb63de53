"""`SplitConformalClassifier`: logits and labels in, prediction sets with a guarantee out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from . import _blocks, _conformax, _cuda, _schemes
from ._exceptions import ConformaxWarning, not_calibrated
from ._inputs import (
    GIVE_INPUT,
    GIVE_LOGITS,
    Logits,
    as_draws,
    as_labels,
    as_logits,
    doubted,
    from_device,
    in_order,
    names_of_columns,
)
from ._levels import levels
from ._metrics import Evaluation, without_law
from ._parameters import as_seed, as_threads
from ._rules import canonical, compiled_score, parameters_of
from ._sets import PredictionSets
from ._tuning import grid_over, particulars


class SplitConformalClassifier:
    """Prediction sets from logits, by split conformal calibration.

    Whatever the model and the data, if calibration and test rows are exchangeable the true label is in the set with
    probability at least `1 − alpha`.

    Parameters
    ----------
    score : str or score object, default "entmax"
        "entmax", "log_margin", "sparsemax", "inv_prob" (also "lac"), "aps", "raps", "saps", "top_k", "margin", or an
        object such as `EntmaxScore(gamma=1.5)`.
    gamma : float, optional
        Index of the entmax family, between 1 and 16; 1.5 if None.
    alpha : float, decimal string, or a list of them, optional
        Miscoverage level, an exact decimal; 0.1 if None. A list gives results for each level, in a list.
    confidence_level : the same, optional
        `1 − alpha`, instead of `alpha`.
    lambda_ : float, optional
        Penalty of RAPS (0.01 if None) or weight of SAPS (0.1 if None).
    k_reg : int, optional
        Ranks that RAPS leaves unpunished; 5 if None.
    randomized : bool, default True
        Whether APS, RAPS and SAPS draw; without, they are conservative. A score object says so itself.
    random_state : int, default 0
        Seed of the draws, and of the division of the rows in `tune`. A row's draw depends on the seed and the row alone.
    n_threads : int, optional
        Threads, up to 1,024; one per core if None. Results do not depend on it.
    masked : {"allowed", "never"}, default "allowed"
        Whether a label of logit −∞ may enter a set when the threshold is infinite.
    empty : {"allowed", "top_label"}, default "allowed"
        What becomes of an empty set.
    input : {"logits", "probabilities", "log_probabilities"}, default "logits"
        What the numbers are, here called logits throughout; probabilities become logarithms, zeros minus infinity. The
        file says which they were, and other numbers are refused at prediction.
    labels_are : {"indices", "names"}, optional
        What integers among the labels are, where classes have integers for names; an error asks for it then.
    by : "class", "group" or the cluster of each class, optional
        A threshold for each, so that coverage holds within each. Groups come with the rows: `groups` of `calibrate` and
        `predict_set`. Clusters are a list in the order of the classes, or a dictionary by name.
    clusters : int or True, optional
        A threshold for each of so many clusters of classes (True: as many as the rows tell apart), found on rows that
        then do not calibrate.
    truncate_ranks : bool, default False
        Leave out labels that stand further down the ranking than their class allows; thresholds are by class. Some rows
        choose how far and do not calibrate.
    prior : array or dict, optional
        Shares of the classes where the model was trained; their logarithm is taken out of the logits.
    label_weights : array or dict, optional
        How much likelier each class is among the rows to come; `conformax.label_weights` estimates it.
    pac : float, optional
        Promise coverage with probability `1 − pac` over the calibration rows, rather than on average.
    severity : array or dict, optional
        What it costs to miss each class; `alpha` is then the bound on the mean.
    cost : matrix, optional
        A row per true class; a set costs the least of its labels, and `alpha` is the bound on the mean.
    **aliases
        Other libraries' names: `lam_reg` for `lambda_`, `kreg` for `k_reg`.

    Attributes
    ----------
    threshold_ : float, ndarray or None
        Largest score in a set; one per class, cluster or group where they differ, None where they go by the weight of a
        row; a list where `alpha` is one.
    promise_ : str
        What is promised, in a sentence.
    temperature_ : float or None
        Inverse temperature at which γ-entmax's support is the set; None for scores outside the family.
    n_calibration_ : int
        Rows that calibrated.
    scores_ : ndarray
        Their scores, ascending.
    classes_ : ndarray
        Class names, or indices where there are none.
    tuning_ : dict or None
        How every candidate fared, after `tune`.

    Examples
    --------
    >>> from conformax import SplitConformalClassifier
    >>> cal_logits, cal_labels = [[3, 1, 0], [0.5, 2, 1.5], [1, 0, 4], [2, 2.5, 0]], [0, 2, 2, 0]
    >>> cp = SplitConformalClassifier("entmax", gamma=1.5, alpha=0.2).calibrate(cal_logits, cal_labels)
    >>> cp.threshold_
    0.5
    >>> cp.predict_set([[2, 1.75, -1], [0, 5, 1]])
    PredictionSets(2 rows, 3 classes, alpha 0.2, average size 1.5)
      0: {0, 1}
      1: {1}
    >>> cp.predict_proba([[0, 5, 1]])
    array([[0., 1., 0.]])
    """

    _parameters = (
        "score", "gamma", "alpha", "confidence_level", "lambda_", "k_reg", "randomized", "random_state", "n_threads",
        "masked", "empty", "input", "labels_are", "by", "clusters", "truncate_ranks", "prior", "label_weights", "pac",
        "severity", "cost",
    )  # fmt: skip

    def __init__(
        self,
        score: Any = "entmax",
        *,
        gamma: float | None = None,
        alpha: Any = None,
        confidence_level: Any = None,
        lambda_: float | None = None,
        k_reg: int | None = None,
        randomized: bool = True,
        random_state: int = 0,
        n_threads: int | None = None,
        masked: str = "allowed",
        empty: str = "allowed",
        input: str = "logits",
        labels_are: str | None = None,
        by: Any = None,
        clusters: int | bool | None = None,
        truncate_ranks: bool = False,
        prior: Any = None,
        label_weights: Any = None,
        pac: Any = None,
        severity: Any = None,
        cost: Any = None,
        **aliases: Any,
    ) -> None:
        self.score = score
        self.gamma = gamma
        self.alpha = alpha
        self.confidence_level = confidence_level
        self.lambda_ = lambda_
        self.k_reg = k_reg
        self.randomized = randomized
        self.random_state = random_state
        self.n_threads = n_threads
        self.masked = masked
        self.empty = empty
        self.input = input
        self.labels_are = labels_are
        self.by = by
        self.clusters = clusters
        self.truncate_ranks = truncate_ranks
        self.prior = prior
        self.label_weights = label_weights
        self.pac = pac
        self.severity = severity
        self.cost = cost
        if "classes" in aliases:
            raise TypeError("classes come with the rows: give them to calibrate or tune, as classes=[…]")
        for name, value in canonical(aliases, lambda_=lambda_, k_reg=k_reg).items():
            setattr(self, name, value)

    def calibrate(
        self,
        logits: Any,
        labels: Any,
        *,
        classes: Sequence[Any] | None = None,
        u: Any = None,
        groups: Any = None,
        weights: Any = None,
    ) -> SplitConformalClassifier:
        """Scores held-out rows and takes the thresholds. Returns `self`.

        `classes` are names in the order of the columns, and labels may then be names too. `u` are uniform draws of the
        caller's own for randomised scores, one per row. `groups` are the groups of the rows, for `by="group"`; `weights`
        say how much likelier each row is among those to come. The columns of a data frame are known again by their
        names.
        """
        rule, scheme = self._rule(), self._scheme()
        logits, labels = self._given(from_device(logits), classes), from_device(labels)
        plain = scheme.is_plain and groups is None and weights is None
        if u is None and plain and _cuda.on_gpu(logits, rule):
            rows = _cuda.checked_rows(logits)
            doubted(_first_rows(rows), self.input, GIVE_INPUT)
            names = _class_names(classes, rows.shape[1])
            calibration = _cuda.calibration_of(
                rule,
                rows,
                labels,
                alphas=self._levels(None)[0],
                names=names,
                labels_are=self.labels_are,
                masked=self.masked,
            )
            return self._calibrated(calibration, names)
        rows = doubted(Logits.of(_on_host(logits), classes), self.input, GIVE_INPUT)
        names = _class_names(classes, rows.shape[1])
        indices = as_labels(_on_host(labels), rows.shape[1], names, self.labels_are)
        columns = rows.columns
        _expect_order(columns, names)
        calibration = _schemes.calibrate(
            scheme,
            rule,
            without_prior(rows, scheme.prior_of(names, rows.shape[1])),
            indices,
            names=names,
            alphas=self._levels(None)[0],
            u=as_draws(u),
            groups=groups,
            weights=weights,
            masked=self.masked,
            input=self.input,
            n_threads=self.n_threads,
        )
        return self._calibrated(calibration, names, columns)

    conformalize = calibrate

    def tune(
        self,
        logits: Any,
        labels: Any,
        over: Any = "gamma",
        *,
        grid: Any = None,
        rows: str = "split",
        tuning_size: float | None = None,
        classes: Sequence[Any] | None = None,
    ) -> SplitConformalClassifier:
        """Chooses a parameter on some of the rows and calibrates on the others, so that the guarantee stays exact.

        `over` is "gamma" for the entmax family, or ("lambda_", "k_reg"), "lambda_" or "k_reg" for RAPS; `grid` are
        the values to try (a dictionary of lists where there are two), the paper's by default. `tuning_size` is the share
        of the rows that choose, 0.4 if None. Returns `self`.

        With `rows="all"` every row chooses and calibrates, and candidates are chosen among anew for every label: sets are
        smaller and steadier, coverage is still at least `1 − alpha`, exactly, and it follows no law. There are then no
        p-values and no other levels.

        >>> import numpy as np
        >>> logits = np.random.default_rng(0).normal(size=(200, 4))
        >>> cp = SplitConformalClassifier(alpha=0.2).tune(logits, logits.argmax(axis=1) ^ 1)
        >>> cp.n_calibration_, len(cp.tuning_["candidates"])
        (120, 9)
        >>> cp = SplitConformalClassifier(alpha=0.2).tune(logits, logits.argmax(axis=1) ^ 1, rows="all")
        >>> cp.n_calibration_, sum(candidate["wins"] for candidate in cp.tuning_["candidates"])
        (200, 200)
        """
        if rows not in ("split", "all"):
            raise ValueError(f'rows is "split" or "all", got {rows!r}')
        if rows == "all" and tuning_size is not None:
            raise ValueError('tuning_size is of rows="split": with all rows none are set aside')
        [level] = self._single_level("tuning")
        if not self._scheme().is_plain:
            raise ValueError("tuning chooses a score for one threshold: calibrate the choice with the other parameters")
        given = doubted(Logits.of(self._given(logits, classes), classes), self.input, GIVE_INPUT)
        names = _class_names(classes, given.shape[1])
        indices = as_labels(labels, given.shape[1], names, self.labels_are)
        candidates = grid_over(over, grid, given.shape[1], self)
        options: dict[str, Any] = {
            "names": names_of_columns(given.columns) if names is None else _texts(names),
            "masked": self.masked,
            "n_threads": as_threads(self.n_threads),
            "input": self.input,
        }
        if rows == "all":
            calibration = _conformax.select(candidates, given.array(), indices, level, **options)
        else:
            share = _conformax.TUNING_FRACTION if tuning_size is None else tuning_size
            calibrating, tuning = _conformax.tuning_split(given.shape[0], share, as_seed(self.random_state))
            calibration = _conformax.tune(
                candidates, given.array(), indices, calibrating, tuning, level, **options
            )
        return self._calibrated(calibration, names, given.columns)

    def predict_set(
        self, logits: Any, *, alpha: Any = None, u: Any = None, groups: Any = None, weights: Any = None
    ) -> Any:
        """The prediction set of every row; a list of `PredictionSets` where there is a list of levels.

        `alpha` asks for other levels than the classifier's own. `groups` and `weights` come with the rows where
        thresholds go by them.
        """
        wanted, several = self._levels(alpha)
        logits = self._given_again(from_device(logits))
        if u is None and self._on_gpu(logits):
            on_device = _cuda.sets_of(self, logits, wanted)
            return on_device if several else on_device[0]
        rows, draws = self._rows(_on_host(logits)), as_draws(u)
        beside = self._beside(rows.shape[0], groups, weights)
        packed = _blocks.predict_at(self._calibration, wanted, rows, draws, beside=beside, **self._options())
        found = [
            PredictionSets._of(
                offsets,
                indices,
                n_classes=self.n_classes_,
                classes=self._names,
                labels_are=self.labels_are,
                alpha=float(level),
                threshold=self._thresholds(level),
                probabilities=partial(self._calibration.set_probabilities, level, offsets, held, **beside),
            )
            for (offsets, indices, held), level in zip(packed, wanted)
        ]
        return found if several else found[0]

    def predict_proba(
        self, logits: Any, *, alpha: Any = None, u: Any = None, groups: Any = None, weights: Any = None
    ) -> Any:
        """Probabilities of every label, exactly zero outside the set: rows × classes, `float64`.

        An empty set gives a row of zeros. A label on the boundary of the set may have probability zero too, so read
        sets off `predict_set`. Where thresholds differ by class, no one temperature has the set as its support, and the
        probabilities are softmax over the set.
        """
        wanted, several = self._levels(alpha)
        logits = self._given_again(from_device(logits))
        if u is None and self._on_gpu(logits):
            on_device = _cuda.probabilities_of(self, logits, wanted)
            return on_device if several else on_device[0]
        rows, draws = self._rows(_on_host(logits)), as_draws(u)
        beside = self._beside(rows.shape[0], groups, weights)
        dense = []
        for level in wanted:
            offsets, indices, p = _blocks.probabilities_at(
                self._calibration, level, rows, draws, beside=beside, **self._options()
            )
            out = np.zeros(rows.shape)
            out[np.repeat(np.arange(len(out)), np.diff(offsets)), indices] = p
            dense.append(out)
        return dense if several else dense[0]

    def predict_p(self, logits: Any, *, u: Any = None, groups: Any = None, weights: Any = None) -> np.ndarray:
        """The p-value of every label: the smallest alpha at which it leaves the set. Rows × classes.

        >>> cp = SplitConformalClassifier(alpha=0.4).calibrate([[1, 0], [0, 1], [2, 0]], [0, 0, 0])
        >>> cp.predict_p([[0.5, 1.5]])
        array([[0.5, 1. ]])
        """
        logits = self._given_again(from_device(logits))
        self._expect_p_values()
        if u is None and self._on_gpu(logits):
            return _cuda.p_values(self._calibration, _cuda.checked_rows(logits, self.n_classes_))
        rows = self._rows(_on_host(logits))
        beside = self._beside(rows.shape[0], groups, weights)
        return _blocks.p_values(self._calibration, rows, as_draws(u), beside=beside, n_threads=self.n_threads)

    def predict(self, logits: Any) -> Any:
        """The top label of every row (its name, where the classes have names), the first of equals.

        Indices of logits on a CUDA device are there too.
        """
        logits = self._given_again(from_device(logits))
        if self._calibration.prior is None and _cuda.on_gpu(logits, self._fitted_rule):
            found = _cuda.top_labels(_cuda.checked_rows(logits, self.n_classes_))
            return found if self._names is None else self._names[found.cpu().numpy()]
        top = _blocks.top_labels(self._rows(_on_host(logits)), n_threads=self.n_threads)
        return self.classes_[top]

    def evaluate(
        self,
        logits: Any,
        labels: Any,
        *,
        alpha: Any = None,
        strata: Any = None,
        u: Any = None,
        groups: Any = None,
        weights: Any = None,
        by: str | None = None,
        allow_seen: bool = False,
    ) -> Any:
        """Coverage, sizes and the rest on test rows; a list of `Evaluation` where there is a list of levels.

        Where thresholds differ by class, cluster or group, rows are also counted apart; `by="class"`, or `groups` of the
        rows, ask for that of any classifier.

        Rows that calibrated or tuned would flatter the model: where more than 5 % of the rows did, that is an error, and
        where some did, a warning. Rows that are equal to one another are no evidence, unless they are all those that
        calibrated, and as many as chance makes alike do not count. With `allow_seen` they are evaluated all the same, and no law is claimed.
        """
        logits, labels = self._given_again(from_device(logits)), from_device(labels)
        on_device = u is None and self._on_gpu(logits)
        rows = _cuda.checked_rows(logits, self.n_classes_) if on_device else self._rows(_on_host(logits))
        wanted, several = self._levels(alpha)
        for level in wanted:
            self._warn_if_few(level)
        indices = as_labels(labels, rows.shape[1], self._names, self.labels_are)
        if by not in (None, "class"):
            raise ValueError(f'by must be "class", got {by!r}; groups of rows are given as groups')
        apart = by or ("group" if groups is not None else self._calibration.by)
        apart = apart if apart in ("class", "cluster", "group") else None
        known, numbers = self._calibration.group_names, None
        if groups is not None and self._calibration.by != "group":
            known, numbers = _schemes.learned(groups, rows.shape[0])
        evaluator = _conformax.Evaluator(
            self._calibration, wanted, masked=self.masked, empty=self.empty, by=apart, groups=known
        )
        beside = self._beside(rows.shape[0], groups if numbers is None else None, weights)
        if numbers is not None:
            beside["groups"] = numbers
        if on_device:
            _cuda.extend(evaluator, self, rows, indices, wanted, beside["groups"])
        else:
            _blocks.extend(evaluator, rows, indices, as_draws(u), **beside, n_threads=self.n_threads)
        metrics, seen = evaluator.finish(None if strata is None else list(strata))
        if not _judge_seen(*seen, allow_seen):
            metrics = [without_law(of_level) for of_level in metrics]
        promise = self._calibration.promise_and_limits
        found = [Evaluation(**of_level, promise=promise) for of_level in metrics]
        return found if several else found[0]

    @property
    def threshold_(self) -> Any:
        """Largest score that is in a set; +∞ where there are too few rows. One per class or group where they differ."""
        return self._per_level(self._thresholds)

    @property
    def groups_(self) -> list[str] | None:
        """Names of the classes, clusters or groups that `threshold_` has a number for; None where it is one number."""
        self._check_calibrated()
        return self._calibration.threshold_names or None

    @property
    def promise_(self) -> str:
        """What is promised, in a sentence."""
        self._check_calibrated()
        return self._calibration.promise

    @property
    def temperature_(self) -> Any:
        """Inverse temperature at which the activation's support is the set; None outside the entmax family."""
        rule = self._fitted_rule

        def temperature(level: str) -> float | None:
            threshold = self._thresholds(level)
            one = isinstance(threshold, float) and not self._calibration.is_a_choice
            return rule.temperature(threshold) if one else None

        return self._per_level(temperature)

    @property
    def n_calibration_(self) -> int:
        """Rows that calibrated."""
        self._check_calibrated()
        return self._calibration.n

    @property
    def n_classes_(self) -> int:
        """Number of classes."""
        self._check_calibrated()
        return self._calibration.classes

    @property
    def scores_(self) -> np.ndarray | None:
        """Calibration scores, ascending; None where the file they came from left them out."""
        self._check_calibrated()
        return self._calibration.scores

    @property
    def tuning_(self) -> dict[str, Any] | None:
        """How every candidate of `tune` fared, and the index of the one chosen.

        Where all rows chose, that is the one that leads; `alive` says whether a candidate can win some label, and `wins` how
        many true labels of the calibration rows it decides. A mix of scores, which Rust can choose among, has their names
        too, as `score`.
        """
        self._check_calibrated()
        if self._calibration.selection is not None:
            leader, rivals = self._calibration.selection
            contest = [
                {**differ, "threshold": threshold, "average_size": size, "alive": alive, "wins": wins}
                for differ, (_, threshold, size, alive, wins) in zip(particulars([it[0] for it in rivals]), rivals)
            ]
            return {"chosen": leader, "n_tuning": self.n_calibration_, "candidates": contest}
        if self._calibration.tuning is None:
            return None
        chosen, n, candidates = self._calibration.tuning
        record = [
            {**differ, "threshold": threshold, "average_size": size}
            for differ, (_, threshold, size) in zip(particulars([it[0] for it in candidates]), candidates)
        ]
        return {"chosen": chosen, "n_tuning": n, "candidates": record}

    @property
    def classes_(self) -> np.ndarray:
        """Class names, or indices where there are none."""
        self._check_calibrated()
        return np.arange(self.n_classes_) if self._names is None else self._names

    def save(self, path: Any) -> None:
        """Writes the calibration file: versioned JSON that Rust, Python and the shell read alike.

        It holds the score, the levels, the calibration scores, class names (as text) and fingerprints of the rows, by
        which the command refuses to evaluate on rows that calibrated. What is asked at prediction (`empty`,
        `n_threads`) is not part of it. An existing file is replaced in one step.
        """
        self._check_calibrated()
        self._calibration.with_levels(self._levels(None)[0]).write(path)

    @classmethod
    def load(cls, path: Any) -> SplitConformalClassifier:
        """Reads a calibration file, whoever wrote it.

        >>> import tempfile, os
        >>> cp = SplitConformalClassifier("raps", alpha=0.4, k_reg=1).calibrate([[2, 0], [0, 1]], [0, 0])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     cp.save(os.path.join(folder, "model.json"))
        ...     SplitConformalClassifier.load(os.path.join(folder, "model.json"))
        SplitConformalClassifier('raps', alpha=0.4, lambda_=0.01, k_reg=1)
        """
        with open(path, "rb") as file:
            contents = file.read()
        try:
            calibration = _conformax.Calibration.from_bytes(contents)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        names = calibration.names
        loaded = cls(
            **parameters_of(calibration.score),
            **_scheme_of(calibration),
            alpha=_one_or_all(calibration.alphas),
            masked=calibration.masked,
            input=calibration.input,
        )
        loaded._calibration = calibration
        loaded._names = None if names is None else np.asarray(names)
        loaded._columns = None
        return loaded

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = {"params": self.get_params()}
        if self.__sklearn_is_fitted__():
            state["names"], state["columns"] = self._names, self._columns
            state["file"] = self._calibration.to_json()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state["params"].items():
            setattr(self, name, value)
        if "file" in state:
            self._calibration = _conformax.Calibration.from_json(state["file"])
            self._names, self._columns = state["names"], state["columns"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's parameters by name."""
        return {name: getattr(self, name) for name in self._parameters}

    def set_params(self, **params: Any) -> SplitConformalClassifier:
        """Sets constructor's parameters by name. Calibrate again afterwards, unless only levels change."""
        for name, value in params.items():
            if name not in self._parameters:
                raise ValueError(f"there is no parameter {name!r}; there are {', '.join(self._parameters)}")
            setattr(self, name, value)
        return self

    def clone(self) -> SplitConformalClassifier:
        """A classifier with the same parameters that is not calibrated."""
        return type(self)(**self.get_params())

    def __repr__(self) -> str:
        default = type(self)()
        changed = [
            f"{name}={value!r}" if name != "score" else repr(value)
            for name, value in self.get_params().items()
            if not _same(value, getattr(default, name))
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_calibration")

    #: Whether rows on a GPU have been looked at since it was calibrated: whoever looks waits for the device.
    _has_looked = False

    def _calibrated(
        self, calibration: _conformax.Calibration, names: np.ndarray | None, columns: list[Any] | None = None
    ) -> SplitConformalClassifier:
        self._calibration, self._names, self._columns = calibration, names, columns
        self._has_looked = False
        for level in self._levels(None)[0]:
            self._warn_if_few(level)
        return self

    def _warn_if_few(self, level: str) -> None:
        few = self._calibration.too_few(level)
        if not few and self._calibration.by in ("severity", "cost") and self._thresholds(level) == float("inf"):
            warnings.warn(
                f"{self._calibration.n} calibration rows cannot keep the expected loss below alpha = {level}, so sets are "
                "full: give a larger alpha, or more rows",
                ConformaxWarning,
                stacklevel=4,
            )
        self._warn_if_impossible(level)
        if not few:
            return
        needed = few[0][2]
        if few[0][0] == "":
            message = (
                f"{self._calibration.n} calibration rows are too few for alpha = {level}, so sets are full: "
                f"give at least {needed} rows, or a larger alpha"
            )
        else:
            named = ", ".join(f"{name} ({n} rows)" for name, n, _ in few[:5])
            more = f" and {len(few) - 5} more" if len(few) > 5 else ""
            message = (
                f"too few calibration rows for alpha = {level} of {named}{more}, so their thresholds are infinite: "
                f"each needs at least {needed}"
            )
        warnings.warn(message, ConformaxWarning, stacklevel=4)

    def _warn_if_impossible(self, level: str) -> None:
        if not (found := self._calibration.impossible(level)):
            return
        named = ", ".join(f"{name} ({labels} of {n} rows)" for name, labels, n in found[:5])
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        name, labels, n = found[0]
        where, what = (f" in {named}{more}", "their thresholds are infinite") if name else ("", "sets are full")
        warnings.warn(
            f"{'' if name else f'{labels} of {n} '}true labels have logit -inf or a gap beyond all numbers{where}, so at "
            f"alpha = {level} {what}: correct those rows, or give a larger alpha",
            ConformaxWarning,
            stacklevel=5,
        )

    def _rule(self) -> _conformax.Score:
        self._levels(None)
        return compiled_score(
            self.score,
            gamma=self.gamma,
            lambda_=self.lambda_,
            k_reg=self.k_reg,
            randomized=self.randomized,
            random_state=self.random_state,
        )

    @property
    def _fitted_rule(self) -> _conformax.Score:
        self._check_calibrated()
        return self._calibration.score

    def _levels(self, alpha: Any) -> tuple[list[str], bool]:
        if alpha is not None:
            return levels(alpha)
        return levels(self.alpha, self.confidence_level)

    def _single_level(self, what: str) -> list[str]:
        wanted, _ = self._levels(None)
        if len(wanted) > 1:
            raise ValueError(f"{what} judges at one level, got {len(wanted)}")
        return wanted

    def _per_level(self, value: Any) -> Any:
        self._check_calibrated()
        wanted, several = self._levels(None)
        found = [value(level) for level in wanted]
        return found if several else found[0]

    def _thresholds(self, level: str) -> Any:
        one, many = self._calibration.thresholds(level)
        return one if one is not None else np.asarray(many) if many else None

    def _scheme(self) -> _schemes.Scheme:
        return _schemes.Scheme({name: getattr(self, name) for name in self._parameters})

    def _on_gpu(self, logits: Any) -> bool:
        """Whether sets can be found where the logits are."""
        rule = self._fitted_rule
        plain = self._calibration.by in ("all", "severity", "cost") and self._calibration.prior is None
        if not plain or self._calibration.is_a_choice or not _cuda.on_gpu(logits, rule):
            return False
        if not self._has_looked:
            self._has_looked = True
            doubted(_first_rows(logits), self.input, GIVE_LOGITS, stacklevel=4)
        return True

    def _beside(self, n: int, groups: Any, weights: Any) -> dict[str, np.ndarray | None]:
        """What comes with rows, where thresholds go by it."""
        by = self._calibration.by
        if by == "group" and groups is None:
            raise ValueError("thresholds go by group: give the groups of the rows")
        if by == "row_weight" and weights is None:
            raise ValueError("thresholds go by the weights of rows: give weights")
        if groups is not None and by != "group":
            raise ValueError("thresholds do not go by groups: leave out groups")
        if weights is not None and by != "row_weight":
            raise ValueError("thresholds do not go by weights: leave out weights")
        texts = None if groups is None else _schemes.group_texts(groups, n)
        numbers = None if texts is None else _schemes.numbers_of(texts, self._calibration.group_names)
        return {"groups": numbers, "weights": _schemes.as_weights(weights, n)}

    def _given(self, logits: Any, known: Any) -> Any:
        """What was given, as it is where it is logits, and made into logits where it is not."""
        return logits if self.input == "logits" else as_logits(logits, self.input, known)

    def _given_again(self, logits: Any) -> Any:
        """The same at prediction, where the numbers must be of the kind that calibrated."""
        self._check_calibrated()
        wanted = self._calibration.input
        if self.input != wanted:
            raise ValueError(f"this classifier was calibrated on {wanted}, and input says {self.input}")
        return self._given(logits, self._names)

    def _rows(self, logits: Any) -> Logits:
        self._check_calibrated()
        rows = doubted(Logits.of(logits, self._names), self.input, GIVE_LOGITS, stacklevel=4)
        if rows.shape[1] != self.n_classes_:
            raise ValueError(f"wanted {self.n_classes_} classes, got {rows.shape[1]}")
        rows = in_order(rows, self._columns, self._names)
        return without_prior(rows, self._calibration.prior)

    def _options(self) -> dict[str, Any]:
        return {"masked": self.masked, "empty": self.empty, "n_threads": self.n_threads}

    def _expect_p_values(self) -> None:
        self._check_calibrated()
        if (why := self._calibration.no_p_values) is not None:
            raise ValueError(f"this classifier {why}")

    def _check_calibrated(self) -> None:
        if not hasattr(self, "_calibration"):
            raise not_calibrated(type(self).__name__)


def _same(value: Any, default: Any) -> bool:
    """Whether a parameter is its default; arrays are not."""
    return value is default or (np.isscalar(value) and value == default)


def without_prior(rows: Logits, prior: Any) -> Logits:
    """Logits less the logarithms of the shares of the classes."""
    if prior is None:
        return rows
    logarithms = _conformax.logarithms(np.asarray(prior, dtype=np.float64))
    return Logits.of(np.asarray(rows.array(), dtype=np.float64) - logarithms)


def _scheme_of(calibration: _conformax.Calibration) -> dict[str, Any]:
    """The parameters by which thresholds go, as a calibration file tells them."""
    found: dict[str, Any] = {"pac": calibration.delta, "prior": calibration.prior}
    if calibration.by in ("class", "group"):
        found["by"] = calibration.by
    elif calibration.by == "cluster":
        found["by"] = calibration.clusters
    found.update(calibration.losses)
    return {name: value for name, value in found.items() if value is not None}


def _judge_seen(
    rows: int, seen: int, first: int | None, same_data: bool, allowed: bool, first_is: str = ", row {} first"
) -> bool:
    """Whether the law of coverage holds: not where the rows calibrated or tuned."""
    if first is None:
        return True
    what = f"{seen} of {rows} rows also calibrated or tuned this classifier{first_is.format(first)}"
    if same_data and not allowed:
        raise ValueError(f"{what}: evaluate on other rows, or give allow_seen=True if you know what that means")
    why = "the figures flatter the model and no law holds for them" if same_data else "so few may be chance"
    warnings.warn(f"{what}; {why}", ConformaxWarning, stacklevel=3)
    return not same_data


def _first_rows(logits: Any) -> Logits:
    """As many rows on a GPU as are looked at, copied."""
    return Logits.of(_on_host(_cuda.checked_rows(logits)[:100]))


def _on_host(data: Any) -> Any:
    """Sets and labels on a GPU, copied; anything else as it is."""
    data = from_device(data)
    return data.cpu() if isinstance(data, _cuda.CudaPredictionSets) or getattr(data, "is_cuda", False) else data


def _one_or_all(alphas: list[float]) -> Any:
    return alphas[0] if len(alphas) == 1 else alphas


def _texts(names: np.ndarray | None) -> list[str] | None:
    return None if names is None else [str(name) for name in names.tolist()]


def _expect_order(columns: list[Any] | None, names: np.ndarray | None) -> None:
    """Names of classes that are those of the columns, in another order, are a slip."""
    if columns is None or names is None or columns == (given := names.tolist()) or set(columns) != set(given):
        return
    place = next(place for place, name in enumerate(given) if name != columns[place])
    raise ValueError(
        f"classes must be in the order of the columns: column {place} is {columns[place]!r}, class {place} {given[place]!r}"
    )


def _class_names(classes: Sequence[Any] | None, n_classes: int) -> np.ndarray | None:
    if classes is None:
        return None
    names = np.asarray(classes)
    if names.shape != (n_classes,):
        raise ValueError(f"there are {n_classes} classes but {names.size} names")
    if len(set(names.tolist())) < len(names):
        raise ValueError("class names must differ from one another")
    return names
