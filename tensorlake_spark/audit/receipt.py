"""What a purge did, as a text that shows whether it was changed since, and by whom it was signed."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tensorlake_spark.errors import CorruptDataError, InvalidOptionError

_FORMAT = 4
"""Of receipts that are made; those of earlier formats are read, too."""

_SINCE: Mapping[int, Mapping[str, Any]] = {
    2: {"written": ()},
    3: {
        "digest_before": None,
        "digest_after": None,
        "bytes_replaced": 0,
        "bytes_written": 0,
        "bytes_hashed": 0,
    },
    4: {"samples": None},
}
"""What a format has that those before it have not, and what stands for it in a receipt of one of these."""


@dataclass(frozen=True, slots=True)
class PurgedFile:
    """A data file that held what was purged.

    Attributes
    ----------
    path : str
        Path in the table.
    nbytes : int
        Its size.
    sha256 : str
        Of its bytes, before it was deleted; empty in a dry run.
    rows : int
        Rows in it that held something of what was purged.
    due : str or None
        From when on a repeated purge deletes the file (UTC). None if it is deleted.
    """

    path: str
    nbytes: int
    sha256: str
    rows: int
    due: str | None = None


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A data file that a purge wrote, with the rows that stay of the files that it replaced.

    Attributes
    ----------
    path : str
        Path in the table.
    nbytes : int
        Its size.
    sha256 : str
        Of its bytes.
    """

    path: str
    nbytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class PurgeReceipt:
    """What a purge of a lake or of a dataset did. It holds no values of elements.

    Attributes
    ----------
    table : str
        Where the table is.
    tensor_id : str
        Which tensor; empty of a dataset.
    region : str or None
        Which part of it, None for all of it.
    at : str
        When it was done, in UTC.
    dry_run : bool
        Whether nothing was done.
    version_before, version_after : int
        Versions of the table before and after it.
    rewritten : tuple of str
        Data files of the newest version that held it. They were written anew without it, or left the table.
    written : tuple of WrittenFile
        What the same commit wrote in their place. Empty in a receipt of format 1, which does not list them.
    deleted, pending : tuple of PurgedFile
        Files that were deleted from the store, and files that the retention still keeps.
    uncertified : tuple of (str, str)
        Files that cannot be read or judged, each with the reason.
    staging : tuple of str
        Notes of ingestions that were removed.
    versions_lost : str
        Versions at which tensors in the deleted files can no longer be read: ``"0-3, 5"``.
    tags_lost : tuple of str
        Tags that name one of them.
    searched : mapping of str to int
        What the verification looked at: ``files``, ``bytes``, ``payloads`` (compared by digest with all
        payloads in Parquet files), ``windows`` (parts of them that are looked for in the bytes of every
        file; none of rows that hold other elements too), ``skipped`` (payloads too short to identify
        anything).
    found_elsewhere : tuple of str
        Files that still hold one of the deleted payloads, byte for byte, in rows of other tensors or
        other parts.
    verified : bool
        Whether nothing of it is left in any file of the table's folder. Other tables in the folder are not
        searched.
    reason : str
        Why it is not verified; empty if it is.
    digest_before, digest_after : str or None
        `TensorLake.digest` of the table before and after it, in hexadecimal. None in a dry run, in a receipt of an
        earlier format, and if a data file cannot be read.
    bytes_replaced, bytes_written : int
        Size of the files in `rewritten`, all of which were read, and of those in `written`.
    bytes_hashed : int
        Size of the files that were read for `digest_after`; the digests of all others were known.
    samples : str or None
        Of a dataset, the sids of the samples: ``"3, 7-9"``, empty if none was to be purged. None of a lake. Paths,
        versions and tags are those of the dataset then, and `searched` counts the tables inside it too.
    format : int
        Version of the receipt's format.
    """

    table: str
    tensor_id: str
    region: str | None
    at: str
    dry_run: bool
    version_before: int
    version_after: int
    rewritten: tuple[str, ...]
    written: tuple[WrittenFile, ...]
    deleted: tuple[PurgedFile, ...]
    pending: tuple[PurgedFile, ...]
    uncertified: tuple[tuple[str, str], ...]
    staging: tuple[str, ...]
    versions_lost: str
    tags_lost: tuple[str, ...]
    searched: Mapping[str, int]
    found_elsewhere: tuple[str, ...]
    verified: bool
    reason: str
    digest_before: str | None
    digest_after: str | None
    bytes_replaced: int
    bytes_written: int
    bytes_hashed: int
    samples: str | None = None
    format: int = _FORMAT

    @property
    def seal(self) -> str:
        """SHA-256 of the receipt in its canonical form, in hexadecimal."""
        return hashlib.sha256(_canonical(self._body())).hexdigest()

    def _body(self) -> dict[str, Any]:
        body = {"format": self.format, **asdict(self)}
        for since, names in _SINCE.items():
            if self.format < since:
                body = {name: value for name, value in body.items() if name not in names}
        return body

    def to_json(self, key: bytes | None = None) -> str:
        """Return the receipt as JSON, with its seal.

        Parameters
        ----------
        key : bytes, optional
            Signs it too, by HMAC-SHA256.

        Raises
        ------
        InvalidOptionError
            If the key is empty.
        """
        body = self._body()
        signed = {} if key is None else {"signature": _signature(body, key)}
        return json.dumps({"receipt": body, "seal": self.seal, **signed}, indent=2)

    def __str__(self) -> str:
        what = f"tensor {self.tensor_id!r}" + (f" [{self.region}]" if self.region else "")
        if self.samples is not None:
            what = f"samples {self.samples or 'none'}"
        lines = [
            f"{'dry run: ' if self.dry_run else ''}purge of {what} from {self.table}, {self.at}",
            f"versions {self.version_before} to {self.version_after}, {len(self.rewritten)} live files replaced"
            f" by {len(self.written)} ({sum(f.nbytes for f in self.written)} bytes)",
            *(
                [f"digest before {self.digest_before}", f"digest after {self.digest_after}"]
                if self.digest_before
                else []
            ),
            f"{len(self.deleted)} files deleted ({sum(f.nbytes for f in self.deleted)} bytes), {len(self.pending)} "
            "pending",
            *(f"pending until {file.due}: {file.path}" for file in self.pending),
            *(f"cannot be certified: {path}: {why}" for path, why in self.uncertified),
        ]
        if not (self.deleted or self.pending or self.uncertified):
            lines.append("no file holds anything of it")
        if self.versions_lost:
            lines.append(f"versions that can no longer be read: {self.versions_lost}")
        lines.append("verified" if self.verified else f"NOT verified: {self.reason}")
        return "\n".join(lines)


def verify_receipt(text: str, key: bytes | None = None) -> PurgeReceipt:
    """Return the receipt that a text is, if it is what `PurgeReceipt.to_json` wrote.

    Parameters
    ----------
    text : str
        The JSON.
    key : bytes, optional
        What it should be signed with. Without it only the seal is looked at, which shows a mistake, and
        not a forger.

    Raises
    ------
    CorruptDataError
        If it was changed, or is signed with another key, or not at all.
    InvalidOptionError
        If it is no receipt, or one of a newer format, or the key is empty.

    Examples
    --------
    >>> import tempfile, numpy as np, tensorlake_spark as tl
    >>> lake = tl.open(tempfile.mkdtemp())
    >>> ref = lake.write("x", np.arange(100))
    >>> text = lake.purge("x", now=True).to_json(key=b"secret")
    >>> tl.verify_receipt(text, key=b"secret").verified
    True
    """
    try:
        found = json.loads(text)
        body, seal = dict(found["receipt"]), str(found["seal"])
        fields = {**{k: v for names in _SINCE.values() for k, v in names.items()}, **body}
        if fields["format"] not in range(1, _FORMAT + 1):
            raise InvalidOptionError(
                f"the receipt has format {fields['format']!r}, and this version of tensorlake_spark reads "
                f"formats 1 to {_FORMAT}; use a newer version"
            )
        fields["written"] = tuple(WrittenFile(**file) for file in fields["written"])
        for name in ("deleted", "pending"):
            fields[name] = tuple(PurgedFile(**file) for file in fields[name])
        for name in ("rewritten", "staging", "tags_lost", "found_elsewhere"):
            fields[name] = tuple(fields[name])
        fields["uncertified"] = tuple((path, why) for path, why in fields["uncertified"])
        receipt = PurgeReceipt(**fields)
    except InvalidOptionError:
        raise
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise InvalidOptionError(
            f"the text is no receipt of a purge: {why}; give what receipt.to_json() returned, unchanged"
        ) from error
    if hashlib.sha256(_canonical(body)).hexdigest() != seal:
        raise CorruptDataError("the receipt was changed: its seal does not hold")
    signed = str(found.get("signature", "")).encode(errors="surrogatepass")  # JSON may have halves
    if key is not None and not hmac.compare_digest(_signature(body, key).encode(), signed):
        raise CorruptDataError("the receipt is not signed with this key, or was changed since")
    return receipt


def ranges_text(numbers: Iterable[int]) -> str:
    """Return whole numbers as ranges.

    Examples
    --------
    >>> ranges_text({3, 0, 1, 2, 5})
    '0-3, 5'
    """
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def _canonical(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode()


def _signature(body: Mapping[str, Any], key: bytes) -> str:
    if not key:
        raise InvalidOptionError(
            "the key is empty, so anybody could sign with it; give one, or none"
        )
    if not isinstance(key, (bytes, bytearray)):
        raise InvalidOptionError(
            f"the key is of type {type(key).__name__}; give bytes, as of a text with .encode()"
        )
    return hmac.new(key, _canonical(body), hashlib.sha256).hexdigest()
