"""What a piece of work on a table has written, and who does such pieces: this process, or a cluster."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tensorlake_spark.delta.log.data_file import DataFile
from tensorlake_spark.rows.row import Totals


@dataclass(frozen=True, slots=True)
class Output:
    """Data files that no commit names yet.

    Attributes
    ----------
    files : tuple of DataFile
        The files.
    totals : Totals
        What was encoded into them; zeros where rows were moved as they are.
    """

    files: tuple[DataFile, ...]
    totals: Totals = field(default_factory=Totals)

    def to_json(self) -> str:
        """Return it as text, as it goes from an executor to the driver."""
        files = [asdict(file) for file in self.files]
        return json.dumps({"files": files, "totals": asdict(self.totals)})

    @classmethod
    def from_json(cls, text: str) -> Output:
        """Return what `to_json` has put into text."""
        found = json.loads(text)
        files = tuple(DataFile(**file) for file in found["files"])
        return cls(files, Totals(**found["totals"]))


Task = Any
Run = Callable[[Callable[[Task], Output], Sequence[Task]], Iterator[tuple[Task, Output]]]
"""Does tasks, and yields each with its output: `run_here`, or Spark's counterpart."""


def run_here(
    work: Callable[[Task], Output], tasks: Sequence[Task]
) -> Iterator[tuple[Task, Output]]:
    """Do tasks in this process, one after the other, each when it is asked for."""
    for task in tasks:
        yield task, work(task)
