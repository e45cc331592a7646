"""What all jobs say of a mistake: one line and exit code 2, and with ``--debug`` the traceback before it."""

import io
import json
import logging
import os
import sys

import pytest

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.jobs import check, ingest, optimize, query, vacuum
from tensorlake_spark.jobs.command import carry_out, pairs


@pytest.mark.local_disk
@pytest.mark.parametrize("job", [check, optimize, vacuum])
def test_a_table_below_a_file_is_a_mistake_of_the_caller(tmp_path, run_job, job):
    (tmp_path / "file.txt").write_text("x")
    done = run_job(job, "--table", tmp_path / "file.txt" / "lake")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert f"{tmp_path}/file.txt is a file and not a folder; give a path below a folder" in done.err
    assert done.json["error"]["type"] == "FormatError"


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (InvalidOptionError, 2),
        (tl.TableNotFoundError, 2),
        (tl.ConcurrentWriteError, 1),
        (tl.CorruptDataError, 1),
        (tl.StorageError, 1),
        (ZeroDivisionError, 1),
    ],
)
def test_what_another_run_may_get_over_has_another_code_than_a_mistake(capsys, kind, code):
    def work():
        raise kind("so it is")

    assert carry_out("check.py", work, []) == code
    out, err = capsys.readouterr()
    said = {"type": kind.__name__, "message": "so it is"}
    about = json.loads(out)
    assert (about["status"], about["exit_code"], about["error"]) == ("failed", code, said)
    assert err.endswith("so it is\n")


@pytest.mark.parametrize(("options", "tells"), [([], ["ours"]), (["--debug"], ["theirs", "ours"])])
def test_what_py4j_logs_of_an_interrupted_call_is_for_debug(capsys, caplog, options, tells):
    theirs = compile("logging.error('theirs')", "/lib/py4j/java_gateway.py", "exec")

    def work():
        exec(theirs, {"logging": logging})
        logging.error("ours")
        raise KeyboardInterrupt

    assert carry_out("ingest.py", work, options) == 130
    assert [record.message for record in caplog.records] == tells
    assert capsys.readouterr().err.endswith("ingest.py: interrupted\n")
    assert not logging.getLogger().filters


@pytest.mark.local_disk
def test_a_table_is_named_once(tmp_path, run_job):
    for words, says in (
        ([tmp_path, "--table", tmp_path], "the table is given twice, as URI and by --table"),
        ([], "--table is missing"),
    ):
        done = run_job(vacuum, *words)
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert says in done.err


@pytest.mark.local_disk
def test_the_traceback_of_a_mistake(tmp_path, run_job):
    done = run_job(optimize, "--table", tmp_path / "none", "--debug")
    *more, last = done.err.splitlines()
    assert (done.code, last) == (2, f"optimize.py: there is no Delta table at {tmp_path}/none")
    assert more[0] == "Traceback (most recent call last):"
    (tmp_path / "job.yaml").write_text("debug: true\n")
    done = run_job(optimize, "--config", tmp_path / "job.yaml")
    assert (done.code, "debug" in done.err) == (2, True), "it is of the command line only"


@pytest.mark.parametrize("text", ["x", "", "=1", "="])
def test_what_is_not_name_and_value_is_told_alike_by_all_options(tmp_path, run_job, text):
    lines = [
        (query, ["--param", text, tmp_path, "SELECT 1"]),
        (query, ["--source", text, "SELECT 1"]),
        (ingest, ["--dataset", tmp_path / "ds", "--with", text, tmp_path]),
    ]
    for job, words in lines:
        done = run_job(job, *words)
        option = next(
            word for word in words[::-1] if str(word) in ("--param", "--source", "--with")
        )
        assert (done.code, done.err) == (2, f"{job.__name__.rpartition('.')[2]}.py: a {option} is not "
                                            f"NAME=VALUE: {text!r}\n")  # fmt: skip
    done = run_job(optimize, "--table", tmp_path, "--storage-option", text)
    assert (done.code, done.err) == (2, "optimize.py: a --storage-option is not NAME=VALUE\n")


def test_a_value_may_be_empty_or_have_the_sign():
    assert pairs(["a=", "b==", "c=x=y"], "--param") == {"a": "", "b": "=", "c": "x=y"}
    with pytest.raises(InvalidOptionError, match="--param 'a' is given twice; give one value"):
        pairs(["a=1", "a=1"], "--param")


@pytest.mark.parametrize(
    ("buffered", "code", "status"),
    [(True, 3, "bad"), (True, 1, "done"), (False, 1, "failed")],
    ids=["at the end", "of what is done", "in the work"],
)
def test_an_output_that_nobody_takes_is_told_in_one_line(
    monkeypatch, capsys, buffered, code, status
):
    given = {"status": status} | ({"exit_code": code} if status == "bad" else {})
    there, here = os.pipe()
    os.close(there)  # as behind "| head"
    with os.fdopen(here, "wb", -1 if buffered else 0) as raw:
        stream = io.TextIOWrapper(raw, "utf-8", write_through=not buffered)
        monkeypatch.setattr(sys, "stdout", stream)
        found = carry_out("check.py", lambda: print("found") or given, [])
        monkeypatch.undo()
        stream.close()
    (line,) = capsys.readouterr().err.splitlines()
    said, _, last = line.partition("; its last line: ")
    assert said == "check.py: standard output takes no more: Broken pipe"
    about = json.loads(last)
    assert (about["exit_code"], about["status"]) == (code, status)
    assert found == code


def test_an_output_that_was_closed_before_is_told_on_the_other(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", None)
    assert carry_out("check.py", lambda: {"status": "good"}, []) == 1
    (line,) = capsys.readouterr().err.splitlines()
    said, _, last = line.partition("; its last line: ")
    assert said.startswith("check.py: standard output takes no more: ")
    assert json.loads(last)["status"] == "good"


@pytest.mark.parametrize(("kind", "code"), [(None, 0), (InvalidOptionError, 2)])
def test_a_job_needs_no_standard_error(monkeypatch, capsys, kind, code):
    def work():
        if kind is not None:
            raise kind("so it is")
        return {"status": "good"}

    monkeypatch.setattr(sys, "stderr", None)
    assert carry_out("check.py", work, []) == code
    monkeypatch.undo()
    assert json.loads(capsys.readouterr().out.splitlines()[-1]).get("exit_code", 0) == code


@pytest.mark.local_disk
def test_a_name_with_a_new_line_is_told_in_one_line(tmp_path, run_job):
    done = run_job(check, f"{tmp_path}/caf\xe9\n\x1b[31m")  # as a text block of YAML ends
    assert done.code == 2
    assert done.err == f"check.py: there is no Delta table at {tmp_path}/caf\xe9\\n\\x1b[31m\n"
    assert done.json["error"]["message"].endswith("caf\xe9\n\x1b[31m")


def test_letters_that_the_output_does_not_have_are_escaped(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    assert carry_out("query.py", lambda: print("caf\xe9 \udcff") or {"status": "done"}, []) == 0
    first, last = stream.buffer.getvalue().splitlines()
    assert first == rb"caf\xe9 \udcff"
    assert json.loads(last)["status"] == "done"
    assert stream.errors == "strict"
