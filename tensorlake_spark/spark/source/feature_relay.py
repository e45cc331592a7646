"""How tasks of one job tell each other where their rows of features begin: each hands on how many there are so far.

Spark lets a data source run one job, in which no task knows how many rows the partitions before its own have. So the
task of a partition leaves a small file for the next one. A task whose turn has not come waits for a while. Then it
leaves its rows to the task before it, and ends.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from tensorlake_spark.columns.elsewhere.rows_aside import AsideFile, Span, cut_spans, spans_in
from tensorlake_spark.columns.feature_set import BLOCK
from tensorlake_spark.delta.log.data_file import PART
from tensorlake_spark.delta.store.storage import Storage, reaching

_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5  # seconds between two looks


@dataclass(frozen=True)
class Baton:
    """What is known of the rows up to the end of a partition.

    Attributes
    ----------
    rows : int
        How many there are.
    rest : tuple of Span
        Those after the last whole block.
    sampled : AsideFile or None
        The first file with rows, by which codecs are chosen.
    """

    rows: int = 0
    rest: tuple[Span, ...] = ()
    sampled: AsideFile | None = None

    @property
    def whole(self) -> int:
        """How many rows are in whole blocks."""
        return self.rows - self.rows % BLOCK[0]

    def spans_with(self, file: AsideFile) -> list[Span]:
        """Return where the rows are from the end of the last whole block to the end of a further file."""
        return [*self.rest, *spans_in([file], 0, sum(file.rows))]

    def after(self, file: AsideFile) -> Baton:
        """Return what is known when the rows of one more file are."""
        count = sum(file.rows)
        rows = self.rows + count
        spans = self.spans_with(file)
        rest = cut_spans(spans, rows - rows % BLOCK[0] - self.whole, rows - self.whole)
        return Baton(rows, tuple(rest), self.sampled or (file if count else None))


class Relay:
    """The files by which the tasks of one write know of each other.

    Parameters
    ----------
    storage : Storage
        The table.
    mark : str
        What the names of all files of the write begin with.
    """

    def __init__(self, storage: Storage, mark: str) -> None:
        self.storage, self.mark = storage, mark

    def hand_on(self, partition: int, baton: Baton, file: AsideFile) -> None:
        """Tell the next task what is known."""
        told = {"baton": _baton_dict(baton), "file": file.to_json()}
        self._put(partition, "next", json.dumps(told))

    def leave(self, file: AsideFile) -> None:
        """Leave the rows of a partition to the task of one before it."""
        self._put(file.partition, "left", file.to_json())

    def before(self, partition: int) -> Baton | None:
        """Return what is known of the rows before a partition; None where its turn has not come."""
        if not partition:
            return Baton()
        text = self._find(partition - 1, "next")
        return None if text is None else _baton_of(json.loads(text)["baton"])

    def left(self, partition: int) -> AsideFile | None:
        """Return the rows of a partition that were left, None if they were not."""
        text = self._find(partition, "left")
        return None if text is None else AsideFile.from_json(text)

    def file_of(self, partition: int) -> AsideFile | None:
        """Return the rows that an earlier try of a task has put aside and told others of."""
        text = self._find(partition, "next")
        return (
            self.left(partition) if text is None else AsideFile.from_json(json.loads(text)["file"])
        )

    def awaited(self, partition: int, patience: float) -> Baton | None:
        """Return `before`, after some seconds at the most, and at once if the task before has left its rows."""
        end, pause = time.monotonic() + patience, _FIRST_PAUSE
        while True:
            found = self.before(partition)
            if found is not None or time.monotonic() >= end or self.left(partition - 1) is not None:
                return found
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _name(self, partition: int, kind: str) -> str:
        return f"{PART}{self.mark}{partition}.{kind}"

    def _put(self, partition: int, kind: str, text: str) -> None:
        with reaching(self.storage):
            self.storage.put_whole(self._name(partition, kind), text.encode())

    def _find(self, partition: int, kind: str) -> str | None:
        with reaching(self.storage):
            found = self.storage.find_whole(self._name(partition, kind))
        return None if found is None else found.decode()


def _baton_dict(baton: Baton) -> dict[str, object]:
    sampled = None if baton.sampled is None else baton.sampled.to_json()
    return {"rows": baton.rows, "rest": [asdict(s) for s in baton.rest], "sampled": sampled}


def _baton_of(told: dict[str, object]) -> Baton:
    rest, sampled = told["rest"], told["sampled"]
    assert isinstance(rest, Sequence)  # nosec B101 # for mypy
    return Baton(
        int(str(told["rows"])),
        tuple(Span(**span) for span in rest),
        None if sampled is None else AsideFile.from_json(str(sampled)),
    )
