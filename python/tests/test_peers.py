"""Other libraries on the same rows: where they agree with us, and where and why they do not."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

import conformax
from conformax import SplitConformalClassifier

pytestmark = pytest.mark.peers

FOREIGN = 1e-5
BENCHMARKS = Path(__file__).resolve().parents[2] / "crates" / "conformax-study" / "benchmarks"


def real() -> tuple[np.ndarray, np.ndarray]:
    """Logits of a fine-tuned BERT on 20 Newsgroups."""
    logits, labels = (np.load(BENCHMARKS / f"newsgroups-{what}.npy") for what in ("logits", "labels"))
    return logits[:1000], labels[:1000].astype(np.int64)


def random() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(11)
    labels = rng.integers(12, size=1000)
    return rng.normal(size=(1000, 12)) + 1.5 * np.eye(12)[labels], labels


@pytest.fixture(params=[random, real], ids=["random", "real"])
def data(request):
    logits, labels = request.param()
    return logits[:500], labels[:500], logits[500:], labels[500:]


def _shell_of_torchcp() -> bool:
    """Makes its scores importable by themselves.

    Its `__init__`s import graphs, language models and losses with dependencies of their own; the scores need none.
    """
    found = importlib.util.find_spec("torchcp")
    if found is None:
        return False
    for name in ("torchcp", "torchcp.classification"):
        shell = types.ModuleType(name)
        shell.__path__ = [str(Path(found.submodule_search_locations[0], *name.split(".")[1:]))]
        sys.modules[name] = shell
    return True


class TestTorchCP:
    """`EntmaxScore`, APS and RAPS of TorchCP, without draws: it draws per label in prediction and per row before."""

    @pytest.fixture(autouse=True)
    def peer(self):
        self.torch = pytest.importorskip("torch")
        if "torchcp" not in sys.modules and not _shell_of_torchcp():
            pytest.skip("torchcp is not installed")
        self.scores = importlib.import_module("torchcp.classification.score")
        self.common = importlib.import_module("torchcp.utils.common")

    @pytest.mark.parametrize("gamma", [1.0, 1.3, 1.5, 2.0])
    def test_entmax_scores(self, data, gamma):
        logits = data[2][:60]
        theirs = self.scores.EntmaxScore(gamma)(self.torch.from_numpy(logits).double()).numpy()
        np.testing.assert_allclose(conformax.scores(logits, gamma=gamma), theirs, rtol=FOREIGN, atol=FOREIGN)

    @pytest.mark.parametrize("params", [{}, {"penalty": 0.1, "kreg": 2}])
    def test_aps_and_raps_scores(self, data, params):
        cal, cal_labels, logits, _ = data
        rule = conformax.RapsScore(params.get("penalty", 0.0), params.get("kreg", 0), "fixed", randomized=False)
        theirs = self.scores.RAPS(randomized=False, **params)
        for rows, labels in ((cal, cal_labels), (logits, None)):
            tensor = self.torch.from_numpy(rows).double()
            found = theirs(tensor) if labels is None else theirs(tensor, self.torch.from_numpy(labels))
            ours = conformax.scores(rows, labels, score=rule)
            np.testing.assert_allclose(ours, found.numpy(), rtol=FOREIGN, atol=FOREIGN)

    def test_its_rank_is_a_float_and_can_be_one_too_high(self):
        scores = self.torch.arange(1, 150, dtype=self.torch.float64)
        # 150 · (1 − 0.18) is 123.00000000000001 in floating point, so its ceiling is 124; the exact rank is 123.
        assert self.common.calculate_conformal_value(scores, 0.18) == 124
        assert conformax.conformal_rank(149, 0.18) == 123
        assert self.common.calculate_conformal_value(scores, 0.1) == conformax.conformal_rank(149, 0.1)

    def test_it_ranks_equal_logits_by_their_place(self):
        # Two labels of one probability: it scores one of them as the better, we give both the worse place.
        tied = np.array([[1.0, 1.0, 0.0]])
        theirs = self.scores.APS(randomized=False)(self.torch.from_numpy(tied)).numpy()[0]
        ours = conformax.scores(tied, score="aps", randomized=False)[0]
        assert theirs[0] != theirs[1] and ours[0] == ours[1] == pytest.approx(max(theirs[:2]))


class TestMapie:
    """LAC of MAPIE, from the same probabilities."""

    @pytest.fixture(autouse=True)
    def peer(self):
        pytest.importorskip("mapie")
        base = importlib.import_module("sklearn.base")

        class Given(base.ClassifierMixin, base.BaseEstimator):
            """A classifier whose features are its probabilities."""

            def __init__(self, classes: int = 2) -> None:
                self.classes = classes
                self.classes_ = np.arange(classes)

            def fit(self, X, y):
                return self

            def predict_proba(self, X):
                return X

            def predict(self, X):
                return X.argmax(axis=1)

        self.given = Given

    def conformalized(self, p, labels, confidence):
        classification = importlib.import_module("mapie.classification")
        theirs = classification.SplitConformalClassifier(
            self.given(p.shape[1]), confidence_level=confidence, conformity_score="lac", prefit=True
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return theirs.conformalize(p, labels)

    def sets(self, theirs, p):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return theirs.predict_set(p)[1][:, :, 0]

    @pytest.mark.parametrize("confidence", [0.8, 0.9, 0.95])
    def test_sets(self, data, confidence):
        cal, cal_labels, logits, _ = data
        theirs = self.conformalized(conformax.softmax(cal.astype(np.float64)), cal_labels, confidence)
        ours = SplitConformalClassifier("lac", confidence_level=confidence).calibrate(cal, cal_labels)
        found = self.sets(theirs, conformax.softmax(logits.astype(np.float64)))
        scores = conformax.scores(logits, score="lac")
        boundary = np.isclose(scores, ours.threshold_, rtol=0, atol=1e-7)
        assert np.array_equal(found[~boundary], ours.predict_set(logits).mask[~boundary])
        assert boundary.mean() < 0.01

    def test_its_rank_is_a_float_and_can_be_one_too_high(self):
        n, scores = 149, np.arange(1, 150) / 150
        p = np.column_stack([1 - scores, scores])
        found = self.sets(self.conformalized(p, np.zeros(n, dtype=int), 0.82), p)[:, 0]
        ours = SplitConformalClassifier("lac", confidence_level=0.82).calibrate(np.log(p), np.zeros(n, dtype=int))
        assert found.sum() == 124
        assert ours.predict_set(np.log(p)).mask[:, 0].sum() == conformax.conformal_rank(149, "0.18") == 123

    def test_it_refuses_numbers_of_rows_that_are_enough(self):
        scores = np.arange(1, 20) / 20
        p = np.column_stack([1 - scores, scores])
        with pytest.raises(ValueError, match="too low"):
            self.sets(self.conformalized(p, np.zeros(19, dtype=int), 0.95), p)
        ours = SplitConformalClassifier("lac", alpha=0.05).calibrate(np.log(p), np.zeros(19, dtype=int))
        assert ours.threshold_ < np.inf


class TestCrepes:
    """LAC of crepes: hinge scores, p-values without smoothing, sets."""

    @pytest.fixture(autouse=True)
    def peer(self):
        self.crepes = pytest.importorskip("crepes")
        self.hinge = importlib.import_module("crepes.extras").hinge

    def fitted(self, scores):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            classifier = self.crepes.ConformalClassifier()
            classifier.fit(scores)
            return classifier

    def sets(self, classifier, scores, confidence):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(classifier.predict_set(scores, confidence=confidence, smoothing=False)).astype(bool)

    @pytest.mark.parametrize("confidence", [0.8, 0.9, 0.95])
    def test_p_values_and_sets(self, data, confidence):
        cal, cal_labels, logits, _ = data
        p, p_test = (conformax.softmax(rows.astype(np.float64)) for rows in (cal, logits))
        classifier = self.fitted(self.hinge(p, np.arange(p.shape[1]), cal_labels))
        ours = SplitConformalClassifier("lac", confidence_level=confidence).calibrate(cal, cal_labels)
        found = np.asarray(classifier.predict_p(self.hinge(p_test), all_classes=True, smoothing=False))
        # The last bit of a softmax may move one score past a neighbour.
        np.testing.assert_allclose(ours.predict_p(logits), found, rtol=0, atol=1.5 / 501)
        assert (ours.predict_p(logits) != found).mean() < 0.01
        differs = self.sets(classifier, self.hinge(p_test), confidence) != ours.predict_set(logits).mask
        assert differs.mean() < 0.002

    def test_it_includes_labels_whose_p_value_is_alpha(self):
        # p > α is the rule; it takes p ≥ 1 − confidence. Where (n + 1)α is whole that is one rank too many,
        # and whether 1 − confidence falls above or below α is a matter of rounding.
        found = {}
        for n, confidence in [(99, 0.9), (199, 0.8), (99, 0.95), (98, 0.9)]:
            scores = np.arange(1, n + 1) / (n + 1)
            sets = self.sets(self.fitted(scores), np.column_stack([scores, scores]), confidence)[:, 0]
            exact = conformax.conformal_rank(n, str(1 - Decimal(str(confidence))))
            found[n, confidence] = int(sets.sum()) - exact
        assert found == {(99, 0.9): 1, (199, 0.8): 1, (99, 0.95): 0, (98, 0.9): 0}
