"""Two writers of one dataset: who is told, who is computed anew, and a writer that is killed."""

import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from deltalake import DeltaTable
from races import before_call

import tensorlake_spark as tl
from tensorlake_spark.datasets.samples import appending


@pytest.fixture
def ds(tmp_path):
    found = tl.dataset(
        tmp_path / "ds", {"size": "int32", "score": "float64", "boxes": tl.types.Tensor("float32")}
    )
    for start in (0, 10):
        numbers = np.arange(start, start + 10)
        found.extend(
            {
                "size": numbers,
                "score": np.full(10, np.nan),
                "boxes": [np.ones((n, 2), "f4") for n in numbers],
            }
        )
    return found


def left_over(ds):
    """Data files that no version has."""
    named = set()
    for version in range(tl.dataset(ds.uri).version + 1):
        named |= {Path(p).name for p in DeltaTable(ds.uri, version).file_uris()}
    return {path.name for path in Path(ds.uri).glob("*.parquet")} - named


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda ds: ds.update(3, {"size": 1}), lambda ds: ds.update(3, {"size": 2})),
        (lambda ds: ds.update(3, {"size": 1}), lambda ds: ds.update([2, 3], {"score": 2.0})),
        (lambda ds: ds.update(3, {"size": 1}), lambda ds: ds.delete([2, 3])),
        (lambda ds: ds.delete(3), lambda ds: ds.update([2, 3], {"size": 2})),
        (lambda ds: ds.delete(3), lambda ds: ds.delete(3)),
        (
            lambda ds: ds.update(3, {"boxes": np.zeros((3, 2), "f4")}),
            lambda ds: ds["size"].__setitem__(3, 5),
        ),
    ],
)
def test_of_two_changes_of_one_sample_one_wins(ds, first, second):
    other = tl.dataset(ds.uri)
    first(ds)
    with pytest.raises(
        tl.ConcurrentWriteError,
        match=r"changed sample 3: .* version 2 .* version 3 (has|no longer has it)",
    ):
        second(other)
    assert tl.dataset(ds.uri).version == 3
    assert not left_over(ds)
    other.refresh()
    if 3 in other.sids:
        second(other)


def test_a_change_of_other_samples_of_the_file_is_computed_anew(ds):
    other = tl.dataset(ds.uri)
    ds.update([2, 4], {"size": 100})
    ds.delete([5, 15])
    ds.append({"size": 20})
    assert other.update([3, 14], {"size": 200}) == 2
    assert other.version == 6
    sizes = dict(zip(other.sids.tolist(), other["size"][:].tolist(), strict=True))
    expected = {n: n for n in range(21) if n not in (5, 15)} | {2: 100, 4: 100, 3: 200, 14: 200}
    assert sizes == expected
    assert not left_over(ds)


def test_a_sample_whose_file_only_moved_may_be_changed(ds):
    """NaN is itself: rows are compared as what they are."""
    other = tl.dataset(ds.uri)
    ds.update(0, {"size": 100})
    ds.add_column("new", "int32", 5)
    assert other.update("size = 3", {"score": 1.0}) == 1
    assert other["score"][3] == 1
    assert other["new"][3] == 5


def test_a_change_that_meets_another_one_in_its_commit_is_computed_anew(ds, monkeypatch):
    from tensorlake_spark.datasets.changes import rewriting

    commit = rewriting.commit
    left = [
        lambda: tl.dataset(ds.uri).update(2, {"size": 50}),
        lambda: tl.dataset(ds.uri).append({"size": 51}),
    ]

    def later(storage, change):
        monkeypatch.setattr(rewriting, "commit", commit if not left else later)
        if left:
            monkeypatch.setattr(rewriting, "commit", commit)
            left.pop(0)()
            monkeypatch.setattr(rewriting, "commit", later)
        return commit(storage, change)

    monkeypatch.setattr(rewriting, "commit", later)
    ds.update([3], {"size": 60})
    assert ds["size"][[2, 3, 20]].tolist() == [50, 60, 51]
    assert not left_over(ds)


WRITER = """
import sys, tensorlake_spark as tl
ds = tl.dataset(sys.argv[1])
number = int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
"""


def started(ds, number, code):
    running = subprocess.Popen(
        [sys.executable, "-c", WRITER + textwrap.dedent(code), ds.uri, str(number)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert running.stdout.readline() == "ready\n"
    return running


def go(*running):
    for one in running:
        one.stdin.write("\n")
        one.stdin.flush()
    return [one.communicate(timeout=120) for one in running]


def test_two_processes_append_and_update_at_once(ds):
    """Appends land both, and so do updates of samples that are not the same."""
    code = """
    for n in range(5):
        ds.extend({"size": [1000 * number + n] * 3})
        ds.update(number, {"size": -n})
        ds.refresh()
    """
    running = [started(ds, number, code) for number in (1, 2)]
    said = go(*running)
    assert [one.returncode for one in running] == [0, 0], said
    ds.refresh()
    assert ds.sids.tolist() == [*range(50)]
    assert ds["size"][[1, 2]].tolist() == [-4, -4]
    wanted = [1000 * number + n for number in (1, 2) for n in range(5) for _ in range(3)]
    assert sorted(ds["size"][20:].tolist()) == wanted


def test_of_two_processes_that_update_one_sample_one_is_told(ds):
    code = """
    try:
        ds.update([7, 8], {"size": 100 + number})
        print("won")
    except tl.ConcurrentWriteError as error:
        print("told", "sample 7" in str(error))
    """
    said = sorted(out for out, _ in go(*[started(ds, number, code) for number in (1, 2)]))
    assert said == ["told True\n", "won\n"]
    ds.refresh()
    assert ds["size"][7] in (101, 102)
    assert ds["size"][7] == ds["size"][8]
    assert ds.version == 3


def test_a_writer_that_is_killed_before_its_commit_leaves_nothing_to_see(ds):
    code = """
    import os, time
    from tensorlake_spark.datasets.changes import rewriting
    def commit(*_):
        print("written", flush=True)
        time.sleep(600)
    rewriting.commit = commit
    ds.update([1, 11], {"size": 5})
    """
    running = started(ds, 1, code)
    running.stdin.write("\n")
    running.stdin.flush()
    assert running.stdout.readline() == "written\n"
    os.kill(running.pid, signal.SIGKILL)
    running.communicate()
    assert len(left_over(ds)) == 2, "its files, which a vacuum removes"
    found = tl.dataset(ds.uri)
    assert found.version == 2
    assert found["size"][:].tolist() == [*range(20)]
    ds.update([1, 11], {"size": 6})
    assert ds["size"][[1, 11]].tolist() == [6, 6]


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize(
    "second",
    [
        lambda ds: ds.update([1], {"x": np.full(600, 7)}),
        lambda ds: ds["x"].__setitem__(3, np.full(600, 7)),
        lambda ds: ds.extend({"x": [np.full(600, 7)]}),
    ],
)
@pytest.mark.parametrize("first", ["dropped", "renamed", "added again"])
def test_values_of_a_column_that_another_writer_has_taken_out_are_not_lost(
    tmp_path, first, second, apart
):
    kind = tl.types.Tensor("int64", apart=apart)
    ds = tl.dataset(tmp_path / "ds", {"x": kind, "size": "int32"}, tile_bytes=1000)
    ds.extend({"x": [np.zeros(600, "i8"), None], "size": [0, 1]})
    other = tl.dataset(ds.uri)
    other.strict = False
    if first == "renamed":
        ds.rename_column("x", "y")
    else:
        ds.drop_column("x")
    if first == "added again":
        ds.add_column("x", kind)
    with pytest.raises(tl.ConcurrentWriteError, match="another writer changed column 'x'"):
        second(other)
    assert tl.dataset(ds.uri)["size"][:].tolist() == [0, 1]
    assert tl.dataset(ds.uri).check().ok


@pytest.mark.parametrize("name", ["size", "x"])
def test_a_column_that_goes_while_an_append_with_parts_commits_is_told(tmp_path, monkeypatch, name):
    """After its last look at the columns: the commit is stale, and they are looked at again."""
    ds = tl.dataset(tmp_path / "ds", {"x": tl.types.Tensor("int64", apart=True), "size": "int32"})
    ds.append({"x": np.zeros(2, "i8"), "size": 0})
    before_call(monkeypatch, appending, "pins", lambda: tl.dataset(ds.uri).drop_column(name))
    with pytest.raises(tl.ConcurrentWriteError, match=f"another writer changed column '{name}'"):
        ds.append({"x": np.ones(2, "i8"), "size": 1})
    assert len(tl.dataset(ds.uri)) == 1
    assert tl.dataset(ds.uri).check().ok


@pytest.mark.parametrize("kind", [tl.types.Scalar("int64"), tl.types.Tensor("int64", ())])
@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("values", [None, [], [1, 2]])
def test_a_column_without_nulls_has_none_for_samples_that_another_writer_added(
    tmp_path, kind, apart, values
):
    kind = replace(kind, nullable=False, apart=apart)
    ds = tl.dataset(tmp_path / "ds", {"size": "int32"})
    ds.extend({"size": values or []})
    tl.dataset(ds.uri).append({"size": 3})
    with pytest.raises(tl.ConcurrentWriteError, match="another writer added sample"):
        ds.add_column("x", kind, values)
    ds.refresh()
    ds.add_column("x", kind, [*(values or []), 3])
    assert [int(value) for value in ds["x"]] == [*(values or []), 3]


def test_a_value_that_lies_apart_is_not_said_to_be_written_for_a_sample_that_is_gone(
    tmp_path, monkeypatch
):
    """No file with the sample leaves then, so nothing but the version tells that another writer took it out."""
    from tensorlake_spark.datasets.changes import rewriting

    ds = tl.dataset(tmp_path, {"size": "int32", "far": tl.types.Tensor("int16", apart=True)})
    ds.extend({"size": [0, 1, 2], "far": [np.zeros(2, "i2")] * 3})
    commit = rewriting.commit

    def later(storage, change):
        monkeypatch.undo()
        tl.dataset(ds.uri).delete([2])
        return commit(storage, change)

    monkeypatch.setattr(rewriting, "commit", later)
    with pytest.raises(tl.ConcurrentWriteError, match=r"sample 2.*no longer has it"):
        ds.update([1, 2], {"far": [np.ones(2, "i2")] * 2})
    ds.refresh()
    assert [far.tolist() for far in ds["far"]] == [[0, 0], [0, 0]]
    ds.update([1], {"far": [np.ones(2, "i2")]})
    assert [far.tolist() for far in ds["far"]] == [[0, 0], [1, 1]]
