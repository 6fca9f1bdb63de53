"""`WrapClassifier` behaves as scikit-learn's own classifiers do."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_digits, load_iris, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from conformax import ApsScore, ConformaxWarning, SplitConformalClassifier, WrapClassifier, _conformax


@pytest.mark.filterwarnings("ignore::conformax.ConformaxWarning")
@parametrize_with_checks(
    [WrapClassifier(LogisticRegression()), WrapClassifier(RandomForestClassifier(10, random_state=0))]
)
def test_check_estimator(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X / 16, np.array([f"digit {label}" for label in y]), random_state=0)


def test_fits_calibrates_and_covers(digits):
    X, X_test, y, y_test = digits
    model = WrapClassifier(LogisticRegression(max_iter=1000), alpha=0.02).fit(X, y)
    assert model.conformal_.n_calibration_ == int(0.4 * len(X))
    found = model.evaluate(X_test, y_test)
    low, high = found.coverage_interval
    assert low <= found.coverage <= high
    assert model.score(X_test, y_test) > 0.9
    assert set(model.predict_set(X_test)[0]) <= set(model.classes_)
    assert np.array_equal(model.predict(X_test), model.classes_[model.predict_proba(X_test).argmax(axis=1)])
    assert np.array_equal(model.predict_p(X_test) > 0.02, model.predict_set(X_test).mask)


def test_prefit_leaves_the_estimator_alone_and_calibrates_on_all_rows(digits):
    X, X_test, y, y_test = digits
    inner = LogisticRegression(max_iter=1000).fit(X[:800], y[:800])
    model = WrapClassifier(inner, prefit=True).fit(X[800:], y[800:])
    assert model.estimator_ is inner and model.conformal_.n_calibration_ == len(X) - 800
    plain = SplitConformalClassifier().calibrate(
        ln(inner.predict_proba(X[800:])), np.searchsorted(inner.classes_, y[800:])
    )
    assert model.predict_set(X_test) == plain.predict_set(ln(inner.predict_proba(X_test)))
    assert np.array_equal(model.conformal_.scores_, plain.scores_)
    with pytest.raises(NotFittedError):
        WrapClassifier(LogisticRegression(), prefit=True).fit(X, y)


@pytest.mark.filterwarnings("ignore::conformax.ConformaxWarning")
def test_the_seed_of_the_split_is_not_that_of_a_score_object():
    p, y = np.tile([[0.25, 0.75], [0.5, 0.5]], (10, 1)), np.tile([0, 1], 10)

    def seed_of_the_draws(score):
        return WrapClassifier(_Given(), conformity_score=score, random_state=3).fit(p, y).conformal_._fitted_rule.seed

    assert [seed_of_the_draws(ApsScore()), seed_of_the_draws("aps")] == [0, 3]


def ln(p: np.ndarray) -> np.ndarray:
    return _conformax.logarithms(p.ravel()).reshape(p.shape)


def test_logits_are_the_projects_own_logarithms():
    # The logarithm of softmax is the logit less a constant: in the bits of the library, and of no platform.
    p = np.array([[0.0, 1.0], [0.25, 0.75], [1e-310, 1.0]])
    assert np.isneginf(ln(p)[0, 0]) and ln(p)[0, 1] == 0.0
    np.testing.assert_allclose(ln(p)[1:], np.log(p[1:]), rtol=1e-15)
    model = WrapClassifier(_Given().fit(p, None), prefit=True, alpha=0.5).fit(p[[1, 1, 1]], [0, 1, 1])
    plain = SplitConformalClassifier(alpha=0.5).calibrate(ln(p[[1, 1, 1]]), [0, 1, 1])
    assert np.array_equal(model.conformal_.scores_, plain.scores_)


class _Given(ClassifierMixin, BaseEstimator):
    """Features are probabilities."""

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, X):
        return np.asarray(X)


def test_what_was_saved_serves_the_same_estimator(digits, tmp_path):
    X, X_test, y, y_test = digits
    for labels in (y, np.char.partition(y, " ")[:, 2].astype(int)):
        model = WrapClassifier(LogisticRegression(max_iter=1000), alpha=[0.02, 0.2], gamma=1.3).fit(X, labels)
        model.save(tmp_path / "model.json")
        loaded = WrapClassifier.load(tmp_path / "model.json", model.estimator_)
        assert np.array_equal(loaded.classes_, model.classes_) and loaded.classes_.dtype == model.classes_.dtype
        assert loaded.predict_set(X_test) == model.predict_set(X_test)
        assert np.array_equal(loaded.predict(X_test), model.predict(X_test))
        assert loaded.evaluate(X_test[:50], model.predict(X_test[:50]))[0].n == 50
        assert clone(loaded).gamma == 1.3
    other = LogisticRegression().fit([[0], [1]], ["digit 0", "owl"])
    with pytest.raises(ValueError, match="10 classes calibrated, but the estimator has 2"):
        WrapClassifier.load(tmp_path / "model.json", other)
    named = LogisticRegression().fit(X[:, :1], y)
    with pytest.raises(ValueError, match="other classes calibrated: class 0 was '0' and is 'digit 0'"):
        WrapClassifier.load(tmp_path / "model.json", named)
    with pytest.raises(NotFittedError):
        WrapClassifier.load(tmp_path / "model.json", LogisticRegression())


def test_a_file_of_the_classes_in_another_order_is_refused(tmp_path):
    logits = np.random.default_rng(0).normal(size=(50, 3))
    turned = SplitConformalClassifier().calibrate(logits, logits.argmax(axis=1), classes=["a", "c", "b"])
    turned.save(tmp_path / "model.json")
    estimator = LogisticRegression().fit(logits, np.array(["a", "b", "c"])[logits.argmax(axis=1)])
    with pytest.raises(ValueError, match="the same classes in another order calibrated: class 1 was 'c' and is 'b'"):
        WrapClassifier.load(tmp_path / "model.json", estimator)


def test_impossible_classes_of_a_forest_are_legal(digits):
    X, X_test, y, y_test = digits
    forest = RandomForestClassifier(10, random_state=0)
    found = WrapClassifier(forest, alpha=0.1).fit(X, y).evaluate(X_test, y_test)
    assert found.coverage > 0.85


def test_decision_functions_are_logits():
    for classes in (2, 4):
        X, y = make_classification(600, n_informative=6, n_classes=classes, random_state=1)
        model = WrapClassifier(RidgeClassifier()).fit(X[:400], y[:400])
        assert np.array_equal(model.predict(X[400:]), model.estimator_.predict(X[400:]))
        assert model.evaluate(X[400:], y[400:]).coverage > 0.8


def test_classes_that_only_calibrate_are_impossible_to_the_estimator(tmp_path):
    X, y = load_iris(return_X_y=True)
    rows = np.flatnonzero(y < 2)
    fitting, kept = _conformax.tuning_split(101, 0.4, 0)
    X, y = X[rows], y[rows]
    X = np.concatenate([X, X[:1]])
    y = np.concatenate([y, [0]])
    y[kept[0]] = 2
    model = WrapClassifier(LogisticRegression()).fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2] and model.estimator_.classes_.tolist() == [0, 1]
    assert not model.predict_set(X).mask[:, 2].any()
    # A file of more classes is taken only where it is said which they are: it may be of another estimator.
    model.save(tmp_path / "model.json")
    with pytest.raises(ValueError, match="3 classes calibrated, but the estimator has 2"):
        WrapClassifier.load(tmp_path / "model.json", model.estimator_)
    loaded = WrapClassifier.load(tmp_path / "model.json", model.estimator_, classes=model.classes_)
    assert loaded.predict_set(X) == model.predict_set(X) and loaded.classes_.tolist() == [0, 1, 2]
    stranger = LogisticRegression().fit(X, np.where(y == 2, 7, y))
    with pytest.raises(ValueError, match="class 7 of the estimator is none of the 3 classes given"):
        WrapClassifier.load(tmp_path / "model.json", stranger, classes=model.classes_)


def test_works_in_pipelines_and_searches(digits):
    X, X_test, y, y_test = digits
    model = make_pipeline(StandardScaler(), WrapClassifier(LogisticRegression(max_iter=500)))
    search = GridSearchCV(model, {"wrapclassifier__estimator__C": [0.01, 1.0]}, cv=3).fit(X, y)
    assert search.score(X_test, y_test) > 0.9
    copy = clone(WrapClassifier(LogisticRegression(C=3.0), gamma=1.2))
    assert copy.estimator.C == 3.0 and copy.gamma == 1.2


def test_sample_weights_reach_the_estimator(digits):
    X, _, y, _ = digits
    weights = np.where(y == "digit 0", 1e-9, 1.0)
    model = WrapClassifier(LogisticRegression(max_iter=500)).fit(X, y, sample_weight=weights)
    assert "digit 0" not in set(model.predict(X))


def test_too_few_rows_warn():
    X, y = load_iris(return_X_y=True)
    with pytest.warns(ConformaxWarning, match="too few"):
        WrapClassifier(LogisticRegression(max_iter=500), alpha=0.001).fit(X, y)


def test_sklearns_clone_takes_the_plain_classifier():
    assert clone(SplitConformalClassifier("raps", k_reg=3)).k_reg == 3
