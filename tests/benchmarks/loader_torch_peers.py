"""Peers that lend their samples to PyTorch's DataLoader: a process for each core, which stay between epochs.

Batches are stacked to tensors in the workers, so that they come through shared memory and are not pickled.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from loader_engines import BATCH, CORES, Batch, Lance, Loader
from loader_media import ARRAY, JPEG, Source

SHARD = 16 << 20
"""Bytes of a shard of the stores whose shards are shared out among the workers."""
BUFFER = 1_000
"""Samples of a shuffling buffer, where a peer has one."""
WORKERS = f"DataLoader with {CORES} processes"


def data_loader(dataset: Any, shuffle: bool | None = None, **options: Any) -> Any:
    """Return PyTorch's loader at the settings that were fastest here."""
    from torch.utils.data import DataLoader

    given: dict[str, Any] = {
        "batch_size": BATCH, "num_workers": CORES, "persistent_workers": True, "prefetch_factor": 4,
        "multiprocessing_context": "fork",
    }  # fmt: skip
    return DataLoader(dataset, shuffle=shuffle, **(given | options))


def pair(value: np.ndarray, label: int) -> tuple[Any, int]:
    """Return a sample as PyTorch's own collate stacks it straight into shared memory."""
    import torch

    return torch.from_numpy(value if value.flags.writeable else value.copy()), label


class TorchPeer(Loader):
    """What all have in common: a handle is an iterable of (values, labels)."""

    def epoch(self, handle: Any, number: int) -> Iterator[Batch]:
        yield from handle


class Decoded:
    """A map-style dataset of PyTorch: the samples of something that has them by number, decoded."""

    def __init__(self, inner: Any, source: Source) -> None:
        self.inner, self.source = inner, source

    def __len__(self) -> int:
        return self.source.count

    def __getitem__(self, number: int) -> tuple[Any, int]:
        return pair(*self.inner(number))


class Files(TorchPeer):
    """A file a sample, as most training scripts have it."""

    package = module = "torch"
    settings = f"a JPEG or .npy file a sample; {WORKERS}"

    def write(self) -> None:
        for values, labels in self.source.chunks():
            for value, label in zip(values, labels.tolist(), strict=True):
                path = Path(self.place) / f"{label // 1_000:04}" / f"{label:08}"
                path.parent.mkdir(parents=True, exist_ok=True)
                if self.source.raw:
                    np.save(path, value)
                else:
                    path.with_suffix(".jpg").write_bytes(value)

    def open(self, shuffle: bool) -> Any:
        return data_loader(Decoded(self._read, self.source), shuffle)

    def _read(self, label: int) -> tuple[np.ndarray, int]:
        path = f"{self.place}/{label // 1_000:04}/{label:08}"
        if self.source.raw:
            return np.load(f"{path}.npy"), label
        return self.source.decode(Path(f"{path}.jpg").read_bytes()), label


class DeepLakeTorch(TorchPeer):
    """Deep Lake 4 in a shuffled order: its way to PyTorch."""

    package = module = "deeplake"
    settings = f"the same store, Dataset.pytorch() in a {WORKERS}, spawned"
    decodes = "its own libjpeg"
    stored = "deeplake batches"

    def open(self, shuffle: bool) -> Any:
        import deeplake

        handle = deeplake.open(self.place)
        return data_loader(handle.pytorch(_from_deeplake), shuffle, multiprocessing_context="spawn")


def _from_deeplake(sample: Any) -> tuple[Any, int]:
    return pair(np.asarray(sample["image"]), int(np.asarray(sample["label"])))


class LanceDb(TorchPeer):
    """LanceDB's StreamingDataset: its threads fetch and decode, in one process."""

    package = module = "lancedb"
    settings = (
        "StreamingDataset of the table of lance, 4 splits, reads of 64 rows; its own threads decode"
    )

    def write(self) -> None:
        Path(self.place).mkdir()
        Lance(f"{self.place}/samples.lance", self.source).write()

    def open(self, shuffle: bool) -> Any:
        import lancedb
        from lancedb.streaming import StreamingDataset

        table = lancedb.connect(self.place).open_table("samples")
        return lambda epoch: StreamingDataset(
            table, num_splits=4, shuffle=shuffle, epoch=epoch, columns=["image", "label"],
            transform=self._rows,
        )  # fmt: skip

    def _rows(self, batch: pa.RecordBatch) -> list[Any]:
        labels = batch["label"].to_pylist()
        column = batch["image"]
        if self.source.raw:
            values = column.flatten().to_numpy().reshape(-1, *ARRAY)
        else:
            values = [
                self.source.decode(np.frombuffer(value.as_buffer(), np.uint8)) for value in column
            ]
        return list(zip(values, labels, strict=True))

    def epoch(self, handle: Any, number: int) -> Iterator[Batch]:
        values, labels = [], []
        for value, label in handle(number):
            values.append(value)
            labels.append(label)
            if len(values) == BATCH:
                yield values, labels
                values, labels = [], []
        if values:
            yield values, labels


class Mds(TorchPeer):
    """MDS of MosaicML: py1e shuffles, as it does by default."""

    package, module = "mosaicml-streaming", "streaming"
    settings = (
        f"StreamingDataset, bytes or ndarray, shards of 64 MiB, its default shuffle; {WORKERS}"
    )

    def write(self) -> None:
        import streaming

        shape = ",".join(map(str, ARRAY))
        image = f"ndarray:{self.source.kind}:{shape}" if self.source.raw else "bytes"
        columns = {"image": image, "label": "int32"}
        with streaming.MDSWriter(out=self.place, columns=columns, progress_bar=False) as writer:
            for values, labels in self.source.chunks():
                for value, label in zip(values, labels, strict=True):
                    writer.write({"image": value, "label": label})

    def open(self, shuffle: bool) -> Any:
        import streaming
        from streaming.base.util import clean_stale_shared_memory

        clean_stale_shared_memory()
        raw, decode = self.source.raw, self.source.decode

        class Samples(streaming.StreamingDataset):  # type: ignore[misc]
            def __getitem__(self, number: int) -> Any:
                found = super().__getitem__(number)
                return pair(found["image"] if raw else decode(found["image"]), int(found["label"]))

        made = Samples(local=self.place, shuffle=shuffle, batch_size=BATCH, shuffle_seed=1)
        return data_loader(made)


class LitData(TorchPeer):
    """LitData: chunks of 64 MB, bytes or arrays; its transform decodes in the workers."""

    package = module = "litdata"
    settings = f"BinaryWriter, chunks of 64 MB, StreamingDataset(transform=) in its StreamingDataLoader, {CORES} processes"

    def write(self) -> None:
        from litdata.streaming.writer import BinaryWriter

        writer = BinaryWriter(self.place, chunk_bytes="64MB")
        for values, labels in self.source.chunks():
            for value, label in zip(values, labels.tolist(), strict=True):
                writer[label] = {"image": value, "label": label}
        writer.done()
        writer.merge()

    def open(self, shuffle: bool) -> Any:
        import litdata

        made = litdata.StreamingDataset(
            self.place, shuffle=shuffle, seed=1, transform=self._decoded
        )
        return litdata.StreamingDataLoader(
            made, batch_size=BATCH, num_workers=CORES, persistent_workers=True, prefetch_factor=4
        )

    def _decoded(self, sample: Any) -> tuple[Any, int]:
        value = sample["image"]
        return pair(value if self.source.raw else self.source.decode(value), sample["label"])


class WebDataset(TorchPeer):
    """WebDataset: shards for the workers to share, and a buffer of samples that shuffles."""

    package = module = "webdataset"
    settings = f"shards of 16 MiB, shuffle({BUFFER}) of undecoded samples; its WebLoader, {CORES} processes"

    def write(self) -> None:
        import webdataset

        Path(self.place).mkdir()
        pattern = f"{self.place}/%06d.tar"
        count = 10**9
        with webdataset.ShardWriter(
            pattern, maxcount=count, maxsize=SHARD, encoder=False, verbose=0
        ) as writer:
            for values, labels in self.source.chunks():
                for value, label in zip(values, labels.tolist(), strict=True):
                    data = value.tobytes() if self.source.raw else value
                    writer.write(
                        {"__key__": f"{label:08}", "jpg": data, "cls": str(label).encode()}
                    )

    def open(self, shuffle: bool) -> Any:
        import webdataset

        shards = sorted(map(str, Path(self.place).glob("*.tar")))
        made = webdataset.WebDataset(shards, shardshuffle=len(shards) if shuffle else False,
                                     empty_check=False)  # fmt: skip
        if shuffle:
            made = made.shuffle(BUFFER)
        made = made.map(self._decoded).batched(BATCH, collation_fn=_stacked)
        return webdataset.WebLoader(made, batch_size=None, num_workers=min(CORES, len(shards)),
                                    persistent_workers=True, prefetch_factor=4)  # fmt: skip

    def _decoded(self, sample: Any) -> tuple[Any, int]:
        return pair(self.source.decode(sample["jpg"]), int(sample["cls"]))


def _stacked(samples: list[Any]) -> Any:
    from torch.utils.data import default_collate

    return default_collate(samples)


class HuggingFace(TorchPeer):
    """Parquet streamed by Hugging Face's `datasets`; bytes, as its own decoder is Pillow, which is slower."""

    package = module = "datasets"
    settings = (
        f"Parquet, row groups of 256, streamed as Arrow, shuffle(buffer_size={BUFFER}); {WORKERS}"
    )
    kinds = JPEG

    def __init__(self, place: Path | str, source: Source) -> None:
        super().__init__(place, source)
        os.environ["HF_HUB_OFFLINE"] = "1"  # read when it is imported

    def write(self) -> None:
        Path(self.place).mkdir()
        images, labels = self.source.images, self.source.labels
        step = max(256, -(-len(images) // (4 * CORES)))
        for start in range(0, len(images), step):
            part = slice(start, start + step)
            table = pa.table({"image": pa.array(images[part], pa.binary()), "label": labels[part]})
            pq.write_table(
                table, f"{self.place}/{start:08}.parquet", row_group_size=256,
                use_dictionary=False, compression="none",
            )  # fmt: skip

    def open(self, shuffle: bool) -> Any:
        import datasets

        files = sorted(map(str, Path(self.place).glob("*.parquet")))
        found = datasets.load_dataset(
            "parquet", data_files=files, streaming=True, split="train",
            cache_dir=f"{self.place}-cache",
        )  # fmt: skip
        if shuffle:
            found = found.shuffle(seed=1, buffer_size=BUFFER, max_buffer_input_shards=1)
        return data_loader(found, collate_fn=self._decoded, num_workers=min(CORES, len(files)))

    def _decoded(self, samples: list[Any]) -> Any:
        pairs = [pair(self.source.decode(s["image"]), s["label"]) for s in samples]
        return _stacked(pairs)


class HuggingFacePillow(HuggingFace):
    """The same, decoded by what `datasets` has for it."""

    settings = f"the same store, decoded as its Image() does; {WORKERS}"
    decodes = "Pillow"
    stored = "huggingface"

    def _decoded(self, samples: list[Any]) -> Any:
        from PIL import Image

        def one(data: bytes) -> np.ndarray:
            return np.array(Image.open(io.BytesIO(data)).convert("RGB"))

        return _stacked([pair(one(s["image"]), s["label"]) for s in samples])


PEERS: dict[str, type[Loader]] = {
    "deeplake": DeepLakeTorch,
    "lancedb": LanceDb,
    "mds": Mds,
    "litdata": LitData,
    "webdataset": WebDataset,
    "files": Files,
    "huggingface": HuggingFace,
    "huggingface pillow": HuggingFacePillow,
}
