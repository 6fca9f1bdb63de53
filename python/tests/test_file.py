"""The calibration file: what one face writes, every other reads, set by set."""

from __future__ import annotations

import copy
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import numpy as np
import pytest

import conformax
from conformax import SplitConformalClassifier
from patience import HANG

COMMAND = [sys.executable, "-m", "conformax"]

SCORES = [
    {"score": "entmax", "gamma": 1.3},
    {"score": "log_margin"},
    {"score": "sparsemax"},
    {"score": "inv_prob"},
    {"score": "aps", "random_state": 5},
    {"score": "aps", "randomized": False},
    {"score": "raps", "lambda_": 0.2, "k_reg": 1},
    {"score": conformax.RapsScore(0.2, 1, penalty="fixed")},
    {"score": "saps", "lambda_": 0.3},
    {"score": "top_k"},
    {"score": "margin"},
]


def command(*arguments, **options):
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=HANG, **options)


@pytest.mark.parametrize("params", SCORES)
def test_saving_and_loading_changes_nothing(rows, params, tmp_path):
    logits, labels = rows
    cp = SplitConformalClassifier(**params, alpha=[0.05, 0.2]).calibrate(logits[:300], labels[:300])
    cp.save(tmp_path / "model.json")
    loaded = SplitConformalClassifier.load(tmp_path / "model.json")
    for other in (loaded, pickle.loads(pickle.dumps(cp)), copy.deepcopy(cp)):
        assert other.threshold_ == cp.threshold_ and other.n_calibration_ == 300
        assert other.predict_set(logits[300:]) == cp.predict_set(logits[300:])
        assert np.array_equal(other.predict_p(logits[300:]), cp.predict_p(logits[300:]))
        assert other.get_params()["alpha"] == [0.05, 0.2]
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == (tmp_path / "model.json").read_text()


def test_names_and_tuning_are_kept(rows, tmp_path):
    logits, labels = rows
    names = [f"class {index}" for index in range(10)]
    cp = SplitConformalClassifier().tune(logits, np.array(names)[labels], classes=names)
    cp.save(tmp_path / "model.json")
    loaded = SplitConformalClassifier.load(tmp_path / "model.json")
    assert loaded.classes_.tolist() == names
    assert loaded.tuning_ == cp.tuning_ and len(loaded.tuning_["candidates"]) == 9


def test_pickles_keep_names_of_any_type(rows):
    logits, labels = rows
    cp = SplitConformalClassifier(labels_are="names").calibrate(logits, labels + 100, classes=np.arange(100, 110))
    assert pickle.loads(pickle.dumps(cp)).predict(logits).dtype == cp.predict(logits).dtype
    assert pickle.loads(pickle.dumps(SplitConformalClassifier(alpha=0.3))).alpha == 0.3


def probabilities_of(logits):
    p = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def test_probabilities_give_what_the_command_makes_of_them(rows, tmp_path):
    logits, labels = rows
    p = probabilities_of(logits)
    p[:, 3] = np.where(labels == 3, p[:, 3], 0)
    np.savez(tmp_path / "cal.npz", logits=p[:300], labels=labels[:300])
    np.save(tmp_path / "test.npy", p[300:])
    ran = command("calibrate", "cal.npz", "--input", "probabilities", "-o", "shell.json", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    cp = SplitConformalClassifier(input="probabilities").calibrate(p[:300], labels[:300])
    cp.save(tmp_path / "model.json")
    assert (tmp_path / "model.json").read_text() == (tmp_path / "shell.json").read_text()
    loaded = SplitConformalClassifier.load(tmp_path / "shell.json")
    assert loaded.input == "probabilities"
    assert loaded.predict_set(p[300:]) == cp.predict_set(p[300:])
    ran = command("predict", "model.json", "test.npy", "-o", "sets.jsonl", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert sets_of(tmp_path / "sets.jsonl") == loaded.predict_set(p[300:]).labels()
    assert loaded.evaluate(p[300:], labels[300:]).coverage == cp.predict_set(p[300:]).covers(labels[300:]).mean()
    with np.errstate(divide="ignore"):
        logs = SplitConformalClassifier(input="log_probabilities").calibrate(np.log(p[:300]), labels[:300])
    assert logs.threshold_ == pytest.approx(cp.threshold_)


def test_numbers_of_another_kind_are_refused(rows, tmp_path):
    logits, labels = rows
    p = probabilities_of(logits)
    cp = SplitConformalClassifier(input="probabilities").tune(p[:300], labels[:300])
    with pytest.raises(ValueError, match="the probability at row 0, class .* must lie between 0 and 1"):
        cp.predict_set(logits[300:])
    cp.save(tmp_path / "model.json")
    assert json.loads((tmp_path / "model.json").read_text())["input"] == "probabilities"
    with pytest.raises(ValueError, match="calibrated on probabilities, and input says logits"):
        SplitConformalClassifier.load(tmp_path / "model.json").set_params(input="logits").predict(logits)
    with pytest.raises(ValueError, match="the log-probability at row"):
        SplitConformalClassifier(input="log_probabilities").calibrate(logits, labels)
    with pytest.raises(ValueError, match="input must be one of 'logits', 'probabilities', 'log_probabilities'"):
        SplitConformalClassifier(input="odds").calibrate(logits, labels)
    with pytest.warns(conformax.ConformaxWarning, match='give input="probabilities"'):
        SplitConformalClassifier().calibrate(p, labels)


def test_a_mark_before_the_file_is_no_part_of_it(rows, tmp_path):
    cp = SplitConformalClassifier().calibrate(*rows)
    cp.save(tmp_path / "model.json")
    marked = tmp_path / "marked.json"
    marked.write_bytes(b"\xef\xbb\xbf" + (tmp_path / "model.json").read_bytes())
    assert SplitConformalClassifier.load(marked).threshold_ == cp.threshold_


def test_another_kind_of_file_is_called_what_it_is(rows, tmp_path):
    logits, labels = rows
    np.savez(tmp_path / "cal.npz", logits=logits, labels=labels)
    assert command("calibrate", "cal.npz", "--partial", "-o", "part", cwd=tmp_path).returncode == 0
    for name, kind in [("cal.npz", r"data \(npz\)"), ("part", "a part that `merge` puts together")]:
        with pytest.raises(ValueError, match=f"{name}: is {kind}, not a calibration file"):
            SplitConformalClassifier.load(tmp_path / name)


def test_levels_set_after_calibration_are_saved(rows, tmp_path):
    cp = SplitConformalClassifier(alpha=0.1).calibrate(*rows).set_params(alpha=0.2)
    cp.save(tmp_path / "model.json")
    assert json.loads((tmp_path / "model.json").read_text())["levels"][0]["alpha"] == 0.2


def test_damaged_files_are_refused_by_name(rows, tmp_path):
    path = tmp_path / "model.json"
    SplitConformalClassifier().calibrate(*rows).save(path)
    path.write_text(path.read_text().replace('"version": 2', '"version": 99'))
    with pytest.raises(ValueError, match="model.json.*version is 99"):
        SplitConformalClassifier.load(path)
    SplitConformalClassifier().calibrate(*rows).save(path)
    path.write_text(path.read_text().replace('"allowed"', '"never"'))
    with pytest.raises(ValueError, match="checksum"):
        SplitConformalClassifier.load(path)
    path.write_text("not json")
    with pytest.raises(ValueError, match="model.json.*damaged"):
        SplitConformalClassifier.load(path)
    with pytest.raises(FileNotFoundError):
        SplitConformalClassifier.load(tmp_path / "absent.json")
    with pytest.raises(OSError):
        SplitConformalClassifier().calibrate(*rows).save(tmp_path / "absent" / "model.json")


def test_files_without_scores_predict_their_levels_and_say_why_not_others(rows, tmp_path):
    logits, labels = rows
    cp = SplitConformalClassifier().calibrate(logits, labels)
    cp.save(tmp_path / "model.json")
    edited(tmp_path / "model.json", lambda file: file.pop("scores"))
    loaded = SplitConformalClassifier.load(tmp_path / "model.json")
    assert loaded.scores_ is None and loaded.predict_set(logits) == cp.predict_set(logits)
    with pytest.raises(ValueError, match="without scores"):
        loaded.predict_set(logits, alpha=0.3)
    with pytest.raises(ValueError, match="left out of the file"):
        loaded.predict_p(logits)


def test_no_interval_belongs_to_the_papers_tuning(rows, tmp_path):
    logits, labels = rows
    cp = SplitConformalClassifier().tune(logits[:400], labels[:400])
    assert cp.evaluate(logits[400:], labels[400:]).coverage_interval is not None
    cp.save(tmp_path / "model.json")
    edited(tmp_path / "model.json", lambda file: file["tuning"].update(method="paper"))
    loaded = SplitConformalClassifier.load(tmp_path / "model.json")
    assert loaded.evaluate(logits[400:], labels[400:]).coverage_interval is None


def edited(path: Path, change) -> None:
    """Changes a file of the first version, which has no checksum."""
    file = json.loads(path.read_text())
    file["version"] = 1
    del file["checksum"], file["input"]
    file["calibrating_rows"] = file["calibrating_rows"]["once"]
    if "tuning" in file:
        file["tuning"]["rows"] = file["tuning"]["rows"]["once"]
    change(file)
    path.write_text(json.dumps(file))


def sets_of(path: Path) -> list[list[int]]:
    return [json.loads(line)["labels"] for line in path.read_text().splitlines()]


@pytest.mark.parametrize("params", SCORES)
def test_the_command_gives_the_same_sets_from_the_same_file(rows, params, tmp_path):
    logits, labels = rows
    np.save(tmp_path / "test.npy", logits[300:])
    cp = SplitConformalClassifier(**params).calibrate(logits[:300], labels[:300])
    cp.save(tmp_path / "model.json")
    done = command("predict", tmp_path / "model.json", tmp_path / "test.npy", "-o", tmp_path / "sets.jsonl")
    assert done.returncode == 0, done.stderr
    assert sets_of(tmp_path / "sets.jsonl") == cp.predict_set(logits[300:]).labels()


def test_python_reads_what_the_command_calibrated(rows, tmp_path):
    logits, labels = rows
    np.savez(tmp_path / "cal.npz", logits=logits[:300], labels=labels[:300])
    done = command("calibrate", tmp_path / "cal.npz", "--score", "raps", "--alpha", "0.2", "-o", tmp_path / "m.json")
    assert done.returncode == 0, done.stderr
    loaded = SplitConformalClassifier.load(tmp_path / "m.json")
    cp = SplitConformalClassifier("raps", alpha=0.2).calibrate(logits[:300], labels[:300])
    assert np.array_equal(loaded.scores_, cp.scores_)
    cp.save(tmp_path / "ours.json")
    assert (tmp_path / "ours.json").read_text() == (tmp_path / "m.json").read_text()


def test_the_command_knows_rows_that_python_calibrated(rows, tmp_path):
    logits, labels = rows
    SplitConformalClassifier().calibrate(logits[:300], labels[:300]).save(tmp_path / "model.json")
    np.savez(tmp_path / "same.npz", logits=logits[:300], labels=labels[:300])
    np.savez(tmp_path / "fresh.npz", logits=logits[300:], labels=labels[300:])
    seen = command("evaluate", tmp_path / "model.json", tmp_path / "same.npz")
    assert seen.returncode == 2 and "300" in seen.stderr
    assert command("evaluate", tmp_path / "model.json", tmp_path / "fresh.npz").returncode in (0, 1)


def test_the_console_script_is_the_command():
    script = shutil.which("conformax", path=sysconfig.get_path("scripts"))
    assert script, "the wheel installs a script"
    for arguments in (["--version"], ["plan", "--alpha", "0.1", "--n", "1000", "--json"], ["predict", "absent.json", "absent.npy"]):
        ours = subprocess.run([script, *arguments], capture_output=True, timeout=HANG)
        module = command(*arguments)
        assert (ours.returncode, ours.stdout.decode()) == (module.returncode, module.stdout)
    assert command("plan", "--alpha", "2").returncode == 2


@pytest.mark.skipif(os.name == "nt", reason="signals to a process are POSIX's")
def test_ctrl_c_ends_the_command(rows, tmp_path, default_sigint):
    SplitConformalClassifier().calibrate(*rows).save(tmp_path / "model.json")
    before = set(os.listdir(tmp_path))
    # It waits for more rows, with its output open, until somebody stops it.
    process = subprocess.Popen(
        [*COMMAND, "predict", "model.json", "-", "-o", "sets.jsonl"],
        cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        process.stdin.write(json.dumps({"logits": [0.0] * 10}) + "\n")
        process.stdin.flush()
        # However long that takes on this machine; a command that has ended never will.
        while set(os.listdir(tmp_path)) == before:
            assert process.poll() is None, "the command never opened its output"
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 2
        assert "interrupted" in process.stderr.read()
    assert set(os.listdir(tmp_path)) == before
