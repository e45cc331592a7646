"""The progress bar: on a real terminal and for long work only, up to the end, and never in the way."""

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import textwrap

import pytest

# What a bar stood at when it was closed goes to standard output; "long" begins at 1 MiB.
SETUP = """
    import sys
    import numpy as np, tqdm.auto
    import tensorlake_spark as tl
    from tensorlake_spark import progress
    from tensorlake_spark.reading import read

    class Bar(tqdm.auto.tqdm):
        def close(self):
            if not self.disable:
                print(f"{self.desc}: {self.n} of {self.total}", flush=True)
            super().close()

    tqdm.auto.tqdm = Bar
    progress._LONG = read._SHORT = 1 << 20
    lake = tl.open(sys.argv[1])
    x = np.random.default_rng(0).integers(0, 250, (64, 256, 256), np.uint8)  # 4 MiB
"""
WORK = """
    lake.write("x", x, block_shape=(1, 256, 256))
    assert (lake["x"][:] == x).all()
"""


def run(code, path, terminal=True):
    """Run code in a process; return its standard output and what its terminal, or pipe, showed."""
    command = [sys.executable, "-c", textwrap.dedent(SETUP) + textwrap.dedent(code), str(path)]
    # tqdm would leave out what comes within a tenth of a second, and steps smaller than others.
    env = {**os.environ, "TQDM_MININTERVAL": "0", "TQDM_MINITERS": "1", "TERM": "xterm"}
    if not terminal:
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
        return done.stdout, done.stderr
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 100, 0, 0))
    with open(ours, "rb", buffering=0) as screen:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, text=True, env=env)
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # EIO: the other end is closed
            while part := screen.read(4096):
                shown += part
        out, _ = child.communicate(timeout=120)
    text = shown.decode()
    assert child.returncode == 0, text
    return out, text


def closed(out):
    """Return where every bar stood in the end: label -> (done, total)."""
    found = re.findall(r"^(.*): (\d+) of (\d+|None)$", out, re.MULTILINE)
    return {label: (int(n), None if total == "None" else int(total)) for label, n, total in found}


def test_long_work_on_a_terminal_reaches_the_end(tmp_path):
    out, shown = run(WORK, tmp_path)
    bars = closed(out)
    assert set(bars) == {"write x", "read x"}
    for label, (done, total) in bars.items():
        assert done == total > 0
        percents = [int(p) for p in re.findall(rf"{label}:\s+(\d+)%", shown)]
        assert percents == sorted(percents)
        assert percents[0] == 0
        assert percents[-1] == 100
        assert len(set(percents)) > 2, "something between the beginning and the end"
    assert bars["write x"][1] == 64 * 256 * 256


def test_the_line_is_clean_afterwards(tmp_path):
    _, shown = run(WORK, tmp_path)
    assert "write x" in shown
    assert "\n" not in shown
    assert shown.split("\r")[-1].strip() == ""


def test_a_slice_counts_what_it_reads(tmp_path):
    code = WORK + "    lake['x'][:8]\n"
    out, _ = run(code, tmp_path)
    reads = re.findall(r"^read x: (\d+) of (\d+)$", out, re.MULTILINE)
    assert [done for done, _ in reads] == [total for _, total in reads]
    whole, part = (int(total) for _, total in reads)
    assert part < 0.7 * whole


def test_a_stream_counts_up_without_an_end(tmp_path):
    out, shown = run("lake.write('x', (x[i : i + 4] for i in range(0, 64, 4)))", tmp_path)
    assert closed(out) == {"write x": (64 * 256 * 256, None)}
    assert "write x: 4.19MB" in shown
    assert "%" not in shown


def test_an_append_counts_what_is_added(tmp_path):
    code = "lake.write('x', x[:2]); lake.write('x', x[2:], mode='append')"
    out, _ = run(code, tmp_path)
    assert closed(out) == {"write x": (62 * 256 * 256,) * 2}


@pytest.mark.parametrize("layout", ["ftsf", "bsgs"])
def test_an_assignment_counts_the_files_that_it_writes_anew(tmp_path, layout):
    code = f"ref = lake.write('x', x[::8], layout={layout!r}); progress._LONG = 0; ref[:, 0] = 7"
    out, _ = run(code, tmp_path)
    done, total = closed(out)["assign x"]
    assert done == total > 100_000


@pytest.mark.parametrize("layout", ["ftsf", "bsgs"])
def test_a_computation_counts_what_it_reads(tmp_path, layout):
    code = f"""
        ref = lake.write('x', x, layout={layout!r}); progress._LONG = 1000
        assert (ref.sum(axis=0) == x.sum(axis=0)).all() if {layout!r} == 'ftsf' else ref.sum() == x.sum()
        """
    out, _ = run(textwrap.dedent(code), tmp_path)
    done, total = closed(out)["compute x"]
    assert done == total > 100_000


def test_short_work_shows_nothing(tmp_path):
    code = "progress._LONG = 256 << 20\n" + textwrap.dedent(WORK)
    assert run(code, tmp_path) == ("", "")


def test_without_a_terminal_nothing_is_shown(tmp_path):
    assert run(WORK, tmp_path, terminal=False) == ("", "")


@pytest.mark.parametrize("terminal", [True, False])
def test_without_tqdm_everything_works(tmp_path, terminal):
    code = "sys.modules['tqdm'] = sys.modules['tqdm.auto'] = None\n" + textwrap.dedent(WORK)
    assert run(code, tmp_path, terminal=terminal) == ("", "")


@pytest.mark.parametrize("gone", ["sys.stderr = None", "sys.stderr.close()"])
def test_without_standard_error_everything_works(tmp_path, gone):
    assert run(f"{gone}\n" + textwrap.dedent(WORK), tmp_path, terminal=False) == ("", "")


def test_a_bar_is_closed_when_the_work_fails(tmp_path):
    code = """
        def slabs():
            yield x
            raise KeyError("the source broke")

        try:
            lake.write("x", slabs())
        except KeyError:
            pass
        assert "x" not in lake
    """
    out, shown = run(code, tmp_path)
    assert "write x" in closed(out)
    assert shown.split("\r")[-1].strip() == ""
