"""The names of codecs, and which release reads them."""

import re
from pathlib import Path

import pytest

import tensorlake_spark
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.layouts.coding.chain import (
    CODECS,
    SINCE,
    codec_of,
    is_known,
    reader_of,
    unread,
)

FIRST = {
    "raw", "zstd", "shuffle+zstd", "delta(-1)+zstd", "delta(-1)+shuffle+zstd", "delta(-2)+zstd",
    "delta(-2)+shuffle+zstd",
}  # fmt: skip
"""What release 0.1.0 reads, letter by letter."""


def test_what_the_first_release_reads_is_still_read():
    assert {name for name in CODECS if reader_of(name) == "release 0.1.0"} == FIRST


def test_names_are_the_chains_of_the_grammar():
    grammar = re.compile(
        r"raw|pco|(decimal\([0-9]\)\+(?!lorenzo\())?((delta\(-1\)|delta\(-2\)|lorenzo|lorenzo\(float\))\+)?(zigzag\+)?"
        r"(((shuffle|nibbles|bins)\+)?zstd|pack)"
    )
    assert all(grammar.fullmatch(name) for name in CODECS)
    assert len(CODECS) == 2 + (10 * 4 + 5) * 2 * 5
    for name, codec in CODECS.items():
        assert codec.name == name
        assert codec.pco == (name == "pco")
        assert codec.packed == name.endswith("pack")
        assert codec.compress == name.endswith("zstd")
        assert codec.floats == ("lorenzo(float)" in name)
        assert codec.lorenzo == ("lorenzo" in name)
        assert codec.delta == (-1 if "(-1)" in name else -2 if "(-2)" in name else 0)
        assert codec.places == (int(name[8]) if name.startswith("decimal") else None)


def test_every_chain_may_follow_transpose_and_nothing_else_of_ours_may():
    for name, codec in CODECS.items():
        turned = codec_of(f"transpose+{name}")
        assert (turned.name, turned.turned) == (f"transpose+{name}", codec)
        assert is_known(turned.name)
        assert is_known(f"int8+{turned.name}")
        assert reader_of(turned.name) == "release 0.2.0"
    for name in ("transpose", "transpose+", "transpose+transpose+raw", "transpose+int8+raw"):
        assert not is_known(name)
        with pytest.raises(InvalidOptionError, match="unknown codec"):
            codec_of(name)


@pytest.mark.parametrize("name", ["zstd+shuffle", "zigzag", "decimal(10)+zstd", "lorenzo+delta(-1)+zstd", "pco+zstd", "shuffle+pack", "decimal(1)+lorenzo(float)+zstd", ""])  # fmt: skip
def test_other_names_are_refused_with_the_grammar(name):
    with pytest.raises(InvalidOptionError, match=f"unknown codec {re.escape(repr(name))}.*one of shuffle, nibbles and bins"):  # fmt: skip
        codec_of(name)
    assert reader_of(name) == "a later release"


@pytest.mark.parametrize("layout", ["ftsf", "coo"])
def test_a_choice_that_is_misspelt_is_offered(tmp_path, layout):
    with pytest.raises(InvalidOptionError, match="did you mean 'smallest'"):
        tensorlake_spark.open(tmp_path).write("x", [[1.0]], layout=layout, codec="smalest")


def test_what_is_not_read_is_named():
    assert "(step 'wavelet(3)') is not one that this release reads" in unread("lorenzo+wavelet(3)+zstd", "ftsf")  # fmt: skip
    assert unread("zstd+zstd", "coo").startswith("codec 'zstd+zstd' is not one")
    assert unread(None, "ftsf").startswith("codec None")


def test_the_format_says_since_when_each_step_is_read():
    text = Path(tensorlake_spark.__file__).with_name("layouts").joinpath("FORMAT.md").read_text()
    table = dict(re.findall(r"^\| `([\w]+)(?:\(k\))?` \| (\d+\.\d+\.\d+) \|", text, re.MULTILINE))
    assert {name: table.get(name) for name in SINCE} == SINCE


@pytest.mark.parametrize("bound", ["", " ", "0", "-1", "nan", "inf", "1e308", "1", "0.10", "x"])
def test_a_step_with_a_bound_that_is_none_is_not_known(bound):
    assert not is_known(f"error({bound})+shuffle+zstd")
    assert is_known("error(0.1)+shuffle+zstd")
