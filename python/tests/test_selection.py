"""Tuning that sets no rows aside: the sets of the definition, through every face."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from conformax import ConformaxWarning, SplitConformalClassifier, Stream, _conformax


def kth(scores: np.ndarray, rank: int) -> float:
    return float(np.sort(scores)[rank - 1])


def by_definition(grid, logits, labels, row, alpha):
    """The set of a row by the definition, from the scores of all labels of all rows."""
    n = len(labels)
    rank = int(np.ceil((n + 1) * (1 - alpha) - 1e-9))
    every = [_conformax.score_all(score, np.vstack([logits, row])) for score in grid]
    every = [np.asarray(scores).reshape(n + 1, -1) for scores in every]
    found = []
    for label in range(logits.shape[1]):
        pairs = []
        for scores in every:
            truth = np.append(scores[np.arange(n), labels], scores[n, label])
            pairs.append(int((scores <= kth(truth, rank)).sum()))
        winner = every[int(np.argmin(pairs))]
        if winner[n, label] <= kth(winner[np.arange(n), labels], rank):
            found.append(label)
    return found


@pytest.fixture
def model(rows):
    return SplitConformalClassifier(alpha=0.1).tune(rows[0][:300], rows[1][:300], rows="all")


@pytest.mark.parametrize("score, over", [("entmax", "gamma"), ("raps", ("lambda_", "k_reg"))])
def test_sets_are_those_of_the_definition(rows, score, over):
    logits, labels = rows
    small, truth = logits[:39], labels[:39]
    cp = SplitConformalClassifier(score, alpha=0.2).tune(small, truth, over=over, rows="all")
    from conformax._tuning import grid_over

    grid = grid_over(over, None, 10, cp)
    sets = cp.predict_set(logits[100:160])
    for row, found in zip(logits[100:160], sets):
        assert sorted(found) == by_definition(grid, small, truth, row[None], 0.2)
    assert sum(candidate["alive"] for candidate in cp.tuning_["candidates"]) > 1


def test_all_rows_choose_and_calibrate(rows, model):
    logits, labels = rows
    candidates = model.tuning_["candidates"]
    assert model.n_calibration_ == model.tuning_["n_tuning"] == 300
    assert sum(candidate["wins"] for candidate in candidates) == 300
    leader = candidates[model.tuning_["chosen"]]
    assert leader["alive"] and leader["average_size"] == min(it["average_size"] for it in candidates)
    assert model.threshold_ == leader["threshold"]
    assert model.promise_ == "coverage is at least 1 - alpha over all rows, exactly; no law of realised coverage"
    assert model.scores_ is None
    found = model.evaluate(logits[300:], labels[300:])
    sets = model.predict_set(logits[300:])
    assert found.average_size == sets.sizes.mean()
    assert found.coverage == sets.mask[np.arange(300), labels[300:]].mean() > 0.85
    assert found.coverage_interval is None and found.verdict is None
    p = model.predict_proba(logits[300:])
    assert np.allclose(p.sum(axis=1), 1) and not p[~sets.mask].any()


def test_one_candidate_is_split_conformal_prediction(rows):
    logits, labels = rows
    one = SplitConformalClassifier().tune(logits[:300], labels[:300], grid=[1.4], rows="all")
    plain = SplitConformalClassifier(gamma=1.4).calibrate(logits[:300], labels[:300])
    assert one.predict_set(logits[300:]) == plain.predict_set(logits[300:])
    assert one.temperature_ == plain.temperature_


def test_what_it_cannot_give_is_refused_with_the_reason(rows, model):
    logits, labels = rows
    with pytest.raises(ValueError, match="this classifier chooses its score for one level, and p-values are of all"):
        model.predict_p(logits)
    with pytest.raises(ValueError, match="chosen by all rows at alpha 0.1, and at 0.2 the choice may be another"):
        model.predict_set(logits, alpha=0.2)
    with pytest.raises(ValueError, match="chosen by all rows at alpha 0.1, and at 0.2 the choice may be another"):
        model.predict_proba(logits, alpha=0.2)
    with pytest.raises(ValueError, match="cannot be streamed: its score was chosen by all rows at one level"):
        Stream(model)
    for words, kwargs in [
        ('"split" or "all", got \'some\'', {"rows": "some"}),
        ("none are set aside", {"rows": "all", "tuning_size": 0.3}),
    ]:
        with pytest.raises(ValueError, match=words):
            SplitConformalClassifier().tune(logits, labels, **kwargs)
    with pytest.raises(ValueError, match="one threshold"):
        SplitConformalClassifier(by="class").tune(logits, labels, rows="all")
    with pytest.raises(ValueError, match="300 of 300 rows also calibrated"):
        model.evaluate(logits[:300], labels[:300])
    with pytest.warns(ConformaxWarning, match="too few for alpha = 0.001, so sets are full"):
        full = SplitConformalClassifier(alpha=0.001).tune(logits, labels, rows="all")
    assert (full.predict_set(logits).sizes == 10).all()


def test_files_and_pickles_keep_it(rows, model, tmp_path, capfd):
    logits, _ = rows
    path = tmp_path / "model.json"
    model.save(path)
    wanted = model.predict_set(logits)
    for again in (SplitConformalClassifier.load(path), pickle.loads(pickle.dumps(model))):
        assert again.predict_set(logits) == wanted
        assert again.tuning_ == model.tuning_
        assert again.promise_ == model.promise_
        again.save(tmp_path / "again.json")
        assert (tmp_path / "again.json").read_bytes() == path.read_bytes()
    assert _conformax.run_command(["conformax", "inspect", str(path), "--json"]) == 0
    shown = json.loads(capfd.readouterr().out)
    assert [it["wins"] for it in shown["candidates"]] == [it["wins"] for it in model.tuning_["candidates"]]


def test_a_mix_of_scores_is_read_from_its_file(rows, tmp_path, capfd):
    logits, labels = rows
    entmax = [_conformax.Score("entmax", gamma=gamma) for gamma in (1.1, 1.5)]
    grid = [*entmax, _conformax.Score("inv_prob")]
    calibration = _conformax.select(grid, logits[:39], labels[:39].astype(np.uint32), "0.2")
    path = tmp_path / "mix.json"
    path.write_text(calibration.to_json())
    cp = SplitConformalClassifier.load(path)
    candidates = cp.tuning_["candidates"]
    assert [it["score"] for it in candidates] == ["entmax", "entmax", "inv_prob"]
    assert sum(it["wins"] for it in candidates) == 39
    sets = cp.predict_set(logits[100:160])
    for row, found in zip(logits[100:160], sets):
        assert sorted(found) == by_definition(grid, logits[:39], labels[:39], row[None], 0.2)
    found = cp.evaluate(logits[100:], labels[100:])
    assert found.average_size == cp.predict_set(logits[100:]).sizes.mean() and found.coverage_interval is None
    assert _conformax.run_command(["conformax", "inspect", str(path), "--json"]) == 0
    shown = json.loads(capfd.readouterr().out)
    assert [it["wins"] for it in shown["candidates"]] == [it["wins"] for it in candidates]


def test_every_way_to_give_rows_gives_the_same_sets(rows, model):
    logits, _ = rows
    wanted = model.predict_set(logits)
    strided = np.repeat(logits, 2, axis=1)[:, ::2]
    for given in (logits.astype(np.float64), logits.tolist(), strided, np.asfortranarray(logits)):
        assert model.predict_set(given) == wanted
    one_by_one = [list(model.predict_set(row[None])[0]) for row in logits[:50]]
    assert one_by_one == [list(labels) for labels in wanted[:50]]


def test_polars(rows, model):
    pl = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    import conformax.polars  # noqa: F401

    frame = pl.DataFrame({"logits": rows[0]}).lazy()
    found = frame.select(pl.col("logits").conformax.sets(model)).collect()["logits"].to_list()
    assert found == [list(labels) for labels in model.predict_set(rows[0])]
    with pytest.raises(ValueError, match="p-values are of all levels"):
        pl.col("logits").conformax.p_values(model)


def test_threads_and_parts_do_not_show(rows):
    logits, labels = rows
    files = [
        SplitConformalClassifier(n_threads=threads).tune(logits, labels, rows="all")._calibration.to_json()
        for threads in (1, 3)
    ]
    assert files[0] == files[1]
    grid = [_conformax.Score("entmax", gamma=gamma) for gamma in (1.2, 1.5, 1.8)]
    parts = [_conformax.Partial.tuner(grid, 10, "0.1") for _ in range(2)]
    halves = [slice(0, 250), slice(250, 600)]
    for part, half in zip(parts, halves):
        part.extend(logits[half], labels[half].astype(np.uint32))
    parts[0].merge(parts[1])
    pairs = parts[0].pairs_pass().to_bytes()
    counted = [_conformax.Partial.from_bytes(pairs) for _ in range(2)]
    for part, half in zip(counted, halves):
        part.extend(logits[half], labels[half].astype(np.uint32))
    counted[1].merge(counted[0])
    merged = counted[1].selected().selection
    whole = SplitConformalClassifier().tune(logits, labels, grid=[1.2, 1.5, 1.8], rows="all")._calibration.selection
    assert merged[0] == whole[0] and [it[1:4] for it in merged[1]] == [it[1:4] for it in whole[1]]
