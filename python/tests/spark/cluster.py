"""Sessions of Spark, and a cluster of two workers as processes on loopback: for the tests and for the measurements."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"

#: How long something that must come about may take on a busy machine, in seconds.
PATIENCE = 300


#: Few tasks, batches that end in the middle of a partition, and nothing compiled that runs for a moment only: a test
#: takes a second, of which Spark's own compilers would take the most.
HASTY = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SMALL = {
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "97",
    "spark.sql.codegen.wholeStage": "false",
    "spark.driver.extraJavaOptions": HASTY,
    "spark.executor.extraJavaOptions": HASTY,
}


def session(master: str, **settings: str) -> SparkSession:
    """A session on loopback with these settings."""
    builder = SparkSession.builder.master(master).appName("conformax")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        **settings,
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


class Cluster:
    """A master and two workers of one core each, as processes of their own.

    With `pinned`, each worker and its executors have one core of this machine and no more, as if they were machines.
    """

    def __init__(self, folder: Path, *, pinned: bool = False, memory: str = "1g") -> None:
        self.folder, self.processes = folder, []
        try:
            self._start_all(pinned, memory)
        except BaseException:
            self.stop()
            raise

    def _start_all(self, pinned: bool, memory: str) -> None:
        cores = sorted(os.sched_getaffinity(0))
        port, page = free_port(), free_port()
        self.page = f"http://127.0.0.1:{page}/json/"
        self.address = f"spark://127.0.0.1:{port}"
        here = ["--host", "127.0.0.1"]
        self._start("master.Master", *here, "--port", str(port), "--webui-port", str(page))
        self._await(lambda: self.workers() == 0)
        for worker in range(2):
            place = ["--webui-port", "0", "--work-dir", str(self.folder / f"worker-{worker}")]
            core = cores[worker % len(cores)] if pinned else None
            self._start("worker.Worker", *here, *place, "--cores", "1", "--memory", memory, self.address, core=core)
        self._await(lambda: self.workers() == 2)

    def _start(self, name: str, *words: str, core: int | None = None) -> None:
        launcher = Path(pyspark.__file__).parent / "bin" / "spark-class"
        command = [str(launcher), f"org.apache.spark.deploy.{name}", *words]
        pin = None if core is None else lambda: os.sched_setaffinity(0, {core})
        with open(self.folder / f"{name}-{len(self.processes)}.log", "w") as log:
            # A session of its own, so that what it starts ends with it.
            process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, preexec_fn=pin)
        self.processes.append(process)

    def _await(self, holds) -> None:
        # However long that takes on this machine; processes that have ended will not bring it about.
        while not holds():
            alive = all(process.poll() is None for process in self.processes)
            assert alive, [path.read_text()[-2000:] for path in self.folder.glob("*.log")]
            time.sleep(0.2)

    def workers(self) -> int | None:
        """Workers that have registered; None where the master does not answer yet."""
        try:
            with urllib.request.urlopen(self.page, timeout=10) as page:
                return len(json.load(page)["workers"])
        except OSError:
            return None

    def stop(self) -> None:
        for process in self.processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
