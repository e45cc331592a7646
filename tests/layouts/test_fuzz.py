"""Damaged rows whose checksum holds: an error of ours or elements of the box, and no memory for lies.

The cases run in a child process, which may take 100 MB and some seconds a case; a crash of it is a failure
too. By hand: ``python tests/layouts/test_fuzz.py coo 10000 0``.
"""

import json
import os
import runpy
import signal
import struct
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tensorlake_spark.errors import TensorLakeError
from tensorlake_spark.indexing import Box, select, select_points
from tensorlake_spark.kernel_switch import choice
from tensorlake_spark.layouts import LAYOUTS, layout_of
from tensorlake_spark.layouts.coding import codec as codecs
from tensorlake_spark.layouts.sparse import element_runs as runs
from tensorlake_spark.rows.checksum import crc_of
from tensorlake_spark.rows.row import SCHEMA, data_batch
from tensorlake_spark.tensor.sparse import SparseTensor
from tensorlake_spark.tensor.spec import STORED_AXES, TensorSpec, dtype_name

MEMORY = 100 << 20
SECONDS = 20
DENSE = (
    "lorenzo+zigzag+bins+zstd", "shuffle+zstd", "decimal(0)+delta(-1)+zigzag+bins+zstd", "lorenzo+zigzag+shuffle+zstd",
    "pco", "transpose+shuffle+zstd", "lorenzo(float)+zigzag+pack", "delta(-2)+zigzag+pack",
)  # fmt: skip
FEWER = (
    "int8+lorenzo+zigzag+nibbles+zstd", "error(0.25)+shuffle+zstd", "split+zstd", "cast(bfloat16)+zstd",
)  # fmt: skip
"""Codecs of dense chunks that are damaged."""
FAST = {"TENSORLAKE_KERNELS": "fast", "NUMBA_DISABLE_JIT": "0"}
COMPILED = ("ftsf", "bsgs", "window")
"""Layouts that compiled loops decode, which hold no index against its bounds."""
PAYLOADS = ("index", "values", "params", "nnz", "codec", "lo", "hi")


@pytest.mark.parametrize("name", LAYOUTS)
def test_damaged_rows(name):
    run(name, 500)


def test_damaged_rows_in_compiled_loops():
    run("bsgs", 500, **FAST)


@pytest.mark.soak
@pytest.mark.parametrize("name", LAYOUTS)
def test_ten_thousand_damaged_rows(name):
    run(name, 10_000)


@pytest.mark.soak
@pytest.mark.parametrize("name", COMPILED)
def test_ten_thousand_damaged_rows_in_compiled_loops(name):
    run(name, 10_000, **FAST)


def run(name, cases, **more):
    quiet = {
        "MALLOC_ARENA_MAX": "1",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "PYTHONFAULTHANDLER": "1",
    }
    seed = str(int.from_bytes(os.urandom(4), "little"))
    done = subprocess.run(
        [sys.executable, __file__, name, str(cases), seed],
        capture_output=True, text=True, timeout=60 + cases, env={**os.environ, **quiet, **more},
    )  # fmt: skip
    assert done.returncode == 0, f"seed {seed}: {done.stdout[-3000:]}{done.stderr[-3000:]}"


def sequences():
    """Yield specs and rows of samples that slide, of some that do not, and of few samples or positions."""
    layout = layout_of("window")
    made = runpy.run_path(str(Path(__file__).parents[1] / "golden" / "window.py"))
    slid, edited, noise = made["slid"], made["edited"], made["noise"]
    arrays = [
        edited(slid(1, 3, 20, 12, "int64")), slid(2, 1, 200, 8, "uint8"), noise(3, 50, 9, "int32"),
        np.concatenate([slid(4, 2, 40, 30, "int16"), noise(5, 40, 30, "int16")]), slid(6, 9, 5, 40, "uint64"),
        np.tile(np.arange(5), (100, 1)), edited(slid(7, 2, 400, 12, "int64", back=True)),
    ]  # fmt: skip
    for at, x in enumerate(arrays):
        block = (max(1, len(x) // 2), x.shape[1])
        codec = ("raw", "zstd", "shuffle+zstd")[at % 3]
        spec = TensorSpec("x", x.shape, x.dtype, "window", block, codec=codec)
        rows = []
        for piece in layout.pieces(spec, Box((0, 0), x.shape)):
            rows += layout.encode(x[piece.slices()], piece.lo, spec)
        yield spec, rows


def tensors(name):
    """Yield specs and rows of real tensors: small and large shapes, ranks, dtypes, codecs, blocks."""
    if name == "window":
        yield from sequences()
        return
    layout = layout_of(name)
    rng = np.random.default_rng(0)
    few = [
        ((9,), 4, "int64"), ((40, 50), 300, "float64"), ((6, 7, 8), 200, "bool"), ((), 1, "float32"),
        ((1 << 20, 1 << 21), 60, "uint8"), ((1 << 40, 1 << 20), 50, "complex64"), ((1 << 62,), 30, "int16"),
        ((30, 1, 5, 1, 4, 1, 3, 1, 6), 90, "float32"), ((50, 50), 2500, "datetime64[ns]"),
    ]  # fmt: skip
    for at, (shape, count, dtype) in enumerate(few):
        coords = np.array([rng.integers(0, min(n, 1 << 9), count) for n in shape], np.int64)
        coords = coords.reshape(len(shape), count)
        values = rng.integers(0, 4, count).astype(dtype)
        tensor = SparseTensor(coords, values, shape, duplicates="last")
        block = layout.default_block(shape, tensor.dtype, 1e-3)
        if name == "ftsf":
            block = tuple(min(b, 16) for b in block)
        params = layout.choose_params(len(shape), None, None)
        codec = "raw" if at % 2 else DENSE[at // 2] if name == "ftsf" else "zstd"
        spec = TensorSpec("x", shape, np.dtype(dtype), name, block, codec=codec, params=params)
        if not layout.is_sparse:
            box = Box((0,) * len(shape), tuple(min(n, 40) for n in shape))
            part = tensor[box.slices()] if shape else tensor
            dense = np.asarray(part.todense())
            dense[...] = np.where(dense == np.zeros((), dtype), np.ones((), dtype), dense)
            rows = []
            for piece in layout.pieces(replace(spec, shape=box.hi), box):
                rows += layout.encode(dense[piece.slices()], piece.lo, spec)
        else:
            rows = layout.encode(tensor, (0,) * len(shape), spec)
        yield spec, rows[:40]
    if name != "ftsf":
        return
    x = np.cumsum(rng.standard_normal((20, 9, 8)), axis=0).astype("f4")
    x[3, 2] = np.nan
    for codec in FEWER:
        step = codec.partition("+")[0]
        kind = {"error(0.25)": {"error": 0.25}, "cast(bfloat16)": "bfloat16"}.get(step, step)
        spec = TensorSpec("x", x.shape, x.dtype, name, (16, 9, 8), codec=codec, params={"quantize": kind})  # fmt: skip
        box = Box((0, 0, 0), x.shape)
        rows = [
            row
            for p in layout.pieces(spec, box)
            for row in layout.encode(x[p.slices()], p.lo, spec)
        ]
        yield spec, rows


def damaged_bytes(rng, data):
    """Return other bytes."""
    if data is None:
        return rng.bytes(int(rng.integers(0, 9)))
    data, at = bytearray(data), int(rng.integers(0, len(data) + 1))
    kind = int(rng.integers(0, 8))
    if kind == 0:
        return bytes(data[:at])
    if kind == 1:
        return bytes(data) + rng.bytes(int(rng.integers(1, 20)))
    if kind == 2:
        return bytes(data[:at]) + rng.bytes(int(rng.integers(1, 9))) + bytes(data[at:])
    if kind == 3:
        return bytes(data[:at] + data[at + int(rng.integers(1, 9)) :])
    if kind == 4:
        return None if rng.integers(0, 2) else b""
    if kind == 5 and data:
        data[0] = int(rng.integers(0, 256))
    for _ in range(int(rng.integers(1, 4)) if data else 0):
        data[int(rng.integers(0, len(data)))] = int(rng.integers(0, 256))
    return bytes(data)


def other_integers(rng, data):
    """Return an index of the same form with other integers in one of its buffers."""
    if not data:
        return data
    parts, at = [], 0
    while at + 4 <= len(data):
        (length,) = struct.unpack_from("<I", data, at)
        parts.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    if at != len(data) or not all(parts):
        return other_buffer(rng, data)  # blocks have a single buffer
    k = int(rng.integers(0, len(parts)))
    parts[k] = other_buffer(rng, parts[k])
    return b"".join(struct.pack("<I", len(part)) + part for part in parts)


def other_buffer(rng, part):
    """Return a buffer of as many integers, of any width, small ones mostly."""
    if not 0 < part[0] <= 8:
        return part
    count, width = (len(part) - 1) // part[0], int(rng.integers(1, 9))
    if rng.integers(0, 2):
        return bytes([width]) + rng.bytes(width * count)
    planes = np.zeros((width, count), np.uint8)
    planes[0] = rng.integers(0, int(rng.integers(1, 20)), count)
    planes[-1, int(rng.integers(0, count))] = int(rng.integers(0, 256))
    return bytes([width]) + planes.tobytes()


def number(rng, near):
    """Return a number that tells."""
    return [
        near + 1, near - 1, 0, -1, near * 2, 1 << int(rng.integers(0, 63)), int(rng.integers(0, 1 << 62)),
        (1 << 24) + int(rng.integers(-1, 2)), (1 << 63) - 1, -(1 << 63),
    ][int(rng.integers(0, 10))]  # fmt: skip


def damaged_params(rng, text):
    """Return other JSON, or what is none."""
    if text is None or rng.integers(0, 4) == 0:
        return damaged_bytes(rng, text and text.encode())
    found = json.loads(text)
    key = str(rng.choice(list(found))) if found else "order"
    odd = [
        None, True, 1.5, float("nan"), float("inf"), "0", "", [], [[0]], {}, -1, 1 << 62, 1 << 64, 10**400,
        found, [True], [0.0], ["0"], list(range(40)), [63] * 9,
    ]  # fmt: skip
    value = found.get(key)
    if isinstance(value, list) and value and rng.integers(0, 2):
        value[int(rng.integers(0, len(value)))] = odd[int(rng.integers(0, len(odd)))]
    elif rng.integers(0, 4) == 0:
        found.pop(key, None)
    else:
        found[key] = odd[int(rng.integers(0, len(odd)))]
    try:
        return json.dumps(found).encode()
    except ValueError:  # it holds itself
        return b"[" * 100_000


def damage(rng, spec, row):
    """Return the columns of a row, some of them damaged, and a checksum that holds."""
    lo, hi = list(row.lo), list(row.hi)
    found = {
        "index": row.index, "values": row.values, "params": row.params and row.params.encode(),
        "nnz": row.nnz, "codec": row.codec.encode(), "lo": lo[:STORED_AXES], "hi": hi[:STORED_AXES],
    }  # fmt: skip
    if spec.ndim > STORED_AXES:
        rest = {"lo": lo[STORED_AXES:], "hi": hi[STORED_AXES:]}
        found["params"] = json.dumps({**json.loads(row.params or "{}"), **rest}).encode()
    for what in rng.choice(PAYLOADS, int(rng.integers(1, 4)), replace=False).tolist():
        old = found[what]
        if what == "nnz":
            found[what] = number(rng, old)
        elif what == "params":
            found[what] = damaged_params(rng, old and old.decode())
        elif what == "codec":
            known = [b"raw", b"zstd", b"delta(-1)+zstd", b"delta(-2)+shuffle+zstd", b"lz4", None]
            known += [codec.encode() for codec in (*DENSE, *FEWER)]
            found[what] = (
                damaged_bytes(rng, old)
                if rng.integers(0, 2)
                else known[rng.integers(0, len(known))]
            )
        elif what in ("lo", "hi") and old:
            k = int(rng.integers(0, len(old)))
            old[k] = number(rng, old[k] or 0) if rng.integers(0, 20) else None
            if spec.shape[k] > 1 and rng.integers(0, 2):
                old[k] = int(rng.integers(0, spec.shape[k] + 1))
        elif what == "index" and rng.integers(0, 2):
            found[what] = other_integers(rng, old)
        elif what in ("index", "values"):
            found[what] = damaged_bytes(rng, old)
    return found


def checksum(spec, found):
    try:
        texts = [found[k] and found[k].decode() for k in ("params", "codec")]
        corners = (*found["lo"], *found["hi"])
        return crc_of(
            spec.layout,
            texts[0],
            dtype_name(spec.dtype),
            texts[1],
            corners,
            found["index"],
            found["values"],
        )
    except Exception:  # no text, or no corner: no checksum either
        return 0


def batch_of(spec, rows, place, found):
    """Return some rows as a batch, one of them damaged."""
    batch = data_batch(spec, range(len(rows)), rows)
    columns = {name: batch.column(name) for name in batch.schema.names}
    changed = {**found, "crc": checksum(spec, found)}
    for name in ("lo", "hi"):
        leaves = dict(zip((f"d{k}" for k in range(STORED_AXES)), found[name]))
        changed[name] = {**dict.fromkeys(f"d{k}" for k in range(STORED_AXES)), **leaves}
    for name, value in changed.items():
        kind = pa.binary() if name in ("params", "codec") else SCHEMA.field(name).type
        whole = columns[name].cast(kind).to_pylist()
        whole[place] = value
        array = pa.array(whole, kind)
        columns[name] = array.view(pa.string()) if name in ("params", "codec") else array
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=SCHEMA)


def selections(rng, spec, rows):
    """Return what is asked for: all that is not too large, ranges, an index array, points near elements."""
    shape = spec.shape
    near = [[min(a + d, n - 1) for d in (0, 1, 3)] for a, n in zip(rows[0].lo, shape, strict=True)]
    small = tuple(slice(max(0, a[0] - 2), a[0] + 7) for a in near)
    out = [select(small, shape)]
    if spec.size <= 1 << 20 or layout_of(spec.layout).is_sparse:
        out += [select(..., shape), select(tuple(slice(a[0] // 2, None, 3) for a in near), shape)]
    if shape:
        axis = int(rng.integers(0, len(shape)))
        out.append(select((*small[:axis], near[axis], *small[axis + 1 :]), shape))
        out.append(select_points(tuple(map(np.array, near)), shape))
    return out


def decode(spec, batch, selection):
    layout = layout_of(spec.layout)
    result = layout.new_result(spec, selection, False)
    layout.decode(batch, spec, selection, result)
    return layout.finish(spec, selection, result)


def one_case(rng, spec, rows):
    """Decode a damaged row by itself and among others; return whether it was found to be damaged."""
    place = int(rng.integers(0, len(rows)))
    some = rows[max(0, place - 2) : place + 2]
    at = min(2, place)
    found = damage(rng, spec, some[at])
    batch = batch_of(spec, some, at, found)
    errors = 0
    for selection in selections(rng, spec, some):
        for part in (batch, batch.slice(at, 1)):
            try:
                got = decode(spec, part, selection)
            except TensorLakeError as error:
                errors += bool(str(error))
                continue
            assert np.shape(got) == selection.result_shape or got.shape == selection.result_shape
            if isinstance(got, SparseTensor):
                SparseTensor(got.coords, got.values, got.shape)
                if part.num_rows == 1 and got.shape == spec.shape and got.nnz:
                    lo, hi = (np.array(found[k][: spec.ndim]) for k in ("lo", "hi"))
                    inside = got.coords[:STORED_AXES].T
                    assert (inside >= lo).all()
                    assert (inside < hi).all()
    return bool(errors)


def vm_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def main(name, cases, seed):
    warnings.simplefilter("error")
    runs.RUN = 100
    if choice() == "fast":
        codecs._SHORT_BLOCK = 0  # small blocks go through loops too
    real = list(tensors(name))
    rng = np.random.default_rng(seed)
    for spec, rows in real:
        for selection in selections(rng, spec, rows):
            decode(spec, data_batch(spec, range(len(rows)), rows), selection)
    if sys.platform == "linux":
        import resource

        limit = vm_bytes() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    found = 0
    for case in range(cases):
        rng = np.random.default_rng((seed, case))
        spec, rows = real[case % len(real)]
        signal.alarm(SECONDS)  # its default is to end the process
        try:
            found += one_case(rng, spec, rows)
        except BaseException:
            print(f"case {case} of seed {seed}: {spec}")
            raise
    signal.alarm(0)
    assert found > cases // 2, f"{found} of {cases} damaged rows were found"
    print(
        f"{name}: {found} of {cases} damaged rows were found, the others gave elements of their box"
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
