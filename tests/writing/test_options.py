"""What a writer left open: chosen once, said once; numbers that come as text."""

import logging

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.layouts.ftsf import Ftsf
from tensorlake_spark.writing.options import integers
from tensorlake_spark.writing.source import ArraySource


def test_a_first_write_chooses_once(lake, monkeypatch, caplog):
    """It is checked before the table is made, and not chosen anew afterwards."""
    asked = []
    for kind, name in ((ArraySource, "density"), (ArraySource, "sample"), (Ftsf, "choose_codec")):
        own = getattr(kind, name)

        def counted(*given, own=own, name=name):
            asked.append(name)
            return own(*given)

        monkeypatch.setattr(kind, name, counted)
    caplog.set_level(logging.INFO, "tensorlake_spark")
    for number, tensor in enumerate("xy"):
        lake.write(tensor, np.arange(12.0).reshape(3, 4))
        assert [asked.count(n) for n in ("density", "sample", "choose_codec")] == [number + 1] * 3
    assert sum("because" in message for message in caplog.messages) == 2
    np.testing.assert_array_equal(lake["x"][:], np.arange(12.0).reshape(3, 4))


def test_a_first_write_that_cannot_be_makes_no_table(lake):
    with pytest.raises(tl.InvalidOptionError):
        lake.write("x", np.arange(3), codec="none such")
    assert lake.version is None


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("1,3,256", (1, 3, 256)), ("(24,)", (24,)), ("[ -1, 0 ]", (-1, 0)), ("()", ()), ("7", (7,))],
)
def test_numbers_as_text(text, numbers):
    assert integers(text, "--shape") == numbers


def test_text_that_has_no_numbers():
    with pytest.raises(
        tl.InvalidOptionError, match="--rechunk='1,x' is not a list of integers such as 1,3"
    ):
        integers("1,x", "--rechunk")


def test_smallest_is_chosen_by_size_alone_everywhere(lake, caplog):
    ids = np.minimum(np.random.default_rng(0).zipf(1.3, 30_000), 10**7)
    auto = lake.write("auto", ids)
    ref = lake.write("x", ids, codec="smallest")
    assert (auto.codec, ref.codec) == ("bins+zstd", "pco")
    stored = lake.catalog().set_index("id")["stored_bytes"]
    assert stored["x"] < stored["auto"]
    with caplog.at_level("WARNING"):
        lake.write("x", ids, mode="append", codec="smallest")
    assert not caplog.records
    assert np.array_equal(lake["x"][...], np.concatenate([ids, ids]))
    assert lake.convert("auto", codec="smallest").codec == "pco"
    assert lake.write("s", ids, layout="coo", codec="smallest").codec == "zstd"


@pytest.mark.parametrize(
    ("dtype", "quantize", "named"),
    [("bool", None, "bool"), ("complex64", None, "complex64"), ("float32", "bfloat16", "bfloat16")],
)
def test_a_codec_without_a_form_for_the_dtype_is_refused_before_anything_is_encoded(
    lake, dtype, quantize, named
):
    said = f"codec 'pco' has no form for dtype {named}, which tensor 'x' has; .*: choose another"
    for codec in ("pco", "transpose+pco"):
        with pytest.raises(tl.InvalidOptionError, match=said):
            lake.write("x", np.ones((3, 4), dtype), codec=codec, quantize=quantize)
    assert lake.version is None


def test_integers_of_a_quantisation_have_a_form(lake):
    x = np.linspace(0, 1, 24, dtype=np.float32).reshape(4, 6)
    for kind in ("float16", "int8", "split", {"error": 0.01}, {"relative": 0.01}):
        ref = lake.write("x", x, codec="pco", quantize=kind, mode="overwrite")
        np.testing.assert_allclose(ref.read(), x, atol=0.011)
        turned = lake.write("turned", x, codec="transpose+pco", quantize=kind, mode="overwrite")
        assert np.array_equal(turned.read(), ref.read())
        assert np.array_equal(turned[1:3, [4, 0]], ref[1:3, [4, 0]])


@pytest.mark.parametrize("kind", ["int8", "split"])
def test_elements_of_a_vast_tensor_are_not_looked_at_as_chunks(lake, kind):
    """Each of its cells would be: it took hours."""
    vast = tl.SparseTensor([[0, 3], [1, 2]], np.array([1, 2], "f4"), (10**6, 10**6))
    with pytest.raises(tl.InvalidOptionError, match=f"quantize='{kind}' is not for layout bsgs"):
        lake.write("x", vast, quantize=kind)
    assert lake.write("x", vast, quantize="float16").layout == "bsgs"
    small = tl.SparseTensor([[0, 3], [1, 2]], np.array([1, 2], "f4"), (10, 10))
    assert lake.write("small", small, quantize=kind).layout == "ftsf"
