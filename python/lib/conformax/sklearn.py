"""`WrapClassifier`: any scikit-learn classifier, calibrated on rows it was not fitted on."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import _safe_indexing, check_random_state, get_tags, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_method_params, _num_samples, check_is_fitted, column_or_1d

from . import _conformax
from ._classifier import SplitConformalClassifier
from ._rules import ScoreRule


class WrapClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier that also gives prediction sets with a coverage guarantee.

    `fit` keeps a part of the rows aside, fits a clone of `estimator` on the rest, and calibrates on the rows kept.
    Logits are the logarithms of `predict_proba` or, where there is none, `decision_function`.

    Parameters
    ----------
    estimator : scikit-learn classifier
        Fitted already where `prefit`, else left as it is and cloned.
    calibration_size : float, default 0.4
        Fraction of the rows that calibrate.
    prefit : bool, default False
        Whether `estimator` is fitted and all rows calibrate. They must not be the rows it was fitted on.
    random_state : int or RandomState, default 0
        Seed of the split and of randomised scores, of which a score object has its own; None for another one every time.
    conformity_score : str or score object, default "entmax"
        `score` of `SplitConformalClassifier`; an estimator's own `score` is its accuracy.
    gamma, alpha, confidence_level, lambda_, k_reg, randomized, n_threads, masked, empty
        As in `SplitConformalClassifier`.

    Attributes
    ----------
    estimator_ : classifier
        The one that was fitted.
    conformal_ : SplitConformalClassifier
        Calibrated on its logits; it saves, and has thresholds and temperature.
    classes_ : ndarray
        Class labels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from conformax import WrapClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> names = load_iris().target_names[y]
    >>> model = WrapClassifier(LogisticRegression(max_iter=1000), alpha=0.05).fit(X, names)
    >>> model.predict_set(X[[0, 50, 100]]).labels()
    [['setosa'], ['versicolor'], ['virginica']]
    """

    #: Parameters that mean what they mean there.
    _shared = (
        "gamma", "alpha", "confidence_level", "lambda_", "k_reg", "randomized", "n_threads", "masked", "empty",
    )  # fmt: skip

    def __init__(
        self,
        estimator: Any,
        *,
        calibration_size: float = 0.4,
        prefit: bool = False,
        random_state: Any = 0,
        conformity_score: Any = "entmax",
        gamma: float | None = None,
        alpha: Any = None,
        confidence_level: Any = None,
        lambda_: float | None = None,
        k_reg: int | None = None,
        randomized: bool = True,
        n_threads: int | None = None,
        masked: str = "allowed",
        empty: str = "allowed",
    ) -> None:
        self.estimator = estimator
        self.calibration_size = calibration_size
        self.prefit = prefit
        self.random_state = random_state
        self.conformity_score = conformity_score
        self.gamma = gamma
        self.alpha = alpha
        self.confidence_level = confidence_level
        self.lambda_ = lambda_
        self.k_reg = k_reg
        self.randomized = randomized
        self.n_threads = n_threads
        self.masked = masked
        self.empty = empty

    def fit(self, X: Any, y: Any, **fit_params: Any) -> WrapClassifier:
        """Fits the estimator on some rows and calibrates on the others. Parameters go to the estimator's `fit`."""
        if y is None:
            raise ValueError("this classifier requires y to be passed, but the target y is None")
        X, y = indexable(X, y)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        seed = self._seed()
        if self.prefit:
            check_is_fitted(self.estimator)
            self.estimator_, self.classes_ = self.estimator, self.estimator.classes_
            kept = np.arange(_num_samples(X))
        else:
            fitting, kept = _conformax.tuning_split(_num_samples(X), self.calibration_size, seed)
            if not len(fitting) or not len(kept):
                few = f"n_samples={_num_samples(X)}"
                raise ValueError(f"some rows fit and others calibrate, for which {few} is too few")
            params = _check_method_params(X, fit_params, indices=fitting)
            self.estimator_ = clone(self.estimator)
            self.estimator_.fit(_safe_indexing(X, fitting), _safe_indexing(y, fitting), **params)
            self.classes_ = np.unique(y)
        self.conformal_ = self._conformal(seed).calibrate(
            self._logits(_safe_indexing(X, kept)), _safe_indexing(y, kept), classes=self.classes_
        )
        return self

    def save(self, path: Any) -> None:
        """Writes the calibration file, as `SplitConformalClassifier.save` does; the estimator is not part of it."""
        check_is_fitted(self)
        self.conformal_.save(path)

    @classmethod
    def load(cls, path: Any, estimator: Any, *, classes: Any = None) -> WrapClassifier:
        """Reads a calibration file for the fitted estimator that it was made with, however that was kept.

        The file must have the estimator's classes in its order, compared as text, which is what the file holds.
        `classes` are `classes_` of the classifier that was saved, where some had no row to fit the estimator on.
        """
        check_is_fitted(estimator)
        conformal = SplitConformalClassifier.load(path)
        known, whose = np.asarray(classes), "classes are {}"
        if classes is None:
            known, whose = np.asarray(estimator.classes_), "the estimator has {}, and classes are not given"
        _expect_classes(path, conformal.classes_.tolist(), known.tolist(), whose)
        strangers = [name for name in np.asarray(estimator.classes_).tolist() if name not in known.tolist()]
        if strangers:
            raise ValueError(f"class {strangers[0]!r} of the estimator is none of the {len(known)} classes given")
        loaded = cls(estimator, prefit=True, **{name: getattr(conformal, name) for name in cls._shared})
        loaded.conformity_score = conformal.score
        loaded.estimator_, loaded.conformal_, loaded.classes_ = estimator, conformal, known
        conformal._names, conformal.labels_are = loaded.classes_, "names"
        return loaded

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        check_is_fitted(self)
        return self.conformal_.predict(self._logits(X))

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of every class, exactly zero outside the prediction set."""
        check_is_fitted(self)
        return self.conformal_.predict_proba(self._logits(X))

    def predict_set(self, X: Any, *, alpha: Any = None) -> Any:
        """The prediction set of each row."""
        check_is_fitted(self)
        return self.conformal_.predict_set(self._logits(X), alpha=alpha)

    def predict_p(self, X: Any) -> np.ndarray:
        """The p-value of every class."""
        check_is_fitted(self)
        return self.conformal_.predict_p(self._logits(X))

    def evaluate(self, X: Any, y: Any, *, alpha: Any = None, strata: Any = None) -> Any:
        """Coverage, sizes and the rest on test rows."""
        check_is_fitted(self)
        return self.conformal_.evaluate(self._logits(X), y, alpha=alpha, strata=strata)

    @property
    def n_features_in_(self) -> int:
        """Features seen by the estimator."""
        return self.estimator_.n_features_in_

    def __sklearn_is_fitted__(self) -> bool:
        # By default any attribute in `_` is a sign of it, and `lambda_` is a parameter.
        return hasattr(self, "conformal_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
        return tags

    def _seed(self) -> int:
        if isinstance(self.random_state, (int, np.integer)):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _conformal(self, seed: int) -> SplitConformalClassifier:
        shared = {name: getattr(self, name) for name in self._shared}
        # The seed of the split is no affair of a score object, which has one for its own draws.
        drawn = {} if isinstance(self.conformity_score, ScoreRule) else {"random_state": seed}
        return SplitConformalClassifier(self.conformity_score, labels_are="names", **drawn, **shared)

    def _logits(self, X: Any) -> np.ndarray:
        """Rows × `classes_`; a class the estimator has not seen has logit −∞."""
        if hasattr(self.estimator_, "predict_proba"):
            # The platform's own logarithm would give other bits on other machines.
            p = np.asarray(self.estimator_.predict_proba(X), dtype=np.float64)
            found = _conformax.logarithms(p.ravel()).reshape(p.shape)
        else:
            found = self.estimator_.decision_function(X)
            if found.ndim == 1:
                # A binary decision is the log-odds of the second class.
                found = np.column_stack([np.zeros_like(found), found])
        if np.array_equal(self.estimator_.classes_, self.classes_):
            return found
        logits = np.full((len(found), len(self.classes_)), -np.inf)
        places = {name: place for place, name in enumerate(self.classes_.tolist())}
        logits[:, [places[name] for name in np.asarray(self.estimator_.classes_).tolist()]] = found
        return logits


def _expect_classes(path: Any, calibrated: list[Any], known: list[Any], whose: str) -> None:
    """A file of other classes, or of the same in another order, would have its columns taken for others."""
    if len(calibrated) != len(known):
        raise ValueError(f"{path}: {len(calibrated)} classes calibrated, but {whose.format(len(known))}")
    was, now = [str(name) for name in calibrated], [str(name) for name in known]
    if was == now:
        return
    place = next(place for place, name in enumerate(now) if name != was[place])
    why = "the same classes in another order" if sorted(was) == sorted(now) else "other classes"
    raise ValueError(f"{path}: {why} calibrated: class {place} was {was[place]!r} and is {now[place]!r}")
