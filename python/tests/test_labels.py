"""What a label means: the same from Python and from the shell, whatever type it has."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import conformax
from conformax import SplitConformalClassifier
from conformax._inputs import as_labels
from patience import HANG

ANIMALS = ["cat", "dog", "owl"]
YEARS = ["1", "2", "3"]

#: Labels, names of the classes, what labels are said to be, and the classes that they are.
CASES = [
    ([2, 0], None, None, [2, 0]),
    ([2.0, 0.0], None, None, [2, 0]),
    (["2", "0.0"], None, None, [2, 0]),
    ([True, False], None, None, [1, 0]),
    (["true", "FALSE"], None, None, [1, 0]),
    ([2, 0], ANIMALS, None, [2, 0]),
    ([2.0, 0.0], ANIMALS, None, [2, 0]),
    (["2", "0"], ANIMALS, None, [2, 0]),
    (["owl", "cat"], ANIMALS, None, [2, 0]),
    (["owl", 0, "1", True], ANIMALS, None, [2, 0, 1, 1]),
    ([True, "false"], ["False", "True", "maybe"], None, [1, 0]),
    ([1, 0], ["0", "1", "2"], None, [1, 0]),
    ([1, 2], YEARS, "indices", [1, 2]),
    ([1, 2], YEARS, "names", [0, 1]),
    (["1", "2"], YEARS, "names", [0, 1]),
]

#: Labels that are none, and what is said of them.
FAULTS = [
    ([0, 3], None, None, "label at row 1 is 3, but with 3 classes labels lie in 0..3"),
    ([-1], ANIMALS, None, "label at row 0 is -1"),
    ([0.5], None, None, "label at row 0 is 0.5, which is not a whole number"),
    ([float("nan")], None, None, "label at row 0 is missing"),
    ([float("nan")], ANIMALS, "names", "label at row 0 is missing"),
    (["emu"], ANIMALS, None, "label at row 0 is 'emu', which is none of the 3 classes"),
    (["cat"], ANIMALS, "indices", "which is not an index"),
    ([1], YEARS, None, 'say labels_are="indices" or labels_are="names"'),
    (["1.0"], YEARS, None, "an index or a name"),
    ([1], [1, 2, 3], None, "an index or a name"),
    ([0], None, "names", "which are not known"),
    ([0], None, "integers", 'labels_are must be "indices" or "names"'),
]


def inspected(tmp_path, labels, names, labels_are, logits):
    """What the command makes of the same labels, in lines of JSON."""
    path = tmp_path / "z.jsonl"
    about = {} if names is None else {"class_names": [str(name) for name in names]}
    lines = [json.dumps({"logits": row, "label": label, **about}) for row, label in zip(logits, labels)]
    path.write_text("\n".join(lines) + "\n")
    asked = [] if labels_are is None else ["--labels-are", labels_are]
    words = [sys.executable, "-m", "conformax", "inspect", str(path), "--json", *asked]
    return subprocess.run(words, capture_output=True, text=True, timeout=HANG)


@pytest.mark.parametrize("labels, names, labels_are, wanted", CASES)
def test_a_label_is_the_class_that_the_command_takes_it_for(tmp_path, labels, names, labels_are, wanted):
    assert as_labels(labels, 3, names, labels_are).tolist() == wanted
    column = np.array(labels, dtype=object).reshape(-1, 1)
    assert as_labels(column, 3, names, labels_are).tolist() == wanted
    assert as_labels(np.array(labels, dtype=object), 3, names, labels_are).tolist() == wanted
    # The command finds every label on top exactly where it takes them for these classes.
    ran = inspected(tmp_path, labels, names, labels_are, np.eye(3)[wanted].tolist())
    assert json.loads(ran.stdout)["accuracy"] == 1.0, ran.stderr


@pytest.mark.parametrize("labels, names, labels_are, message", FAULTS)
def test_a_label_that_is_none_says_why(tmp_path, labels, names, labels_are, message):
    with pytest.raises(ValueError) as error:
        as_labels(labels, 3, names, labels_are)
    assert message in str(error.value)
    if labels_are != "integers":
        assert inspected(tmp_path, labels, names, labels_are, [[0.0] * 3] * len(labels)).returncode == 2


def arrow(labels):
    """A column as Spark and others send it, which is of one type, and the functions that read it."""
    pa = pytest.importorskip("pyarrow")
    from conformax import _arrow

    return pa.array(labels), _arrow


@pytest.mark.parametrize("labels, names, labels_are, wanted", [case for case in CASES if len(set(map(type, case[0]))) == 1])
def test_an_arrow_column_is_read_by_the_same_rule(labels, names, labels_are, wanted):
    column, reader = arrow(labels * 2)
    assert reader.labels(column, 3, names, labels_are).tolist() == wanted * 2
    assert reader.labels(column.dictionary_encode().slice(1), 3, names, labels_are).tolist() == (wanted * 2)[1:]


@pytest.mark.parametrize("labels, names, labels_are, message", FAULTS)
def test_an_arrow_label_that_is_none_says_why(labels, names, labels_are, message):
    column, reader = arrow(labels * 2)
    with pytest.raises(ValueError) as error:
        reader.labels(column, 3, names, labels_are, first_row=0)
    assert message in str(error.value)


#: Labels that a tensor may hold.
NUMBERS = [case for case in [*CASES, *FAULTS] if not any(isinstance(label, str) for label in case[0])]


@pytest.mark.peers
@pytest.mark.parametrize("labels, names, labels_are, wanted", NUMBERS)
def test_a_tensor_beside_logits_on_a_gpu_is_read_by_the_same_rule(labels, names, labels_are, wanted):
    torch = pytest.importorskip("torch")
    from conformax import _cuda

    tensor = torch.tensor(labels)
    # Indices that nothing is to be asked about stay as they are: a kernel looks whether they are classes.
    left = names is None and labels_are is None and tensor.dtype == torch.int64
    for form in (tensor, tensor[:, None]):
        if isinstance(wanted, str) and not (left and form.dim() == 1):
            with pytest.raises(ValueError) as error:
                _cuda.class_indices(form, 3, names, labels_are)
            assert wanted in str(error.value)
        else:
            found = _cuda.class_indices(form, 3, names, labels_are)
            assert (found is tensor) == (left and form.dim() == 1)
            assert found.tolist() == (labels if left else wanted)


def test_a_label_that_is_missing_is_called_so():
    for labels in ([0, None], ["cat", None], [0.0, float("nan")], np.array([0, None], dtype=object)):
        with pytest.raises(ValueError, match="label at row 1 is missing"):
            as_labels(labels, 3, ANIMALS)
    pd = pytest.importorskip("pandas")
    for labels in (pd.array([0, None], dtype="Int64"), pd.Series(["cat", None]), [0, pd.NA], [0, pd.NaT]):
        with pytest.raises(ValueError, match="label at row 1 is missing"):
            as_labels(labels, 3, ANIMALS)


def test_text_without_names_is_no_label():
    with pytest.raises(TypeError, match="a name, but `classes` are not given"):
        as_labels(["cat"], 3)


def test_integers_go_on_being_labels_once_names_are_known(rows, tmp_path):
    logits, labels = rows
    names = [f"class {index}" for index in range(10)]
    cp = SplitConformalClassifier().calibrate(logits[:300], labels[:300], classes=names)
    cp.save(tmp_path / "model.json")
    loaded = SplitConformalClassifier.load(tmp_path / "model.json")
    plain = SplitConformalClassifier().calibrate(logits[:300], labels[:300])
    wanted = plain.evaluate(logits[300:], labels[300:]).coverage
    assert loaded.evaluate(logits[300:], labels[300:]).coverage == wanted
    assert loaded.evaluate(logits[300:], np.array(names)[labels[300:]]).coverage == wanted
    sets = loaded.predict_set(logits[300:])
    assert conformax.coverage_rate(sets, labels[300:]) == wanted == sets.covers(labels[300:]).mean()


def test_names_that_are_integers_are_asked_about_once(rows, tmp_path):
    logits, labels = rows
    with pytest.raises(ValueError, match='say labels_are="indices" or labels_are="names"'):
        SplitConformalClassifier().calibrate(logits[:300], labels[:300] + 1, classes=np.arange(1, 11))
    cp = SplitConformalClassifier(labels_are="names")
    cp.calibrate(logits[:300], labels[:300] + 1, classes=np.arange(1, 11))
    wanted = SplitConformalClassifier().calibrate(logits[:300], labels[:300])
    assert cp.threshold_ == wanted.threshold_
    coverage = wanted.evaluate(logits[300:], labels[300:]).coverage
    assert cp.evaluate(logits[300:], labels[300:] + 1).coverage == coverage
    assert cp.predict_set(logits[300:])[:50].covers(labels[300:350] + 1).sum() > 0
    cp.save(tmp_path / "model.json")
    loaded = SplitConformalClassifier.load(tmp_path / "model.json")
    with pytest.raises(ValueError, match="labels_are"):
        loaded.evaluate(logits[300:], labels[300:] + 1)
    assert loaded.set_params(labels_are="names").evaluate(logits[300:], labels[300:] + 1).coverage == coverage
