"""The stores of the benchmark of samples: ours and its peers, each with the settings that serve it best.

Where two settings of a peer are best at different things, both are here, and a criterion takes the better of them.
What a peer has no way to do is None in its class, and a dash in the table.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from harness import load_packages
from sample_media import Media, names

Piece = pa.Array | list[bytes]
"""What a scan hands out: a binary array, or bytes."""


class Store:
    """One store of samples; the methods work on its folder, or on a URL with options.

    Attributes
    ----------
    package, module : str
        Whose version is reported; what is imported before the clock starts.
    settings : str
        For the report.
    table : bool
        Whether it keeps a table: samples can be changed, and versions are kept.
    one, labels, update : callable or None
        None where the store has no such thing.
    """

    package: ClassVar[str]
    module: ClassVar[str]
    settings: ClassVar[str]
    table: ClassVar[bool] = False
    one: Callable[[Any, int], bytes] | None = None
    labels: Callable[[Any], np.ndarray] | None = None
    update: Callable[[Any, np.ndarray, int], None] | None = None

    def __init__(self, place: Path | str, options: dict[str, str] | None = None) -> None:
        self.place, self.options = str(place), options

    def write(self, media: Media) -> None:
        """Write all samples; the store is not there yet."""
        raise NotImplementedError

    def open(self) -> Any:
        """Return a handle for the other methods."""
        raise NotImplementedError

    def scan(self, handle: Any) -> Iterator[Piece]:
        """Return the images of all samples, undecoded, in order."""
        raise NotImplementedError


class Ours(Store):
    """Datasets of this package."""

    package, module = "tensorlake-spark", "tensorlake_spark"
    settings = "defaults"
    table = True
    apart = False

    def write(self, media: Media) -> None:
        import tensorlake_spark as tl

        image = tl.types.Image("jpeg", apart=self.apart)
        schema = {"image": image, "label": tl.types.ClassLabel(names())}
        ds = tl.dataset(self.place, schema=schema, storage_options=self.options)
        ds.extend({"image": media.images, "label": media.labels})

    def open(self) -> Any:
        import tensorlake_spark as tl

        return tl.dataset(self.place, storage_options=self.options, create=False)

    def one(self, handle: Any, number: int) -> bytes:
        return handle["image"].encoded(number)

    def scan(self, handle: Any) -> Iterator[Piece]:
        for batch in handle["image"].batches():
            yield batch.field("data")

    def labels(self, handle: Any) -> np.ndarray:
        return handle["label"][:]

    def update(self, handle: Any, sids: np.ndarray, value: int) -> None:
        handle.update(sids, {"label": np.full(len(sids), value, np.int32)})


class OursApart(Ours):
    """The same with the images in a table of their own."""

    settings = 'Image("jpeg", apart=True)'
    apart = True


class DeepLake(Store):
    """Deep Lake 4: the schema before the samples, one append and one commit, as its page of best practices says."""

    package = module = "deeplake"
    settings = 'Image(sample_compression="jpeg"), Int32; one append, get_bytes'
    table = True

    def _creds(self) -> dict[str, str] | None:
        if self.options is None:
            return None
        given = {"AWS_ACCESS_KEY_ID": "aws_access_key_id", "AWS_SECRET_ACCESS_KEY": "aws_secret_access_key",
                 "AWS_ENDPOINT_URL": "endpoint_url", "AWS_REGION": "aws_region"}  # fmt: skip
        return {theirs: self.options[ours] for ours, theirs in given.items()}

    def write(self, media: Media) -> None:
        import deeplake

        ds = deeplake.create(self.place, creds=self._creds())
        # Files that have the column's format are stored as they are.
        ds.add_column("image", deeplake.types.Image(sample_compression="jpeg"))
        ds.add_column("label", deeplake.types.Int32())
        ds.append({"image": media.images, "label": media.labels})
        ds.commit()

    def open(self) -> Any:
        import deeplake

        return deeplake.open(self.place, creds=self._creds())

    def one(self, handle: Any, number: int) -> bytes:
        return handle["image"].get_bytes(number)

    def scan(self, handle: Any) -> Iterator[Piece]:
        for start in range(0, len(handle), 1024):
            yield handle["image"].get_bytes(slice(start, min(start + 1024, len(handle))))

    def labels(self, handle: Any) -> np.ndarray:
        return handle["label"][:]

    def update(self, handle: Any, sids: np.ndarray, value: int) -> None:
        column = handle["label"]
        for sid in sids.tolist():  # one number or a slice is all that it takes
            column[sid] = value
        handle.commit()


class Lance(Store):
    """Lance, the newest stable format, without a codec, as JPEG does not shrink: the fastest for one sample."""

    package, module = "pylance", "lance"
    settings = "format 2.2, no compression, take; scans in batches of 256; updates rewrite one column of a fragment"
    table = True
    version = "2.2"

    def write(self, media: Media) -> None:
        import lance

        plain = {"lance-encoding:compression": "none"}
        schema = pa.schema(
            [
                pa.field("sid", pa.int64()),
                pa.field("image", pa.binary(), metadata=plain),
                pa.field("label", pa.int32()),
            ]
        )
        columns = [np.arange(len(media.images)), pa.array(media.images, pa.binary()), media.labels]
        lance.write_dataset(
            pa.table(columns, schema=schema),
            self.place,
            data_storage_version=self.version,
            storage_options=self.options,
        )

    def open(self) -> Any:
        import lance

        return lance.dataset(self.place, storage_options=self.options)

    def one(self, handle: Any, number: int) -> bytes:
        return handle.take([number], columns=["image"])["image"][0].as_py()

    def scan(self, handle: Any) -> Iterator[Piece]:
        for batch in handle.scanner(columns=["image"], batch_size=256).to_batches():
            yield batch.column(0)

    def labels(self, handle: Any) -> np.ndarray:
        return handle.to_table(columns=["label"])["label"].to_numpy()

    def update(self, handle: Any, sids: np.ndarray, value: int) -> None:
        import lance

        # merge_insert and update move whole rows, images too; this is its way to write one column anew.
        new = pa.table({"sid": sids, "label": np.full(len(sids), value, np.int32)})
        fragments, fields = [], set()
        for fragment in handle.get_fragments():
            made, changed = fragment.update_columns(new, left_on="sid", right_on="sid")
            fragments.append(made)
            fields.update(changed)
        act = lance.LanceOperation.Update(
            updated_fragments=fragments, fields_modified=sorted(fields)
        )
        lance.LanceDataset.commit(handle, act, read_version=handle.version)


class Lance20(Lance):
    """Lance with its first format of files: much the fastest of them in scans of large values."""

    settings = "format 2.0, the same otherwise"
    version = "2.0"


class Mds(Store):
    """MDS of MosaicML: the default size of shards; bytes, as its own encoding of JPEG decodes; no hashes."""

    package, module = "mosaicml-streaming", "streaming"
    settings = "bytes and int32, shards of 64 MiB, no compression, LocalDataset"

    def write(self, media: Media) -> None:
        import streaming

        columns = {"image": "bytes", "label": "int32"}
        with streaming.MDSWriter(out=self.place, columns=columns, progress_bar=False) as writer:
            for image, label in zip(media.images, media.labels, strict=True):
                writer.write({"image": image, "label": label})

    def open(self) -> Any:
        import streaming

        return streaming.LocalDataset(self.place)

    def one(self, handle: Any, number: int) -> bytes:
        return handle[number]["image"]

    def scan(self, handle: Any) -> Iterator[Piece]:
        for start in range(0, len(handle), 256):
            yield [handle[k]["image"] for k in range(start, min(start + 256, len(handle)))]


class WebDataset(Store):
    """WebDataset: tar files of 1 GB at most, as its guide says, read one after the other; there is no index."""

    package = module = "webdataset"
    settings = "ShardWriter, shards of 1 GB, no encoder; neither decoded nor shuffled"

    def write(self, media: Media) -> None:
        import webdataset

        Path(self.place).mkdir()
        pattern = f"{self.place}/%06d.tar"
        with webdataset.ShardWriter(
            pattern, maxcount=10**9, maxsize=1e9, encoder=False, verbose=0
        ) as writer:
            for k, (image, label) in enumerate(
                zip(media.images, media.labels.tolist(), strict=True)
            ):
                writer.write({"__key__": f"{k:08}", "jpg": image, "cls": str(label).encode()})

    def open(self) -> Any:
        import webdataset

        shards = sorted(map(str, Path(self.place).glob("*.tar")))
        return webdataset.WebDataset(shards, shardshuffle=False, empty_check=False)

    def scan(self, handle: Any) -> Iterator[Piece]:
        for sample in handle:
            yield [sample["jpg"]]


class HuggingFace(Store):
    """Parquet by Hugging Face's `datasets`, streamed back as Arrow.

    It writes images PLAIN and uncompressed. Row groups of 256 samples scan fastest (64, 256, 1,000 and its own
    100 MB were tried), and finding equal content between versions costs time that nobody asks for here.
    """

    package = module = "datasets"
    settings = "Image(), to_parquet(batch_size=256, use_content_defined_chunking=False); streamed in Arrow batches"

    def __init__(self, place: Path | str, options: dict[str, str] | None = None) -> None:
        super().__init__(place, options)
        os.environ["HF_HUB_OFFLINE"] = "1"  # read when it is imported
        self.file = f"{self.place}/images.parquet"

    def write(self, media: Media) -> None:
        import datasets

        datasets.disable_progress_bars()
        Path(self.place).mkdir()
        features = datasets.Features(
            {"image": datasets.Image(), "label": datasets.ClassLabel(names=names())}
        )
        parts = [
            pa.array(media.images, pa.binary()),
            pa.nulls(len(media.images), pa.string()),
        ]
        image = pa.StructArray.from_arrays(parts, ["bytes", "path"])
        table = pa.table({"image": image, "label": pa.array(media.labels, pa.int64())})
        made = datasets.Dataset(table.cast(features.arrow_schema))
        made.to_parquet(self.file, batch_size=256, use_content_defined_chunking=False)

    def open(self) -> Any:
        import datasets

        found = datasets.load_dataset(
            "parquet", data_files=self.file, streaming=True, split="train", columns=["image"],
            cache_dir=f"{self.place}/cache",
        )  # fmt: skip
        return found.with_format("arrow")

    def scan(self, handle: Any) -> Iterator[Piece]:
        for table in handle.iter(batch_size=256):
            for chunk in table["image"].chunks:
                yield chunk.field("bytes")


class Parquet(HuggingFace):
    """The same file by pyarrow alone, mapped into memory: what any reader of such a file can do at best."""

    package, module = "pyarrow", "datasets"
    settings = (
        "the file of huggingface, ParquetFile(memory_map=True), one row group after the other"
    )

    def open(self) -> Any:
        return pq.ParquetFile(self.file, memory_map=True)

    def one(self, handle: Any, number: int) -> bytes:
        group, inside = divmod(number, 256)
        found = handle.read_row_group(group, columns=["image.bytes"], use_threads=False)["image"]
        return found.chunk(0).field("bytes")[inside].as_py()

    def scan(self, handle: Any) -> Iterator[Piece]:
        for group in range(handle.num_row_groups):
            table = handle.read_row_group(group, columns=["image.bytes"], use_threads=False)
            for chunk in table["image"].chunks:
                yield chunk.field("bytes")

    def labels(self, handle: Any) -> np.ndarray:
        # Its own column read: without the map, so that the bytes are counted.
        return pq.ParquetFile(self.file).read(columns=["label"])["label"].to_numpy()


class HuggingFaceArrow(HuggingFace):
    """The copy in Arrow that `datasets` makes of the Parquet and maps into memory: its own way to one sample.

    Making the copy is part of writing, and both count as its size.
    """

    settings = "the Parquet, then Dataset.from_parquet: a second copy in Arrow, mapped into memory"

    def write(self, media: Media) -> None:
        super().write(media)
        self.open()

    def open(self) -> Any:
        import datasets

        datasets.disable_progress_bars()
        found = datasets.Dataset.from_parquet(self.file, cache_dir=f"{self.place}/cache")
        return found.with_format("arrow")

    def one(self, handle: Any, number: int) -> bytes:
        return handle[number]["image"].chunk(0).field("bytes")[0].as_py()

    def scan(self, handle: Any) -> Iterator[Piece]:
        for table in handle.select_columns(["image"]).iter(batch_size=256):
            for chunk in table["image"].chunks:
                yield chunk.field("bytes")

    def labels(self, handle: Any) -> np.ndarray:
        return handle.data.column("label").to_numpy()


STORES: dict[str, type[Store]] = {
    "tensorlake": Ours,
    "tensorlake apart": OursApart,
    "deeplake": DeepLake,
    "lance": Lance,
    "lance 2.0": Lance20,
    "mds": Mds,
    "webdataset": WebDataset,
    "huggingface": HuggingFace,
    "huggingface arrow": HuggingFaceArrow,
    "parquet": Parquet,
}


def touch(piece: Piece) -> tuple[int, int]:
    """Return how many samples a piece of a scan has and their bytes, and read a byte of every page of them.

    Mapped files and descriptors are not read before somebody looks; here somebody does, for every store.

    Examples
    --------
    >>> touch([b"ab", b"c"]), touch(pa.array([b"ab", b"c"])), touch(pa.array([b"ab", b"c" * 20], pa.binary_view()))
    ((2, 3), (2, 3), (2, 22))
    """
    if isinstance(piece, list):
        return len(piece), sum(map(len, piece))
    buffers = piece.buffers()
    if pa.types.is_binary_view(piece.type):
        # Length, first bytes, number of the buffer, place in it; those up to 12 bytes are in the view itself.
        views = np.frombuffer(buffers[1], np.int32).reshape(-1, 4)[piece.offset :][: len(piece)]
        long = views[views[:, 0] > 12]
        for number in np.unique(long[:, 2]).tolist():
            here = long[long[:, 2] == number]
            first, last = int(here[:, 3].min()), int((here[:, 3] + here[:, 0]).max())
            np.frombuffer(buffers[2 + number], np.uint8)[first:last:4096].sum()
        return len(piece), int(views[:, 0].sum())
    wide = np.int64 if pa.types.is_large_binary(piece.type) else np.int32
    ends = np.frombuffer(buffers[1], wide)[piece.offset : piece.offset + len(piece) + 1]
    np.frombuffer(buffers[2], np.uint8)[int(ends[0]) : int(ends[-1]) : 4096].sum()
    return len(piece), int(ends[-1] - ends[0])


def changed_bytes(before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]) -> int:
    """Return the bytes of the files that are new or were written again; a file is its size and its time.

    Examples
    --------
    >>> changed_bytes({"a": (5, 1), "b": (7, 1)}, {"a": (5, 1), "b": (8, 2), "c": (2, 2)})
    10
    """
    return sum(found[0] for name, found in after.items() if before.get(name) != found)


def files_of(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the size and the time of every file below a folder."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            about = path.stat()
            found[str(path)] = (about.st_size, about.st_mtime_ns)
    return found


def chosen(text: str) -> Sequence[str]:
    """Return the stores that an option names, with commas; ``all`` are all."""
    wanted = list(STORES) if text == "all" else text.split(",")
    unknown = [name for name in wanted if name not in STORES]
    if unknown:
        raise ValueError(f"no store {', '.join(unknown)}; there are {', '.join(STORES)}")
    return wanted


def rehearse(name: str, media: Media) -> None:
    """Write a few samples elsewhere and read them, so that every module is imported before a clock starts."""
    load_packages(STORES[name].module)
    with tempfile.TemporaryDirectory() as folder:
        store = STORES[name](f"{folder}/few")
        store.write(Media(media.images[:9], media.labels[:9]))
        handle = store.open()
        for _ in store.scan(handle):
            pass
        for act, given in ((store.one, [3]), (store.labels, [])):
            if act is not None:
                act(handle, *given)
