"""A small network learns handwritten digits by the loader, is killed, and goes on; ``make demo-train`` runs it.

The digits of scikit-learn become a dataset. One process trains for three epochs. Another one does the same, and is
killed with SIGKILL in the second epoch; a third goes on from its last checkpoint. The loader's state is a few integers
in that checkpoint. Both ways end with the same loss, to the last bit, because the same batches come in the same order.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tensorlake_spark as tl

try:
    import torch
    from sklearn.datasets import load_digits
    from torch import nn
except ImportError as error:
    MISSING = str(error)  # told by main, so that --help needs nothing
else:
    MISSING = ""

OUT = Path("demo-output") / "train"
EPOCHS = 3
BATCH = 32
EVERY = 5  # steps from checkpoint to checkpoint
SEED = 11


def write_digits(uri: str) -> int:
    """Write the digits as a dataset of PNG images with labels, unless they are there; return how many there are."""
    schema = {
        "image": tl.types.Image("png"),
        "label": tl.types.ClassLabel([str(digit) for digit in range(10)]),
    }
    ds = tl.dataset(uri, schema)
    if not len(ds):
        found = load_digits()
        images = (found.images * (255 / 16)).astype(np.uint8)
        ds.extend({"image": list(images), "label": found.target})
    return len(ds)


def network() -> nn.Sequential:
    """Return a network of two convolutions and one layer of sums, with the same weights each time."""
    torch.manual_seed(SEED)
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 10),
    )


def scores(model: nn.Module, images: torch.Tensor) -> torch.Tensor:
    """Return what the network makes of images of shape (batch, 8, 8) or (batch, 8, 8, 1), uint8."""
    found: torch.Tensor = model(images.reshape(-1, 1, 8, 8).float() / 255)
    return found


def train(uri: str, checkpoint: Path, slowly: float = 0.0) -> float:
    """Train from a checkpoint, if there is one, to the end of the last epoch, and return the loss over all digits.

    Parameters
    ----------
    uri : str
        The dataset.
    checkpoint : Path
        Where weights, the optimiser and the loader's state are kept.
    slowly : float
        Seconds to wait after each step, for those who watch.
    """
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    loader = tl.dataset(uri, create=False).loader(BATCH, shuffle=True, seed=SEED, workers=2)
    samples = loader.torch()
    step = 0
    if checkpoint.exists():
        kept: dict[str, Any] = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        samples.load_state_dict(kept["loader"])
        step = kept["step"]
        print(
            f"goes on after step {step}, at sample {kept['loader']['samples']} of epoch {loader.epoch}",
            flush=True,
        )
    while loader.epoch < EPOCHS:
        for batch in samples:
            loss = nn.functional.cross_entropy(scores(model, batch["image"]), batch["label"].long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % EVERY == 0:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                save({**state, "loader": samples.state_dict(), "step": step}, checkpoint)
            print(f"epoch {loader.epoch} step {step} loss {loss.item():.4f}", flush=True)
            time.sleep(slowly)
    return evaluated(model, uri)


def save(state: dict[str, Any], path: Path) -> None:
    """Write a checkpoint: whoever is killed meanwhile leaves the one before."""
    part = path.with_suffix(".part")
    torch.save(state, part)
    os.replace(part, path)


def evaluated(model: nn.Module, uri: str) -> float:
    """Return the mean loss over all digits, and print it with the share that is recognised."""
    total, right, count = 0.0, 0, 0
    with torch.no_grad():
        for batch in tl.dataset(uri).loader(256, workers=2).torch():
            found = scores(model, batch["image"])
            total += nn.functional.cross_entropy(
                found, batch["label"].long(), reduction="sum"
            ).item()
            right += int((found.argmax(1) == batch["label"]).sum())
            count += len(found)
    print(
        f"at the end: loss {total / count!r}, {right / count:.1%} of {count} digits are recognised",
        flush=True,
    )
    return total / count


# ---------------------------------------------------------------------- three processes


def child(uri: str, checkpoint: Path, slowly: float = 0.0) -> subprocess.Popen[str]:
    """Start a process that trains."""
    command = [sys.executable, __file__, "--train", uri, str(checkpoint), "--slowly", str(slowly)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_environment())


def _environment() -> dict[str, str]:
    paths = [str(Path(tl.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}


def followed(process: subprocess.Popen[str], kill_at: int | None = None) -> list[str]:
    """Return the lines that a process prints; kill it with SIGKILL when it says that it did step `kill_at`."""
    lines = []
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.strip())
            if kill_at is not None and f" step {kill_at} " in line:
                process.send_signal(signal.SIGKILL)
    if process.returncode != (0 if kill_at is None else -signal.SIGKILL):
        raise SystemExit(f"train_demo.py: a process that trains ended with {process.returncode}")
    return lines


def loss_at_end(lines: Sequence[str]) -> str:
    """Return the loss in the last line, as it is printed: with all its digits."""
    return lines[-1].split(" loss ")[1].split(",")[0]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo, or with ``--train`` one of its processes; return 0 if both ways end alike."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", nargs=2, metavar=("DATASET", "CHECKPOINT"), help="only train")
    parser.add_argument("--slowly", type=float, default=0.0, help="seconds to wait after each step")
    given = parser.parse_args(argv)
    if MISSING:
        print(
            f"train_demo.py: {MISSING}; what it needs comes with pip install 'tensorlake-spark[torch,images]' "
            "scikit-learn",
            file=sys.stderr,
        )
        return 2
    if given.train:
        train(given.train[0], Path(given.train[1]), given.slowly)
        return 0

    OUT.mkdir(parents=True, exist_ok=True)
    uri = str(OUT / "dataset")
    count = write_digits(uri)
    steps = -(-count // BATCH)
    print(f"{count} digits in {uri}: {steps} steps of {BATCH} an epoch")
    checkpoints = [OUT / "whole.pt", OUT / "killed.pt"]
    for checkpoint in checkpoints:
        checkpoint.unlink(missing_ok=True)

    whole = followed(child(uri, checkpoints[0]))
    print(f"trained for {EPOCHS} epochs: {whole[-1]}")
    kill_at = steps + steps // 2 + 2  # in the middle of the second epoch, and not at a checkpoint
    killed = followed(child(uri, checkpoints[1], slowly=0.02), kill_at)
    print(f"killed after: {killed[-1]}")
    resumed = followed(child(uri, checkpoints[1]))
    print(f"begun again, it {resumed[0]}")
    print(f"trained to the end: {resumed[-1]}")

    same = loss_at_end(whole) == loss_at_end(resumed)
    print(f"the same loss: {'yes' if same else 'NO'}")
    return 0 if same and not any("at the end" in line for line in killed) else 1


if __name__ == "__main__":
    sys.exit(main())
