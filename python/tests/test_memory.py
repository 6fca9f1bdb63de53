"""A gigabyte of logits arrives without a copy of it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from patience import HANG

LIMIT = 64 << 20

SCRIPT = """
import threading, time
import numpy as np
import conformax

{imports}
ROWS, CLASSES = {rows}, 1024

def anonymous():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) * 1024

def data(kind, every=1):
    # A file behind the array keeps its own pages out of the count of anonymous memory; they read as zero.
    return np.memmap({path!r}, dtype=kind, mode="r+", shape=(every * ROWS, CLASSES))[::every]

logits = {make}
labels = np.zeros(ROWS, dtype=np.int64)
conformax.scores(logits[:4], labels[:4])
before, peak, stop = anonymous(), 0, False

def watch():
    global peak
    while not stop:
        peak = max(peak, anonymous())
        time.sleep(0.002)

watcher = threading.Thread(target=watch)
watcher.start()
conformax.SplitConformalClassifier("log_margin").calibrate(logits, labels)
conformax.sets(logits, -1.0, score="log_margin")
stop = True
watcher.join()
print(max(peak, anonymous()) - before)
"""

CASES = {
    "float16": ("", 2, "data(np.float16)"),
    "float32": ("", 4, "data(np.float32)"),
    "float64": ("", 8, "data(np.float64)"),
    "every other row": ("", 4, "data(np.float32, every=2)"),
    "transposed": ("", 4, "np.memmap({path!r}, dtype=np.float32, mode='r+', shape=(CLASSES, ROWS)).T"),
    "ml_dtypes": ("import ml_dtypes", 2, "data(ml_dtypes.bfloat16)"),
    "torch bfloat16": (
        "import torch, warnings; warnings.simplefilter('ignore')", 2,
        "torch.from_numpy(data(np.int16)).view(torch.bfloat16)",
    ),
    "torch float32": ("import torch, warnings; warnings.simplefilter('ignore')", 4, "torch.from_numpy(data(np.float32))"),
    "jax": ("import jax.numpy as jnp", 4, "jnp.from_dlpack(data(np.float32))"),
    "arrow": (
        "import pyarrow as pa", 4,
        "pa.FixedSizeListArray.from_arrays(pa.array(data(np.float32).reshape(-1)), CLASSES)",
    ),
    "pandas": ("import pandas as pd", 4, "pd.DataFrame(data(np.float32), copy=False)"),
    "polars": ("import polars as pl", 4, "pl.DataFrame(data(np.float32))"),
}  # fmt: skip


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("case", CASES)
def test_a_gigabyte_without_a_copy(case, tmp_path):
    imports, width, make = CASES[case]
    for name in ("torch", "jax", "ml_dtypes", "pyarrow", "pandas", "polars"):
        if name in imports:
            pytest.importorskip(name)
    path = str(tmp_path / "logits")
    with open(path, "wb") as file:
        file.truncate(1 << 30)  # sparse: no disk is used
    rows = (1 << 30) // width // 1024 // (2 if "every=2" in make else 1)
    script = SCRIPT.format(imports=imports, rows=rows, path=path, make=make.format(path=path))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < LIMIT, f"anonymous memory grew by {int(done.stdout) >> 20} MB"
