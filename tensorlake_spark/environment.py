"""What this package runs on here: the versions that a report of a fault should name."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from importlib.util import find_spec

import tensorlake_spark
from tensorlake_spark.kernel_switch import choice

PACKAGES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "pandas": "pandas",
    "pyarrow": "pyarrow",
    "deltalake": "deltalake",
    "zlib-ng": "zlib_ng",
    "sqlglot": "sqlglot",
    "duckdb": "duckdb",
    "pyspark": "pyspark",
    "delta-spark": "delta",
    "pyyaml": "yaml",
    "grpcio": "grpc",
    "grpcio-status": "grpc_status",
    "googleapis-common-protos": "google",
    "zstandard": "zstandard",
    "boto3": "boto3",
    "botocore": "botocore",
    "ml_dtypes": "ml_dtypes",
    "pcodec": "pcodec",
    "numba": "numba",
    "tqdm": "tqdm",
    "zarr": "zarr",
    "h5py": "h5py",
    "tifffile": "tifffile",
    "simplejpeg": "simplejpeg",
    "soundfile": "soundfile",
    "av": "av",
    "pydicom": "pydicom",
    "imagecodecs": "imagecodecs",
    "pillow": "PIL",
    "sparse": "sparse",
    "datasets": "datasets",
    "torch": "torch",
    "jax": "jax",
    "tensorflow": "tensorflow",
}
"""By the name that pip knows a package by, the name that Python imports it by."""

MISSING = "not installed"


def versions() -> dict[str, str]:
    """Return the versions of this package, of Python and the system, and of the packages that matter.

    Nothing is imported for it, and nothing raises: what is missing, or cannot be found out, says so.

    Returns
    -------
    dict of str to str
        ``tensorlake_spark``, ``python``, ``system``, a name for each package as pip has it, ``java``,
        and ``kernels``: what dense blocks are coded by, and sparse rows read by.

    Examples
    --------
    >>> from tensorlake_spark.environment import versions
    >>> versions()["kernels"].split()[0] in ("numpy", "numba")
    True
    """
    return {
        "tensorlake_spark": tensorlake_spark.__version__,
        "python": _known(lambda: f"{platform.python_version()} ({sys.executable})"),
        "system": _known(platform.platform),
        **{name: _known(lambda n=name: _package(n)) for name in PACKAGES},  # type: ignore[misc]
        "java": _known(_java),
        "kernels": _known(_kernels),
    }


def show_versions() -> None:
    """Print the versions of this package and of what it runs on, a line each: paste them into a report.

    Examples
    --------
    >>> import tensorlake_spark as tl
    >>> tl.show_versions()  # doctest: +ELLIPSIS
    tensorlake_spark: ...
    python: ...
    """
    for name, version in versions().items():
        print(f"{name}: {version}")


def _known(find: Callable[[], str]) -> str:
    """Return what `find` finds, or why it does not: a report is wanted most where something is broken."""
    try:
        return find()
    except Exception as error:
        return f"unknown ({type(error).__name__}: {error})"


def _kernels() -> str:
    """Return what `kernel_switch` goes by; that it cannot, where the environment asks for what there is not."""
    said = choice()
    version = _package("numba")
    return "numpy" if said == "numpy" or version == MISSING else f"numba {version} ({said})"


def _package(name: str) -> str:
    """Return the version of a package without importing it."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
    found = find_spec(PACKAGES[name])  # Spark puts its own pyspark on the path, without metadata
    if found is None or found.origin is None:
        return MISSING
    return f"unknown (at {found.origin}, without metadata)"


def _java() -> str:
    """Return the first line of ``java -version``, of the Java that Spark would take."""
    home = os.environ.get("JAVA_HOME")
    command = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not command or not os.path.exists(command):
        return f"{MISSING} (JAVA_HOME is {home}, which has no bin/java)" if home else MISSING
    done = subprocess.run(  # nosec B603 # no shell; the java of this machine
        [command, "-version"], capture_output=True, text=True, timeout=60, check=False
    )
    lines = done.stderr.splitlines()
    return f"{lines[0] if lines else 'of an unknown version'} ({command})"
