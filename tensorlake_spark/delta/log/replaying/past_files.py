"""Which files many versions have: the log is read once for all of them, where opening each would read it each time."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

import pyarrow as pa

from tensorlake_spark.delta.log.actions import (
    COMMIT,
    LOG,
    adds_in,
    commit_name,
    json_actions,
    log_paths,
    whole_checkpoint,
)
from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.errors import FormatError
from tensorlake_spark.threads import io_threads

_FAR = 100  # with more commits to the next version, a checkpoint on the way is less to read
_AT_ONCE = 32  # commits that are in memory
_NUMBERED = re.compile(rf"{LOG}/(\d{{20}})\.")


@dataclass(frozen=True, slots=True)
class PastFiles:
    """The files of some versions.

    Attributes
    ----------
    paths : set of str
        Files that at least one of them has: as the log spells them, and without percent-encoding.
    gone : list of int
        Versions of which the log has nothing any more, nor of any before them.
    unread : list of int
        Versions that do not follow from a checkpoint or the first commit by commits that are all there, and can be
        read. Their files are not among the paths.
    damaged : set of int
        Those of them for which the log has files that cannot be read, or lacks commits though it has the first one:
        this is not how it is tidied up.
    """

    paths: set[str] = field(default_factory=set)
    gone: list[int] = field(default_factory=list)
    unread: list[int] = field(default_factory=list)
    damaged: set[int] = field(default_factory=set)


def past_files(storage: Storage, versions: Collection[int]) -> PastFiles:
    """Return the files of some versions of a table.

    The time is that of the commits from the first version to the last, less those that a checkpoint spares.
    """
    found: set[str] = set()
    out = PastFiles()
    with reaching(storage):
        paths = log_paths(storage)
        commits = {int(m[1]) for path in paths if (m := COMMIT.fullmatch(path))}
        checkpoints = [path for path in paths if ".checkpoint." in path]
        oldest = min((int(m[1]) for path in paths if (m := _NUMBERED.match(path))), default=0)
        here = -1  # before the first commit
        fresh: set[str] = set()  # files that are live here, without those that are found already
        for version in sorted({*versions}):
            if version < oldest:
                out.gone.append(version)
                continue
            try:
                start = here
                if version - here > _FAR or not _are_there(commits, here, version):
                    start, files = whole_checkpoint(checkpoints, version)
                if start > here:
                    fresh = {
                        said["path"]
                        for path in files
                        for said in adds_in(storage, path, ("add.path",))
                    }
                    here = start
                if not _are_there(commits, here, version):
                    out.unread.append(version)
                    if 0 in commits and version <= max(commits):
                        out.damaged.add(version)
                    continue
                _replay(storage, range(here + 1, version + 1), fresh)
            except (FileNotFoundError, FormatError, pa.ArrowInvalid) as error:
                out.unread.append(version)
                if not isinstance(error, FileNotFoundError):  # else it was tidied up meanwhile
                    out.damaged.add(version)
                here, fresh = -1, set()
                continue
            here = version
            found |= fresh
            fresh.clear()
    out.paths.update(found, map(unquote, found))
    return out


def _are_there(commits: set[int], here: int, version: int) -> bool:
    return all(number in commits for number in range(here + 1, version + 1))


def _replay(storage: Storage, versions: Sequence[int], live: set[str]) -> None:
    """Take some commits into the files that are live before them."""

    def load(version: int) -> bytes:
        return storage.read_whole(commit_name(version))

    for start in range(0, len(versions), _AT_ONCE):
        some = versions[start : start + _AT_ONCE]
        for version, text in zip(some, io_threads().map(load, some), strict=True):
            actions = json_actions(text, ("add", "remove"), f"{storage.uri}/{commit_name(version)}")
            said = [(kind, action["path"]) for kind, action in actions]
            # A file may leave and come back in one commit, with other deletions.
            live.difference_update(path for kind, path in said if kind == "remove")
            live.update(path for kind, path in said if kind == "add")
