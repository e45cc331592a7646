"""How well loaders shuffle a table that is sorted by label: ours, MDS's py1e, WebDataset's buffer, a true shuffle.

``python tests/benchmarks/shuffle_quality.py`` prints the table of ``docs/shuffling.md``; it takes about ten seconds. The
orders of the others are made here from their documentation: this compares orders, not programs. Bytes are counted with
samples of 16 KB, as JPEG of 250 x 250 have.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from tensorlake_spark.loader.order.block_shuffle import BlockShuffle
from tensorlake_spark.loader.order.permutation import Permutation
from tensorlake_spark.loader.order.shuffle_quality import ShuffleQuality, quality_of

SAMPLES, LABELS, BATCH = 1_000_000, 1000, 256
SAMPLE_BYTES = 16 << 10
SHARD = 4096  # samples of 64 MiB, the size that MDS writes; WebDataset's are often larger
MIB = (1 << 20) // SAMPLE_BYTES  # samples of a MiB


def even(count: int, size: int) -> np.ndarray:
    """Where blocks or shards of one size begin, and the count."""
    return np.append(np.arange(0, count, size), count)


def mds_py1e(count: int, shard: int, block: int, seed: int) -> np.ndarray:
    """Shards in random order, then each sample put anywhere in a range of `block` places around its shard."""
    chance = np.random.default_rng(seed)
    starts = even(count, shard)
    order = chance.permutation(len(starts) - 1)
    shuffled = np.concatenate(
        [chance.permutation(np.arange(starts[k], starts[k + 1])) for k in order]
    )
    reach = max(0, block - shard) / 2
    return shuffled[np.argsort(np.arange(count) + chance.uniform(-reach, reach, count))]


def webdataset(count: int, shard: int, buffer: int, seed: int) -> np.ndarray:
    """Shards in random order, then a buffer from which a sample is drawn whenever the next one comes in."""
    chance = np.random.default_rng(seed)
    starts = even(count, shard)
    stream = np.concatenate(
        [np.arange(starts[k], starts[k + 1]) for k in chance.permutation(len(starts) - 1)]
    )
    held = stream[:buffer].tolist()
    slots = chance.integers(0, len(held), count)
    out = []
    for sample, slot in zip(stream[buffer:].tolist(), slots.tolist()):
        out.append(held[slot])
        held[slot] = sample
    return np.array(out + chance.permutation(held).tolist())


def ours(count: int, block: int, buffer: int, splits: int, seed: int) -> np.ndarray:
    """``shuffle="block"``, as the loader delivers it."""
    return BlockShuffle(even(count, block), seed, buffer, splits).at(0, count)


@dataclass(frozen=True)
class Row:
    """One line of the table: what was measured, and what the order costs who reads it.

    `held` is how many samples the order mixes at a time, `places` how many shards or blocks a batch comes from.
    """

    name: str
    held: int
    places: float
    quality: ShuffleQuality


def measured(name: str, held: int, unit: int, order: np.ndarray) -> Row:
    """Measure an order of samples of which `unit` lie together."""
    labels = np.arange(len(order)) * LABELS // len(order)
    batches = (order[: len(order) // BATCH * BATCH] // unit).reshape(-1, BATCH)
    places = 1 + np.count_nonzero(np.diff(np.sort(batches, axis=1), axis=1), axis=1)
    return Row(name, held, float(places.mean()), quality_of(order, labels, BATCH))


def rows(count: int = SAMPLES, seed: int = 1) -> list[Row]:
    """Make all orders, and measure them."""
    makers: list[tuple[str, int, int, Callable[[], np.ndarray]]] = [
        ("as it lies", 0, SHARD, lambda: np.arange(count)),
        ("WebDataset, buffer 1,000", 1000, SHARD, lambda: webdataset(count, SHARD, 1000, seed)),
        (
            "WebDataset, buffer 16,384",
            16_384,
            SHARD,
            lambda: webdataset(count, SHARD, 16_384, seed),
        ),
        ("MDS py1e, block 16,384", 16_384, SHARD, lambda: mds_py1e(count, SHARD, 16_384, seed)),
        (
            "MDS py1e, block 262,144 (default)",
            1 << 18,
            SHARD,
            lambda: mds_py1e(count, SHARD, 1 << 18, seed),
        ),
    ]
    for block, buffer in [(2, 128), (2, 512), (2, 2048), (8, 128), (8, 1024)]:
        name = f"ours, blocks of {block} MiB, buffer {buffer} MiB"
        makers.append(
            (
                name,
                buffer * MIB,
                block * MIB,
                lambda b=block, n=buffer: ours(count, b * MIB, n * MIB, 16, seed),
            )  # type: ignore[misc]
        )
    makers.append(
        ('ours, "global"', count, 1, lambda: Permutation(count, seed).at(np.arange(count)))
    )
    makers.append(
        ("a true shuffle", count, 1, lambda: np.random.default_rng(seed).permutation(count))
    )
    return [measured(name, held, unit, make()) for name, held, unit, make in makers]


def table(found: list[Row]) -> str:
    """Write the table in Markdown."""
    head = (
        "| | samples mixed at a time | mean displacement | mean run of a label | labels in a batch "
        "| of a true shuffle | shards or blocks in a batch |"
    )
    lines = [head, "|---|---|---|---|---|---|---|"]
    for row in found:
        q = row.quality
        places = "" if row.held >= SAMPLES else f"{row.places:.0f}"
        lines.append(
            f"| {row.name} | {row.held:,} | {q.displacement:.3f} | {q.run_length:.2f} | {q.labels_in_a_batch:.0f} "
            f"| {q.of_true_shuffle:.2f} | {places} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    found = rows()
    print(json.dumps([asdict(row) for row in found], indent=1) if given.json else table(found))


if __name__ == "__main__":
    main()
