"""Coverage where it matters, against the independent oracle's values (see fixtures/golden/README.md)."""

import collections
import functools
import json
import pickle
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import conformax
from conformax import AdaptiveLevel, Alarm, ConformaxWarning, SplitConformalClassifier, _conformax


@pytest.fixture(scope="module")
def oracle():
    return json.loads((Path(__file__).resolve().parents[2] / "fixtures" / "golden" / "methods.json").read_text())


class Rows:
    def __init__(self, file):
        self.logits, self.labels = np.array(file["logits"]), np.array(file["labels"])
        self.groups, self.weights = np.array(file["group"]), np.array(file["row_weight"], dtype=float)
        self.n = file["n_cal"]

    def calibrated(self, case, groups=False, weights=False, **parameters):
        cp = SplitConformalClassifier(gamma=case["gamma"], alpha=case["alpha"], **parameters)
        beside = self.beside(slice(None, self.n), groups, weights)
        with _quiet():
            return cp.calibrate(self.logits[: self.n], self.labels[: self.n], **beside)

    def beside(self, part, groups, weights):
        return {
            **({"groups": self.groups[part]} if groups else {}),
            **({"weights": self.weights[part]} if weights else {}),
        }

    def sets(self, cp, groups=False, weights=False, logits=None):
        rows = self.logits[self.n :] if logits is None else logits
        found = cp.predict_set(rows, **self.beside(slice(self.n, None), groups, weights))
        return [sorted(found.indices[a:b].tolist()) for a, b in zip(found.offsets, found.offsets[1:])]


@contextmanager
def _quiet():
    """Without the warnings that some groups have too few rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConformaxWarning)
        yield


@pytest.fixture(scope="module")
def rows(oracle):
    return Rows(oracle)


def cases(oracle, method):
    found = [case for case in oracle["cases"] if case["method"] == method]
    assert found
    return found


METHODS = {
    "by_class": lambda file: ({"by": "class"}, False, False),
    "by_cluster": lambda file: ({"by": file["cluster_of_label"]}, False, False),
    "by_group": lambda file: ({"by": "group"}, True, False),
    "row_weights": lambda file: ({}, False, True),
    "label_weights": lambda file: ({"label_weights": file["label_weight"]}, False, False),
    "severity_risk": lambda file: ({"severity": file["severity"]}, False, False),
    "cost_risk": lambda file: ({"cost": file["cost"]}, False, False),
}


@pytest.mark.parametrize("method", METHODS)
def test_sets_are_those_of_the_oracle_before_and_after_a_file(method, oracle, rows, tmp_path):
    parameters, groups, weights = METHODS[method](oracle)
    for case in cases(oracle, method):
        cp = rows.calibrated(case, groups, weights, **parameters)
        assert rows.sets(cp, groups, weights) == case["sets"]
        cp.save(tmp_path / "model.json")
        again = SplitConformalClassifier.load(tmp_path / "model.json")
        assert rows.sets(again, groups, weights) == case["sets"]
        assert again.promise_ == cp.promise_
        beside = rows.beside(slice(rows.n, None), groups, weights)
        if method.endswith("risk"):
            with pytest.raises(ValueError, match="p-values cannot be had with risk control"):
                cp.predict_p(rows.logits[rows.n :])
        else:
            p = cp.predict_p(rows.logits[rows.n :], **beside)
            inside = [np.flatnonzero(row > float(case["alpha"])).tolist() for row in p]
            assert inside == case["sets"]
        proba = cp.predict_proba(rows.logits[rows.n :], **beside)
        sets = cp.predict_set(rows.logits[rows.n :], **beside)
        for row, (a, b) in enumerate(zip(sets.offsets, sets.offsets[1:])):
            assert proba[row].sum() == pytest.approx(1.0 if b > a else 0.0)
            outside = np.setdiff1d(np.arange(8), sets.indices[a:b])
            assert not proba[row][outside].any()
            np.testing.assert_array_equal(sets.probabilities[a:b], proba[row][sets.indices[a:b]])


def test_thresholds_are_one_per_class_or_group(oracle, rows):
    case = cases(oracle, "by_group")[0]
    cp = rows.calibrated(case, True, by="group")
    assert cp.threshold_.tolist() == [float(case["threshold"][name]) for name in sorted(case["threshold"])]
    assert cp.temperature_ is None
    assert cp.promise_ == "coverage is at least 1 - alpha within every group of rows, on average"
    assert rows.calibrated(cases(oracle, "row_weights")[0], weights=True).threshold_ is None


def test_a_probability_over_calibration_rows_takes_a_higher_rank(oracle, rows):
    for case in oracle["pac"]:
        assert conformax.pac_rank(case["n"], case["alpha"], case["delta"]) == case["rank"]
    scores = np.sort(conformax.scores(rows.logits[: rows.n], rows.labels[: rows.n]))
    cp = SplitConformalClassifier(alpha=0.1, pac=0.05).calibrate(rows.logits[: rows.n], rows.labels[: rows.n])
    assert cp.threshold_ == scores[conformax.pac_rank(rows.n, 0.1, 0.05) - 1]
    assert cp.promise_.startswith("with probability 0.95 over the calibration rows")
    with pytest.raises(ValueError, match="pac cannot be had with severity"):
        SplitConformalClassifier(pac=0.05, severity=[1] * 8).calibrate(rows.logits, rows.labels)


def test_weights_of_labels_are_estimated(oracle, rows):
    shift = oracle["label_shift"]
    target = rows.logits[shift["target_rows"]]
    for method, error in (("em", 1e-9), ("bbse", 1e-12)):
        found = conformax.label_weights(rows.logits[: rows.n], rows.labels[: rows.n], target, method=method)
        np.testing.assert_allclose(found, shift[f"{method}_weights"], atol=error, rtol=0)
    cp = SplitConformalClassifier(alpha=0.1, label_weights=found).calibrate(rows.logits[: rows.n], rows.labels[: rows.n])
    assert cp.promise_.endswith("approximately, as the weights are estimated")
    with pytest.raises(ValueError, match="method must be"):
        conformax.label_weights(rows.logits, rows.labels, target, method="guess")


def test_equal_weights_and_a_severity_of_one_are_split_conformal(rows):
    plain = SplitConformalClassifier(alpha=0.1).calibrate(rows.logits[: rows.n], rows.labels[: rows.n])
    wanted = rows.sets(plain)
    tenth = np.full(rows.n, 0.1)
    weighted = SplitConformalClassifier(alpha=0.1).calibrate(rows.logits[: rows.n], rows.labels[: rows.n], weights=tenth)
    found = weighted.predict_set(rows.logits[rows.n :], weights=np.full(len(rows.logits) - rows.n, 0.1))
    assert [sorted(found.indices[a:b].tolist()) for a, b in zip(found.offsets, found.offsets[1:])] == wanted
    severe = SplitConformalClassifier(alpha=0.1, severity=[1] * 8).calibrate(rows.logits[: rows.n], rows.labels[: rows.n])
    assert rows.sets(severe) == wanted


def test_clusters_and_ranks():
    rng = np.random.default_rng(0)
    labels = rng.integers(12, size=4_000)
    logits = rng.normal(size=(4_000, 12)) + 3 * np.eye(12)[labels] * np.where(labels < 6, 1, 0.4)[:, None]
    cp = SplitConformalClassifier(alpha=0.1, clusters=2).calibrate(logits, labels)
    clusters = cp._calibration.clusters
    assert clusters[:6] == [clusters[0]] * 6 and clusters[6:] == [clusters[6]] * 6 and clusters[0] != clusters[6]
    assert cp.n_calibration_ < 4_000
    cut = SplitConformalClassifier(alpha=0.1, truncate_ranks=True).calibrate(logits, labels)
    assert cut.n_calibration_ == 2_400 and len(cut.threshold_) == 12
    ranks = np.array(cut._calibration.ranks)
    fresh = rng.normal(size=(50, 12))
    sets = cut.predict_set(fresh)
    place = (fresh[:, None, :] >= fresh[:, :, None]).sum(axis=2)
    assert all(place[row, label] <= ranks[label] for row, label in zip(np.repeat(np.arange(50), sets.sizes), sets.indices))
    with pytest.raises(ValueError, match="to find clusters at alpha = 0.1: of 60 classes the rarest has 9 rows; .* clusters of your own with by"):
        # Enough of each class for a plan, but not for a class among those that cluster.
        every = np.tile(np.arange(60), 9)
        SplitConformalClassifier(alpha=0.1, clusters=True).calibrate(9 * np.eye(60)[every], every)


def mixed(state: int) -> int:
    """One step of SplitMix64."""
    z = (state + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return z ^ z >> 31


def coins(logits, labels):
    """The coin of every row, by the definition in docs/methods.md."""
    rows = _conformax.row_fingerprints(logits).tolist()
    state = functools.reduce(lambda state, byte: mixed(state ^ byte), b"deal", mixed(0))
    together, copies, found = sum(map(mixed, rows)) % 2**64, collections.Counter(), []
    for row, label in zip(rows, labels.tolist()):
        one = functools.reduce(lambda state, value: mixed(mixed(state) ^ value), (together, label, row, copies[label, row]), state)
        copies[label, row] += 1
        found.append(mixed(one) >> 1)
    return np.array(found, dtype=np.float64)


def test_rows_are_dealt_out_by_the_definition():
    rng = np.random.default_rng(0)
    labels = rng.integers(12, size=4_000).astype(np.uint32)
    logits = rng.normal(size=(4_000, 12)) + 3 * np.eye(12)[labels] * np.where(labels < 6, 1, 0.4)[:, None]
    # Rows that come several times.
    again = rng.integers(30, size=600)
    logits[:600], labels[:600] = logits[again], labels[again]
    coin = coins(logits, labels)

    cp = SplitConformalClassifier(alpha=0.1, clusters=2).calibrate(logits, labels)
    least = np.bincount(labels).min()
    rest = coin * least >= (least * 12 // 87) * 2.0**63
    wanted = SplitConformalClassifier(alpha=0.1, by=cp._calibration.clusters).calibrate(logits[rest], labels[rest])
    assert cp.n_calibration_ == rest.sum() and cp.threshold_.tolist() == wanted.threshold_.tolist()

    cp = SplitConformalClassifier(alpha=0.1, truncate_ranks=True).calibrate(logits, labels)
    choosing = np.argsort(coin)[2_400:]
    place = (logits >= logits[np.arange(4_000), labels][:, None]).sum(axis=1)
    ranks = []
    for label in range(12):
        own = np.sort(place[choosing][labels[choosing] == label])
        ranks.append(int(own[conformax.conformal_rank(len(own), 0.05) - 1]))
    assert cp._calibration.ranks == ranks and cp.n_calibration_ == 2_400

    # In any order, and through any blocks.
    for asked in ({"clusters": True}, {"truncate_ranks": True}):
        cp = SplitConformalClassifier(alpha=0.1, **asked).calibrate(logits, labels)
        other = SplitConformalClassifier(alpha=0.1, **asked).calibrate(logits[::-1], labels[::-1])
        assert cp._calibration.to_json() == other._calibration.to_json()


def test_rows_to_be_dealt_out_are_merged_and_sent_as_bytes():
    rng = np.random.default_rng(1)
    labels = rng.integers(12, size=2_000).astype(np.uint32)
    logits = rng.normal(size=(2_000, 12)) + 3 * np.eye(12)[labels]
    for by, asked in (("found_cluster", {"clusters": 3}), ("ranked_class", {"truncate_ranks": True})):
        cp = SplitConformalClassifier(alpha=0.1, **asked).calibrate(logits, labels)
        rule = _conformax.Rule(by, count=asked.get("clusters"))
        empty = _conformax.Calibrator(SplitConformalClassifier()._rule(), 12, rule=rule).to_bytes()
        parts = [_conformax.Partial.from_bytes(empty) for _ in range(3)]
        for number, part in enumerate(parts):
            part.extend(logits[number::3], labels[number::3])
        parts[2].merge(parts[0])
        parts[2].merge(parts[1])
        found = _conformax.Calibrator.from_bytes(parts[2].to_bytes()).finish(["0.1"])
        assert found.to_json() == cp._calibration.to_json()


def test_a_prior_is_taken_out_of_the_rows_that_are_predicted(rows, tmp_path):
    shares = np.array([0.3, 0.02, 0.05, 0.2, 0.1, 0.13, 0.15, 0.05])
    logits = rows.logits - _conformax.logarithms(shares)
    adjusted = SplitConformalClassifier(alpha=0.1, prior=shares)
    adjusted.calibrate(rows.logits[: rows.n], rows.labels[: rows.n])
    by_hand = SplitConformalClassifier(alpha=0.1).calibrate(logits[: rows.n], rows.labels[: rows.n])
    assert adjusted.threshold_ == by_hand.threshold_
    wanted = rows.sets(by_hand, logits=logits[rows.n :])
    assert rows.sets(by_hand) != wanted
    adjusted.save(tmp_path / "model.json")
    loaded = SplitConformalClassifier.load(tmp_path / "model.json")
    for cp in (adjusted, loaded, pickle.loads(pickle.dumps(loaded))):
        assert rows.sets(cp) == wanted
        p = by_hand.predict_p(logits[rows.n :])
        np.testing.assert_array_equal(cp.predict_p(rows.logits[rows.n :]), p)
        np.testing.assert_array_equal(cp.predict(rows.logits[rows.n :]), by_hand.predict(logits[rows.n :]))


def test_evaluation_counts_groups_apart(rows):
    cp = SplitConformalClassifier(alpha=0.1, by="group")
    with _quiet():
        cp.calibrate(rows.logits[:120], rows.labels[:120], groups=rows.groups[:120])
        found = cp.evaluate(rows.logits[120:], rows.labels[120:], groups=rows.groups[120:])
    sets = cp.predict_set(rows.logits[120:], groups=rows.groups[120:])
    for name, group in found.groups.items():
        own = rows.groups[120:] == name
        covered = sets.mask[np.arange(len(own)), rows.labels[120:]][own]
        assert group["n"] == own.sum() and group["coverage"] == pytest.approx(covered.mean())
        assert group["interval"][0] <= group["coverage"] <= group["interval"][1]
    shown = str(found).splitlines()
    [promise] = [line for line in shown if line.startswith("promise ")]
    assert promise.endswith(f"  {cp.promise_}; not within each class or another group")
    heading = next(place for place, line in enumerate(shown) if line.split()[:3] == ["group", "rows", "coverage"])
    worst = sorted(found.groups, key=lambda name: found.groups[name]["coverage"])
    for line, name in zip(shown[heading + 1 :], worst):
        group = found.groups[name]
        bar, cells = "█" * int(group["coverage"] * 16 + 1 / 16), line.split()
        assert cells[:3] == [name, f"{group['n']:,}", f"{group['coverage']:.4f}"] and cells[3].startswith(bar)
        assert cells[-1] == f"{group['average_size']:.4f}"
    short = 0.9 - found.groups[worst[0]]["coverage"]
    note = f"The worst of {len(worst)} groups is {short:.4f} short of 0.9. The worst of many always looks bad"
    assert (note in str(found)) == (short > 0)
    plain = SplitConformalClassifier(alpha=0.1).calibrate(rows.logits[:120], rows.labels[:120])
    assert set(plain.evaluate(rows.logits[120:], rows.labels[120:], groups=rows.groups[120:]).groups) == set(rows.groups)
    by_class = plain.evaluate(rows.logits[120:], rows.labels[120:], by="class")
    assert by_class.groups["3"]["coverage"] == pytest.approx(by_class.class_coverage[3])
    lossy = SplitConformalClassifier(alpha=0.1, severity=[1.0] * 8).calibrate(rows.logits[:120], rows.labels[:120])
    result = lossy.evaluate(rows.logits[120:], rows.labels[120:])
    assert result.mean_loss == pytest.approx(1 - result.coverage)


def test_too_few_rows_of_a_class_or_group_are_named(rows):
    with pytest.warns(ConformaxWarning, match=r"of 0 \(50 rows\).* each needs at least 99"):
        cp = SplitConformalClassifier(alpha=0.01, by="class").calibrate(rows.logits[: rows.n], rows.labels[: rows.n])
    assert np.isinf(cp.threshold_).all()
    groups = np.where(np.arange(rows.n) < 5, "few", "many")
    with pytest.warns(ConformaxWarning, match=r"for alpha = 0.1 of few \(5 rows\), .* each needs at least 9"):
        cp = SplitConformalClassifier(by="group").calibrate(rows.logits[: rows.n], rows.labels[: rows.n], groups=groups)
    assert np.isinf(cp.threshold_).tolist() == [True, False]


def test_what_does_not_fit_is_refused(rows):
    logits, labels = rows.logits[: rows.n], rows.labels[: rows.n]

    def calibrate(beside=None, **parameters):
        return SplitConformalClassifier(alpha=0.1, **parameters).calibrate(logits, labels, **(beside or {}))

    for message, call in {
        "groups of rows need": lambda: calibrate({"groups": rows.groups[: rows.n]}),
        "needs the groups": lambda: calibrate(by="group"),
        "shape": lambda: calibrate({"weights": [1.0]}),
        "weight of row 3": lambda: calibrate({"weights": np.where(np.arange(rows.n) == 3, -1.0, 1.0)}),
        "weight of row 7 must be a finite number of at least 0, got NaN": lambda: calibrate(
            {"weights": np.where(np.arange(rows.n) == 7, np.nan, 1.0)}
        ),
        "at least one weight must be positive": lambda: calibrate({"weights": np.zeros(rows.n)}),
        "weight of class 2 must be a finite number of at least 0, got NaN": lambda: calibrate(
            label_weights=[1, 1, np.nan, 1, 1, 1, 1, 1]
        ),
        "one weight must be positive, and all are 0": lambda: calibrate(label_weights=[0] * 8),
        "at least one severity must be positive": lambda: calibrate(severity=[0] * 8),
        "by and severity": lambda: calibrate(by="class", severity=[1] * 8),
        "8 classes": lambda: calibrate(by=[0, 1]),
        "one per class": lambda: calibrate(severity=[1, 2]),
        "true label of class 2 must be 0": lambda: calibrate(cost=np.diag([0, 0, 1, 1, 0, 0, 0, 0])),
        "prior of class 1": lambda: calibrate(prior=[1, 0, 1, 1, 1, 1, 1, 1]),
        "weight of class 0": lambda: calibrate(label_weights=[-1, 1, 1, 1, 1, 1, 1, 1]),
        "left out": lambda: calibrate(by={label: 0 for label in range(7)}),
    }.items():
        with pytest.raises(ValueError, match=message):
            call()
    cp = calibrate({"groups": rows.groups[: rows.n]}, by="group")
    with pytest.raises(ValueError, match="'south', which is none of those that calibrated"):
        cp.predict_set(rows.logits[:1], groups=["south"])
    with pytest.raises(ValueError, match="'south', which is none of those that calibrated"):
        cp.evaluate(rows.logits[rows.n :], rows.labels[rows.n :], groups=["south"] * (len(rows.labels) - rows.n))
    with pytest.raises(ValueError, match="give the groups"):
        cp.predict_set(rows.logits[:1])
    weighted = calibrate({"weights": np.ones(rows.n)})
    for bad, shown in ((-1.0, "-1"), (np.nan, "NaN")):
        with pytest.raises(ValueError, match=f"weight of row 1 must be a finite number of at least 0, got {shown}"):
            weighted.predict_set(rows.logits[:2], weights=[1.0, bad])


def test_what_is_no_number_is_named_by_argument_and_place(rows):
    logits, labels = rows.logits[: rows.n], rows.labels[: rows.n]
    costs = (1 - np.eye(8)).tolist()

    def calibrate(**parameters):
        return SplitConformalClassifier(alpha=0.1, **parameters).calibrate(logits, labels)

    def with_row(row):
        return [*costs[:3], row, *costs[4:]]

    for parameters, message in (
        ({"cost": with_row([1.0])}, r"cost: wanted 8 rows of 8 numbers, got shape \(1,\) in row 3"),
        ({"cost": with_row([*costs[3][:5], "a", 1, 1])}, "cost: row 3: wanted a number for class 5, got 'a'"),
        ({"cost": with_row([*costs[3][:5], "1", 1, 1])}, "cost: row 3: wanted a number for class 5, got '1'"),
        ({"cost": with_row("costly")}, "cost: row 3: wanted numbers, got 'costly'"),
        ({"cost": np.array(costs).astype(str)}, "cost: row 0: wanted a number for class 0, got '0.0'"),
        ({"cost": costs[:7]}, "cost: wanted 8 rows of 8 numbers, got 7 rows"),
        ({"cost": 3}, "cost: wanted 8 rows of 8 numbers, got 3"),
        ({"severity": [1, 2, "a", 1, 1, 1, 1, 1]}, "severity: wanted a number for class 2, got 'a'"),
        ({"severity": [1, 2, [3], 1, 1, 1, 1, 1]}, r"severity: wanted a number for class 2, got \[3\]"),
        ({"severity": dict.fromkeys(range(8), None)}, "severity: wanted a number for class 0, got None"),
        ({"severity": "high"}, "severity: wanted numbers, got 'high'"),
        ({"label_weights": ["1"] * 8}, "label_weights: wanted a number for class 0, got '1'"),
        ({"prior": [*[0.1] * 7, "a"]}, "prior: wanted a number for class 7, got 'a'"),
    ):
        with pytest.raises(ValueError, match=f"^{message}"):
            calibrate(**parameters)
    with pytest.raises(ValueError, match="^weights: wanted a number for row 1, got None"):
        SplitConformalClassifier().calibrate(logits[:3], labels[:3], weights=[1, None, 1])
    names = [f"c{label}" for label in range(8)]
    with pytest.raises(ValueError, match="^severity: wanted a number for class 'c1', got 'a'"):
        severity = dict.fromkeys(names, 1) | {"c1": "a"}
        SplitConformalClassifier(severity=severity).calibrate(logits, labels, classes=names)
    # Truth values and exact numbers are numbers, in lists and in arrays.
    wanted = calibrate(cost=costs).threshold_
    for same in (~np.eye(8, dtype=bool), (~np.eye(8, dtype=bool)).tolist(), np.array(costs, dtype=object)):
        assert calibrate(cost=same).threshold_ == wanted


def test_the_gate_holds_every_group(rows):
    logits, labels, groups = rows.logits, rows.labels, rows.groups
    new, n = slice(rows.n, None), rows.n
    # The rows of one region with their logits turned round, twenty times over and none like another.
    turned = np.where((groups == "west")[:, np.newaxis], -10 * logits, logits)[new]
    many = np.concatenate([turned + 1e-3 * copy for copy in range(20)])
    truth, of = np.tile(labels[new], 20), np.tile(groups[new], 20)
    with _quiet():
        by_group = SplitConformalClassifier(alpha=0.1, by="group").calibrate(logits[:n], labels[:n], groups=groups[:n])
        by_class = SplitConformalClassifier(alpha=0.1, by="class").calibrate(logits[:n], labels[:n])
        assert by_group.evaluate(logits[new], labels[new], groups=groups[new]).expect_coverage()
        assert by_class.evaluate(logits[new], labels[new]).expect_coverage()
        plain = SplitConformalClassifier(alpha=0.1).calibrate(logits[:n], labels[:n])
        for model in (by_group, plain):
            found = model.evaluate(many, truth, groups=of)
            assert found.groups["west"]["verdict"] == "too low"
            with pytest.raises(ValueError, match="too low to be chance"):
                found.expect_coverage()
        # A bound on a loss says nothing of coverage, by whatever rows are counted.
        severe = SplitConformalClassifier(alpha=0.1, severity=[1] * 8).calibrate(logits[:n], labels[:n])
        for apart in ({}, {"groups": of}, {"by": "class"}):
            found = severe.evaluate(many, truth, **apart)
            assert {group["verdict"] for group in (found.groups or {}).values()} <= {None}
            assert "short of" not in str(found)
            with pytest.raises(ValueError, match="no law to be held to here: .* coverage is not promised"):
                found.expect_coverage()


def test_classes_of_no_cluster_are_promised_nothing(rows, tmp_path):
    # The last class has too few rows to be clustered.
    counts, rng = [40] * 59 + [9], np.random.default_rng(0)
    labels = np.repeat(np.arange(60), counts)
    logits = rng.normal(size=(len(labels), 60)) + 4 * np.eye(60)[labels]
    with _quiet():
        cp = SplitConformalClassifier(alpha=0.1, clusters=True).calibrate(logits, labels)
    assert cp._calibration.clusters[-1] is None and cp.groups_[-1] == "no cluster"
    assert "(classes of no cluster are promised nothing)" in cp.promise_
    truth = np.concatenate([np.repeat(np.arange(59), 40), np.full(40, 59)])
    new = rng.normal(size=(len(truth), 60)) + 4 * np.eye(60)[truth]
    new[truth == 59, 59] -= 20
    found = cp.evaluate(new, truth)
    assert found.groups["no cluster"]["coverage"] == 0 and found.groups["no cluster"]["verdict"] is None
    assert found.expect_coverage() is found


def test_weights_and_columns_go_by_name(rows, tmp_path):
    pandas = pytest.importorskip("pandas")
    names = [f"c{label}" for label in range(8)]
    frame = pandas.DataFrame(rows.logits, columns=names)
    known, new, labels = frame[: rows.n], frame[rows.n :], rows.labels[: rows.n]
    cp = SplitConformalClassifier(alpha=0.1).calibrate(known, labels)
    cp.save(tmp_path / "model.json")
    assert json.loads((tmp_path / "model.json").read_text())["class_names"] == names
    again = SplitConformalClassifier.load(tmp_path / "model.json").predict_set(new[names[::-1]])
    assert again.indices.tolist() == cp.predict_set(new).indices.tolist()
    with pytest.raises(ValueError, match="in the order of the columns"):
        SplitConformalClassifier().calibrate(known, labels, classes=names[::-1])
    weights = conformax.label_weights(known, labels, new)
    assert conformax.label_weights(known, labels, new[names[::-1]]).tolist() == weights.tolist()
    turned = SplitConformalClassifier(alpha=0.1, label_weights=weights)
    turned.calibrate(known[names[::-1]], 7 - labels)
    straight = SplitConformalClassifier(alpha=0.1, label_weights=weights).calibrate(known, labels)
    assert turned.threshold_[::-1].tolist() == straight.threshold_.tolist()


def test_groups_are_called_what_a_table_calls_them(rows):
    import datetime

    n = 40
    logits, labels = rows.logits[:n], rows.labels[:n]

    def groups_of(values):
        with _quiet():
            return SplitConformalClassifier(alpha=0.1, by="group").calibrate(logits, labels, groups=values).groups_

    half = [False, True] * (n // 2)
    assert groups_of(half) == groups_of(np.array(half)) == ["false", "true"]
    assert groups_of([b"east", "west"] * (n // 2)) == ["east", "west"]
    day = np.array(["2020-01-01", "2020-01-02"] * (n // 2), dtype="datetime64[ns]")
    assert groups_of(day) == ["2020-01-01T00:00:00", "2020-01-02T00:00:00"]
    assert groups_of([datetime.date(2020, 1, 1)] * n) == ["2020-01-01"]
    masked = np.ma.array(half, mask=[row == 3 for row in range(n)])
    for bad, says in (
        (["a"] * 3 + [float("nan")] * (n - 3), "row 3 has no group"),
        (["a"] * 5 + [None] * (n - 5), "row 5 has no group"),
        (masked, "groups: the entry at \\(3,\\) is masked"),
    ):
        with pytest.raises(ValueError, match=says):
            groups_of(bad)
    with pytest.raises(ValueError, match="has no cluster"):
        SplitConformalClassifier(by=[0, 0, 1, 1, 1, 1, 1, None]).calibrate(logits, labels)
    with pytest.raises(ValueError, match="severity: the entry at"):
        SplitConformalClassifier(severity=np.ma.array([1.0] * 8, mask=[0] * 7 + [1])).calibrate(logits, labels)
    with pytest.raises(ValueError, match="entmax at one gamma"):
        SplitConformalClassifier("sparsemax").tune(logits, labels)


def test_weighted_p_values_are_rounded_once():
    logits = np.column_stack([np.zeros(9), -np.arange(1.0, 10.0)])
    cp = SplitConformalClassifier("log_margin").calibrate(logits, np.ones(9, dtype=int), weights=np.full(9, 0.1))
    found = cp.predict_p([[0.0, -float(gap)] for gap in range(1, 10)], weights=np.full(9, 0.1))[:, 1]
    assert found.tolist() == [(10 - rank) / 10 for rank in range(9)]


def test_a_series_goes_by_its_names(rows):
    pandas = pytest.importorskip("pandas")
    names = np.array([f"c{label}" for label in range(8)])
    labels = names[rows.labels[: rows.n]]
    severity = np.arange(1.0, 9.0) / 8

    def calibrated(**parameters):
        return SplitConformalClassifier(alpha=0.1, **parameters).calibrate(rows.logits[: rows.n], labels, classes=names)

    turned = pandas.Series(severity, index=names)[names[::-1]]
    assert calibrated(severity=turned).threshold_ == calibrated(severity=severity).threshold_
    cost = np.abs(np.subtract.outer(severity, severity))
    frame = pandas.DataFrame(cost, index=names, columns=names).loc[names[::-1], names[::-1]]
    assert calibrated(cost=frame).threshold_ == calibrated(cost=cost).threshold_
    with pytest.raises(ValueError, match="index of the series"):
        calibrated(severity=pandas.Series(severity, index=names.astype("U1") + np.arange(8).astype(str) + "x"))
    assert "severity" in repr(SplitConformalClassifier(severity=severity))
    with pytest.raises(ValueError, match="at least 1"):
        calibrated(clusters=0)
    with pytest.raises(ValueError, match="no p-values"):
        calibrated(pac=0.05).predict_p(rows.logits[:1])
    with pytest.raises(ValueError, match="has no group"):
        SplitConformalClassifier(by="group").calibrate(rows.logits[:2], rows.labels[:2], groups=["a", None])
    with pytest.raises(ValueError, match="between 0 and 1"):
        AdaptiveLevel(0.1).update(float("nan"))


def test_streams_are_those_of_the_oracle(oracle):
    stream, alarm = oracle["stream"], oracle["alarm"]
    for name, adaptive in {
        "constant_step_0.05": AdaptiveLevel(0.1, step=0.05),
        "decaying_step": AdaptiveLevel(0.1, step=0.2, decay=0.6),
    }.items():
        for p, level, missed in zip(stream["p_values"], stream[name]["level"], stream[name]["missed"]):
            assert adaptive.level == pytest.approx(level, abs=1e-13)
            assert adaptive.update(p) == bool(missed)
        assert adaptive.misses == sum(stream[name]["missed"]) and adaptive.rows == len(stream["p_values"])
    logits, labels, n = np.array(oracle["logits"]), np.array(oracle["labels"]), oracle["n_cal"]
    betting = Alarm(conformax.scores(logits[:n], labels[:n], gamma=stream["gamma"]), jump=alarm["jump"])
    for score, u, capital in zip(stream["scores"], alarm["u"], alarm["capital"]):
        assert betting.update(score, u) == pytest.approx(capital, rel=1e-10)
    assert betting.log_capital == pytest.approx(np.log(alarm["capital"][-1]))
    with pytest.raises(ValueError, match="NaN"):
        betting.update(float("nan"))
