"""What a notebook shows of samples."""

import sys

import numpy as np

import tensorlake_spark as tl
from tensorlake_spark.datasets.interchange.notebook import samples_table
from tensorlake_spark.datasets.types import Image, Tensor, Text


def test_values_are_short_and_escaped():
    shown = samples_table(
        "a<b",
        {"t": Text(), "x": Tensor("float32"), "im": Image("png")},
        [{"t": "<" * 200, "x": np.zeros((2, 3), np.float32), "im": np.zeros((200, 300), np.uint8)}],
    )
    assert shown.count("&lt;") == 81
    assert "float32 (2, 3)" in shown
    assert shown.count("<img") == 1
    assert len(shown) < 3000


def test_a_sample_that_cannot_be_decoded_leaves_the_others_shown(tmp_path, monkeypatch):
    ds = tl.dataset(tmp_path, {"im": Image("png"), "n": "int32"})
    ds.extend({"im": [np.full((8, 9, 3), n, np.uint8) for n in range(2)], "n": [7, 8]})
    whole = ds._repr_html_()
    assert whole.count("<img") == 2
    real = Image.decode

    def second(self, array, native=False):
        if ds["im"].encoded(1) in [one["data"].as_py() for one in array]:
            raise tl.CorruptDataError("a <PNG> that is damaged")
        return real(self, array, native)

    monkeypatch.setattr(Image, "decode", second)
    shown = ds._repr_html_()
    assert shown.count("<img") == 1
    assert "<i>a &lt;PNG&gt; that is damaged</i>" in shown
    assert "<td>8</td>" in shown


def test_without_pillow_an_image_is_its_shape(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    sample = {"im": np.zeros((20, 30, 3), np.uint8)}
    assert "<td>uint8 (20, 30, 3)</td>" in samples_table("x", {"im": Image("png")}, [sample])
