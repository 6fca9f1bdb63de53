"""The worked examples run and cover what they promise."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def run(name: str, cwd: Path) -> str:
    done = subprocess.run([sys.executable, EXAMPLES / name], capture_output=True, text=True, cwd=cwd, timeout=300)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


def test_from_sklearn(tmp_path):
    pytest.importorskip("sklearn")
    coverage = float(re.search(r"coverage ([\d.]+)", run("from_sklearn.py", tmp_path))[1])
    assert coverage > 0.97


@pytest.mark.peers
def test_from_torch(tmp_path):
    pytest.importorskip("torch")
    coverage = float(re.search(r"coverage ([\d.]+)", run("from_torch.py", tmp_path))[1])
    assert 0.86 < coverage < 0.94
