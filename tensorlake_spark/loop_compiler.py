"""Loops that numba compiles, and the files that keep what it compiled. Only modules of loops import this.

numba trusts such a file: after one that a full disk or a crash damaged it raises, or runs what it finds, and the
process dies. Here a file ends with a digest, and says which types and which text of the loop its code is for: processes
that write at the same time may put one's code behind the other's types, or behind those of a newer version. What is not
whole is compiled again, and replaced.
"""

from __future__ import annotations

import hashlib
import logging
import pickle  # nosec B403 # what numba keeps is pickled; who may write there may change the code, too
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

from numba import njit

from tensorlake_spark.kernel_switch import installed

logger = logging.getLogger("tensorlake_spark")

Loop = TypeVar("Loop", bound=Callable[..., Any])

_caching: Any = import_module("numba.core.caching")  # half of it has types

_DIGEST = hashlib.sha256().digest_size


def _without_scipy() -> None:
    """Import numba's arrays without its look at SciPy's BLAS, a third of the time until a loop from the cache runs.

    No loop here needs it. numba looks again where code asks for it.
    """
    from numba.np import linalg

    look = linalg.ensure_blas
    linalg.ensure_blas = lambda: None
    try:
        import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = look


if installed() and find_spec("scipy") is not None:
    with suppress(ImportError, AttributeError):  # another numba may have it elsewhere
        _without_scipy()


def compiled_loop(loop: Loop, signatures: Sequence[Any] = (), fastmath: Any = False) -> Loop:
    """Have numba compile a loop when it is first called, and keep that on disk; without the interpreter lock.

    Parameters
    ----------
    loop : function
        What is compiled.
    signatures : sequence of numba's signatures, optional
        Compile the loop for these at once, and for no others.
    fastmath : bool or set of str, optional
        What may change in the sums of floats.

    Examples
    --------
    >>> @compiled_loop
    ... def count(values):
    ...     total = 0
    ...     for _ in values:
    ...         total += 1
    ...     return total
    >>> count((1, 2))
    2
    """
    compiled: Any = njit(nogil=True, error_model="numpy", fastmath=fastmath)(loop)
    out: Loop = compiled
    if compiled is loop:  # NUMBA_DISABLE_JIT
        return out
    try:
        compiled._cache = _Cache(loop)
    except Exception as error:  # no folder can be written, or another numba keeps it elsewhere
        _warn("has no folder that can be written", "", error)
    for signature in signatures:
        compiled.compile(signature)
    if signatures:
        compiled.disable_compile()
    return out


def _stamp_of(loop: Callable[..., Any]) -> str:
    """Return a digest of the modules whose text a loop is compiled from: its own, and those of loops that it calls.

    numba looks at the time and the size of the loop's own file. It would go on with code of an older version if only a
    loop in another file was changed, or if times are fixed, as in builds that can be repeated.
    """
    paths, waiting, seen = set(), [loop], {loop}
    while waiting:
        one = waiting.pop()
        paths.add(one.__code__.co_filename)
        called = (one.__globals__.get(name) for name in one.__code__.co_names)
        new = {getattr(other, "py_func", one) for other in called} - seen
        seen |= new
        waiting += new
    return hashlib.sha256("".join(sorted(map(_digest_of, paths))).encode()).hexdigest()


@cache
def _digest_of(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


class _File(_caching.IndexDataCacheFile):  # type: ignore[misc]
    """The files of one loop: an index of the types that it is compiled for, and the code for each."""

    def save(self, key: Any, data: Any) -> None:
        super().save(key, (key, self._source_stamp, data))

    def load(self, key: Any) -> Any:
        found = super().load(key)
        is_this = found is not None and found[:-1] == (key, self._source_stamp)
        return found[-1] if is_this else None

    def _dump(self, obj: Any) -> bytes:
        data: bytes = super()._dump(obj)
        return data + hashlib.sha256(data).digest()

    def _load_index(self) -> dict[Any, str]:
        try:
            with open(self._index_path, "rb") as file:
                if pickle.load(file) != self._version:  # nosec B301
                    return {}
                stamp, names = _whole(file.read())
        except FileNotFoundError:
            return {}
        except Exception as error:  # whatever bytes that are no pickle raise
            _warn("is damaged", self._cache_path, error)
            return {}
        return names if stamp == self._source_stamp else {}

    def _load_data(self, name: str) -> Any:
        with open(self._data_path(name), "rb") as file:
            return _whole(file.read())


def _whole(data: bytes) -> Any:
    kept, digest = data[:-_DIGEST], data[-_DIGEST:]
    if hashlib.sha256(kept).digest() != digest:
        raise ValueError(f"the SHA-256 of its {len(kept)} bytes is not what its end says")
    return pickle.loads(kept)  # nosec B301


class _Cache(_caching.FunctionCache):  # type: ignore[misc]
    """numba's cache of one loop; what cannot be loaded is compiled, what cannot be saved is not."""

    def __init__(self, loop: Callable[..., Any]) -> None:
        super().__init__(loop)
        del self._cache_file  # numba's own
        self._loop = loop

    @cached_property
    def _cache_file(self) -> _File:
        """The files, once all loops are there that this one calls."""
        name = f"{self._impl.filename_base}-checked"  # beside numba's own, which have no digest
        return _File(self._cache_path, name, _stamp_of(self._loop))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:
            _warn("is damaged", self._cache_path, error)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception as error:
            _warn("cannot be written", self._cache_path, error)


_warned: set[str] = set()


def _warn(what: str, where: str, error: Exception) -> None:
    """Say once a process that something is wrong with the cache."""
    if what not in _warned:
        _warned.add(what)
        logger.warning(
            "numba's cache %s%s, so loops are compiled again, which takes seconds: %s: %s; NUMBA_CACHE_DIR may name "
            "another folder",
            where and f"in {where} ",
            what,
            type(error).__name__,
            error,
        )
