"""Loops that numba compiles give what they should, whatever is wrong with the files that keep them."""

import os
import subprocess
import sys
import textwrap

import pytest
from places import ROOT

LOOPS = """
    import sys

    import numpy as np
    from numba import int64
    from tensorlake_spark.loop_compiler import compiled_loop

    @compiled_loop
    def total(values):
        out = values.dtype.type(0)
        for k in range(values.size):
            out += values[k]
        return out

    def double(number):
        return number + number

    double = compiled_loop(double, [int64(int64)])

    def run(dtype):
        assert total(np.arange(5, dtype=dtype)) == 10
        assert double(21) == 42
        assert all(loop.targetoptions["nogil"] for loop in (total, double))
        print(*("loaded" if loop.stats.cache_hits else "compiled" for loop in (total, double)))

    if __name__ == "__main__":
        run(sys.argv[1])
"""


@pytest.fixture
def run(tmp_path):
    """Run the loops in a process of their own; return what it says, and what it warned of."""
    module = tmp_path / "some_loops.py"
    module.write_text(textwrap.dedent(LOOPS))

    def run(dtype="f8", before="", cache=tmp_path / "cache"):
        done = subprocess.run(
            [sys.executable, "-c", f"{before}\nimport some_loops\nsome_loops.run('{dtype}')"],
            capture_output=True, text=True, check=False, timeout=300, cwd=tmp_path,
            env={
                **os.environ, "NUMBA_DISABLE_JIT": "0", "PYTHONPATH": f"{ROOT}:{tmp_path}", "NUMBA_CACHE_DIR": str(cache),
                # Python goes by times, too: it would run the old text of a file whose time is set back.
                "PYTHONDONTWRITEBYTECODE": "1",
            },
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout.strip(), done.stderr

    return run


def _zeros(data):
    return data[:-900] + bytes(300) + data[-600:]


def _half(data):
    return data[: len(data) // 2]


@pytest.mark.local_disk
def test_damaged_files_are_a_warning_and_replaced(run, tmp_path):
    assert run() == ("compiled compiled", "")
    assert run() == ("loaded loaded", "")
    for pattern, damage in [("*.nbc", _zeros), ("*.nbi", _half)]:
        files = list((tmp_path / "cache").rglob(pattern))
        assert len(files) == 2
        for path in files:
            path.write_bytes(damage(path.read_bytes()))
        said, warned = run()
        assert said == "compiled compiled"
        assert warned.count(f"numba's cache in {tmp_path / 'cache'}") == 1, "not for each file"
        assert "is damaged, so loops are compiled again" in warned
        assert run() == ("loaded loaded", "")


@pytest.mark.local_disk
def test_code_behind_the_types_of_another_is_not_run(run, tmp_path):
    run("f8")
    kept = {path: path.read_bytes() for path in (tmp_path / "cache").rglob("*.total-*.nbc")}
    for path in (tmp_path / "cache").rglob("*.total-*"):
        path.unlink()
    run("i8")
    assert kept
    for path, data in kept.items():  # what two processes leave that write at the same time
        path.write_bytes(data)
    assert run("i8") == ("compiled loaded", "")
    assert run("i8") == ("loaded loaded", "")


@pytest.mark.local_disk
def test_code_of_another_version_of_a_loop_is_not_run(run, tmp_path):
    """What an old process leaves that writes its code while a new one has written the index."""
    module = tmp_path / "some_loops.py"
    new = module.read_text()
    module.write_text(new.replace("type(0)", "type(9)").replace("== 10", "== 19"))
    run()
    kept = {path: path.read_bytes() for path in (tmp_path / "cache").rglob("*.nbc")}
    module.write_text(new)
    assert run() == ("compiled compiled", "")
    assert kept
    for path, data in kept.items():
        assert path.exists()
        path.write_bytes(data)
    assert run() == ("compiled compiled", "")
    assert run() == ("loaded loaded", "")


OTHER = """
    from tensorlake_spark.loop_compiler import compiled_loop

    TOTAL = 15

    @compiled_loop
    def more(value):
        return _more(value)

    @compiled_loop
    def _more(value):
        return value + 1
"""


def test_code_with_another_version_of_a_loop_that_it_calls_is_not_run(run, tmp_path):
    """Also if the file of that one is as long as before, and as old, as in builds that can be repeated."""
    module, other = tmp_path / "some_loops.py", tmp_path / "other_loops.py"
    other.write_text(textwrap.dedent(OTHER))
    text = module.read_text().replace(
        "import sys\n", "import sys\nfrom other_loops import TOTAL, more\n"
    )
    module.write_text(text.replace("+= values[k]", "+= more(values[k])").replace("10", "TOTAL"))
    assert run() == ("compiled compiled", "")
    assert run() == ("loaded loaded", "")
    times = other.stat()
    other.write_text(other.read_text().replace("+ 1", "+ 2").replace("TOTAL = 15", "TOTAL = 20"))
    os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert run() == ("compiled loaded", "")
    assert run() == ("loaded loaded", "")
    later = times.st_mtime_ns + 5 * 10**9  # the same text, copied anew
    for path in (other, module):
        os.utime(path, ns=(later, later))
    assert run() == ("loaded loaded", "")


FULL = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))"
NO_FOLDER = (
    "import numba.core.caching as c; c.CacheImpl._locator_classes = [c.UserProvidedCacheLocator]"
)


@pytest.mark.local_disk
def test_a_folder_that_cannot_be_written_is_a_warning(run, tmp_path):
    said, warned = run(before=f"{FULL}\nimport sys; sys.dont_write_bytecode = True")
    assert said == "compiled compiled"
    assert warned.count("cannot be written, so loops are compiled again") == 1
    assert "File too large" in warned
    (tmp_path / "file").touch()
    said, warned = run(before=NO_FOLDER, cache=tmp_path / "file")
    assert said == "compiled compiled"
    assert warned.count("numba's cache has no folder that can be written, so loops") == 1
