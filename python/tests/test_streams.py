"""Streams: sets at the level of their time, labels late or never, and pickles that go on with the same bits."""

import pickle
import threading

import numpy as np
import pytest
from conformax import AdaptiveLevel, Alarm, SplitConformalClassifier, Stream

CLASSES = 6


def rows(n, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(CLASSES, size=n)
    logits = rng.normal(size=(n, CLASSES))
    logits[np.arange(n), labels] += 1.5
    return logits, labels


@pytest.fixture(scope="module")
def model():
    return SplitConformalClassifier(alpha=0.1).calibrate(*rows(400, 0))


def run(stream, logits, labels, first=0):
    """Predicts every row and labels all but every third, one row late; all that can be seen of it."""
    seen = []
    for row in range(first, len(labels)):
        sets = stream.predict_set(logits[row], ids=[row])
        seen.append((sets[0], sets.alpha))
        if row > 0 and row % 3:
            seen.append(stream.update(row - 1, labels[row - 1]))
        seen.append(stream.status)
    return seen


def test_a_fixed_level_gives_the_sets_of_the_classifier(model):
    logits, labels = rows(100, 1)
    stream = Stream(model, step=0, decay=None)
    wanted = model.predict_set(logits)
    for row in range(100):
        sets = stream.predict_set(logits[row : row + 1])
        assert list(sets[0]) == list(wanted[row])
        told = stream.update(row, labels[row])
        assert told.outcome == "counted" and told.covered == (labels[row] in list(wanted[row]))
    assert stream.level == 0.1 and stream.status["labelled"] == 100


def test_pickles_go_on_with_the_same_bits(model):
    logits, labels = rows(60, 2)
    whole = run(Stream(model), logits, labels)
    for cut in (0, 7, 31, 60):
        stream = Stream(model)
        before = run(stream, logits[:cut], labels[:cut])
        again = pickle.loads(pickle.dumps(stream))
        assert repr(again) == repr(stream)
        np.testing.assert_equal(before + run(again, logits, labels, first=cut), whole)


def test_levels_and_alarms_pickle_and_say_what_they_are():
    adaptive, alarm = AdaptiveLevel(0.1, step=0.2, decay=0.6), Alarm([1.0, 2.0, 2.0, 5.0], seed=3)
    for p, score in [(0.5, 1.0), (0.01, 9.0), (0.3, 2.0)]:
        adaptive.update(p), alarm.update(score)
    level, bets = pickle.loads(pickle.dumps((adaptive, alarm)))
    assert (level.level, level.rows, level.misses) == (adaptive.level, 3, 1)
    assert level.update(0.0) == adaptive.update(0.0) and level.level == adaptive.level
    assert bets.update(7.0) == alarm.update(7.0) and bets.rows == alarm.rows == 8
    assert repr(adaptive).startswith("AdaptiveLevel(level ") and "8 scores seen" in repr(alarm)


def test_misses_come_at_the_rate_asked_for_though_everything_changes(model):
    logits, labels = rows(3_000, 3)
    strange = np.roll(logits, 1, axis=1)
    stream = Stream(model, step=0.05, decay=None)
    for row in range(3_000):
        stream.predict_set(strange[row], ids=["now"])
        stream.update("now", labels[row])
    status = stream.status
    missed = 1 - status["covered"] / status["labelled"]
    assert abs(missed - 0.1) <= status["bound"] < 0.01
    assert stream.alarm and status["raised_at"] < 200
    trace = stream.trace
    assert len(trace["level"]) <= 512 and trace["labelled"][-1] > 2_900
    fixed = Stream(model, step=0, decay=None)
    for row in range(300):
        fixed.predict_set(strange[row], ids=["now"])
        fixed.update("now", labels[row])
    assert fixed.status["recent_coverage"] < 0.8


def test_labels_may_be_names_and_rows_may_wait(model):
    logits, labels = rows(50, 4)
    names = [f"class {label}" for label in range(CLASSES)]
    named = SplitConformalClassifier(alpha=0.1).calibrate(*rows(400, 0), classes=names)
    stream = Stream(named, window=10)
    stream.predict_set(logits, ids=range(50))
    assert stream.update(49, names[labels[49]]).outcome == "counted"
    assert stream.update(49, names[0]).outcome == "repeated"
    assert stream.update(0, names[0]).outcome == "unknown"
    assert (stream.status["waiting"], stream.status["forgotten"]) == (9, 40)
    with pytest.raises(ValueError, match="class 9"):
        stream.update(48, "class 9")


def test_one_row_is_one_row(model):
    logits, labels = rows(1, 8)
    stream, adaptive = Stream(model), AdaptiveLevel(0.1)
    stream.predict_set(logits, ids=["it"])
    stream.update("it", labels[0])
    adaptive.update(0.5)
    assert "(1 row, 1 label, " in repr(stream) and "after 1 row, 0 missed" in repr(adaptive)


def test_rows_are_numbered_as_they_are_taken_in(model):
    """Whatever another thread does in between, no two rows get one number."""
    logits, labels = rows(3, 6)

    class Interrupted(Stream):
        @property
        def status(self):
            found = super().status
            if not vars(self).get("met"):
                self.met = True
                super().predict_set(logits[1])
            return found

    stream = Interrupted(model)
    sets = stream.predict_set(logits[0])
    assert stream.level == sets.alpha
    stream.predict_set(logits[2])
    assert stream.status["waiting"] == stream.status["predicted"] == 3


def test_rows_of_many_threads_have_a_number_each(model):
    logits, labels = rows(8, 9)
    stream, begin = Stream(model, step=0, decay=None), threading.Barrier(8)

    def predict():
        begin.wait()
        for _ in range(50):
            stream.predict_set(logits)

    threads = [threading.Thread(target=predict) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    n = 8 * 50 * len(labels)
    assert stream.status["predicted"] == stream.status["waiting"] == n
    assert {stream.update(number, 0).outcome for number in range(n)} == {"counted"}


def test_an_id_has_one_form(model):
    logits, labels = rows(1, 7)
    for given, again in [(7, 7.0), (7.0, "7"), (np.int64(7), np.float32(7)), ("7", 7), (2**70, str(2**70))]:
        stream = Stream(model)
        stream.predict_set(logits, ids=[given])
        assert stream.update(again, labels[0]).outcome == "counted"
    for wrong in (1.5, float("nan"), True, np.True_, 2.0**60):
        with pytest.raises(ValueError, match="text or a whole number"):
            Stream(model).predict_set(logits, ids=[wrong])


def test_what_cannot_stream_says_why(model):
    logits, labels = rows(400, 5)
    weighted = SplitConformalClassifier(alpha=0.1, label_weights=[1.0] * CLASSES).calibrate(logits, labels)
    with pytest.raises(ValueError, match="cannot be streamed: .*weights"):
        Stream(weighted)
    with pytest.raises(ValueError, match="3 ids"):
        Stream(model).predict_set(logits[:2], ids=[1, 2, 3])
    with pytest.raises(ValueError, match="^step must be"):
        Stream(model, step=-1)
    with pytest.raises(TypeError, match="^step must be a number, got 'a'"):
        Stream(model, step="a")
    with pytest.raises(ValueError, match="^delta must lie strictly between 0 and 1, got 1"):
        Stream(model, delta=1)
    with pytest.raises(ValueError, match="is not calibrated"):
        Stream(SplitConformalClassifier())
