"""A real cluster of separate processes: a master and two workers, which have the package as an archive only."""

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.request
import venv
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest
from quick import BRIEF, QUICK

from tensorlake_spark.spark.session.java import java_problem

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PATIENCE = 240
"""Seconds after which a process is taken to hang."""


def clean_environment(**more):
    """The variables of this process without those that would show a child the checkout."""
    hidden = ("PYTHON", "PYSPARK", "SPARK", "COV", "COVERAGE", "PYTEST", "MAKE", "MFLAGS")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(hidden)}
    return {**kept, **more}


@pytest.fixture(scope="session")
def bare_environment():
    """An environment in which nothing points to the checkout."""
    return clean_environment()


@pytest.fixture(scope="session")
def dist(tmp_path_factory):
    """The folder that ``make dist`` fills in a copy of the checkout, without a network, once for all of xdist."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    copy = folder / "dist" / "checkout"
    with (folder / "dist.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (copy / ".made").exists():
            make_dist(copy)
            (copy / ".made").touch()
    return copy / "dist"


def make_dist(copy):
    """Run ``make dist`` in a copy of the checkout."""
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir(parents=True)
    for name in ("Makefile", "setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    for name in ("tensorlake_spark", "pyspark_tensorlake"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "conf").symlink_to(os.readlink(ROOT / "conf"))
    stale = copy / "build" / "lib" / "tensorlake_spark" / "stale.py"
    stale.parent.mkdir(parents=True)
    stale.touch()
    (copy / ".venv").mkdir()
    (copy / ".venv" / ".ready").touch()
    done = subprocess.run(
        ["make", "--no-print-directory", "-C", copy, f"BIN={Path(sys.executable).parent}", "dist"],
        env=clean_environment(PIP_NO_INDEX="1", PIP_DISABLE_PIP_VERSION_CHECK="1"),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def archive(dist):
    """What ``spark-submit --py-files`` takes."""
    (found,) = dist.glob("*.zip")
    return found


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory):
    """A Python that has what the package needs, and not the package.

    A file .pth adds folders, but those in a folder that it adds are not read, so the editable install stays
    out of sight.
    """
    folder = tmp_path_factory.mktemp("python") / "venv"
    venv.create(folder, symlinks=True, with_pip=False)
    paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
    shown = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (Path(paths["purelib"]) / "needed.pth").write_text("\n".join(sorted(shown)) + "\n")
    python = folder / "bin" / "python"
    code = "import deltalake, numpy, pyarrow, pyspark, importlib.util as i; print(i.find_spec('tensorlake_spark'))"
    done = subprocess.run(
        [python, "-c", code], cwd=folder, env=clean_environment(),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "None\n", done.stdout + done.stderr
    return python


@dataclass(frozen=True)
class Process:
    """A line of the table of processes."""

    pid: int
    parent: int
    session: int
    state: str
    command: str


def processes():
    """All processes of this machine, by their id."""
    out = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue  # it ended meanwhile
            pid = int(entry.name)
            out[pid] = Process(pid, int(stat[1]), int(stat[3]), stat[0], command)
    return out


class Program:
    """A process of ours in a session of its own, which finds all of its descendants again."""

    def __init__(self, command, log, **options):
        self.log = log
        with log.open("wb") as out:
            self.popen = subprocess.Popen(
                list(map(str, command)), stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True, **options,
            )  # fmt: skip

    def alive(self):
        """The process and its descendants that have not ended."""
        every = processes().values()
        return [p for p in every if p.session == self.popen.pid and p.state != "Z"]

    def wait(self):
        """Return the exit code."""
        try:
            return self.popen.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            pytest.fail(f"{self.popen.args} hangs:\n{self.text()[-3000:]}")

    def text(self):
        """What it printed."""
        return self.log.read_text(errors="replace")

    def end(self):
        """End the process and its descendants, and see that they are gone."""
        until = time.monotonic() + 20
        while left := self.alive():
            assert time.monotonic() < until, left
            for process in left:
                with suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
            self.popen.poll()
            time.sleep(0.05)
        self.popen.wait(10)


def free_port():
    """A port of this machine that nobody listens to."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def until(ready, what):
    """Wait until `ready` returns something true, and return that."""
    stop = time.monotonic() + PATIENCE
    while not (got := ready()):
        if time.monotonic() > stop:
            pytest.fail(f"{what} did not happen in {PATIENCE} s")
        time.sleep(0.05)
    return got


class Cluster:
    """A standalone master and two workers of one core, each a JVM of its own.

    Parameters
    ----------
    folder : Path
        Where the processes write.
    archive : Path
        The package.
    python : Path
        What drivers and executors run.
    """

    def __init__(self, folder, archive, python):
        self.folder, self.archive, self.python = folder, archive, python
        self.home = Path(pyspark.__file__).parent
        self.programs = []
        # The folder conf must not be there: with it on the class path, Java does not map the classes of QUICK.
        (folder / "tmp").mkdir()
        # What is killed leaves its temporary files, which go away with the folder.
        self.java = f"{QUICK} -Djava.io.tmpdir={folder / 'tmp'}"
        self.environment = clean_environment(
            SPARK_HOME=str(self.home),
            SPARK_CONF_DIR=str(folder / "conf"),
            TMPDIR=str(folder / "tmp"),
            SPARK_LOCAL_DIRS=str(folder / "local"),
            SPARK_DAEMON_MEMORY="256m",
            SPARK_DAEMON_JAVA_OPTS=self.java,
            SPARK_LOCAL_IP="127.0.0.1",
            PYSPARK_PYTHON=str(python),
            PYSPARK_DRIVER_PYTHON=str(python),
            PYTHONDONTWRITEBYTECODE="1",
            TENSORLAKE_KERNELS="numpy",  # numba takes memory, which a test measures
        )
        try:
            self._start()
        except BaseException:
            self.end()
            raise

    def _start(self):
        port, page = free_port(), free_port()
        self.url = f"spark://127.0.0.1:{port}"
        daemon = "org.apache.spark.deploy"
        master = [
            f"{daemon}.master.Master",
            "--host",
            "127.0.0.1",
            "--port",
            port,
            "--webui-port",
            page,
        ]
        self._run("master", master, SPARK_MASTER_OPTS="-Dspark.master.rest.enabled=false")
        # A speculative task does not go to the host of the first, so each worker has an address of its own.
        self.workers = [
            self._run(
                f"worker{k}",
                [f"{daemon}.worker.Worker", "--host", host, "--webui-port", "0", "--cores", "1",
                 "--memory", "1g", "--work-dir", self.folder / f"work{k}", self.url],
                SPARK_LOCAL_IP=host,
            )
            for k, host in enumerate(("127.0.0.1", "127.0.0.2"))
        ]  # fmt: skip

        def both():
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{page}/json/", timeout=5) as answer:
                    return json.load(answer)["aliveworkers"] == 2
            except (OSError, ValueError):  # the page is there before the answer is
                return False

        until(both, "the start of both workers")

    def _run(self, name, command, **environment):
        program = Program(
            [self.home / "bin" / "spark-class", *command], self.folder / f"{name}.log",
            cwd=self.folder, env={**self.environment, **environment},
        )  # fmt: skip
        self.programs.append(program)
        return program

    def executors(self):
        """The ids of the executors' JVMs: children of the workers."""
        parents = {worker.popen.pid for worker in self.workers}
        return {
            p.pid
            for p in processes().values()
            if p.parent in parents and p.state != "Z" and "ExecutorBackend" in p.command
        }

    def submit(self, folder, *program, **conf):
        """Start a driver, which writes its log into a folder: by default ``driver.py``, which takes its jobs there."""
        settings = {
            "spark.master": self.url,
            # No task starts before both executors are there.
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
            "spark.locality.wait": "0s",
            "spark.ui.enabled": "false",
            "spark.driver.memory": "512m",
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.driver.extraJavaOptions": f"{BRIEF} -Djava.io.tmpdir={self.folder / 'tmp'}",
            "spark.executor.extraJavaOptions": self.java,
            **conf,
        }
        command = [self.home / "bin" / "spark-submit", "--py-files", self.archive]
        for name, value in settings.items():
            command += ["--conf", f"{name}={value}"]
        folder.mkdir()
        program = Program(
            [*command, *(program or (HERE / "driver.py", folder))], folder / "log",
            cwd=folder, env=self.environment,
        )  # fmt: skip
        self.programs.append(program)
        return program

    def end(self):
        """End every process that was started, drivers first."""
        for program in reversed(self.programs):
            program.end()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory, archive, bare_python):
    """The cluster, shared by all tests of this folder."""
    if not sys.platform.startswith("linux"):
        pytest.skip("finds processes in /proc, and takes 127.0.0.2 for a second host")
    assert java_problem() is None
    running = Cluster(tmp_path_factory.mktemp("cluster"), archive, bare_python)
    yield running
    running.end()
