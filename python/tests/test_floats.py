"""Results do not depend on what another library did to the floating-point settings of a thread."""

from __future__ import annotations

import ctypes
import mmap
import platform
import sys

import numpy as np
import pytest

import conformax

pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64") or sys.platform != "linux", reason="writes a register of x86-64"
)

#: Numbers below the smallest normal one are zeros, read and written: what `torch.set_flush_denormal(True)` sets.
FLUSH = 0x8040


class Settings:
    """The control word of this thread, by the two instructions that read and write it."""

    def __init__(self) -> None:
        self.code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        self.code.write(b"\x0f\xae\x1f\xc3" + b"\x0f\xae\x17\xc3")  # stmxcsr [rdi]; ret. ldmxcsr [rdi]; ret.
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.code))
        function = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_uint32))
        self.store, self.load = function(start), function(start + 4)

    def get(self) -> int:
        word = ctypes.c_uint32()
        self.store(ctypes.byref(word))
        return word.value

    def set(self, word: int) -> None:
        self.load(ctypes.byref(ctypes.c_uint32(word)))


@pytest.fixture
def flushing():
    settings = Settings()
    before = settings.get()

    def flush(on: bool) -> None:
        settings.set(before | FLUSH if on else before)

    yield flush
    flush(False)


TINY = {
    "float16": np.array([[0, 1, 3]], dtype=np.uint16).view(np.float16),
    "float32": np.array([[0, 1e-40, 2e-40]], dtype=np.float32),
    "float64": np.array([[0, 1e-310, 2e-310]]),
}


@pytest.mark.parametrize("kind", TINY)
def test_numbers_below_the_smallest_normal_one_are_no_zeros(kind, flushing):
    logits = TINY[kind]
    wanted = conformax.scores(logits, gamma=2, n_threads=5), conformax.sets(logits, 0.0, gamma=2).labels()
    # A number of threads that nothing else asks for: their pool begins with the settings of this thread.
    flushing(True)
    found = conformax.scores(logits, gamma=2, n_threads=6 + len(kind)), conformax.sets(
        logits, 0.0, gamma=2, n_threads=16 + len(kind)
    ).labels()
    flushing(False)
    assert wanted[0].any()
    assert found[0].tobytes() == wanted[0].tobytes()
    assert found[1] == wanted[1] == [[2]]


def test_logarithms_of_tiny_probabilities_are_finite(flushing):
    p = np.array([1e-310, 1.0])
    flushing(True)
    found = conformax._conformax.logarithms(p)
    flushing(False)
    assert found[0] == pytest.approx(-713.80, abs=0.01)
