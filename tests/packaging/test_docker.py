"""docker/: the rules of good images hold, and every command runs, without Docker."""

import json
import re
import subprocess
import sys
from configparser import ConfigParser
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from PIL import Image
from places import ROOT
from quick import BRIEF

import tensorlake_spark as tl
from tensorlake_spark.spark.session import fetch

DOCKER = ROOT / "docker"
SECRETS = {"S3_IDENTITY": "an-identity", "S3_CREDENTIAL": "a-secret-that-nobody-may-print"}
SMALL = {"SPARK_DAEMON_MEMORY": "256m", "JDK_JAVA_OPTIONS": BRIEF}


def _load(path):
    spec = spec_from_file_location(path.stem, path)
    module = module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


without_docker = _load(DOCKER / "without_docker.py")


@pytest.fixture(scope="module")
def compose():
    return without_docker.services(DOCKER / "compose.yml", SECRETS)


def test_the_dockerfile_keeps_the_rules_of_hadolint():
    program = Path(sys.executable).with_name("hadolint")
    done = subprocess.run(
        [program, "--failure-threshold", "style", DOCKER / "Dockerfile"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_hadolint_finds_what_it_should(tmp_path):
    bad = tmp_path / "Dockerfile"
    bad.write_text(
        "FROM python:latest\nRUN apt-get update && apt-get install curl\nUSER root\nCMD python\n"
    )
    program = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([program, bad], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert {"DL3007", "DL3008", "DL3009", "DL3002", "DL3015", "DL3025"} <= set(
        re.findall(r"DL\d{4}", done.stdout)
    )


def test_the_image_holds_no_secret_and_nothing_that_it_does_not_need():
    ignored = (DOCKER / "Dockerfile.dockerignore").read_text().splitlines()
    rules = [line for line in ignored if line and not line.startswith("#")]
    assert rules[0] == "*"
    copied = [
        source
        for name, rest in without_docker.instructions(DOCKER / "Dockerfile")
        if name == "COPY"
        for source in rest.split()[:-1]
    ]
    assert {rule[1:] for rule in rules if rule.startswith("!")} == set(copied)
    assert all((ROOT / source).exists() for source in copied)
    names = {name for name, _ in without_docker.instructions(DOCKER / "Dockerfile")}
    assert names.isdisjoint({"ADD", "ARG", "EXPOSE"})
    assert not re.search("secret|password|key", (DOCKER / "Dockerfile").read_text(), re.IGNORECASE)


def test_all_versions_are_pinned():
    found = {}
    for line in (DOCKER / "requirements.txt").read_text().splitlines():
        if not line.startswith("#"):
            name, version = re.fullmatch(r"([\w.-]+)==([\w.]+)", line).groups()
            found[canonicalize_name(name)] = version
    config = ConfigParser()
    config.read(ROOT / "setup.cfg")
    extras = config["options.extras_require"]
    lists = [config["options"]["install_requires"]]
    lists += [extras[name] for name in ("demo", "spark", "dtypes", "progress")]
    for line in "\n".join(lists).splitlines():
        if line and not line.startswith(("#", "tensorlake")):
            wanted = Requirement(line)
            assert found[canonicalize_name(wanted.name)] in wanted.specifier
    (base,) = [
        rest for name, rest in without_docker.instructions(DOCKER / "Dockerfile") if name == "FROM"
    ]
    assert re.fullmatch(r"python:3\.11\.\d+-slim-bookworm", base)


def test_the_compose_file_is_what_compose_takes(compose):
    assert set(compose) <= {"name", "services", "volumes", "configs", "x-spark", "x-s3"}
    known = {
        "image", "build", "read_only", "tmpfs", "cap_drop", "security_opt", "command", "environment", "ports",
        "healthcheck", "depends_on", "deploy", "volumes", "configs", "working_dir",
    }  # fmt: skip
    for name, service in compose["services"].items():
        assert set(service) <= known, name
        assert service["image"].endswith(f":{tl.__version__}")
        assert (DOCKER / service["build"]["context"]).resolve() == ROOT
        assert (ROOT / service["build"]["dockerfile"]).exists()
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert all(isinstance(word, str) for word in service["command"])
        assert all(isinstance(v, str) for v in service.get("environment", {}).values())
        for before, how in service.get("depends_on", {}).items():
            has_check = "healthcheck" in compose["services"][before]
            assert how["condition"] == (
                "service_healthy" if has_check else "service_completed_successfully"
            )
        assert {one.split(":")[0] for one in service.get("volumes", ())} <= set(compose["volumes"])
        assert {one["source"] for one in service.get("configs", ())} <= set(
            compose.get("configs", {})
        )
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), (
            "open to all"
        )
        assert not any(secret in " ".join(service["command"]) for secret in SECRETS.values())
    text = (DOCKER / "compose.yml").read_text()
    assert "latest" not in text
    assert yaml.safe_load(text)["services"].keys() == compose["services"].keys()


def test_compose_asks_for_its_secrets():
    with pytest.raises(SystemExit, match="S3_IDENTITY: set S3_IDENTITY"):
        without_docker.services(DOCKER / "compose.yml", {})


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """The image in a folder, its packages those of this environment, its jars those of this machine."""
    folder = tmp_path_factory.mktemp("image")
    built = without_docker.Image(folder, network=False)
    assert fetch(), "the jars are in the cache of this user"
    cache = without_docker.os.environ.get(
        "TENSORLAKE_CACHE", Path.home() / ".cache" / "tensorlake-spark"
    )
    (folder / "opt").mkdir()
    (folder / "opt" / "cache").symlink_to(cache)
    built.build()
    return built


def test_the_image_is_built_by_its_commands(image):
    assert len(image.done) == 3
    assert [line.split()[0] for line in image.left_out] == [
        "FROM", "apt-get", "apt-get", "rm", "useradd", "install", "pip", "USER", "ENTRYPOINT",
    ]  # fmt: skip
    code = "import tensorlake_spark, pyspark_tensorlake; print(tensorlake_spark.__file__)"
    done = subprocess.run(
        [image.bin / "python", "-c", code], cwd=image.folder, env=image.variables(),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.startswith(str(image.folder / "venv"))


def test_the_cluster_starts_and_a_job_writes_to_s3(image):
    """Every service but the demo, whose photographs are put there by hand."""
    folder = image.folder / "data" / "demo-output" / "photographs"
    folder.mkdir(parents=True)
    photos = np.random.default_rng(0).integers(0, 256, (3, 48, 64, 3), np.uint8)
    for number, photo in enumerate(photos):
        Image.fromarray(photo).save(folder / f"{number}.png")
    with without_docker.Cluster(image, SECRETS, SMALL) as cluster:
        cluster.up(but=["demo"])
        assert len(cluster.containers["worker"]) == 2
        said = cluster.containers["photos"][0].text()
        assert json.loads(said.splitlines()[-1])["status"] == "done", said
        options = cluster.containers["bucket"][0].environment()
        found = {k: v for k, v in options.items() if k.startswith("AWS_")}
        lake = tl.open("s3://lake/photos", storage_options=found)
        assert np.array_equal(lake["photos"][:], photos.transpose(0, 3, 1, 2))
        pages = [c for containers in cluster.containers.values() for c in containers]
        assert not any(SECRETS["S3_CREDENTIAL"] in c.text() for c in pages)
        processes = [c.process for c in pages]
    assert all(process.poll() is not None for process in processes)


@pytest.mark.soak
def test_the_image_is_built_from_nothing_and_the_demo_runs(tmp_path):
    """All packages fetched at the versions of requirements.txt, all services, the demo on the cluster."""
    image = without_docker.Image(tmp_path)
    image.build()
    assert not any(line.startswith("pip") for line in image.left_out)
    with without_docker.Cluster(image, SECRETS, SMALL) as cluster:
        cluster.up()
        said = cluster.containers["demo"][0].text()
        assert "whole tensor in Python equals NumPy" in said
        assert re.search(r" NO$", said, re.MULTILINE) is None
        assert (
            json.loads(cluster.containers["photos"][0].text().splitlines()[-1])["status"] == "done"
        )


@pytest.mark.soak
def test_apt_has_the_packages():
    """A simulation, on Debian 12 with the lists of its packages."""
    (install,) = [
        part
        for name, rest in without_docker.instructions(DOCKER / "Dockerfile")
        for part in re.split(r"\s+&&\s+", rest)
        if name == "RUN" and part.startswith("apt-get install")
    ]
    words = without_docker.shlex.split(install)
    done = subprocess.run(
        [*words[:1], "-s", *words[1:]], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
