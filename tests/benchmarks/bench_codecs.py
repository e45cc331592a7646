"""The benchmark of codecs: share of raw and speed of decoding, beside what others offer.

``make bench-columns`` runs it. All payloads stay in memory. Ours are coded block by block, in the blocks that a
table gets by default; peers see the whole array at once, which is best for them, but for Zarr, which has chunks of
its own. Of a peer with levels or encodings the smallest counts. Speed is processor time, the median.
"""

from __future__ import annotations

import argparse
import io
import sys
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parent))

from number_kinds import KINDS

from tensorlake_spark.layouts import layout_of
from tensorlake_spark.layouts.coding import codec as codecs

MUST_AUTO, MUST_SMALLEST = 1.0, 1.02
LEVELS = (1, 3, 9)
FULL, TINY = (160, 1 << 21), (32, 1 << 15)


class Coded(NamedTuple):
    """An array as one engine codes it.

    Attributes
    ----------
    how : str
        Setting.
    nbytes : int
        Size.
    decode : callable
        Returns the array, of any shape.
    """

    how: str
    nbytes: int
    decode: Callable[[], np.ndarray]


class Figure(NamedTuple):
    """What was measured of an engine: its setting, the share of raw, and decoded MB/s."""

    engine: str
    how: str
    share: float
    speed: float


def ours(x: np.ndarray, kind: str) -> Iterator[Coded]:
    """Yield what this package makes of an array, ``auto`` or ``smallest``."""
    layout = layout_of("ftsf")
    block = layout.default_block(x.shape, x.dtype)
    parts = [
        tuple(slice(a, min(a + b, n)) for a, b, n in zip(lo, block, x.shape, strict=True))
        for lo in product(*(range(0, n, b) for n, b in zip(x.shape, block, strict=True)))
    ]
    choose = layout.choose_codec if kind == "auto" else layout.smallest_codec
    name = choose(np.ascontiguousarray(x[parts[len(parts) // 2]]))
    codec = codecs.codec_of(name)
    coded = [codecs.encode(np.ascontiguousarray(x[part]), codec) for part in parts]

    def decode() -> np.ndarray:
        out = np.empty_like(x)
        for part, (known, payload) in zip(parts, coded, strict=True):
            view = out[part]
            whole = tuple(slice(0, n) for n in view.shape)
            codecs.decode_into(payload, codecs.codec_of(known), view.shape, x.dtype, whole, view)
        return out

    yield Coded(name, sum(len(payload) for _, payload in coded), decode)


def zstd(x: np.ndarray) -> Iterator[Coded]:
    """Yield Zstandard of the bytes as they are."""
    for level in LEVELS:
        codec = pa.Codec("zstd", level)
        packed = codec.compress(x.tobytes(), asbytes=True)
        yield Coded(
            f"level {level}",
            len(packed),
            lambda c=codec, p=packed: np.frombuffer(c.decompress(p, x.nbytes), x.dtype),
        )


def split(x: np.ndarray) -> Iterator[Coded]:
    """Yield Zstandard of byte planes."""
    planes = np.ascontiguousarray(x.reshape(-1).view(np.uint8).reshape(-1, x.itemsize).T)
    for level in LEVELS:
        codec = pa.Codec("zstd", level)
        packed = codec.compress(planes, asbytes=True)

        def decode(c: Any = codec, p: bytes = packed) -> np.ndarray:
            flat = np.frombuffer(c.decompress(p, x.nbytes), np.uint8)
            return np.ascontiguousarray(flat.reshape(x.itemsize, -1).T).view(x.dtype)

        yield Coded(f"level {level}", len(packed), decode)


def bitshuffle(x: np.ndarray) -> Iterator[Coded]:
    """Yield Blosc with bitshuffle and Zstandard."""
    from numcodecs import Blosc

    for level in (1, 5, 9):
        codec = Blosc("zstd", clevel=level, shuffle=Blosc.BITSHUFFLE)
        packed = codec.encode(x.reshape(-1))
        yield Coded(
            f"clevel {level}",
            len(packed),
            lambda c=codec, p=packed: np.frombuffer(c.decode(p), x.dtype),
        )


def parquet(x: np.ndarray) -> Iterator[Coded]:
    """Yield Parquet files with the encodings that suit the dtype, and Zstandard."""
    encodings = ["RLE_DICTIONARY", "BYTE_STREAM_SPLIT"]
    if x.dtype.kind == "i":
        encodings.append("DELTA_BINARY_PACKED")
    table = pa.table({"x": x.reshape(-1)})
    for encoding, level in product(encodings, LEVELS[:2]):
        file = io.BytesIO()
        how: dict[str, Any] = {"use_dictionary": True}
        if encoding != "RLE_DICTIONARY":
            how = {"use_dictionary": False, "column_encoding": {"x": encoding}}
        pq.write_table(table, file, compression="zstd", compression_level=level, **how)
        raw = file.getvalue()
        yield Coded(
            f"{encoding}, level {level}",
            len(raw),
            lambda r=raw: pq.read_table(pa.BufferReader(r), use_threads=False)["x"].to_numpy(),
        )


def zarr_default(x: np.ndarray) -> Iterator[Coded]:
    """Yield a Zarr array as it is made by default."""
    import zarr

    store: dict[str, Any] = {}
    array = zarr.create_array(zarr.storage.MemoryStore(store), shape=x.shape, dtype=x.dtype)
    array[...] = x
    yield Coded("defaults", sum(len(value) for value in store.values()), lambda: array[...])


def pcodec(x: np.ndarray) -> Iterator[Coded]:
    """Yield a file of Pcodec."""
    from pcodec import ChunkConfig, standalone

    packed = standalone.simple_compress(x.reshape(-1), ChunkConfig())
    yield Coded("defaults", len(packed), lambda: standalone.simple_decompress(packed))


PEERS = {
    "zstd": zstd,
    "byte-stream split + zstd": split,
    "Blosc bitshuffle": bitshuffle,
    "Parquet": parquet,
    "Zarr": zarr_default,
    "pcodec": pcodec,
}


def speed(coded: Coded, x: np.ndarray, repeat: int) -> float:
    """Return MB of an array that are decoded in a second of processor time; the array must be the same."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        got = coded.decode()
        times.append(time.process_time() - start)
    if got.tobytes() != x.tobytes():
        raise AssertionError(f"{coded.how}: the answer is not the array")
    return x.nbytes / 1e6 / max(float(np.median(times)), 1e-9)


def measure(x: np.ndarray, repeat: int) -> list[Figure]:
    """Return the figures of all engines on an array, ours first."""
    engines: dict[str, Callable[[np.ndarray], Iterator[Coded]]] = {
        "ours, auto": lambda x: ours(x, "auto"),
        "ours, smallest": lambda x: ours(x, "smallest"),
        **PEERS,
    }
    out = []
    for name, engine in engines.items():
        best = min(engine(x), key=lambda coded: coded.nbytes)
        out.append(Figure(name, best.how, best.nbytes / x.nbytes, speed(best, x, repeat)))
    return out


def verdicts(figures: list[Figure]) -> list[tuple[str, float, str, float]]:
    """Return for ours: which, its size as a share of the best peer's, which peer, and what it must be below."""
    share = {figure.engine: figure.share for figure in figures}
    peers = {name: share[name] for name in PEERS}
    general = {name: size for name, size in peers.items() if name != "pcodec"}
    out = []
    for kind, among, must in (("auto", general, MUST_AUTO), ("smallest", peers, MUST_SMALLEST)):
        best = min(among, key=lambda name: among[name])
        out.append((kind, share[f"ours, {kind}"] / among[best], best, must))
    return out


def table(kind: str, x: np.ndarray, figures: list[Figure]) -> str:
    """Return the figures of a kind of numbers as text."""
    lines = [f"## {kind} ({x.nbytes / 1e6:.0f} MB)", ""]
    for which, ratio, peer, must in verdicts(figures):
        met = "met" if ratio <= must else "MISSED"
        lines.append(f"- {which}: {ratio:.3f} of {peer} (must be at most {must:g}): {met}")
    best = min(figure.share for figure in figures if figure.engine in PEERS)
    lines += ["", "| engine | size to the best peer | share of raw | decode MB/s | setting |", "|---" * 5 + "|"]  # fmt: skip
    for f in figures:
        lines.append(
            f"| {f.engine} | {f.share / best:.2f} | {f.share:.4f} | {f.speed:.0f} | {f.how} |"
        )
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> int:
    """Print a table for each kind; return 1 if something that must be is not."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tiny", action="store_true", help="small arrays, to see that it runs")
    parser.add_argument("--repeat", type=int, default=7, help="how often each is decoded")
    given = parser.parse_args(argv)
    missed = False
    for kind, make in KINDS.items():
        x = make(*(TINY if given.tiny else FULL))
        figures = measure(x, given.repeat)
        missed |= any(ratio > must for _, ratio, _, must in verdicts(figures))
        print(table(kind, x, figures), flush=True)
    return int(missed and not given.tiny)


if __name__ == "__main__":
    sys.exit(main())
