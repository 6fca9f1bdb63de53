"""What is skipped fails in CI, where nothing may be missing but a GPU."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from patience import HANG

SKIPPED = {
    "module": ("import pytest\npytest.importorskip('no_such_package')\n", 2),
    "test": ("import pytest\ndef test_it():\n    pytest.skip('torchcp is not installed')\n", 1),
    "mark": ("import pytest\n@pytest.mark.skipif(True, reason='not here')\ndef test_it(): pass\n", 1),
    "gpu": ("import pytest\npytest.skip('no GPU here', allow_module_level=True)\n", 0),
    "nothing": ("def test_it(): pass\n", 0),
}


@pytest.mark.parametrize("what", SKIPPED)
@pytest.mark.parametrize("ci", ["true", ""])
def test_ci_skips_nothing(tmp_path, what, ci):
    text, code = SKIPPED[what]
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_one.py").write_text(text)
    (tmp_path / "test_other.py").write_text("def test_it(): pass\n")
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", tmp_path, tmp_path]
    ran = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "CI": ci}, timeout=HANG)
    assert ran.returncode == (code if ci else 0), ran.stdout
    assert ("CI skips nothing" in ran.stdout) == bool(ci and code), ran.stdout
