"""Do what the Dockerfile and compose.yml say with processes of this machine, where there is no Docker.

The commands are read out of the two files. A folder stands for the file system of the image and for the volumes, the
paths, names of hosts and ports of the containers are put for those of this machine, and what needs root or a
package manager is left out and told. Java and the packages of apt-get have to be there::

    S3_IDENTITY=... S3_CREDENTIAL=... python docker/without_docker.py FOLDER
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import venv
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
ROOT_ONLY = ("apt-get", "rm", "useradd", "install")
"""Commands of RUN that are left out: they need root, and would change this machine."""

PATIENCE = 900


def instructions(dockerfile: Path) -> list[tuple[str, str]]:
    """Return the instructions of a Dockerfile with their arguments, continued lines joined, comments left out."""
    lines = [
        line for line in dockerfile.read_text().splitlines() if not line.lstrip().startswith("#")
    ]
    whole = re.sub(r"\\\n\s*", "", "\n".join(lines))
    found = (line.partition(" ") for line in whole.splitlines())
    return [(name, rest.strip()) for name, _, rest in found if name]


def services(compose: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    """Return a compose file with its variables put in.

    Raises
    ------
    SystemExit
        If a variable that has to be set is not.
    """

    def value(found: re.Match[str]) -> str:
        name, need, text = found[1], found[2], found[3] or ""
        if environment.get(name):
            return environment[name]
        if need == ":?":
            raise SystemExit(f"{name}: {text}")
        return text

    text = re.sub(r"\$\{(\w+)(:[?-])?([^}]*)\}", value, compose.read_text())
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def free_port() -> int:
    """Return a port of this machine that nobody listens to."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


@dataclass
class Image:
    """What a Dockerfile builds, in a folder.

    Attributes
    ----------
    folder : Path
        Stands for ``/``.
    network : bool
        Whether ``pip install --requirement`` is run; else the packages of this Python are seen.
    """

    folder: Path
    network: bool = True
    workdir: str = "/"
    environment: dict[str, str] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    entrypoint: list[str] = field(default_factory=list)

    @property
    def bin(self) -> Path:
        """Where the programs of its Python are."""
        return self.folder / "venv" / "bin"

    def local(self, text: str) -> str:
        """Put paths of this machine for those of the container."""
        return re.sub(r"(?<![\w./:])/(?=(?:opt|data|objects|etc|tmp)\b)", f"{self.folder}/", text)

    def variables(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the environment of a process: of this machine's only what every process needs."""
        kept = {
            k: os.environ[k]
            for k in ("PATH", "HOME", "LANG", "JAVA_HOME", "TMPDIR")
            if k in os.environ
        }
        kept["PATH"] = f"{self.bin}{os.pathsep}{kept['PATH']}"
        return {
            **kept,
            **{k: self.local(v) for k, v in {**self.environment, **(more or {})}.items()},
        }

    def build(self) -> None:
        """Carry out the Dockerfile."""
        for name in ("data", "objects", "etc", "opt/cache", "tmp"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        for name, rest in instructions(HERE / "Dockerfile"):
            getattr(self, f"_{name.lower()}")(rest)

    def _from(self, base: str) -> None:
        """Make an environment for the base's Python: this one, whose packages are seen where none are fetched."""
        self.left_out.append(f"FROM {base}")
        venv.create(self.folder / "venv", symlinks=True, with_pip=self.network)
        if self.network:
            return
        (site,) = (self.folder / "venv").glob("lib/python*/site-packages")
        outer = [path for path in sys.path if path.endswith("site-packages")]
        (site / "outer.pth").write_text(
            "\n".join(outer)
        )  # a .pth in there is not read: no editable install
        for name in (
            "spark-submit",
            "spark-class",
            "find-spark-home",
            "find_spark_home.py",
            "load-spark-env.sh",
        ):
            with suppress(FileNotFoundError):
                shutil.copy(Path(sys.executable).with_name(name), self.bin)
        (self.bin / "pip").write_text(f'#!/bin/sh\nexec "{self.bin}/python" -m pip "$@"\n')
        (self.bin / "pip").chmod(0o755)

    def _workdir(self, path: str) -> None:
        self.workdir = path
        Path(self.local(path)).mkdir(parents=True, exist_ok=True)

    def _copy(self, rest: str) -> None:
        *sources, target = rest.split()
        to = Path(self.local(os.path.join(self.workdir, target)))
        for source in sources:
            if (ROOT / source).is_dir():
                shutil.copytree(
                    ROOT / source,
                    to,
                    dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("__pycache__"),
                )
            else:
                to.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / source, to)

    def _run(self, script: str) -> None:
        for command in re.split(r"\s+&&\s+", script):
            words = shlex.split(command)
            if words[0] in ROOT_ONLY or (
                words[0] == "pip" and "--requirement" in words and not self.network
            ):
                self.left_out.append(command)
                continue
            done = subprocess.run(
                [self.local(word) for word in words], cwd=self.local(self.workdir), env=self.variables(),
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode:
                raise RuntimeError(f"{command} failed:\n{done.stdout}{done.stderr}")
            self.done.append(command)

    def _env(self, rest: str) -> None:
        self.environment |= dict(word.split("=", 1) for word in shlex.split(rest))

    def _user(self, name: str) -> None:
        self.left_out.append(f"USER {name}")

    def _entrypoint(self, rest: str) -> None:
        self.entrypoint = json.loads(rest)  # tini only passes signals on
        self.left_out.append(f"ENTRYPOINT {rest}")

    def _cmd(self, rest: str) -> None:
        json.loads(rest)  # each service of compose.yml has a command of its own


class Container:
    """A service of the compose file as a process in a session of its own."""

    def __init__(self, cluster: Cluster, name: str, number: int = 0) -> None:
        self.cluster, self.name = cluster, name
        self.spec = cluster.compose["services"][name]
        self.own = {"8081": str(free_port())} if name == "worker" else {}
        folder = cluster.image.folder
        self.log = folder / "tmp" / f"{name}{number}.log"
        for config in self.spec.get("configs", ()):
            text = cluster.compose["configs"][config["source"]]["content"]
            Path(cluster.image.local(config["target"])).write_text(self.here(text))
        words = self.spec["command"]
        command = [
            self.here(word, before) for before, word in zip(["", *words], words, strict=False)
        ]
        command = [word.replace("/tmp/work", f"/tmp/work{number}") for word in command]
        program = shutil.which(command[0], path=str(cluster.image.bin)) or shutil.which(command[0])
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                [program or command[0], *command[1:]],
                cwd=cluster.image.local(self.spec.get("working_dir", cluster.image.workdir)),
                env=self.environment(), stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip

    def here(self, text: str, name: str = "") -> str:
        """Put hosts, ports and paths of this machine for those of the containers.

        Parameters
        ----------
        text : str
            A word of a command, or the value of a variable.
        name : str
            The option or variable that it belongs to.
        """
        hosts = "|".join([*self.cluster.compose["services"], "localhost", r"0\.0\.0\.0"])
        ports = {**self.cluster.ports, **self.own}
        if name in ("--host", "SPARK_LOCAL_HOSTNAME"):
            return "127.0.0.1"
        if name in ("--port", "--webui-port"):
            return ports[text]
        text = re.sub(rf"\b(?:{hosts}):(\d+)", lambda m: f"127.0.0.1:{ports[m[1]]}", text)
        return self.cluster.image.local(text)

    def environment(self) -> dict[str, str]:
        """Return the variables of the service."""
        given = self.spec.get("environment", {})
        more = {name: self.here(value, name) for name, value in given.items()}
        return {
            **self.cluster.image.variables(),
            "SPARK_LOCAL_IP": "127.0.0.1",
            **self.cluster.extra,
            **more,
        }

    def is_healthy(self) -> bool:
        """Whether the health check of the service succeeds."""
        how, *command = self.spec["healthcheck"]["test"]
        assert how == "CMD"
        program = str(self.cluster.image.bin / command[0])
        done = subprocess.run(
            [program, *map(self.here, command[1:])],
            env=self.environment(),
            capture_output=True,
            check=False,
        )
        return done.returncode == 0

    def text(self) -> str:
        """Return what it printed."""
        return self.log.read_text(errors="replace")

    def end(self) -> None:
        """End the process and those that it started."""
        for sign in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, sign)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(15)


class Cluster:
    """What ``docker compose up`` starts: each service when those that it depends on are as it wants them.

    Parameters
    ----------
    image : Image
        Built.
    secrets : mapping of str to str
        The variables that the compose file asks for.
    extra : mapping of str to str
        Further variables of every process.
    """

    def __init__(
        self, image: Image, secrets: Mapping[str, str], extra: Mapping[str, str] | None = None
    ) -> None:
        self.image, self.extra = image, dict(extra or {})
        self.compose = services(HERE / "compose.yml", secrets)
        self.ports = {port: str(free_port()) for port in ("7077", "8080", "9000")}
        self.containers: dict[str, list[Container]] = {}

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        for containers in reversed(self.containers.values()):
            for container in containers:
                container.end()

    def up(self, but: Sequence[str] = ()) -> None:
        """Start all services but some, each when those before it are ready, and wait until all are.

        Raises
        ------
        RuntimeError
            If a service ends badly, or is not ready in time; has what it printed.
        """
        waiting = [name for name in self.compose["services"] if name not in but]
        started: list[str] = []
        until = time.monotonic() + PATIENCE
        while waiting or started:
            for name in [name for name in waiting if self._may_start(name, [*waiting, *started])]:
                waiting.remove(name)
                started.append(name)
                count = self.compose["services"][name].get("deploy", {}).get("replicas", 1)
                self.containers[name] = [Container(self, name, k) for k in range(count)]
            started = [
                name for name in started if not all(map(self._is_ready, self.containers[name]))
            ]
            if time.monotonic() > until:
                said = "".join(c.text()[-2000:] for name in started for c in self.containers[name])
                raise RuntimeError(f"{started} are not ready:\n{said}")
            time.sleep(0.1)

    def _may_start(self, name: str, unready: Sequence[str]) -> bool:
        return not set(self.compose["services"][name].get("depends_on", {})) & set(unready)

    @staticmethod
    def _is_ready(container: Container) -> bool:
        """Whether a service is healthy or, where it has no health check, has ended well."""
        code = container.process.poll()
        if "healthcheck" not in container.spec and code is None:
            return False
        if code is not None and (code or "healthcheck" in container.spec):
            raise RuntimeError(f"{container.name} ended with {code}:\n{container.text()[-4000:]}")
        return code == 0 or container.is_healthy()


def main() -> int:
    """Build and start all of it, say what came of it, and end it."""
    image = Image(Path(sys.argv[1]).resolve())
    image.build()
    with Cluster(image, os.environ) as cluster:
        cluster.up()
        for name, containers in cluster.containers.items():
            print(f"{name}: {len(containers)} as compose.yml says")
        print(cluster.containers["demo"][0].text())
    print("left out: " + "; ".join(image.left_out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
