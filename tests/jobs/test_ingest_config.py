"""A configuration in YAML says what a command line says; mistakes in it are one line."""

import json
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from places import ROOT

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.jobs import ingest, optimize, purge
from tensorlake_spark.jobs.config import parse
from tensorlake_spark.spark.ingest.sources import expand

EXAMPLES = sorted((ROOT / "conf" / "examples").glob("*.yaml"))
SAMPLES = ROOT / "conf" / "examples" / "samples.yaml"
INGESTIONS = [p for p in EXAMPLES if "jobs/ingest.py" in p.read_text() and p != SAMPLES]
UPKEEP = {"optimize": optimize, "purge": purge}


def command_of(path):
    """The command line that the comment at the head of an example says it is the same as, and its job."""
    lines = [line[1:].strip() for line in path.read_text().splitlines() if line.startswith("#")]
    start = lines.index("The same as") + 2
    stop = lines.index("", start)
    words = shlex.split(" ".join(line.removesuffix("\\") for line in lines[start:stop]))
    (place,) = (i for i, word in enumerate(words) if word.startswith("jobs/"))
    return Path(words[place]).stem, words[place + 1 :]


@pytest.fixture
def inputs(tmp_path, photos, monkeypatch):
    """What the examples read, in the working directory."""
    monkeypatch.chdir(tmp_path)
    Path("photographs").mkdir()
    for i in range(4):
        Image.fromarray(photos[i].transpose(1, 2, 0)).save(f"photographs/{i}.png")
    rng = np.random.default_rng(0)
    times = pd.date_range("2024-01-01", periods=60, freq="3h", tz="America/New_York")
    names = {"origin": ["JFK", "EWR", "LGA"], "carrier": ["AA", "UA"]}
    frame = pd.DataFrame({k: rng.choice(v, 60) for k, v in names.items()})
    frame["time_hour"] = times.strftime("%Y-%m-%dT%H:%M:%S%z")
    frame["dep_delay"] = rng.integers(-10, 40, 60)
    Path("flights").mkdir()
    frame.to_csv("flights/2024.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("example", INGESTIONS, ids=lambda p: p.stem)
def test_an_example_is_the_command_line_that_it_names(job, inputs, example):
    _, words = command_of(example)
    by_file, by_line = (
        vars(parse(ingest.parser, a, ingest._DEFAULTS)) for a in (["--config", str(example)], words)
    )
    attrs = [a.pop("attrs") for a in (by_file, by_line)]
    assert by_file.pop("config") == str(example)
    assert by_line.pop("config") is None
    assert by_file == by_line
    assert attrs[0] == attrs[1]
    plans = [job(*a, "--dry-run") for a in (["--config", example], words)]
    assert [p.code for p in plans] == [0, 0]
    assert {**plans[0].json, "seconds": 0} == {**plans[1].json, "seconds": 0}
    words[words.index("--table") + 1] = "y"
    done = [job("--config", example, "--table", "x"), job(*words)]
    assert [d.code for d in done] == [0, 0], done[0].err + done[1].err
    (name,) = (t["id"] for t in done[0].json["tensors"])
    one, two = (tl.open(table)[name] for table in "xy")
    assert one._meta.spec == two._meta.spec
    a, b = one[...], two[...]
    assert a.equals(b) if isinstance(a, tl.SparseTensor) else np.array_equal(a, b)
    assert done[0].json["tensors"][0]["shape"] == plans[0].json["tensors"][0]["shape"]


@pytest.mark.parametrize(
    "example", sorted({*EXAMPLES} - {*INGESTIONS, SAMPLES}), ids=lambda p: p.stem
)
def test_an_example_of_upkeep_is_the_command_line_that_it_names(example):
    name, words = command_of(example)
    module = UPKEEP[name]
    by_file, by_line = (
        vars(parse(module.parser, a, module._DEFAULTS)) for a in (["--config", str(example)], words)
    )
    assert {**by_file, "config": None} == by_line


def test_the_example_of_samples_is_the_command_line_that_it_names(job, inputs):
    _, words = command_of(SAMPLES)
    number = ("--txn-version", 20240131)
    by_file, by_line = (
        vars(parse(ingest.parser, list(map(str, a)), ingest._DEFAULTS))
        for a in (["--config", SAMPLES, *number], words)
    )
    assert {**by_file, "config": None} == by_line
    for label, name in (("cat", "0"), ("cat", "1"), ("dog", "2"), ("dog", "3")):
        Path("photographs", label).mkdir(exist_ok=True)
        Path(f"photographs/{name}.png").rename(f"photographs/{label}/{name}.png")
    Path("photographs/dog/4.png").write_bytes(b"cut")
    done = job("--config", SAMPLES, *number)
    assert (done.code, done.json["samples"], done.json["left_out"]) == (0, 4, 1), done.err
    assert job(*words).json["status"] == "repeated"
    ds = tl.dataset("pets")
    assert ds.schema["image"].apart
    assert ds["file"][:] == ["cat/0.png", "cat/1.png", "dog/2.png", "dog/3.png"]


def test_there_are_examples():
    assert {p.stem for p in EXAMPLES} >= {"photographs", "flights", "optimize", "purge", "samples"}


def read(tmp_path, text, *words):
    (tmp_path / "job.yaml").write_text(text)
    arguments = ["--config", str(tmp_path / "job.yaml"), *words]
    return parse(ingest.parser, arguments, ingest._DEFAULTS)


def test_the_command_line_wins(tmp_path):
    text = "table: a\nid: x\nstack: true\nmode: append\naxis: [one, two]\nsources: [a.npy, b.npy]\ncodec: zstd"
    args = read(tmp_path, text, "--id", "y", "--each", "--axis", "three", "c.npy")
    assert (args.table, args.id, args.mode, args.codec) == ("a", "y", "append", "zstd")
    assert (args.stack, args.each) == (False, True)
    assert (args.axis, args.sources) == (["three"], ["c.npy"])
    args = read(tmp_path, text)
    assert (args.stack, args.each, args.sources) == (True, False, ["a.npy", "b.npy"])


def test_values_in_yaml(tmp_path):
    text = """
id: 7
txn-version: 20240131
concat: 0
order: [1, 0]
row-axes: 1,0
stack: false
axis: x:int
column: {late: "delay > 15", day: "to_date(t)"}
storage-option: {region: eu, key: "a=b"}
attrs: {a: [1, null]}
sources: -odd.npy
"""
    args = read(tmp_path, text)
    assert (args.id, args.txn_version, args.concat, args.stack) == ("7", 20240131, 0, False)
    assert (args.order, args.row_axes) == ("1,0", "1,0")
    assert args.column == ["late=delay > 15", "day=to_date(t)"]
    assert args.storage_option == ["region=eu", "key=a=b"]
    assert (args.axis, args.sources) == (["x:int"], ["-odd.npy"])
    assert args.attrs == '{"a": [1, null]}'


@pytest.mark.parametrize("word", ["1.10", "0123", "1_000", "12:30", "1e3", "0x1f", "+7", ".5"])
def test_numbers_are_words_as_on_a_command_line(tmp_path, word):
    """YAML takes them for others: 1.1, 83, 1000, 750."""
    text = (
        f"id: {word}\nstorage-option: {{region: {word}}}\nsources: [{word}, b]\nattrs: {{a: 1.10}}"
    )
    args = read(tmp_path, text)
    assert args.id == word
    assert args.storage_option == [f"region={word}"]
    assert args.sources == [word, "b"]
    assert args.attrs == '{"a": 1.1}'


def test_keys_of_an_anchor(tmp_path):
    """Values went to the keys beside them, or the mistake was told to be keys that are numbers."""
    text = """
<<: [{txn-version: 010, codec: raw}, {mode: append}]
txn-app-id: 7
concat: 1
codec: zstd
storage-option: {<<: {a: 01}, b: 2}
"""
    args = read(tmp_path, text)
    assert (args.txn_version, args.txn_app_id, args.concat, args.codec) == (10, "7", 1, "zstd")
    assert (args.mode, args.storage_option) == ("append", ["a=01", "b=2"])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("id: []", "id is an empty list; give a value, or leave the key out"),
        ("axis: []", "axis is an empty list"),
        ("sources: []", "sources is an empty list"),
        ("sources: [" + 100_001 * "a," + "]", "it has more than 100000 values, or its aliases"),
        ("attrs: {a: 1,\n  b: {c: 1, c: 2}}", "line 2: c is given twice"),
        ("1: a\n01: b", "keys that are numbers"),
        ("1.10: a", "unknown key 1.1"),
        ("id: " + 2000 * "[" + 2000 * "]", "too deep"),
        ("? [a]\n: b", "is not YAML"),
        ("tabel: x", "unknown key 'tabel'; did you mean 'table'"),
        ("block_shape: [1]", "unknown key 'block_shape'; did you mean 'block-shape'"),
        ("config: other.yaml", "unknown key 'config'"),
        ("3: x", "unknown key 3"),
        ("table: a\nid: x\ntable: b", "line 3: table is given twice"),
        ("id: yes", "id is True, which YAML takes as bool; put it into quotes"),
        ("id:", "id is empty"),
        ("id: 2024-01-01", "which YAML takes as date; put it into quotes"),
        ("id: {a: 2024-01-01}", "cannot be made JSON"),
        ("stack: 1", "an option that is true or false"),
        ("mode: apend", "argument --mode: invalid choice: 'apend'"),
        ("concat: first", "--concat='first' is not a whole number"),
        ("stack: true\neach: true", "not allowed with argument"),
        ("axis: [[a, b]]", "axis is ['a', 'b']"),
        ("- a\n- b", "holds no options"),
        ("", "holds no options"),
        ("a: [", "is not YAML"),
        ("id: !!python/name:os.system", "is not YAML"),
        ("id: \x07", "is not YAML"),
    ],
)
def test_mistakes_are_one_line(tmp_path, text, says):
    with pytest.raises(InvalidOptionError) as caught:
        read(tmp_path, text)
    said = str(caught.value)
    assert says in said
    assert "job.yaml" in said
    assert "\n" not in said


HIDDEN = [
    ("storage-option:\n  - AWS_SECRET_ACCESS_KEY: TOPSECRET", "has what YAML takes as dict"),
    ("storage-option:\n  AWS_SECRET_ACCESS_KEY: [TOPSECRET]", "has what YAML takes as list"),
    ("storage-option:\n  AWS_SECRET_ACCESS_KEY: TOPSECRET: b", "line 2, column 35: mapping values"),
    ("storage-option:\n  AWS_SECRET_ACCESS_KEY: 'TOPSECRET", "unexpected end of stream"),
    ("storage-option:\n  AWS_SECRET_ACCESS_KEY: *TOPSECRET", "line 2, column 26: found undefined alias"),
    ("storage-option:\n  AWS_SECRET_ACCESS_KEY: !TOPSECRET", "constructor for the tag"),
    ("storage-option:\n  A: &TOPSECRET x\n  B: &TOPSECRET y", "line 3, column 6: "),
    ("AWS_SECRET_ACCESS_KEY=TOPSECRET: x", "unknown key 'AWS_SECRET_ACCESS_KEY'"),
    ("A=TOPSECRET: x\nA=TOPSECRET: x", "line 2: A is given twice"),
    ("storage-option: !!bool TOPSECRET", "is not YAML"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "says"), HIDDEN)
def test_no_mistake_shows_a_secret_of_the_file(tmp_path, job, text, says):
    (tmp_path / "job.yaml").write_text(text)
    done = job("--config", tmp_path / "job.yaml")
    assert done.code == 2
    assert says in done.err
    assert "TOPSECRET" not in done.err + json.dumps(done.json)


def test_a_file_that_is_not_there(job, tmp_path):
    done = job("--config", tmp_path / "nothing.yaml")
    assert done.code == 2
    assert done.err == (
        f"ingest.py: --config {tmp_path}/nothing.yaml cannot be read: No such file or directory\n"
    )
    assert done.json["status"] == "failed"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--id", "x", "a.npy"], "--table is missing"),
        (["--table", "x", "a.npy"], "--id is missing"),
        (["--table", "x", "--id", "x"], "no SOURCE is given"),
        (["--tabel", "x"], "unrecognized arguments: --tabel; did you mean '--table'"),
        (["--stack", "--each"], "not allowed with argument"),
        (["--table", "", "--id", "x", "a.npy"], "the place of the table is an empty text"),
        (["--table", "x", "--id", "x", "--id", "y", "a.npy"], "argument --id is given twice"),
        (
            ["--storage-option", "key", "--id", "x", "--table", "x", "a"],
            "a --storage-option is not NAME=VALUE",
        ),
    ],
)
def test_mistakes_on_the_command_line(job, words, says):
    done = job(*words)
    assert done.code == 2
    assert says in done.err
    assert done.err.startswith("ingest.py: ")
    assert done.err.count("\n") == 1
    assert done.json["error"]["type"] == "InvalidOptionError"
    assert done.json["exit_code"] == 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--storage-opton", "AWS_SECRET_ACCESS_KEY=TOPSECRET"], "did you mean '--storage-option'"),
        (["--storage-opton=AWS_SECRET_ACCESS_KEY=TOPSECRET"], "did you mean '--storage-option'"),
        (["--tokn", "TOPSECRET"], "unrecognized arguments: --tokn"),
        (["AWS_TOKEN=a TOPSECRET"], "unrecognized arguments: AWS_TOKEN;"),
        (["--dry-run=TOPSECRET"], "argument --dry-run: ignored explicit argument;"),
    ],
)
def test_no_mistake_shows_a_secret_of_the_command_line(words, says):
    with pytest.raises(InvalidOptionError) as caught:
        parse(purge.parser, words, purge._DEFAULTS)
    assert says in str(caught.value)
    assert "TOPSECRET" not in str(caught.value)


@pytest.mark.parametrize("url", ["https://h/x.npy?X-Sig=TOPSECRET", "ftp://me:TOPSECRET@h/x.npy"])
def test_a_source_elsewhere_is_refused_without_what_signs_its_url(url):
    with pytest.raises(
        InvalidOptionError, match=r"source '[a-z]+://.*h/x.npy': this job"
    ) as caught:
        expand([url])
    assert "TOPSECRET" not in str(caught.value)
