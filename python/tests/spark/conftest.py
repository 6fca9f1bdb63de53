"""Real Spark: a session on this machine, and a cluster of two workers on loopback."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import warnings
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"

#: How long something that must come about may take on a busy machine.
PATIENCE = 300


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
        yield


def session(master: str, **settings: str) -> SparkSession:
    builder = SparkSession.builder.master(master).appName("conformax")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "3",
        # Batches that end in the middle of a partition.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "97",
        **settings,
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


@pytest.fixture(scope="package")
def rows() -> tuple[np.ndarray, np.ndarray]:
    """3,000 rows of 10 classes on a coarse grid, so that ties happen."""
    rng = np.random.default_rng(7)
    labels = rng.integers(10, size=3000)
    logits = rng.normal(size=(3000, 10)) + 2 * np.eye(10)[labels]
    return (logits * 16).round().astype(np.float32) / 16, labels


@pytest.fixture(scope="module")
def spark():
    spark = session("local[2]")
    yield spark
    spark.stop()


class Cluster:
    """A master and two workers of one core each, as processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.processes = folder, []
        port, page = free_port(), free_port()
        self.page = f"http://127.0.0.1:{page}/json/"
        self.address = f"spark://127.0.0.1:{port}"
        here = ["--host", "127.0.0.1"]
        self._start("master.Master", *here, "--port", str(port), "--webui-port", str(page))
        self._await(lambda: self.workers() == 0)
        for worker in range(2):
            place = ["--webui-port", "0", "--work-dir", str(folder / f"worker-{worker}")]
            self._start("worker.Worker", *here, *place, "--cores", "1", "--memory", "1g", self.address)
        self._await(lambda: self.workers() == 2)

    def _start(self, name: str, *words: str) -> None:
        import pyspark

        log = open(self.folder / f"{name}-{len(self.processes)}.log", "w")
        command = [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *words]
        # A session of its own, so that what it starts ends with it.
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        self.processes.append(process)

    def _await(self, holds) -> None:
        until = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < until, [path.read_text()[-2000:] for path in self.folder.glob("*.log")]
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


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.stop()
