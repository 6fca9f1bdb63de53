"""The worked examples run and cover what they promise."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import conformax
from patience import HANG

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def run(name: str, cwd: Path) -> str:
    done = subprocess.run([sys.executable, EXAMPLES / name], capture_output=True, text=True, cwd=cwd, timeout=HANG)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


@pytest.mark.parametrize("readme", ["README.md", "python/README.md"])
def test_readme(readme, rows, tmp_path, monkeypatch):
    """Every Python block of the READMEs, on rows made for it."""
    monkeypatch.chdir(tmp_path)
    logits, labels = rows
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / readme).read_text(), re.DOTALL)
    assert len(blocks) == 1
    for block in blocks:
        ran = {"cal_logits": logits[:300], "cal_labels": labels[:300]}
        ran |= {"test_logits": logits[300:], "test_labels": labels[300:]}
        exec(block, ran)
        assert ran["sets"] == conformax.SplitConformalClassifier.load("model.json").predict_set(logits[300:])
        assert not ran["proba"][~ran["sets"].mask].any()


def test_from_sklearn(tmp_path):
    pytest.importorskip("sklearn")
    coverage = float(re.search(r"coverage ([\d.]+)", run("from_sklearn.py", tmp_path))[1])
    assert coverage > 0.97


@pytest.mark.peers
def test_from_torch(tmp_path):
    pytest.importorskip("torch")
    coverage = float(re.search(r"coverage ([\d.]+)", run("from_torch.py", tmp_path))[1])
    assert 0.86 < coverage < 0.94
