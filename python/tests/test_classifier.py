"""The classifier keeps its promises: levels, policies, parameters, and the guarantee itself."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

import conformax
from conformax import ConformaxWarning, EntmaxScore, RapsScore, SplitConformalClassifier

NAMES = ["entmax", "log_margin", "sparsemax", "inv_prob", "aps", "raps", "saps", "top_k", "margin"]


@pytest.mark.parametrize("score", NAMES)
def test_membership_is_the_score_at_most_the_threshold(rows, score):
    logits, labels = rows
    cp = SplitConformalClassifier(score).calibrate(logits[:300], labels[:300])
    all_scores = conformax.scores(logits[300:], score=score)
    assert np.array_equal(cp.predict_set(logits[300:]).mask, all_scores <= cp.threshold_)


@pytest.mark.parametrize("score", NAMES)
def test_sets_are_where_the_p_value_exceeds_alpha(rows, score):
    logits, labels = rows
    cp = SplitConformalClassifier(score, alpha=0.17).calibrate(logits[:300], labels[:300])
    assert np.array_equal(cp.predict_set(logits[300:]).mask, cp.predict_p(logits[300:]) > 0.17)


@pytest.mark.parametrize("score", NAMES)
def test_probabilities_are_zero_outside_the_set_and_sum_to_one(rows, score):
    logits, labels = rows
    cp = SplitConformalClassifier(score).calibrate(logits[:300], labels[:300])
    sets, proba = cp.predict_set(logits[300:]), cp.predict_proba(logits[300:])
    assert not proba[~sets.mask].any()
    held = sets.sizes > 0
    np.testing.assert_allclose(proba[held].sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert not proba[~held].any()
    assert np.array_equal(sets.probabilities, proba[np.repeat(np.arange(300), sets.sizes), sets.indices])


def test_the_set_is_the_support_at_its_temperature(rows):
    logits, labels = rows
    cp = SplitConformalClassifier(gamma=1.5).calibrate(logits[:300], labels[:300])
    assert cp.temperature_ == 2 / cp.threshold_
    p = conformax.entmax(cp.temperature_ * logits[300:].astype(np.float64), 1.5)
    boundary = np.isclose(conformax.scores(logits[300:]), cp.threshold_)
    assert np.array_equal((p > 0)[~boundary], cp.predict_set(logits[300:]).mask[~boundary])
    np.testing.assert_allclose(cp.predict_proba(logits[300:]), p, rtol=0, atol=1e-12)


def test_there_is_no_temperature_outside_the_family(rows):
    assert SplitConformalClassifier("lac").calibrate(*rows).temperature_ is None


def test_coverage_follows_the_law():
    # 2,000 splits of 99 + 100 rows: the mean is 0.9 and its standard error about 0.0009.
    rng = np.random.default_rng(3)
    covered = []
    splits = 2000
    for _ in range(splits):
        labels = rng.integers(5, size=199)
        logits = rng.normal(size=(199, 5)) + 1.5 * np.eye(5)[labels]
        # A true label that is never on top leaves the entmax score without its atom at zero.
        logits[np.arange(199), labels] = np.minimum(logits[np.arange(199), labels], logits.max(axis=1) - 1e-3)
        cp = SplitConformalClassifier().calibrate(logits[:99], labels[:99])
        covered.append(cp.evaluate(logits[99:], labels[99:]).coverage)
    assert abs(np.mean(covered) - 0.9) < 4 * np.sqrt((0.9 * 0.1 / 100 + 0.9 * 0.1 / 101) / splits)


def test_a_list_of_levels_gives_one_result_each(rows):
    logits, labels = rows
    several = SplitConformalClassifier(alpha=[0.05, 0.2]).calibrate(logits[:300], labels[:300])
    for place, alpha in enumerate([0.05, 0.2]):
        one = SplitConformalClassifier(alpha=alpha).calibrate(logits[:300], labels[:300])
        assert several.threshold_[place] == one.threshold_
        assert several.temperature_[place] == one.temperature_
        assert several.predict_set(logits[300:])[place] == one.predict_set(logits[300:])
        assert several.predict_set(logits[300:])[place].alpha == alpha
        assert several.evaluate(logits[300:], labels[300:])[place].coverage == one.evaluate(
            logits[300:], labels[300:]
        ).coverage
        assert np.array_equal(several.predict_proba(logits[300:])[place], one.predict_proba(logits[300:]))


@pytest.mark.parametrize("confidence", [0.95, "0.95", Decimal("0.95"), np.float32(0.95)])
def test_confidence_is_complemented_in_decimal(rows, confidence):
    level = SplitConformalClassifier(confidence_level=confidence).calibrate(*rows)
    assert level.threshold_ == SplitConformalClassifier(alpha=0.05).calibrate(*rows).threshold_


def test_other_levels_can_be_asked_of_the_same_calibration(rows):
    logits, labels = rows
    cp = SplitConformalClassifier(alpha=0.1).calibrate(logits, labels)
    wanted = SplitConformalClassifier(alpha=0.3).calibrate(logits, labels).predict_set(logits)
    assert cp.predict_set(logits, alpha=0.3) == wanted


def test_impossible_true_labels_are_counted_wherever_thresholds_are(rows):
    logits, labels = rows[0].copy(), rows[1]
    spoilt = np.flatnonzero(labels == 3)
    logits[spoilt, 3] = -np.inf
    told = f"{len(spoilt)} of 600 true labels have logit -inf or a gap beyond all numbers, so at alpha = 0.05 sets are full"
    with pytest.warns(conformax.ConformaxWarning, match=told):
        SplitConformalClassifier(alpha=0.05).calibrate(logits, labels)
    n = len(spoilt)
    told = rf"true labels have logit -inf .* in 3 \({n} of {n} rows\), so at alpha = 0.1 their thresholds are infinite"
    with pytest.warns(conformax.ConformaxWarning, match=told):
        SplitConformalClassifier(by="class").calibrate(logits, labels)
    groups = np.where(np.arange(600) % 2, "north", "south")
    with pytest.warns(conformax.ConformaxWarning, match=r"in south \(.* rows\), so at alpha = 0.05 their"):
        cp = SplitConformalClassifier(by="group", alpha=0.05)
        cp.calibrate(np.where(groups[:, None] == "south", logits, rows[0]), labels, groups=groups)


def test_too_few_rows_warn_with_the_number_needed_and_give_full_sets(rows):
    logits, labels = rows
    cp = SplitConformalClassifier(alpha=0.05)
    with pytest.warns(ConformaxWarning, match="18 calibration rows are too few for alpha = 0.05.*at least 19 rows"):
        cp.calibrate(logits[:18], labels[:18])
    assert cp.threshold_ == np.inf and cp.temperature_ == 0
    assert (cp.predict_set(logits).sizes == 10).all()
    np.testing.assert_allclose(cp.predict_proba(logits[:3]), 0.1)


def test_a_threshold_of_zero_gives_the_top_label(rows):
    logits, _ = rows
    logits = logits + np.arange(10, dtype=np.float32) * 1e-3
    cp = SplitConformalClassifier().calibrate(logits, logits.argmax(axis=1))
    assert cp.threshold_ == 0 and cp.temperature_ == np.inf
    assert np.array_equal(np.concatenate(list(cp.predict_set(logits))), cp.predict(logits))


def test_objects_and_names_are_the_same_score(rows):
    for name, params, rule in [
        ("entmax", {"gamma": 1.2}, EntmaxScore(1.2)),
        ("raps", {"lambda_": 0.1, "k_reg": 2}, RapsScore(lambda_=0.1, k_reg=2)),
        ("lac", {}, conformax.InvProbScore()),
        ("thr", {}, conformax.InvProbScore()),
        ("entmax15", {}, EntmaxScore(1.5)),
        ("aps", {"randomized": False}, conformax.ApsScore(randomized=False)),
        ("saps", {"lambda_": 0.3, "random_state": 5}, conformax.SapsScore(0.3, random_state=5)),
        ("topk", {}, conformax.TopKScore()),
        ("margin", {}, conformax.MarginScore()),
    ]:
        by_name = SplitConformalClassifier(name, **params).calibrate(*rows)
        by_object = SplitConformalClassifier(rule).calibrate(*rows)
        assert np.array_equal(by_name.scores_, by_object.scores_), name


def test_randomness_depends_on_seed_and_row_alone(rows):
    logits, _ = rows
    both = conformax.scores(logits, score="aps")
    assert np.array_equal(both[::-1], conformax.scores(logits[::-1], score="aps"))
    assert np.array_equal(both[7:8], conformax.scores(logits[7:8], score="aps"))
    assert not np.array_equal(both, conformax.scores(logits, score="aps", random_state=1))


def test_class_names_go_through(rows):
    logits, labels = rows
    names = [f"class {index}" for index in range(10)]
    cp = SplitConformalClassifier().calibrate(logits, [names[label] for label in labels], classes=names)
    plain = SplitConformalClassifier().calibrate(logits, labels)
    assert cp.threshold_ == plain.threshold_
    assert cp.predict(logits).tolist() == [names[label] for label in plain.predict(logits)]
    assert cp.predict_set(logits)[0].tolist() == [names[label] for label in plain.predict_set(logits)[0]]
    with pytest.warns(conformax.ConformaxWarning, match="also calibrated"):
        found = cp.evaluate(logits, np.array(names)[labels], allow_seen=True)
        assert found.coverage == plain.evaluate(logits, labels, allow_seen=True).coverage
    with pytest.raises(ValueError, match="label at row 1 is 'owl', which is none of the 10 classes"):
        cp.evaluate(logits[:2], ["class 0", "owl"])


def test_masked_labels_enter_only_where_allowed(rows):
    logits, labels = rows
    masked = logits.copy()
    masked[:, 9] = -np.inf
    keep = labels != 9
    for policy, size in [("allowed", 10), ("never", 9)]:
        cp = SplitConformalClassifier(alpha=0.05, masked=policy)
        with pytest.warns(ConformaxWarning):
            cp.calibrate(masked[keep][:5], labels[keep][:5])
        assert (cp.predict_set(masked).sizes == size).all()
    row = int(np.flatnonzero(labels == 9)[0])
    with pytest.raises(ValueError, match=f"the true label 9 of row {row} has logit -inf"):
        SplitConformalClassifier(masked="never").calibrate(masked, labels)


def test_impossible_labels_have_no_p_value_and_no_part_in_tuning_where_never(rows):
    logits, labels = rows
    masked = logits.copy()
    masked[:, 9] = -np.inf
    keep = labels != 9
    given, few = (masked[keep], labels[keep]), (masked[keep][:5], labels[keep][:5])
    with pytest.warns(ConformaxWarning):
        allowed = SplitConformalClassifier(alpha=0.05).calibrate(*few)
        never = SplitConformalClassifier(alpha=0.05, masked="never").calibrate(*few)
    # With five rows the threshold is infinite: sets are all the labels there can be.
    assert (allowed.predict_p(masked)[:, 9] > 0.05).all() and (never.predict_p(masked)[:, 9] == 0).all()
    assert (never.predict_p(masked)[:, :9] == allowed.predict_p(masked)[:, :9]).all()
    row = int(np.flatnonzero(labels == 9)[0])
    for way in ("split", "all"):
        cp = SplitConformalClassifier(alpha=0.05, masked="never")
        with pytest.raises(ValueError, match="the true label 9 of row"):
            cp.tune(masked, labels, rows=way)
        cp.tune(*given, rows=way)
        assert 9 not in cp.predict_set(masked).indices
    with pytest.raises(ValueError, match=f"the true label 9 of row {row} has logit -inf"):
        SplitConformalClassifier(masked="never").tune(masked, labels, rows="all")
    # A candidate whose threshold is infinite, since gaps are beyond all numbers, has sets of 9 labels, not of 10.
    far = np.zeros((60, 10))
    far[:, 0], far[:, 1], far[:, 9] = 1e308, -1e308, -np.inf
    sizes = {}
    for policy in ("allowed", "never"):
        with pytest.warns(ConformaxWarning, match="36 of 36 true labels have logit -inf or a gap beyond all numbers"):
            cp = SplitConformalClassifier(alpha=0.1, masked=policy).tune(far, np.ones(60, dtype=int))
        sizes[policy] = [candidate["average_size"] for candidate in cp.tuning_["candidates"]]
    assert set(sizes["allowed"]) == {10.0} and set(sizes["never"]) == {9.0}


def test_empty_sets_become_the_top_label_on_request(rows):
    logits, labels = rows
    cp = SplitConformalClassifier("lac", alpha=0.6).calibrate(logits, labels)
    assert (cp.predict_set(logits).sizes == 0).any()
    filled = cp.clone().set_params(empty="top_label").calibrate(logits, labels).predict_set(logits)
    assert (filled.sizes > 0).all()


def test_tuning_keeps_the_rows_apart_and_calibrates_the_smallest(rows):
    logits, labels = rows
    cp = SplitConformalClassifier(alpha=0.1).tune(logits, labels, over="gamma")
    sizes = [candidate["average_size"] for candidate in cp.tuning_["candidates"]]
    assert cp.tuning_["chosen"] == int(np.argmin(sizes)) and len(sizes) == 9
    assert (cp.n_calibration_, cp.tuning_["n_tuning"]) == (360, 240)
    raps = SplitConformalClassifier("raps").tune(logits, labels, over=("lambda_", "k_reg"))
    assert len(raps.tuning_["candidates"]) == 4 * 2
    narrow = SplitConformalClassifier().tune(logits, labels, grid=[1.0, 2.0])
    assert [it["gamma"] for it in narrow.tuning_["candidates"]] == [1.0, 2.0]


def test_parameters_come_back_and_go_in():
    cp = SplitConformalClassifier("raps", lambda_=0.2, alpha="0.05", n_threads=1)
    assert cp.clone().get_params() == cp.get_params()
    assert repr(cp) == "SplitConformalClassifier('raps', alpha='0.05', lambda_=0.2, n_threads=1)"
    assert cp.set_params(k_reg=3) is cp and cp.k_reg == 3
    with pytest.raises(ValueError, match="there is no parameter 'kregg'"):
        cp.set_params(kregg=3)
    with pytest.raises(TypeError, match="classes come with the rows: give them to calibrate or tune"):
        SplitConformalClassifier(classes=["cat", "dog"])


def test_other_libraries_names_are_accepted_and_not_kept(rows):
    cp = SplitConformalClassifier("raps", lam_reg=0.2, kreg=3)
    assert (cp.lambda_, cp.k_reg) == (0.2, 3) and "kreg" not in cp.get_params()
    assert np.array_equal(
        conformax.scores(rows[0], score="raps", lam_reg=0.2, kreg=3),
        conformax.scores(rows[0], score="raps", lambda_=0.2, k_reg=3),
    )
    with pytest.raises(TypeError, match="no parameter 'k_regg'"):
        SplitConformalClassifier("raps", k_regg=3)


def test_penalty_is_the_score_objects_and_never_a_weight(rows):
    for call in (lambda **it: SplitConformalClassifier("raps", **it), lambda **it: conformax.scores(rows[0], **it)):
        with pytest.raises(TypeError, match="penalty is RapsScore's.*what TorchCP calls so is lambda_"):
            call(penalty=0.2)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"alpha": 0.1, "confidence_level": 0.95}, ValueError, "give alpha or confidence_level, not both"),
        ({"score": "raps", "lambda_": 0.5, "lam_reg": 0.1}, TypeError, "give lambda_ or lam_reg, not both"),
        ({"score": "raps", "k_reg": 5, "kreg": 5}, TypeError, "give k_reg or kreg, not both"),
        ({"score": conformax.ApsScore(), "randomized": False}, ValueError, "randomized belongs to the score object"),
        ({"score": "inv_prob", "randomized": False}, ValueError, "randomized is of scores that draw.*inv_prob does not"),
        ({"randomized": False}, ValueError, "entmax\\(gamma=1.5\\) does not"),
        ({"score": conformax.ApsScore(), "random_state": 7}, ValueError, "random_state=7 would not reach its draws"),
        ({"score": conformax.SapsScore(randomized=False, random_state=7)}, ValueError, "draws nothing: leave one out"),
    ],
)
def test_contradictions_are_refused(rows, params, error, message):
    with pytest.raises(error, match=message):
        SplitConformalClassifier(**params).calibrate(*rows)


def test_a_seed_beside_a_score_object_may_say_the_same(rows):
    def tuned(**params):
        return SplitConformalClassifier(**params).tune(*rows, over="lambda_")

    # The division of the rows has the classifier's seed, the draws have the object's.
    assert tuned(score=conformax.RapsScore(random_state=7), random_state=7).scores_.tolist() == tuned(
        score="raps", random_state=7
    ).scores_.tolist()
    plain = SplitConformalClassifier(conformax.EntmaxScore(1.3), random_state=7).calibrate(*rows)
    assert plain.threshold_ == SplitConformalClassifier(gamma=1.3).calibrate(*rows).threshold_


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"random_state": None}, TypeError, "random_state must be a whole number, got None"),
        ({"random_state": -1}, ValueError, "random_state must lie between 0 and 2\\*\\*64 - 1, got -1"),
        ({"n_threads": -1}, ValueError, "n_threads must lie between 1 and 1024, or be None for one per core, got -1"),
        ({"n_threads": 0}, ValueError, "n_threads must lie between 1 and 1024"),
        ({"n_threads": 10**6}, ValueError, "n_threads must lie between 1 and 1024"),
        ({"n_threads": 2.0}, TypeError, "n_threads must be a whole number, got 2.0"),
    ],
)
def test_numbers_out_of_range_are_refused_by_name(rows, params, error, message):
    logits, labels = rows
    for call in (
        lambda: SplitConformalClassifier("raps", **params).calibrate(logits, labels),
        lambda: SplitConformalClassifier("raps", **params).tune(logits, labels, over="lambda_"),
        lambda: conformax.scores(logits, score="raps", **params),
        lambda: conformax.compare(logits, labels, splits=1, **params),
    ):
        with pytest.raises(error, match=message):
            call()


def test_the_level_is_a_tenth_where_none_is_asked_for(rows):
    default = SplitConformalClassifier().calibrate(*rows)
    assert default.threshold_ == SplitConformalClassifier(alpha=0.1).calibrate(*rows).threshold_
    assert default.predict_set(rows[0]).alpha == 0.1


def test_threads_do_not_change_a_bit(rows):
    logits, labels = rows
    wide = np.tile(logits, (60, 20))
    one, two = (
        SplitConformalClassifier("raps", n_threads=n).calibrate(wide, np.tile(labels, 60)) for n in (1, 2)
    )
    assert np.array_equal(one.scores_, two.scores_)
    assert one.predict_set(wide) == two.predict_set(wide)


def test_conformalize_is_calibrate():
    assert SplitConformalClassifier.conformalize is SplitConformalClassifier.calibrate


def test_rows_that_calibrated_do_not_evaluate(rows):
    logits, labels = rows
    cp = SplitConformalClassifier().calibrate(logits[:300], labels[:300])
    with pytest.raises(ValueError, match="100 of 200 rows also calibrated or tuned this classifier, row 0 first"):
        cp.evaluate(logits[200:400], labels[200:400])
    with pytest.warns(conformax.ConformaxWarning, match="no law holds"):
        found = cp.evaluate(logits[200:400], labels[200:400], allow_seen=True)
    assert found.coverage_interval is None
    with pytest.raises(ValueError, match="no law to be held to"):
        found.expect_coverage()
    with pytest.warns(conformax.ConformaxWarning, match="5 of 305 rows .* may be chance"):
        assert cp.evaluate(logits[295:], labels[295:]).coverage_interval is not None


def test_equal_rows_are_no_evidence():
    rng = np.random.default_rng(0)
    votes = rng.integers(0, 4, size=(900, 3)).astype(float)
    labels = rng.integers(0, 3, size=900)
    cp = SplitConformalClassifier().calibrate(votes[:400], labels[:400])
    assert cp.evaluate(votes[400:], labels[400:]).n == 500
    with pytest.raises(ValueError, match="400 of 400 rows also calibrated or tuned this classifier, row 0 first"):
        cp.evaluate(votes[399::-1], labels[399::-1])


def test_an_evaluation_is_shown_as_a_table(rows):
    logits, labels = rows
    cp = SplitConformalClassifier().calibrate(logits[:300], labels[:300])
    found = cp.evaluate(logits[300:], labels[300:])
    lines = str(found).splitlines()
    assert len(lines) == 10 and lines[2].startswith("coverage ") and "the law says" in lines[2]
    assert lines[9].startswith("promise ")
    assert found.expect_coverage() is found
    with pytest.raises(ValueError, match="too low to be chance"):
        cp.evaluate(logits[300:], (labels[300:] + 5) % 10).expect_coverage()


def test_a_coverage_above_the_law_is_explained_where_the_threshold_is_zero():
    logits = np.column_stack([np.arange(1, 601), np.zeros(600)])
    labels = np.zeros(600, dtype=int)
    # Two of forty rows are wrong: the top label alone is right often enough, and always on the new rows.
    cp = SplitConformalClassifier().calibrate(logits[:40], np.arange(40) < 2)
    found = cp.evaluate(logits[40:], labels[40:])
    assert cp.threshold_ == 0 and found.coverage == 1.0 > found.coverage_interval[1]
    assert "; the top label alone is right often enough, so coverage is the accuracy" in str(found)
    wide = SplitConformalClassifier().calibrate(logits[:40], np.arange(40) < 20).evaluate(logits[40:], labels[40:])
    assert wide.threshold > 0 and "the top label" not in str(wide)


def test_a_grid_has_values_for_what_is_tuned_and_for_nothing_else(rows):
    for grid in ({"lambda": [0.1], "k_reg": [1]}, {"lambda_": [0.1]}, {"lambda_": [0.1], "k_reg": [1], "gamma": [2]}):
        with pytest.raises(ValueError, match="grid must have values for lambda_, k_reg, and has some for"):
            SplitConformalClassifier("raps").tune(*rows, over=("lambda_", "k_reg"), grid=grid)


def test_tuning_is_of_the_configured_score(rows):
    logits, labels = rows
    with pytest.raises(ValueError, match="this classifier's is 'inv_prob'"):
        SplitConformalClassifier("inv_prob").tune(logits, labels)
    with pytest.raises(ValueError, match="this classifier's is 'entmax'"):
        SplitConformalClassifier().tune(logits, labels, over="lambda_")
    rule = conformax.RapsScore(k_reg=3, penalty="fixed")
    tuned = SplitConformalClassifier(rule).tune(logits, labels, over="lambda_")
    assert {it["k_reg"] for it in tuned.tuning_["candidates"]} == {3}
    assert tuned._calibration.score.penalty == "fixed"
