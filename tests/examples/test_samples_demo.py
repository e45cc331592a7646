"""The demo of datasets: every answer is right, the picture shows what was asked for, and a wrong answer is found."""

import runpy
import sys

import numpy as np
import pytest
from PIL import Image
from places import ROOT

import tensorlake_spark as tl

COUNTS = {"DIGITS": 120, "PHOTOGRAPHS": 8, "SCENES": 16}


@pytest.fixture
def demo(example, tmp_path, monkeypatch):
    """The demo with fewer samples, in a folder of its own."""
    module = example("samples_demo")
    monkeypatch.setattr(module, "OUT", tmp_path / "out")
    for name, count in COUNTS.items():
        monkeypatch.setattr(module, name, count)
    return module


def test_every_answer_is_right(demo, capsys):
    assert demo.main() == 0
    out = capsys.readouterr().out
    assert out.count(" yes\n") == 11
    assert " NO\n" not in out
    ds = tl.dataset(str(demo.OUT / "dataset"))
    assert ds["source"][-1] == "scan"
    assert (demo.OUT / "dataset" / "_tensors" / "_delta_log").is_dir()
    with Image.open(demo.OUT / "crop.png") as crop:
        assert crop.size == (256, 256)
    again = [s for s in demo.all_samples() if s.get("label") != 1]
    assert len(ds) == len(again) + 1

    with Image.open(demo.OUT / "contact-sheet.png") as picture:
        sheet = np.asarray(picture.convert("RGB"))
    assert sheet.shape[1] == 1100
    drawn = {tuple(int(colour[k : k + 2], 16) for k in (1, 3, 5)) for colour in demo.COLOURS[:4]}
    assert drawn <= {tuple(pixel) for pixel in sheet.reshape(-1, 3).tolist()}


def test_a_wrong_answer_is_found(demo, capsys):
    """A label that another writer changes after the samples were written."""
    demo.OUT.mkdir()
    samples = demo.all_samples()
    ds, checks = demo.write(samples)
    assert all(checks.values())
    ds.update(0, {"label": "7"})
    assert not demo.ask(ds, samples)["the condition finds what NumPy finds"]
    samples[3] = {**samples[3], "embedding": samples[4]["embedding"]}
    assert not demo.ask(ds, samples)["embeddings equal NumPy's"]
    assert "nearest to sample 0" in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "code"), [(["--help"], "0"), ([], "2")])
def test_the_help_needs_nothing_and_a_run_says_what_is_missing(
    monkeypatch, capsys, arguments, code
):
    script = str(ROOT / "examples" / "samples_demo.py")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setattr(sys, "argv", [script, *arguments])
    with pytest.raises(SystemExit, match=code):
        runpy.run_path(script, run_name="__main__")
    out, err = capsys.readouterr()
    assert ("usage: samples_demo.py" in out) is (code == "0")
    assert ("pip install 'tensorlake-spark[demo]'" in err) is (code == "2")
