"""The pieces in which an ingestion of arrays is written, each once: bands of files, or whole tensors."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensorlake_spark.spark.source.commit_message import TensorCommitMessage, Written

Corner = tuple[int, ...]


@dataclass(frozen=True)
class Bands:
    """The bands of slabs that make up a tensor, as pieces.

    Attributes
    ----------
    hi : mapping of tuple to tuple
        The upper corner of every band that has elements, by its lower one.
    part : mapping of tuple to int
        Of which source it is, by its lower corner.
    """

    hi: Mapping[Corner, Corner]
    part: Mapping[Corner, int]

    def of(self, written: Sequence[Written]) -> list[Corner] | None:
        """Return the bands that make up what a task wrote, None if it is not made of whole ones.

        Slabs that follow each other on axis 0 were joined.
        """
        out = []
        for box in (box for one in written for box in one.boxes if not box.is_empty):
            lo = box.lo
            while lo[0] < box.hi[0]:
                hi = self.hi.get(lo)
                if hi is None or hi[1:] != box.hi[1:] or hi[0] > box.hi[0]:
                    return None
                out.append(lo)
                lo = (hi[0], *lo[1:])
        return out


@dataclass(frozen=True)
class Whole:
    """Tensors, one for every source, as pieces.

    Attributes
    ----------
    part : mapping of str to int
        Of which source a tensor is, by its id.
    """

    part: Mapping[str, int]

    def of(self, written: Sequence[Written]) -> list[str] | None:
        """Return the tensors that a task wrote, None if one of them is not of this job."""
        ids = [one.spec.id for one in written]
        return ids if self.part.keys() >= set(ids) else None


def choose(
    found: Mapping[str, TensorCommitMessage], pieces: Bands | Whole
) -> tuple[tuple[str, ...], frozenset[Any], int]:
    """Return receipts that have nothing in common, their pieces, and the first place that they leave free.

    Two copies of a task may have left one each; a run that went on beside another may have counted its rows
    from the same place.
    """
    chosen: list[str] = []
    done: set[Hashable] = set()
    spans: list[tuple[int, int]] = []
    for name, message in found.items():
        keys = pieces.of(message.written)
        here = [span for one in message.written for span in one.spans if span[0] < span[1]]
        if keys is None or not keys or done.intersection(keys) or len(set(keys)) < len(keys):
            continue
        if any(a < stop and start < b for a, b in here for start, stop in spans):
            continue
        chosen.append(name)
        done.update(keys)
        spans += here
    return tuple(chosen), frozenset(done), max((stop for _, stop in spans), default=0)
