"""The loaders of the benchmark: ours, and peers that read in this process, each with the settings that serve it best.

Peers that lend their samples to PyTorch's DataLoader are in `loader_torch_peers`. Where a peer lets one choose, it
decodes by simplejpeg with that package's defaults, as ours does; `decodes` says what the others do.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from loader_media import ARRAY, JPEG, KINDS, RAW, Source

BATCH = 64
CORES = os.cpu_count() or 1
Batch = tuple[Any, Any]
"""Values, an array or a list, and the numbers of the samples."""


class Loader:
    """One loader; a place is a folder, or a URL with options.

    Attributes
    ----------
    package, module : str
        Whose version is reported; what is imported before the clock starts.
    settings, decodes : str
        For the report.
    kinds : tuple of str
        The kinds of samples that it takes part in.
    shuffles : bool
        Whether it has an order that is shuffled.
    stored : str or None
        The loader whose store it reads; None has a store of its own.
    """

    package: ClassVar[str]
    module: ClassVar[str]
    settings: ClassVar[str]
    decodes: ClassVar[str] = "simplejpeg"
    kinds: ClassVar[tuple[str, ...]] = KINDS
    shuffles: ClassVar[bool] = True
    stored: ClassVar[str | None] = None

    def __init__(self, place: Path | str, source: Source) -> None:
        self.place, self.source = str(place), source

    def write(self) -> None:
        """Write all samples; the store is not there yet."""
        raise NotImplementedError

    def open(self, shuffle: bool) -> Any:
        """Return a handle for `epoch`."""
        raise NotImplementedError

    def epoch(self, handle: Any, number: int) -> Iterator[Batch]:
        """Yield the batches of an epoch."""
        raise NotImplementedError


def threaded(work: Callable[[Any], Any], items: Iterable[Any], ahead: int = 3) -> Iterator[Any]:
    """Yield ``work(item)`` in order, done by a thread for each core, a few of them ahead.

    Examples
    --------
    >>> list(threaded(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    waiting: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(CORES) as pool:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > CORES + ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def numbers_of(count: int, shuffle: bool, epoch: int) -> list[np.ndarray]:
    """Return the numbers of the samples of every batch."""
    order = np.random.default_rng(epoch).permutation(count) if shuffle else np.arange(count)
    return [order[start : start + BATCH] for start in range(0, count, BATCH)]


class Ours(Loader):
    """Datasets of this package."""

    package, module = "tensorlake-spark", "tensorlake_spark"
    settings = "defaults; shuffle=True"
    order: ClassVar[bool | str] = True
    options: ClassVar[dict[str, str] | None] = None

    def write(self) -> None:
        import tensorlake_spark as tl

        raw, kind = self.source.raw, self.source.kind
        image = tl.types.Tensor(kind, ARRAY) if raw else tl.types.Image("jpeg")
        schema = {"image": image, "label": "int32"}
        ds = tl.dataset(self.place, schema=schema, storage_options=self.options)
        if not raw:
            ds.extend({"image": self.source.images, "label": self.source.labels})
            return
        ds.extend(
            {"image": value, "label": label}
            for values, labels in self.source.chunks()
            for value, label in zip(values, labels.tolist(), strict=True)
        )

    def open(self, shuffle: bool) -> Any:
        import tensorlake_spark as tl

        ds = tl.dataset(self.place, storage_options=self.options, create=False)
        order = self.order if shuffle else False
        return ds.loader(BATCH, columns=["image", "label"], shuffle=order, seed=1)

    def epoch(self, handle: Any, number: int) -> Iterator[Batch]:
        handle.set_epoch(number)
        for batch in handle:
            yield batch["image"], batch["label"]


class OursGlobal(Ours):
    """The same in an order that is a permutation of all samples."""

    settings = 'shuffle="global"'
    order = "global"
    stored = "tensorlake"


class Memory(Loader):
    """No loader: the same bytes decoded from memory on all cores, whole batches to a thread."""

    package = module = "simplejpeg"
    settings = "no store: bytes in memory, a thread for each core, whole batches"
    kinds = JPEG

    def write(self) -> None:
        Path(self.place).mkdir()

    def open(self, shuffle: bool) -> Any:
        return self.source.images, shuffle

    def epoch(self, handle: Any, number: int) -> Iterator[Batch]:
        images, shuffle = handle
        decode = self.source.decode
        batches = numbers_of(len(images), shuffle, number)

        def work(numbers: np.ndarray) -> Batch:
            return [decode(images[n]) for n in numbers.tolist()], numbers

        return threaded(work, batches)


class MemoryStacked(Memory):
    """The same, decoded into one array for each batch, which is what ours delivers."""

    settings = "the same, straight into one array for each batch"
    stored = "memory"

    def epoch(self, handle: Any, number: int) -> Iterator[Batch]:
        import simplejpeg

        images, shuffle = handle
        shape = self.source.shape
        batches = numbers_of(len(images), shuffle, number)

        def work(numbers: np.ndarray) -> Batch:
            out = np.empty((len(numbers), *shape), np.uint8)
            for place, n in enumerate(numbers.tolist()):
                simplejpeg.decode_jpeg(images[n], buffer=out[place])
            return out, numbers

        return threaded(work, batches)


class FromFile(Loader):
    """No loader: files of 64 MB of arrays, read by `numpy.fromfile`, a batch at a time; blocks are shuffled."""

    package = module = "numpy"
    settings = (
        "no store: files of at most 64 MB in C order, numpy.fromfile of one batch after the other"
    )
    decodes = "-"
    kinds = RAW

    def write(self) -> None:
        Path(self.place).mkdir()
        step = max(1, (64 << 20) // self.source.sample_bytes // BATCH) * BATCH
        for number, (values, _) in enumerate(self.source.chunks(step)):
            values.tofile(f"{self.place}/{number:06}.bin")

    def open(self, shuffle: bool) -> Any:
        return sorted(Path(self.place).glob("*.bin")), shuffle

    def epoch(self, handle: Any, number: int) -> Iterator[Batch]:
        files, shuffle = handle
        each = files[0].stat().st_size // self.source.sample_bytes
        rng = np.random.default_rng(number)
        for k in rng.permutation(len(files)).tolist() if shuffle else range(len(files)):
            values = np.fromfile(files[k], self.source.kind).reshape(-1, *ARRAY)
            for first in range(0, len(values), BATCH):
                some = values[first : first + BATCH]
                start = k * each + first
                yield some, np.arange(start, start + len(some))


class FromFileBatches(FromFile):
    """The same files, a call for each batch: its memory is that of the batch before, and stays in the processor."""

    settings = "the same files, a call of numpy.fromfile for each batch; batches are shuffled"
    stored = "fromfile"

    def epoch(self, handle: Any, number: int) -> Iterator[Batch]:
        files, shuffle = handle
        each = (
            files[0].stat().st_size // self.source.sample_bytes
        )  # of all but the last a multiple of a batch
        starts = np.arange(0, self.source.count, BATCH)
        if shuffle:
            starts = np.random.default_rng(number).permutation(starts)
        for start in starts.tolist():
            size = min(BATCH, self.source.count - start) * int(np.prod(ARRAY))
            offset = start % each * self.source.sample_bytes
            found = np.fromfile(files[start // each], self.source.kind, size, offset=offset)
            values = found.reshape(-1, *ARRAY)
            yield values, np.arange(start, start + len(values))


class DeepLake(Loader):
    """Deep Lake 4: its own prefetching batches, in the order of the store: the only one that they have."""

    package = module = "deeplake"
    settings = 'Image(sample_compression="jpeg") or Array; Dataset.batches(64), not shuffled: it has no such option'
    decodes = "its own libjpeg"
    shuffles = False

    def write(self) -> None:
        import deeplake

        ds = deeplake.create(self.place)
        if self.source.raw:
            ds.add_column("image", deeplake.types.Array(self.source.kind, shape=list(ARRAY)))
        else:
            ds.add_column("image", deeplake.types.Image(sample_compression="jpeg"))
        ds.add_column("label", deeplake.types.Int32())
        for values, labels in self.source.chunks(1_024):
            ds.append({"image": values, "label": labels})
        ds.commit()

    def open(self, shuffle: bool) -> Any:
        import deeplake

        return deeplake.open(self.place)

    def epoch(self, handle: Any, number: int) -> Iterator[Batch]:
        for batch in handle.batches(BATCH):
            yield batch["image"], batch["label"]


class Lance(Loader):
    """Lance by `take` of random rows, or its scanner, decoded by threads of this process: its fastest way here."""

    package, module = "pylance", "lance"
    settings = (
        "format 2.2; take of 64 rows (shuffled) or the scanner, decoded by a thread for each core"
    )
    version = "2.2"

    def write(self) -> None:
        import lance

        source = self.source
        if source.raw:
            size = int(np.prod(ARRAY))
            kind: pa.DataType = pa.list_(pa.from_numpy_dtype(source.kind), size)
            image = pa.field("image", kind)
        else:
            image = pa.field("image", pa.binary(), metadata={"lance-encoding:compression": "none"})
        schema = pa.schema([image, pa.field("label", pa.int32())])

        def pieces() -> Iterator[pa.RecordBatch]:
            for values, labels in source.chunks():
                column = (
                    pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), size)
                    if source.raw
                    else pa.array(values, pa.binary())
                )
                yield pa.record_batch([column, pa.array(labels)], schema=schema)

        reader = pa.RecordBatchReader.from_batches(schema, pieces())
        lance.write_dataset(reader, self.place, schema, data_storage_version=self.version)

    def open(self, shuffle: bool) -> Any:
        import lance

        return lance.dataset(self.place), shuffle

    def epoch(self, handle: Any, number: int) -> Iterator[Batch]:
        dataset, shuffle = handle
        names = ["image", "label"]
        if shuffle:
            numbers = numbers_of(self.source.count, True, number)
            return threaded(lambda some: self._decoded(dataset.take(some, columns=names)), numbers)
        found = dataset.scanner(columns=names, batch_size=BATCH).to_batches()
        return threaded(self._decoded, found)

    def _decoded(self, table: pa.Table | pa.RecordBatch) -> Batch:
        column = table["image"]
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if self.source.raw:
            values = column.flatten().to_numpy().reshape(-1, *ARRAY)
        else:
            values = [
                self.source.decode(np.frombuffer(value.as_buffer(), np.uint8)) for value in column
            ]
        return values, table["label"].to_numpy()


class Lance20(Lance):
    """Lance with its first format of files, which is faster in scans of large values."""

    settings = "format 2.0, the same otherwise"
    version = "2.0"


OWN: dict[str, type[Loader]] = {
    "tensorlake": Ours,
    "tensorlake global": OursGlobal,
    "memory": Memory,
    "memory stacked": MemoryStacked,
    "fromfile": FromFile,
    "fromfile batches": FromFileBatches,
    "deeplake batches": DeepLake,
    "lance": Lance,
    "lance 2.0": Lance20,
}


def loaders() -> dict[str, type[Loader]]:
    """Return all loaders by name."""
    import loader_torch_peers

    return OWN | loader_torch_peers.PEERS


def chosen(text: str) -> Sequence[str]:
    """Return the loaders that an option names, with commas; ``all`` are all."""
    known = loaders()
    wanted = list(known) if text == "all" else text.split(",")
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ValueError(f"no loader {', '.join(unknown)}; there are {', '.join(known)}")
    return wanted
