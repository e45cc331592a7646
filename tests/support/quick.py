"""Processes of Spark that live for seconds, beside others on few cores: how they start sooner.

``python tests/support/quick.py`` prepares the virtual environment for them, once. Nothing depends on it but their speed.
"""

from __future__ import annotations

import compileall
import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path
from py_compile import PycInvalidationMode

CLASSES = Path(sys.prefix) / "spark-classes.jsa"
"""Classes that a session of Spark loads, in the form in which the JVM maps them."""

_FLAGS = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
_SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"
# A JVM that the file does not fit does without.
_MAPPED = f"-XX:SharedArchiveFile={CLASSES} {_SILENT}"

QUICK = f"{_FLAGS} {_MAPPED}" if CLASSES.exists() else _FLAGS
"""Flags for such a JVM; a thorough compiler, for one, costs more than it gains."""

BRIEF = f"{QUICK} -Dspark.sql.codegen.wholeStage=false -Dspark.sql.codegen.factoryMode=NO_CODEGEN"
"""The same for a driver that runs each query once or twice: to compile one takes longer than that."""


def compile_archive(path: Path) -> None:
    """Add the compiled modules to an archive of modules, which Python itself cannot do when it imports them.

    Spark's workers import ``pyspark.zip``, and each of them compiled what it needed.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
        compileall.compile_dir(
            folder, quiet=1, legacy=True, stripdir=name, prependdir=str(path),
            invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
        )  # fmt: skip
        new = path.with_suffix(".new")
        with zipfile.ZipFile(new, "w") as archive:
            for file in sorted(f for f in folder.rglob("*") if f.is_file()):
                archive.write(file, file.relative_to(folder))
    new.replace(path)


def archive_classes(path: Path) -> None:
    """Let a session do what many tests do, and write the classes that it loads to a file."""
    new = path.with_suffix(".new")
    flags = f"{_FLAGS} {_SILENT} -XX:ArchiveClassesAtExit={new}"
    # The JVM writes when it ends, which is later than Python: it still holds the pipe until then.
    subprocess.run([sys.executable, __file__, flags], check=True, stdout=subprocess.PIPE)
    if new.exists():  # a JVM that cannot write it says so, and tests start as they do without
        new.replace(path)


def work(flags: str) -> None:
    """Write and read a tensor in a session whose JVM has some flags."""
    import tensorlake_spark as tl
    from tensorlake_spark.spark import local_session

    folder = tempfile.mkdtemp()
    try:
        tl.open(f"{folder}/lake").write("numbers", [[1, 2], [3, 4]])
        session = local_session(s3=True, **{"spark.driver.extraJavaOptions": flags})
        frame = session.read.format("tensor").option("id", "numbers").load(f"{folder}/lake")
        tensors = frame.select("id", "tensor")
        tensors.write.format("tensor").mode("append").save(f"{folder}/other")
        session.read.format("delta").load(f"{folder}/other").groupBy("id").count().toArrow()
        session.stop()
    finally:
        shutil.rmtree(folder)


def main() -> None:
    if flags := sys.argv[1:]:
        work(*flags)
        return
    pyspark = find_spec("pyspark")
    assert pyspark is not None
    assert pyspark.origin is not None
    for path in (Path(pyspark.origin).parent / "python" / "lib").glob("*.zip"):
        compile_archive(path)
    archive_classes(CLASSES)


if __name__ == "__main__":
    main()
