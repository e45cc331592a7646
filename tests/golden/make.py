"""Write the golden tables that are not there yet. One that is there is never changed: old bytes must read."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import tensorlake_spark as tl
from tensorlake_spark.layouts.laws import DTYPES
from tensorlake_spark.spec import dtype_of

HERE = Path(__file__).resolve().parent / "v1" / "ftsf"


def tensors() -> dict[str, tuple[np.ndarray, dict]]:
    """Return what the tables hold: id -> (array, options of `write`)."""
    rng = np.random.default_rng(7)
    out: dict[str, tuple[np.ndarray, dict]] = {}
    for name in DTYPES:
        dtype = dtype_of(name)
        if dtype.kind == "b":
            x = rng.integers(0, 2, (5, 40)).astype(bool)
        else:
            x = rng.integers(0, 256, 200 * dtype.itemsize, np.uint8).view(dtype).reshape(5, 40)
        out[f"dtype/{name.replace('[', '-').replace(']', '')}"] = (x, {"block_shape": (2, 40)})
    smooth = np.cumsum(rng.integers(-3, 4, (3, 70, 33)), axis=1).astype(np.int16)
    for codec in ("raw", "zstd", "delta(-1)+zstd", "delta(-2)+zstd", "shuffle+zstd",
                  "delta(-1)+shuffle+zstd", "delta(-2)+shuffle+zstd"):  # fmt: skip
        options = {"block_shape": (1, 70, 16), "codec": codec, "axes": ("a", "b", "c")}
        out[f"codec/{codec}"] = (smooth, options)
    gaps = np.full((8, 8), 2.5, np.float32)
    gaps[5:, 5:] = 1
    out["fill"] = (gaps, {"block_shape": (4, 4), "fill_value": 2.5, "attrs": {"unit": "K"}})
    out["scalar"] = (np.array(3.5), {})
    out["empty"] = (np.zeros((0, 3), np.int8), {})
    out["rank9"] = (rng.integers(0, 9, (2, 1, 2, 1, 2, 1, 2, 1, 3)), {"block_shape": (2, 1, 2, 1, 1, 1, 2, 1, 2)})  # fmt: skip
    return out


def main() -> int:
    """Write what is missing."""
    if (HERE / "table").exists():
        print(f"{HERE} is there; golden tables are never written again")
        return 0
    lake = tl.open(HERE / "table")
    made = tensors()
    for name, (x, options) in made.items():
        lake.write(name, x, **options)
    lake.write("appended", np.arange(15).reshape(5, 3), block_shape=(2, 2))
    lake.write("appended", np.arange(6).reshape(2, 3), mode="append")
    made["appended"] = (
        np.concatenate([np.arange(15).reshape(5, 3), np.arange(6).reshape(2, 3)]),
        {},
    )
    expected = {
        name: {
            "dtype": lake[name].dtype.name,
            "shape": x.shape,
            "bytes": np.ascontiguousarray(x).tobytes().hex(),
        }
        for name, (x, _) in made.items()
    }
    (HERE / "expected.json").write_text(json.dumps(expected, indent=0, sort_keys=True) + "\n")
    (HERE / "PROVENANCE.md").write_text(
        "# Golden tables of row format version 1, layout ftsf\n\n"
        f"Written by `make golden` with tensorlake_spark {tl.__version__}. They stay as they are: every later\n"
        "version has to read them. `expected.json` holds the elements of every tensor, little endian.\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
