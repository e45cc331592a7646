"""FORMAT.md is enough: a decoder that was written from that page alone reads the golden tables.

It stands on pyarrow (Parquet, zstd), struct, json and zlib; elements are bytes in a dict by coordinates.
Nothing of the package is imported until the tests begin.
"""

import json
import math
import operator
import random
import runpy
import struct
import zlib
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from places import TESTS

COLUMNS = 8  # axes with columns of their own
SEEN = set()  # which forms were met: the tests ask whether all were

# --- the table -----------------------------------------------------------------------------------------


def files_of(table):
    """Return the paths of a Delta table's data files (Delta protocol: the log, without checkpoints)."""
    live = {}
    for path in sorted(Path(table, "_delta_log").glob("*.json")):
        for line in path.read_text().splitlines():
            action = json.loads(line)
            if "add" in action:
                live[action["add"]["path"]] = None
            if "remove" in action:
                live.pop(action["remove"]["path"])
    return [Path(table, path) for path in live]


def sealed(path):
    """Files, "The seal": return whether a file has one, which holds."""
    data = path.read_bytes()
    (length,) = struct.unpack("<I", data[-8:-4])
    at = len(data) - 8 - length - 8
    if data[at : at + 4] != b"TLFC":
        return False
    assert struct.unpack("<I", data[at + 4 : at + 8]) == (zlib.crc32(data[at + 8 :]),)
    return True


def rows_of(table, seal=True):
    """Return the rows of a table, by tensor, each held against its checksum."""
    out = {}
    for path in files_of(table):
        assert sealed(path) == seal
        check_groups(pq.ParquetFile(path).metadata)
        rows = pq.ParquetFile(path).read().to_pylist()
        places = [(not row["nnz"], row["id"], row["seq"]) for row in rows]
        assert places == sorted(places)
        for row in rows:
            assert checksum(row) == row["crc"]
            out.setdefault(row["id"], []).append(row)
    return out


def check_groups(file):
    """Files: how payloads are stored, and that metadata rows are by themselves."""
    for group in map(file.row_group, range(file.num_row_groups)):
        chunks = {c.path_in_schema: c for c in map(group.column, range(group.num_columns))}
        for name in ("index", "values"):
            chunk = chunks[name]
            plain = chunk.compression, chunk.has_dictionary_page, chunk.is_stats_set
            assert plain == ("UNCOMPRESSED", False, False)
        nnz = chunks["nnz"].statistics
        assert nnz.min > 0 or nnz.max == 0


def checksum(row):
    """The checksum."""
    if row["nnz"]:
        rank = min(len(row["shape"]), COLUMNS)
        numbers = [row[side][f"d{k}"] for side in ("lo", "hi") for k in range(rank)]
        params, payload = row["params"], (row["index"], row["values"])
    else:
        assert row["lo"] is row["hi"] is row["params"] is None
        numbers = [len(row["shape"]), *row["shape"], *(row["block_shape"] or [])]
        params, payload = None, (None, row["attrs"].encode())
    out = b""
    for text in (row["layout"], params, row["dtype"], row["codec"]):
        out += (
            b"\xff" * 4 if text is None else struct.pack("<I", len(text.encode())) + text.encode()
        )
    out += struct.pack(f"<I{len(numbers)}q", len(numbers), *numbers)
    for data in payload:
        out += b"\xff" * 8 if data is None else struct.pack("<Q", len(data)) + data
    return zlib.crc32(out)


def tensor(rows):
    """Return shape, dtype, attributes and elements, by coordinates, of the tensor that some rows are."""
    meta = max((row for row in rows if not row["nnz"]), key=operator.itemgetter("seq"))
    attrs = json.loads(meta["attrs"])
    assert attrs["format"] == 1
    data = sorted((row for row in rows if row["nnz"]), key=operator.itemgetter("seq"))
    assert (attrs["rows"], attrs["nnz"]) == (len(data), sum(row["nnz"] for row in data))
    assert attrs["bytes"] == sum(len(row["index"] or b"") + len(row["values"]) for row in data)
    shape, dtype = tuple(meta["shape"]), meta["dtype"]
    rule, out = attrs.get("params", {}).get("duplicates"), {}
    if meta["layout"] in ("ftsf", "window"):
        fill = bytes.fromhex(attrs["fill"])
        out = dict.fromkeys(product(*map(range, shape)), fill)
    for row in data:
        assert (row["layout"], row["dtype"]) == (meta["layout"], dtype)
        check_box(row, meta["block_shape"], attrs["segments"], shape)
        found = elements(row, dtype)
        assert len(found) == row["nnz"]
        if row["layout"] not in ("ftsf", "bsgs", "window"):  # the least box
            for k, axis in enumerate(list(zip(*found))[:COLUMNS]):
                assert (min(axis), max(axis) + 1) == (row["lo"][f"d{k}"], row["hi"][f"d{k}"])
        for place, value in found.items():
            if place in out and row["layout"] not in ("ftsf", "window"):
                assert rule in ("sum", "last")
                value = added(out[place], value, dtype) if rule == "sum" else value
            out[place] = value
    return shape, dtype, attrs, out


def check_box(row, block, segments, shape):
    """The grid: whether a box is inside of the tensor, and of one cell where a layout has blocks."""
    assert len(segments) == len(shape)
    for k, n in enumerate(shape[:COLUMNS]):
        lo, hi = row["lo"][f"d{k}"], row["hi"][f"d{k}"]
        assert 0 <= lo < hi <= n
        assert segments[k][0] == 0
        if row["layout"] in ("ftsf", "bsgs", "window"):
            first = max(at for at in segments[k] if at <= lo)
            stop = min([n, *(at for at in segments[k] if at > lo)])
            cell = first + (lo - first) // block[k] * block[k]
            assert lo == cell or row["layout"] == "window"
            assert hi <= min(cell + block[k], stop)
    for k in range(len(shape), COLUMNS):
        assert row["lo"][f"d{k}"] is row["hi"][f"d{k}"] is None


def added(a, b, dtype):
    kind, size = form_of(dtype)
    if dtype == "bool":
        return bytes([a[0] | b[0]])
    if kind in "iu":
        total = int.from_bytes(a, "little") + int.from_bytes(b, "little")
        return (total % (1 << 8 * size)).to_bytes(size, "little")
    code = {2: "<e", 4: "<f", 8: "<d"}[size]
    return struct.pack(code, struct.unpack(code, a)[0] + struct.unpack(code, b)[0])


def elements(row, dtype):
    """Return the elements of a data row by their coordinates in the tensor."""
    rank, params = len(row["shape"]), json.loads(row["params"] or "{}")
    lo, hi = (
        [row[side][f"d{k}"] for k in range(min(rank, COLUMNS))] + params.get(side, [])
        for side in ("lo", "hi")
    )
    sides = [h - a for a, h in zip(lo, hi)]
    cells = math.prod(sides)
    assert len(lo) == rank
    assert 1 <= row["nnz"] <= cells
    if row["layout"] == "window" and row["index"] is not None:
        SEEN.add("timeline")
        inside = product(*map(range, sides))
        found = timeline(row, sides, dtype)
    elif row["layout"] in ("ftsf", "window"):
        SEEN.add((row["layout"], "chunk"))
        inside = product(*map(range, sides))
        found = quantized(row, sides, dtype)
    elif row["index"] is None:
        assert row["layout"] == "bsgs"
        SEEN.add("block as array")
        inside = product(*map(range, sides))
        found = values(row["values"], cells, dtype)
    else:
        decode = {"coo": coo, "csr": matrix, "csc": matrix, "csf": tree, "bsgs": offsets}
        inside = decode[row["layout"]](row, sides, params)
        found = values(row["values"], row["nnz"], dtype)
    pairs = list(zip(inside, found, strict=True))
    if row["index"] is None and row["layout"] == "bsgs":
        pairs = [(x, value) for x, value in pairs if any(value)]
    assert all(0 <= x < side for place, _ in pairs for x, side in zip(place, sides))
    return {tuple(x + a for x, a in zip(place, lo)): value for place, value in pairs}


# --- buffers -------------------------------------------------------------------------------------------


def inflated(data, size):
    """Return what a Zstandard frame holds."""
    return pa.Codec("zstd").decompress(data, decompressed_size=size, asbytes=True)


def planes(data, count, size):
    """Return `count` words of `size` bytes: byte k of word i is at k * count + i."""
    assert len(data) == count * size
    return [bytes(data[k * count + i] for k in range(size)) for i in range(count)]


def ints(buffer, n):
    """Buffers of integers."""
    w, body = buffer[0], buffer[1:]
    SEEN.add("integers, zstd" if w & 16 else "integers")
    if w & 16:
        w -= 16
        body = inflated(body, w * n)
    assert 0 <= w <= 8
    return [int.from_bytes(word, "little") for word in planes(body, n, w)]


def form_of(dtype):
    """Return kind and size of the plain form of a dtype."""
    if dtype.startswith(("datetime64", "timedelta64")):
        return "i", 8
    if dtype == "bool":
        return "u", 1
    if dtype == "bfloat16" or dtype.startswith("float8_"):
        return "i", 2 if dtype == "bfloat16" else 1
    name = dtype.rstrip("0123456789")
    return {"int": "i", "uint": "u", "float": "f", "complex": "c"}[name], int(
        dtype[len(name) :]
    ) // 8


STORED = [None, ("u", 1), ("i", 1), ("u", 2), ("i", 2), ("u", 4), ("i", 4), ("f", 2), ("f", 4)]
FRACTION = {2: 10, 4: 23, 8: 52}
REAL = {2: "<e", 4: "<f", 8: "<d"}


def values(buffer, n, dtype):
    """Buffers of values: the bytes of every element."""
    p, body, plain = buffer[0], buffer[1:], form_of(dtype)
    SEEN.add(("p", p & 63, p >> 6))
    assert p >> 6 in (0, 1, 2)
    m = 1 if p & 64 else n
    stored = STORED[p & 63] or plain
    if p & 128:
        body = inflated(body, m * stored[1])
    found = planes(body, m, stored[1])
    if p & 63:
        assert plain[0] in ("iuf" if stored[0] != "f" else "f")
        assert stored[1] < plain[1]
        found = [widened(word, stored, plain) for word in found]
    return found * n if p & 64 else found


def widened(word, stored, plain):
    """Return a value in its plain form."""
    kind, size = plain
    if stored[0] == "f":
        have, want = FRACTION[stored[1]], FRACTION[size]
        (number,) = struct.unpack(REAL[stored[1]], word)
        if number == number:
            return struct.pack(REAL[size], number)
        raw = int.from_bytes(word, "little")
        sign, fraction = raw >> (8 * stored[1] - 1), raw & ((1 << have) - 1)
        exponent = (1 << (8 * size - 1 - want)) - 1
        whole = (sign << (8 * size - 1)) | (exponent << want) | (fraction << (want - have))
        return whole.to_bytes(size, "little")
    number = int.from_bytes(word, "little", signed=stored[0] == "i")
    if kind == "f":
        return struct.pack(REAL[size], float(number))
    return (number % (1 << 8 * size)).to_bytes(size, "little")


def split(index, count):
    """Joined buffers."""
    out, at = [], 0
    for _ in range(count):
        (length,) = struct.unpack_from("<I", index, at)
        out.append(index[at + 4 : at + 4 + length])
        at += 4 + length
    assert at == len(index)
    return out


def summed(numbers, counts):
    """Return ids that are stored as differences, in runs of some lengths, each ascending."""
    out = []
    for count in counts:
        total = 0
        for k in range(count):
            step = numbers[len(out)]
            assert step > 0 or not k
            total = (total + step) % (1 << 64)
            out.append(total)
    assert len(out) == len(numbers)
    return out


# --- sparse layouts ------------------------------------------------------------------------------------


def coo(row, sides, params):
    """Runs of elements."""
    columns = []
    for buffer in split(row["index"], len(sides)):
        column, x = [], 0
        for folded in ints(buffer, row["nnz"]):
            x += folded // 2 if folded % 2 == 0 else -(folded + 1) // 2
            column.append(x)
        columns.append(column)
    places = list(zip(*columns)) if sides else [()]
    assert places == sorted(set(places))
    return places


def unplaced(place, axes, sides):
    """Return the coordinates on some axes that a place stands for."""
    out = {}
    for k in reversed(axes):
        place, out[k] = divmod(place, sides[k])
    assert place == 0
    return out


def matrix(row, sides, params):
    """Runs of lines of a matrix."""
    rows = params["row_axes"]
    columns = [k for k in range(len(sides)) if k not in rows]
    outer, inner = (rows, columns) if row["layout"] == "csr" else (columns, rows)
    first, second, third, fourth = split(row["index"], 4)
    (m,) = ints(first, 1)
    SEEN.add((row["layout"], "named lines" if m else "all lines"))
    number = m or math.prod(sides[k] for k in outer)
    lines = summed(ints(second, m), [m])
    counts = ints(third, number)
    if not m:
        assert number <= 4 * row["nnz"]
        lines = range(number)
    else:
        assert min(counts) >= 1
    ids = summed(ints(fourth, row["nnz"]), counts)
    owners = [line for line, count in zip(lines, counts, strict=True) for _ in range(count)]
    out = []
    for line, at in zip(owners, ids, strict=True):
        found = {**unplaced(line, outer, sides), **unplaced(at, inner, sides)}
        out.append(tuple(found[k] for k in range(len(sides))))
    return out


def tree(row, sides, params):
    """Runs of fibre trees."""
    order, rank = params["order"], len(sides)
    buffers = split(row["index"], max(1, 2 * rank))
    sizes = ints(buffers[0], rank)
    if not rank:
        return [()]
    assert sizes[-1] == row["nnz"]
    counts = [[sizes[0]]]  # children of the root, then of the nodes of each level
    counts += [ints(buffers[1 + k], sizes[k]) for k in range(rank - 1)]
    levels = [summed(ints(buffers[rank + k], sizes[k]), counts[k]) for k in range(rank)]
    paths = [()]
    for level, children in zip(levels, counts, strict=True):
        assert min(children) >= 1
        ids = iter(level)
        paths = [(*path, next(ids)) for path, n in zip(paths, children, strict=True) for _ in range(n)]  # fmt: skip
    out = []
    for path in paths:
        found = dict(zip(order, path, strict=True))
        out.append(tuple(found[k] for k in range(rank)))
    return out


def offsets(row, sides, params):
    """Blocks, as offsets."""
    SEEN.add("block as offsets")
    out = []
    for offset in summed(ints(row["index"], row["nnz"]), [row["nnz"]]):
        found = {}
        for k in reversed(params["order"]):
            width = params["bits"][k]
            found[k] = offset & ((1 << width) - 1)
            offset >>= width
        assert offset == 0
        out.append(tuple(found[k] for k in range(len(sides))))
    return out


# --- dense chunks --------------------------------------------------------------------------------------


def dense(data, sides, dtype, codec):
    """Layout ftsf: the bytes of every element of a chunk, in C order."""
    SEEN.add(codec)
    if codec.startswith("transpose+"):
        turned = dense(data, sides[::-1], dtype, codec[10:])
        backwards = dict(zip(product(*map(range, sides[::-1])), turned, strict=True))
        return [backwards[place[::-1]] for place in product(*map(range, sides))]
    kind, size = form_of(dtype)
    word = size // 2 if kind == "c" else size
    shape = [*sides[:-1], sides[-1] * 2] if kind == "c" and sides else [*sides]
    count = math.prod(shape) * (2 if kind == "c" and not sides else 1)
    if codec == "pco":
        return numbers_of_pcodec(data, count, size)
    filters = codec.split("+")
    if "bins" in filters:
        words = words_of_bins(data, count)
    elif "pack" in filters:
        words = packed_words(data, count, word)
    elif "nibbles" in filters:
        pairs = -(-count // 2)
        data = inflated(data, 2 * word * pairs)
        words = [0] * count
        for k, byte in enumerate(data):
            four, pair = divmod(k, pairs)
            for i, part in ((2 * pair, byte & 15), (2 * pair + 1, byte >> 4)):
                if i < count:
                    words[i] |= part << (4 * four)
                else:
                    assert part == 0
    else:
        if codec != "raw":
            data = inflated(data, count * word)
        assert len(data) == count * word
        if "shuffle" in filters:
            words = [int.from_bytes(w, "little") for w in planes(data, count, word)]
        else:
            words = [
                int.from_bytes(data[i * word : (i + 1) * word], "little") for i in range(count)
            ]
    whole = 1 << (8 * word)
    assert all(0 <= w < whole for w in words)
    if "zigzag" in filters:
        words = [(w // 2 if w % 2 == 0 else -(w + 1) // 2) % whole for w in words]

    def along_last(numbers, length):
        for i in range(len(numbers)):
            if i % length:
                numbers[i] = (numbers[i] + numbers[i - 1]) % whole
        return numbers

    if "lorenzo(float)" in filters and shape:
        assert kind == "f"
        words = predicted(along_last(words, shape[-1]), shape, word)
    if "lorenzo" in filters and shape:
        for axis, length in enumerate(shape):
            step = math.prod(shape[axis + 1 :])
            for i in range(count):
                if i // step % length:
                    words[i] = (words[i] + words[i - step]) % whole
        if "float" in dtype or kind == "c":
            words = [w ^ (whole // 2 - 1) if w >= whole // 2 else w for w in words]
    if "delta(-1)" in filters and shape:
        words = along_last(words, shape[-1])
    if "delta(-2)" in filters and len(shape) >= 2:
        rows, width = shape[-2], shape[-1]
        each = count // rows
        moved = [words[y * each : (y + 1) * each] for y in range(rows)]
        for y in range(rows):
            if y % 32 == 0:
                moved[y] = along_last(moved[y], width)
            else:
                moved[y] = [(a + b) % whole for a, b in zip(moved[y - 1], moved[y], strict=True)]
        # The first axis goes back to before the last.
        words = [
            moved[y][z * width + x]
            for z in range(each // width) for y in range(rows) for x in range(width)
        ]  # fmt: skip
    if filters[0].startswith("decimal"):
        scale = 10.0 ** int(filters[0][8])
        signed = [w - whole if w >= whole // 2 else w for w in words]
        return [struct.pack({2: "<e", 4: "<f", 8: "<d"}[size], n / scale) for n in signed]
    flat = b"".join(w.to_bytes(word, "little") for w in words)
    return [flat[i * size : (i + 1) * size] for i in range(len(flat) // size)]


def packed_words(data, count, word):
    """The words of groups of sixteen, each as wide as its group."""
    groups = -(-count // 16)
    widths, bits = data[:groups], int.from_bytes(data[groups:], "little")
    assert all(width <= 8 * word for width in widths)
    assert len(data) == groups + 2 * sum(widths)
    out = []
    for width in widths:
        for _ in range(16):
            out.append(bits & ((1 << width) - 1))
            bits >>= width
    assert not any(out[count:])
    return out[:count]


def predicted(words, shape, word):
    """The words of floats, from their distances from what their neighbours predict."""
    form, whole = {4: ("<I", "<f"), 8: ("<Q", "<d")}[word], 1 << (8 * word)

    def number(w):
        return struct.unpack(form[1], struct.pack(form[0], w))[0]

    def rounded(x):
        return struct.unpack(form[1], struct.pack(form[1], x))[0]

    axes = [k for k, n in enumerate(shape[:-1]) if n > 1][-2:]
    steps = [math.prod(shape[k + 1 :]) for k in axes]
    for i in range(len(words)):
        back = [s for k, s in zip(axes, steps, strict=True) if i // s % shape[k]]
        if len(back) == 2:
            z, y = back
            guess = rounded(rounded(number(words[i - z]) - number(words[i - z - y])) + number(words[i - y]))  # fmt: skip
            (guess,) = struct.unpack(form[0], struct.pack(form[1], guess))
        else:
            guess = words[i - back[0]] if back else 0
        words[i] = (words[i] + guess) % whole
    return words


# --- steps that quantise -------------------------------------------------------------------------------


def quantized(row, sides, dtype):
    """Steps that quantise: the bytes of every element of a chunk, in C order."""
    step, _, inner = row["codec"].partition("+")
    data, count = row["values"], math.prod(sides)
    assert (row["index"] is None) == (step != "split")
    if step.startswith("cast"):
        small = step[5:-1]
        return [real(number_of(word, small), dtype) for word in dense(data, sides, small, inner)]
    if step == "int8":
        (k,) = struct.unpack_from("<I", data)
        codes, scales, places, bits = parts_of(data[4:], 4)
        rows = count // sides[-1] if sides else 1
        scales = [struct.unpack("<f", word)[0] for word in values(scales, rows, "float32")]
        codes = [struct.unpack("<b", word)[0] for word in dense(codes, sides, "int8", inner)]
        assert all(-127 <= code <= 127 for code in codes)
        found = [real(code * scales[i * rows // count], dtype) for i, code in enumerate(codes)]
        return with_kept(found, k, places, bits, dtype)
    if step.startswith("error"):
        w, k = struct.unpack_from("<BI", data)
        integers, places, bits = parts_of(data[5:], 3)
        code = {1: "<b", 2: "<h", 4: "<i", 8: "<q"}[w]
        words = dense(integers, sides, f"int{8 * w}", inner)
        found = [
            real(struct.unpack(code, word)[0] * (2 * float(step[6:-1])), dtype) for word in words
        ]
        return with_kept(found, k, places, bits, dtype)
    if step == "split":
        assert dtype == "float32"
        own = {**row, "index": None, "values": data[4:]}
        assert struct.unpack_from("<I", data) == (checksum(own),)
        upper = [int.from_bytes(word, "little") for word in dense(data[4:], sides, "uint16", inner)]
        lower = [
            int.from_bytes(word, "little")
            for word in dense(row["index"], sides, "uint16", "shuffle+zstd")
        ]
        nan = [u & 0x7FFF > 0x7F80 for u in upper]
        up = [u - (v >= 1 << 15 and not n) for u, v, n in zip(upper, lower, nan, strict=True)]
        return [
            ((u % 65536) << 16 | v).to_bytes(4, "little") for u, v in zip(up, lower, strict=True)
        ]
    return dense(data, sides, dtype, row["codec"])


def parts_of(data, count):
    """Joined buffers, so many."""
    out, at = [], 0
    for _ in range(count):
        (length,) = struct.unpack_from("<I", data, at)
        out.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    assert at == len(data)
    return out


def with_kept(found, k, places, bits, dtype):
    """Kept elements in their places."""
    if not k:
        assert places == bits == b""
        return found
    at = -1
    for i, (gap, word) in enumerate(zip(ints(places, k), values(bits, k, dtype), strict=True)):
        assert gap >= 1 or i == 0
        at = gap if i == 0 else at + gap
        found[at] = word
    return found


def number_of(word, small):
    """The number that a small float is."""
    if small == "bfloat16":
        return struct.unpack("<f", b"\0\0" + word)[0]
    if small == "float8_e4m3fn":
        bits = word[0] & 127
        exponent, fraction = bits >> 3, bits & 7
        size = math.ldexp(fraction + 8 * (exponent > 0), max(exponent, 1) - 10)
        return math.nan if bits == 127 else -size if word[0] & 128 else size
    return struct.unpack("<e", word if small == "float16" else b"\0" + word)[0]


def real(number, dtype):
    """A number rounded to a dtype."""
    if dtype != "bfloat16":
        return struct.pack(REAL[form_of(dtype)[1]], number)
    fraction, exponent = math.frexp(number)  # round() takes ties to even
    return struct.pack("<f", math.ldexp(round(fraction * 256), exponent - 8))[2:]


def words_of_bins(data, count):
    """Step bins: the words."""
    m, length = struct.unpack_from("<BI", data)
    assert m <= 7
    bins = inflated(data[5 : 5 + length], count)
    bits, at, words = int.from_bytes(data[5 + length :], "little"), 0, []
    for c in bins:
        s = max(0, (c >> m) - 1)
        words.append(((c - (s << m)) << s) + ((bits >> at) & ((1 << s) - 1)))
        at += s
    assert len(data) == 5 + length + -(-at // 8)
    assert bits >> at == 0
    return words


def numbers_of_pcodec(data, count, size):
    """Codec pco: the bytes of the numbers."""
    from pcodec import standalone

    assert struct.unpack_from("<Q", data) == (count,)
    flat = standalone.simple_decompress(bytes(data[8:])).tobytes()
    return [flat[i * size : (i + 1) * size] for i in range(count)]


def timeline(row, sides, dtype):
    """Layout window: the bytes of every element of a run of samples, in C order."""
    head, starts, patches = split(row["index"], 3)
    n, p = struct.unpack("<II", head)
    line = dense(row["values"], [n + p], dtype, row["codec"])
    begins, at = [], 0
    for d in ints(starts, sides[0]):
        at += d // 2 if d % 2 == 0 else -(d + 1) // 2
        begins.append(at)
    out = [line[begin : begin + sides[1]] for begin in begins]
    numbers, place = ints(patches, 3 * p), 0
    for k in range(p):
        place += numbers[k]
        SEEN.add("patch of one sample" if not numbers[2 * p + k] else "patch of several samples")
        for i in range(numbers[p + k], numbers[p + k] + numbers[2 * p + k] + 1):
            out[i][place - begins[i]] = line[n + k]
    return [value for sample in out for value in sample]


# --- the other way: rows as our writer does not make them ----------------------------------------------


class Stranger:
    """A writer that takes other forms than ours, wherever the format leaves a choice."""

    def __init__(self, seed, codec):
        self.random, self.codec = random.Random(seed), codec

    def buffer(self, head, flag, words, size):
        body = b"".join(bytes(word[k] for word in words) for k in range(size))
        if self.codec == "zstd" and self.random.random() < 0.5:
            return bytes([head + flag]) + pa.Codec("zstd", 3).compress(body, asbytes=True)
        return bytes([head]) + body

    def ints(self, numbers):
        least = max((n.bit_length() + 7) // 8 for n in [0, *numbers])
        w = self.random.randint(least, 8)
        return self.buffer(w, 16, [n.to_bytes(w, "little") for n in numbers], w)

    def values(self, found):
        if len(set(found)) == 1 and self.random.random() < 0.5:
            return bytes([64]) + found[0]
        return self.buffer(0, 128, found, len(found[0]))

    @staticmethod
    def join(buffers):
        return b"".join(struct.pack("<I", len(b)) + b for b in buffers)

    def row(self, layout, pairs, shape):
        """Return the columns of a row that holds some elements, pairs of a place and bytes."""
        axes = range(len(shape))
        order = self.random.sample(axes, len(shape))
        lo = [min(place[k] for place, _ in pairs) for k in axes]
        hi = [max(place[k] for place, _ in pairs) + 1 for k in axes]
        if layout == "bsgs" and self.random.random() < 0.5:
            lo, hi = [0 for _ in shape], [*shape]
        sides = [b - a for a, b in zip(lo, hi)]
        inside = {tuple(x - a for x, a in zip(place, lo)): value for place, value in pairs}
        params, index, found = getattr(self, layout)(inside, sides, order)
        if len(shape) > COLUMNS:
            params = {**params, "lo": lo[COLUMNS:], "hi": hi[COLUMNS:]}
        text = json.dumps(params) if params else self.random.choice([None, "{}"])
        corners = [
            {f"d{k}": x[k] if k < len(x) else None for k in range(COLUMNS)} for x in (lo, hi)
        ]
        return {
            "nnz": len(pairs), "layout": layout, "params": text, "codec": self.codec,
            "lo": corners[0], "hi": corners[1], "index": index, "values": self.values(found),
        }  # fmt: skip

    def coo(self, inside, sides, order):
        places, buffers = sorted(inside), []
        for k in range(len(sides)):
            column = [place[k] for place in places]
            steps = [x - y for x, y in zip(column, [0, *column])]
            buffers.append(self.ints([2 * d if d >= 0 else -2 * d - 1 for d in steps]))
        return {}, self.join(buffers), [inside[place] for place in places]

    def csr(self, inside, sides, order, lines_are_rows=True):
        rows = order[: self.random.randint(0, len(order))]
        columns = [k for k in range(len(sides)) if k not in rows]
        outer, inner = (rows, columns) if lines_are_rows else (columns, rows)

        def number(place, axes):
            out = 0
            for k in axes:
                out = out * sides[k] + place[k]
            return out

        keys = sorted((number(p, outer), number(p, inner), p) for p in inside)
        lines = sorted({line for line, _, _ in keys})
        every = range(math.prod(sides[k] for k in outer))
        if len(every) <= 4 * len(keys) and self.random.random() < 0.5:
            named, counted = [], every
        else:
            named = counted = lines
        ids = {line: [at for other, at, _ in keys if other == line] for line in counted}
        parts = [len(named)], steps(named), [len(ids[line]) for line in counted], [step for line in counted for step in steps(ids[line])]  # fmt: skip
        found = [inside[place] for _, _, place in keys]
        return {"row_axes": rows}, self.join(map(self.ints, parts)), found

    def csc(self, inside, sides, order):
        return self.csr(inside, sides, order, False)

    def csf(self, inside, sides, order):
        paths = sorted(tuple(place[k] for k in order) for place in inside)
        nodes = [sorted({path[: k + 1] for path in paths}) for k in range(len(order))]
        children, ids = [], []
        for k, level in enumerate(nodes):
            below = {}
            for node in level:
                below.setdefault(node[:-1], []).append(node[-1])
            if k:
                children.append([len(group) for group in below.values()])
            ids.append([step for group in below.values() for step in steps(group)])
        parts = [[len(level) for level in nodes], *children, *ids]
        found = [inside[tuple(path[order.index(k)] for k in range(len(order)))] for path in paths]
        return {"order": order}, self.join(map(self.ints, parts)), found

    def bsgs(self, inside, sides, order):
        bits = [(side - 1).bit_length() for side in sides]
        while sides and sum(bits) < 62 and self.random.random() < 0.7:
            bits[self.random.randrange(len(bits))] += 1
        params = {"bits": bits, "order": order}
        if (
            math.prod(sides) < 2000
            and all(map(any, inside.values()))
            and self.random.random() < 0.5
        ):
            zero = bytes(len(next(iter(inside.values()))))
            return params, None, [inside.get(place, zero) for place in product(*map(range, sides))]
        offset = {}
        for place in inside:
            number = 0
            for k in order:
                number = (number << bits[k]) | place[k]
            offset[number] = place
        found = [inside[offset[number]] for number in sorted(offset)]
        return params, self.ints(steps(sorted(offset))), found


def steps(ascending):
    """Return the first of some numbers, then the difference of each to the one before."""
    return [x - y for x, y in zip(ascending, [0, *ascending])]


def strange_rows(name, golden, seed):
    """Return the rows of a golden tensor as a stranger writes them."""
    layout, dtype, shape = golden.options["layout"], golden.values.dtype.name, golden.shape
    writer = Stranger(seed, golden.options.get("codec", "zstd"))
    pairs = [(tuple(p), v.tobytes()) for p, v in zip(golden.coords.T.tolist(), golden.values)]
    groups = [[] for _ in range(writer.random.randint(1, 3))]
    for pair in pairs:
        writer.random.choice(groups).append(pair)
    rows = [writer.row(layout, group, shape) for group in groups if group]
    attrs = {
        "format": 1, "rows": len(rows), "nnz": len(pairs), "segments": [[0]] * len(shape),
        "bytes": sum(len(row["index"] or b"") + len(row["values"]) for row in rows),
        "fill": "00" * golden.values.dtype.itemsize, "axes": None, "attrs": {},
        "params": {"order": [*range(len(shape))], "row_axes": [0][: len(shape)]},
    }  # fmt: skip
    meta = {"nnz": 0, "layout": layout, "codec": writer.codec, "attrs": json.dumps(attrs)}
    blocks = [1 << 40 if n > 1 << 40 else max(n, 1) for n in shape] if layout == "bsgs" else None
    common = {"id": name, "dtype": dtype, "shape": [*shape], "block_shape": blocks}
    for seq, row in enumerate([*rows, meta]):
        row.update(common, seq=10 * seq)
        for column in ("lo", "hi", "params", "index", "values", "attrs"):
            row.setdefault(column, None)
        row["crc"] = checksum(row)
    return [*rows, meta]


# --- the tests -----------------------------------------------------------------------------------------

GOLDEN = TESTS / "golden"
MADE = runpy.run_path(str(GOLDEN / "sparse.py"))
CODECS = {
    "raw", "zstd", "shuffle+zstd", "delta(-1)+zstd", "delta(-1)+shuffle+zstd", "delta(-2)+zstd",
    "delta(-2)+shuffle+zstd",
}  # fmt: skip


def expected(layout):
    """Return what a golden table has in a layout."""
    return {**MADE["tensors"](layout), **(MADE["door"]() if layout == "csr" else {})}


def assert_expected(rows, golden):
    shape, dtype, attrs, found = tensor(rows)
    options = golden.options
    assert (shape, dtype) == (golden.shape, golden.values.dtype.name)
    assert attrs["axes"] == (list(options["axes"]) if "axes" in options else None)
    assert attrs["attrs"] == options.get("attrs", {})
    assert attrs.get("labels") == options.get("labels")
    assert int(attrs["fill"], 16) == 0
    assert found == {
        tuple(place): value.tobytes()
        for place, value in zip(golden.coords.T.tolist(), golden.values, strict=True)
    }
    for name in ("order", "row_axes"):
        if name in options:
            assert attrs["params"][name] == list(options[name])


@pytest.mark.parametrize("layout", MADE["LAYOUTS"])
def test_a_stranger_reads_the_golden_tables(layout):
    rows = rows_of(GOLDEN / "v1" / "sparse" / "table")
    assert sorted(rows) == sorted(name for other in MADE["LAYOUTS"] for name in expected(other))
    for name, golden in expected(layout).items():
        assert_expected(rows[name], golden)


@pytest.mark.parametrize("layout", MADE["LAYOUTS"])
def test_a_stranger_reads_what_is_written_today(tmp_path, layout):
    import tensorlake_spark as tl

    make = runpy.run_path(str(GOLDEN / "make.py"))
    lake = tl.open(tmp_path)
    for name, golden in expected(layout).items():
        make["write_sparse"](lake, name, golden)
    rows = rows_of(tmp_path)
    for name, golden in expected(layout).items():
        assert_expected(rows[name], golden)


@pytest.mark.parametrize("layout", MADE["LAYOUTS"])
@pytest.mark.parametrize("seed", range(3))
def test_what_a_stranger_writes_is_read(lake, layout, seed):
    import deltalake
    import numpy as np

    import tensorlake_spark as tl

    lake.write("first", np.zeros((0,)))  # makes the table
    schema = pa.schema(deltalake.DeltaTable(lake.uri).schema().to_arrow())
    want = MADE["tensors"](layout)
    rows = [row for name, golden in want.items() for row in strange_rows(name, golden, seed)]
    table = pa.Table.from_pylist(sorted(rows, key=lambda r: (r["id"], r["seq"])), schema)
    deltalake.write_deltalake(lake.uri, table, mode="append")
    lake = tl.open(lake.uri)
    for name, golden in want.items():
        got = lake[name][...]
        assert np.array_equal(got.coords, golden.coords)
        assert got.values.tobytes() == golden.values.tobytes()
        assert (got.shape, got.dtype) == (golden.shape, golden.values.dtype)
        if golden.shape and golden.shape[0] > 1:
            n = golden.shape[0] // 2
            assert lake[name][n:].nnz == int((golden.coords[0] >= n).sum())


def assert_golden(folder, seal=True):
    """Check what a stranger reads of a golden table of dense tensors."""
    rows = rows_of(folder / "table", seal=seal)
    want = json.loads((folder / "expected.json").read_text())
    assert sorted(rows) == sorted(want)
    for name, entry in want.items():
        shape, dtype, _, found = tensor(rows[name])
        assert ([*shape], dtype) == (entry["shape"], entry["dtype"])
        got = b"".join(found[place] for place in product(*map(range, shape))).hex()
        assert got == entry["bytes"]


def test_a_stranger_reads_the_dense_golden_tables():
    assert_golden(GOLDEN / "v1" / "ftsf", seal=False)  # they are older than it
    assert CODECS <= SEEN


WINDOW = runpy.run_path(str(GOLDEN / "window.py"))


def assert_slides(rows, x):
    """Check what a stranger reads of a tensor of layout window."""
    shape, dtype, _, found = tensor(rows)
    assert (shape, dtype) == (x.shape, x.dtype.name)
    assert b"".join(found[place] for place in product(*map(range, shape))) == x.tobytes()


def test_a_stranger_reads_the_golden_table_of_window():
    SEEN.clear()
    rows = rows_of(GOLDEN / "v1" / "window" / "table")
    want = WINDOW["tensors"]()
    assert sorted(rows) == sorted(want)
    for name, golden in want.items():
        assert_slides(rows[name], golden.whole)
    assert {
        "timeline",
        ("window", "chunk"),
        "patch of one sample",
        "patch of several samples",
    } <= SEEN
    assert {"integers", "integers, zstd"} <= SEEN


def test_a_stranger_reads_samples_that_slide_of_today(tmp_path):
    import tensorlake_spark as tl

    lake = tl.open(tmp_path)
    for name, golden in WINDOW["tensors"]().items():
        WINDOW["write"](lake, name, golden)
    rows = rows_of(tmp_path)
    for name, golden in WINDOW["tensors"]().items():
        assert_slides(rows[name], golden.whole)


def test_a_stranger_reads_the_golden_tables_of_later_steps():
    SEEN.clear()
    assert_golden(GOLDEN / "v1" / "codecs")
    assert {step for codec in SEEN if isinstance(codec, str) for step in codec.split("+")} == {
        "zstd", "shuffle", "delta(-1)", "delta(-2)", "lorenzo", "zigzag", "bins", "pco", "decimal(0)", "decimal(2)",
    }  # fmt: skip


def test_a_stranger_reads_the_golden_table_of_columns():
    SEEN.clear()
    assert_golden(GOLDEN / "v1" / "columns")
    turned = {codec[10:] for codec in SEEN if str(codec).startswith("transpose+")}
    assert {"raw", "zstd", "pco", "delta(-2)+shuffle+zstd", "decimal(2)+shuffle+zstd"} <= turned


def test_a_stranger_reads_the_golden_table_of_quantised_tensors():
    SEEN.clear()
    rows = rows_of(GOLDEN / "v1" / "quantization" / "table")
    want = json.loads((GOLDEN / "v1" / "quantization" / "expected.json").read_text())
    assert sorted(rows) == sorted(want)
    steps = set()
    for name, entry in want.items():
        shape, dtype, attrs, found = tensor(rows[name])
        assert ([*shape], dtype) == (entry["shape"], entry["dtype"])
        words = [found[place] for place in product(*map(range, shape))]
        whole = bytes.fromhex(entry["bytes"])
        size = len(whole) // len(words)
        for i, word in enumerate(words):
            other = whole[i * size : (i + 1) * size]
            both_nan = (
                name.startswith(("float16", "bfloat16", "float8"))
                and size > 2
                and all(math.isnan(struct.unpack(REAL[size], one)[0]) for one in (word, other))
            )
            assert word == other or both_nan, (name, i)
        steps |= {row["codec"].partition("+")[0] for row in rows[name] if row["nnz"]}
        step = entry["codec"].partition("+")[0]
        given = attrs.get("params", {}).get("quantize")
        [(kind, bound)] = given.items() if isinstance(given, dict) else [(given, None)]
        known = {"error": f"error({bound!r})", "int8": "int8", "split": "split"}.get(
            kind, f"cast({kind})"
        )
        assert step == known or kind in (None, "relative")
    assert {
        "int8",
        "split",
        "error(0.01)",
        "cast(float16)",
        "cast(bfloat16)",
        "cast(float8_e4m3fn)",
    } <= steps
    assert any("nibbles" in codec for codec in SEEN)


LATER = {
    "zigzag+zstd", "delta(-1)+zigzag+shuffle+zstd", "delta(-2)+zigzag+bins+zstd", "lorenzo+zstd",
    "lorenzo+zigzag+shuffle+zstd", "lorenzo+zigzag+bins+zstd", "bins+zstd", "decimal(2)+delta(-1)+zigzag+bins+zstd",
    "transpose+raw", "transpose+delta(-2)+shuffle+zstd", "transpose+decimal(1)+lorenzo+zstd",
    "pack", "delta(-2)+zigzag+pack", "decimal(0)+delta(-1)+zigzag+pack", "lorenzo(float)+zigzag+pack",
}  # fmt: skip


@pytest.mark.parametrize("codec", sorted(CODECS | LATER))
@pytest.mark.parametrize("dtype", ["complex64", "uint16", "bool", "float64"])
def test_a_stranger_reads_dense_chunks_of_today(lake, codec, dtype):
    size = {"complex64": 8, "uint16": 2, "bool": 1, "float64": 8}[dtype]
    for shape, block in (((3, 40, 7), (2, 34, 3)), ((2, 2, 3, 4), (2, 1, 3, 4)), ((9,), (4,)), ((), ())):  # fmt: skip
        count = math.prod(shape)
        data = MADE["numbers"](len(shape), count)
        x = (data % 2 > 0) if dtype == "bool" else MADE["bits"](len(shape), count, dtype)
        lake.write("x", x.reshape(shape), layout="ftsf", block_shape=block, codec=codec, mode="overwrite")  # fmt: skip
        got_shape, got_dtype, _, found = tensor(rows_of(lake.uri)["x"])
        assert (got_shape, got_dtype) == (shape, dtype)
        got = b"".join(found[place] for place in product(*map(range, shape)))
        assert got == x.tobytes()
        assert len(got) == count * size


def test_the_golden_tables_have_every_form():
    SEEN.clear()
    for rows in rows_of(GOLDEN / "v1" / "sparse" / "table").values():
        tensor(rows)
    forms = {form[1:] for form in SEEN if form[0] == "p"}
    assert {form for form, _ in forms} == set(range(9))
    assert {how for _, how in forms} == {0, 1, 2}
    assert {"integers", "integers, zstd", "block as array", "block as offsets"} <= SEEN
    assert {(a, b) for a in ("csr", "csc") for b in ("named lines", "all lines")} <= SEEN
