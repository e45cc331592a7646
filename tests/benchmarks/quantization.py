"""Bytes at an error bound, beside zfp and SZ3: ``python tests/benchmarks/quantization.py`` in the environment of benchmarks.

Ours are coded block by block, in the blocks and by the codec that a table gets by default. The peers see the whole
array at once, which is best for them. Of SZ3 the best of its algorithms counts. Every engine's result is held
against the bound.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from number_kinds import spectrum
from workloads import field

from tensorlake_spark.indexing import select
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.rows.row import data_batch
from tensorlake_spark.writing.options import WriteOptions, new_spec
from tensorlake_spark.writing.source import ArraySource

FIELDS = {"3-d random walk": field, "k^-5/3 field": spectrum}
BOUNDS = (1e-3, 1e-5)
MUST_ZFP, MUST_SZ3 = 0.8, 1.15


def ours(x: np.ndarray, bound: float, codec: str) -> tuple[int, str, float, float]:
    """Return bytes, codec, and the seconds of processor time of encoding and decoding."""
    layout, whole = layout_of("ftsf"), select(..., x.shape)
    options = WriteOptions(quantize={"error": bound}, codec=codec, layout="ftsf")
    spec = new_spec("x", ArraySource(x, x.shape, x.dtype), options)
    start = time.process_time()
    rows = [
        row
        for part in layout.pieces(spec, whole.box)
        for row in layout.encode(x[part.slices()], part.lo, spec)
    ]
    middle = time.process_time()
    batch = data_batch(spec, range(len(rows)), rows)
    out = layout.new_result(spec, whole, True)
    begin = time.process_time()
    layout.decode(batch, spec, whole, out)
    stop = time.process_time()
    check(x, out, bound)
    return sum(row.nbytes for row in rows), spec.codec, middle - start, stop - begin


def check(x: np.ndarray, found: np.ndarray, bound: float) -> None:
    """Raise AssertionError unless every element is within a bound."""
    off = float(np.abs(found.astype(np.float64) - x).max())
    if off > bound:
        raise AssertionError(f"an element is off by {off}, more than {bound}")


def zfp(x: np.ndarray, bound: float) -> int:
    """Return the bytes of zfp with an absolute tolerance."""
    import zfpy

    packed = zfpy.compress_numpy(x, tolerance=bound)
    check(x, zfpy.decompress_numpy(packed), bound)
    return len(packed)


def sz3(x: np.ndarray, bound: float) -> tuple[int, str]:
    """Return the bytes of SZ3 with an absolute bound, and the algorithm that gave the fewest."""
    import pysz

    sizes = {}
    for name in ("INTERP_LORENZO", "LORENZO_REG", "INTERP"):
        config = pysz.szConfig()
        config.errorBoundMode, config.absErrorBound = pysz.szErrorBoundMode.ABS, bound
        config.cmprAlgo = getattr(pysz.szAlgorithm, name)
        packed, _ = pysz.sz.compress(x, config)
        check(x, pysz.sz.decompress(packed, x.dtype, x.shape)[0], bound * (1 + 1e-6))
        sizes[name] = len(packed)
    best = min(sizes, key=lambda name: sizes[name])
    return sizes[best], best


def main(arguments: list[str] | None = None) -> int:
    """Print the table; return 1 where a must is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--side", type=int, default=256, help="of the cubes (default: 256)")
    parser.add_argument("--codec", default="auto", help="ours: auto, smallest or a codec")
    args = parser.parse_args(arguments)
    missed = 0
    print(
        "| field | bound / sigma | ours | zfp | SZ3 | ours / zfp | ours / SZ3 | encode, decode MB/s | codec |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name, make in FIELDS.items():
        x = np.ascontiguousarray(make(args.side))
        sigma = float(x.std(dtype=np.float64))
        for share in BOUNDS:
            size, codec, writing, reading = ours(x, share * sigma, args.codec)
            by_zfp, (by_sz3, how) = zfp(x, share * sigma), sz3(x, share * sigma)
            missed += size > MUST_ZFP * by_zfp or size > MUST_SZ3 * by_sz3
            print(
                f"| {name} | {share:g} | {size / x.nbytes:.4f} | {by_zfp / x.nbytes:.4f} | "
                f"{by_sz3 / x.nbytes:.4f} ({how}) | {size / by_zfp:.3f} | {size / by_sz3:.3f} | "
                f"{x.nbytes / writing / 1e6:.0f}, {x.nbytes / reading / 1e6:.0f} | {codec.partition('+')[2]} |"
            )
    print(f"musts: at most {MUST_ZFP} of zfp and {MUST_SZ3} of SZ3; missed: {missed}")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
