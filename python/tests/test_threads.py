"""Long calls let others run, can be interrupted, survive forks and arrays that change under them."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import conformax
from conformax import SplitConformalClassifier
from patience import HANG

INTERRUPTED = """
import os, signal, threading, time
import numpy as np, conformax
# Every label of 4,000 rows of 4,000 classes by the definition: two threads are at it far longer than this test waits,
# so what ends has been interrupted.
logits = np.random.default_rng(0).normal(size=(4000, 4000))

def press(begun):
    # By the work that was done and not by the clock, which goes on where a busy machine has not even begun.
    while time.process_time() < begun + 0.5:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=press, args=[time.process_time()]).start()
try:
    conformax.{call}
except KeyboardInterrupt:
    print("interrupted")
else:
    print("finished")
"""


@pytest.mark.skipif(os.name == "nt", reason="signals to one's own process are POSIX's")
@pytest.mark.parametrize(
    "call",
    [
        "scores(logits, gamma=1.3, n_threads=2)",
        "SplitConformalClassifier(n_threads=2)"
        ".tune(logits, logits.argmin(axis=1), grid=[1.1 + i / 1e4 for i in range(3000)])",
    ],
)
def test_ctrl_c_interrupts(call, default_sigint):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.format(call=call)], capture_output=True, text=True, timeout=HANG
    )
    assert done.stdout.strip() == "interrupted", done


def test_the_interpreter_is_released():
    """Threads of Python change places nowhere but where the one that runs lets go, so the other can only have been let in
    by the call itself."""
    logits = np.random.default_rng(0).normal(size=(20_000, 100))
    rule, labels = conformax._conformax.Score("entmax", gamma=1.3), np.zeros(20_000, dtype=np.uint32)
    gate, calling, let_in = threading.Lock(), False, False

    def wait():
        nonlocal let_in
        with gate:
            let_in = calling

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e3)
    faulthandler.dump_traceback_later(HANG, exit=True)
    try:
        with gate:
            waiting = threading.Thread(target=wait)
            waiting.start()
        while waiting.is_alive():
            calling = True
            conformax._conformax.score_labels(rule, logits, labels, n_threads=1)
            calling = False
        waiting.join()
    finally:
        faulthandler.cancel_dump_traceback_later()
        sys.setswitchinterval(interval)
    assert let_in


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="Linux tells of threads")
def test_the_environment_does_not_say_how_many_threads():
    cores = len(os.sched_getaffinity(0))
    script = (
        "import conformax, pathlib\n"
        "conformax.scores([[1.0, 2.0]])\n"
        "names = [task.joinpath('comm').read_text() for task in pathlib.Path('/proc/self/task').iterdir()]\n"
        "print(sum(name.startswith('conformax-') for name in names))"
    )
    environment = {**os.environ, "RAYON_NUM_THREADS": str(cores + 1)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=HANG
    )
    assert int(done.stdout) <= cores, done


def test_inputs_may_change_during_a_call():
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(3000, 300)).astype(np.float32)
    labels = rng.integers(300, size=3000)
    cp = SplitConformalClassifier("raps").calibrate(logits, labels)
    stop = threading.Event()

    def scribble():
        noise = [rng.normal(size=logits.shape).astype(np.float32) for _ in range(2)] + [np.nan]
        while not stop.is_set():
            for values in noise:
                logits[...] = values

    writer = threading.Thread(target=scribble)
    writer.start()
    try:
        for _ in range(60):
            try:
                sets = cp.predict_set(logits)
            except (ValueError, RuntimeError):
                continue
            assert sets.offsets[0] == 0 and sets.offsets[-1] == len(sets.indices)
            assert (np.diff(sets.offsets) >= 0).all() and (sets.indices < 300).all()
    finally:
        stop.set()
        writer.join()


def test_many_threads_may_call_at_once(rows):
    logits, labels = rows
    cp = SplitConformalClassifier("raps").calibrate(logits, labels)
    wanted = cp.predict_set(logits)
    found = []
    threads = [threading.Thread(target=lambda: found.append(cp.predict_set(logits))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and all(sets == wanted for sets in found)


def _average_size(logits):
    return conformax.average_size(conformax.sets(logits, 1.0))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
def test_forked_children_have_threads_of_their_own(rows):
    wanted = _average_size(rows[0])
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(_average_size, [rows[0]] * 4).get(timeout=HANG) == [wanted] * 4
