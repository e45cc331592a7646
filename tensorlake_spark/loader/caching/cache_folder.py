"""The folder of a cache: its mark, its locks, and how many bytes are in it, shared by all processes that use it.

A lock is one of the system's (``flock``), so that a process that is killed leaves none behind.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tensorlake_spark.errors import InvalidOptionError, storage_error

MARK = "tensorlake-cache.txt"
"""Lies in every folder of a cache."""

_MARK_TEXT = "A cache of tensorlake_spark. It can be deleted when nothing uses it.\n"
_PARTS = {
    "locks": re.compile("size|[0-9a-f]{3}"),
    "new": re.compile("[0-9a-f]{24}"),
    "ranges": re.compile("[0-9a-f]{2}"),
}
"""The folders in a cache, and the names in each."""

_LOCKS = 1024
_SHARE = 0.9  # of what may be kept; so much is left when something has to go


class CacheFolder:
    """A folder of a cache.

    Parameters
    ----------
    path : path
        Is made where it is not there.
    most_bytes : int
        How much may be in it. If there is more, what was not used for longest is deleted.

    Raises
    ------
    InvalidOptionError
        If the folder holds other things, or others may change what is in it.
    StorageError
        If it cannot be made or written.
    """

    def __init__(self, path: str | os.PathLike[str], most_bytes: int) -> None:
        self.path = Path(path)
        self.most_bytes = most_bytes
        self._sizing = threading.Lock()
        try:
            self.claim()
            with self.locked("size"):
                now = sum(size for _, size, _ in self._scanned())
                if now > most_bytes:  # it was larger before
                    now = self._make_room(0)
                self._set_size(now)
        except OSError as error:
            raise storage_error(
                f"cache={str(self.path)!r} cannot be used: {error.strerror or error}; name a folder on a local disk "
                "that this user may write, or leave cache out",
                error,
            ) from error

    def claim(self) -> None:
        """Make what is not there of the folder.

        Raises
        ------
        InvalidOptionError
            If it holds other things, or others may change what is in it.
        OSError
            If it cannot be made or written.
        """
        self.path.mkdir(0o700, parents=True, exist_ok=True)
        self._check_owner(self.path)
        mark = self.path / MARK
        if not mark.exists():
            there = [name for name in os.listdir(self.path) if not name.startswith(".")]
            # Another process may have been here just now.
            if there and not mark.exists() and not self._is_left_over(there):
                raise InvalidOptionError(
                    f"cache={str(self.path)!r} is a folder with {there[0]!r:.80} in it, and no cache; name a folder "
                    "that is empty or does not exist"
                )
            mark.write_text(_MARK_TEXT)
        for name in _PARTS:
            (self.path / name).mkdir(0o700, exist_ok=True)
            self._check_owner(self.path / name)
        probe = self.path / "new" / f"{os.urandom(12).hex()}"
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT, 0o600))
        probe.unlink(missing_ok=True)

    def _is_left_over(self, there: list[str]) -> bool:
        """Whether what is in a folder without a mark is of a cache: it was deleted while somebody used it."""
        return all(
            name in _PARTS
            and (self.path / name).is_dir()
            and all(_PARTS[name].fullmatch(one) for one in os.listdir(self.path / name))
            for name in there
        )

    def _check_owner(self, folder: Path) -> None:
        """Raise InvalidOptionError for a folder that others may write: its checksums say only what they wrote.

        The administrator may change everything anyway, and a group is often that of one user.
        """
        facts, user = folder.stat(), os.geteuid()
        if facts.st_uid not in (user, 0):
            raise InvalidOptionError(
                f"cache={str(self.path)!r}: the folder {str(folder)!r} belongs to user {facts.st_uid}, and this "
                f"process is of user {user}; name a folder of your own, for its owner may change what is read"
            )
        if facts.st_mode & 0o002:
            raise InvalidOptionError(
                f"cache={str(self.path)!r}: everybody may write the folder {str(folder)!r}, whose mode is "
                f"{facts.st_mode & 0o777:o}, and change what is read; take that from them (chmod o-w), or name a new "
                "folder in it"
            )

    def file(self, name: str) -> str:
        """Return the path of a range."""
        return f"{self.path}/ranges/{name[:2]}/{name}"

    # ------------------------------------------------------------------ locks

    @contextlib.contextmanager
    def locked(self, name: str, most_seconds: float = 10.0) -> Iterator[bool]:
        """Hold a lock. Yields whether it is held: after some time it is no longer waited for.

        Parameters
        ----------
        name : str
            ``size``, or the name of a range.
        most_seconds : float
            How long it is waited for.

        Raises
        ------
        OSError
            If the file system has no locks, or the folder is gone.
        """
        end = time.monotonic() + most_seconds
        with contextlib.ExitStack() as stack:
            if name == "size":
                # Many threads want it at once: they wait for each other here. Whoever waits for the system's lock only
                # looks at it now and then.
                if not self._sizing.acquire(timeout=most_seconds):
                    yield False
                    return
                stack.callback(self._sizing.release)
            else:
                name = f"{int(name[:8], 16) % _LOCKS:03x}"
            file = os.open(self.path / "locks" / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            stack.callback(os.close, file)
            yield _lock(file, end - time.monotonic())

    # ------------------------------------------------------------------ sizes

    def begin(self, size: int) -> tuple[int, str] | None:
        """Make room for a range, and a file for it that has its size already.

        Returns
        -------
        tuple of int and str, or None
            The file, open and locked, and its path. None if others hold the folder for too long.
        """
        with self.locked("size") as is_held:
            if not is_held:
                return None
            now = self._size()
            if now is None or now + size > self.most_bytes:
                now = self._make_room(size)
            self._set_size(now + size)
            path = f"{self.path}/new/{os.urandom(12).hex()}"
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # somebody writes it
                os.truncate(file, size)
            except OSError:
                os.close(file)
                os.unlink(path)  # its bytes count until the folder is looked through
                raise
        return file, path

    def _make_room(self, size: int) -> int:
        """Delete what was not used for longest; return the bytes that are left."""
        found = sorted(self._scanned())
        now = sum(size for _, size, _ in found)
        aim = min(self.most_bytes - size, int(self.most_bytes * _SHARE))
        for _, part, path in found:
            if now <= aim:
                break
            with contextlib.suppress(OSError):
                os.unlink(path)
                now -= part
        return now

    def _scanned(self) -> Iterator[tuple[int, int, str]]:
        """Yield last use, bytes and path of what is in the folder; files that a killed process began are deleted."""
        with os.scandir(self.path / "new") as entries:
            for entry in entries:
                if not _is_stale(entry.path):
                    with contextlib.suppress(OSError):
                        yield entry.stat().st_mtime_ns, entry.stat().st_size, entry.path
        with os.scandir(self.path / "ranges") as folders:
            for folder in folders:
                with contextlib.suppress(OSError), os.scandir(folder) as entries:
                    for entry in entries:
                        with contextlib.suppress(OSError):
                            facts = entry.stat(follow_symlinks=False)
                            used = max(facts.st_atime_ns, facts.st_mtime_ns)
                            yield used, facts.st_size, entry.path

    def _size(self) -> int | None:
        try:
            text = (self.path / "locks" / "size").read_bytes()
        except OSError:
            return None
        return int(text) if text.isdigit() else None

    def _set_size(self, size: int) -> None:
        (self.path / "locks" / "size").write_bytes(b"%d" % size)


def _lock(file: int, most_seconds: float) -> bool:
    wait, end = 0.0005, time.monotonic() + most_seconds
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > end:
                return False
        time.sleep(wait)
        wait = min(2 * wait, 0.02)


def _is_stale(path: str) -> bool:
    """Whether nobody writes this file any more; then it is deleted."""
    with contextlib.suppress(OSError):
        file = os.open(path, os.O_RDWR)
        try:
            if not _lock(file, 0):
                return False
            os.unlink(path)
        finally:
            os.close(file)
    return True
