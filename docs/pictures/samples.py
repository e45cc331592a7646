"""Draws docs/pictures/samples.png: samples of the demo's dataset. ``make pictures`` runs it.

``python docs/pictures/samples.py FOLDER`` draws it into another folder.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

import samples_demo as demo

import tensorlake_spark as tl


def main(folder: Path) -> None:
    """Draw it."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as place:
        ds = tl.dataset(place, demo.SCHEMA)
        ds.extend([*demo.digits(8), *demo.photographs(8, rng), *demo.scenes(8, rng)])
        demo.contact_sheet(ds, folder / "samples.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
