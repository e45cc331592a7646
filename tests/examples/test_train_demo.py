"""The demo of training: a process that is really killed goes on, and ends with the same loss."""

import os
import re
import runpy
import subprocess
import sys

import pytest
from places import ROOT

SCRIPT = ROOT / "examples" / "train_demo.py"


def test_it_says_what_is_missing(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(sys, "argv", [str(SCRIPT)])
    with pytest.raises(SystemExit, match="2"):
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert "pip install 'tensorlake-spark[torch,images]' scikit-learn" in capsys.readouterr().err


def test_the_help_needs_nothing(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "--help"])
    with pytest.raises(SystemExit, match="0"):
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert "--slowly" in capsys.readouterr().out


@pytest.mark.torch
def test_a_killed_training_ends_with_the_same_loss(tmp_path):
    done = subprocess.run(
        [sys.executable, str(SCRIPT)], capture_output=True, text=True, cwd=tmp_path, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    out = done.stdout
    assert "1797 digits in demo-output/train/dataset: 57 steps of 32 an epoch" in out
    assert "killed after: epoch 1 step 87 loss" in out
    assert "goes on after step 85, at sample 896 of epoch 1" in out
    losses = re.findall(r"at the end: loss ([\d.]+), (\d+)", out)
    assert len(losses) == 2
    assert losses[0] == losses[1]
    assert int(losses[0][1]) >= 90
    assert "the same loss: yes" in out


@pytest.mark.torch
def test_two_runs_with_other_numbers_of_samples_are_told_apart(tmp_path):
    """The comparison can fail: another checkpoint to begin with ends with another loss."""
    demo = runpy.run_path(str(SCRIPT))
    uri = str(tmp_path / "dataset")
    assert demo["write_digits"](uri) == demo["write_digits"](uri) == 1797
    demo["train"].__globals__["EPOCHS"] = 1
    first = demo["train"](uri, tmp_path / "a.pt")
    assert first == demo["train"](uri, tmp_path / "b.pt")
    assert (
        demo["train"](uri, tmp_path / "a.pt") == first
    )  # from the last checkpoint to the same end
    demo["train"].__globals__["SEED"] += 1
    assert demo["train"](uri, tmp_path / "c.pt") != first
