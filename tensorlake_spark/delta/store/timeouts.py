"""How long the clients of a store wait, and how often they try again, by deltalake's names of the options.

deltalake takes them in lower case only, panics at back-offs that make no sense, and waits for minutes where
nothing is said; pyarrow knows other names. So they are parsed once, and told to both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow.fs as pafs

from tensorlake_spark.errors import InvalidOptionError

_UNITS = {
    "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60,
    "h": 3600, "hr": 3600, "hour": 3600, "d": 86400, "day": 86400,
}  # fmt: skip
_PART = r"(\d+(?:\.\d+)?)\s*([a-z]+)\s*"

# What deltalake calls each field of `Timeouts`; the name that it is told, then the others that it takes.
NAMES = {
    "timeout": ("timeout", "aws_timeout"),
    "connect_timeout": ("connect_timeout", "aws_connect_timeout"),
    "max_retries": ("max_retries",),
    "retry_timeout": ("retry_timeout",),
    "init_backoff": ("backoff_config.init_backoff", "backoff.init_backoff", "init_backoff"),
    "max_backoff": ("backoff_config.max_backoff", "backoff.max_backoff", "max_backoff"),
    "base": ("backoff_config.base", "backoff.base", "base"),
}
_FIELD = {alias: name for name, aliases in NAMES.items() for alias in aliases}


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Bounds of every request to a store; times are in seconds.

    Attributes
    ----------
    timeout : float
        For one request: to the log all of it, to data files while no byte comes, in whole seconds.
    connect_timeout : float
        Until a connection is made.
    max_retries : int
        How often a request is repeated that may succeed then: time-outs, broken connections, 500, 503.
    retry_timeout : float
        Nothing is repeated later than this after the first try.
    init_backoff, max_backoff, base : float
        The waits between requests to the log. Those to data files are drawn from 1, 2, 4, ... to 20 seconds.
    """

    timeout: float = 30
    connect_timeout: float = 5
    max_retries: int = 10
    retry_timeout: float = 120
    init_backoff: float = 0.1
    max_backoff: float = 15
    base: float = 2

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Timeouts:
        """Return what the options say, whatever the case of their names.

        Raises
        ------
        InvalidOptionError
            If one is no time, no number, or out of its range.
        """
        found: dict[str, Any] = {}
        for option, value in options.items():
            name = _FIELD.get(option.lower())
            if name == "max_retries":
                found[name] = _count(option, value)
            elif name == "base":
                found[name] = _factor(option, value)
            elif name is not None:
                found[name] = _seconds(option, value)
        out = cls(**found)
        if out.max_backoff < out.init_backoff:
            raise InvalidOptionError(
                f"backoff_config.max_backoff={out.max_backoff:g}s is less than "
                f"backoff_config.init_backoff={out.init_backoff:g}s"
            )
        return out

    def backoff(self, count: int) -> float:
        """Return the longest wait before the repetition of this number, in seconds; the first has number 1.

        Examples
        --------
        >>> [Timeouts().backoff(count) for count in (1, 2, 3, 2000)]
        [0.1, 0.2, 0.4, 15]
        """
        return min(self.max_backoff, self.init_backoff * self.base ** min(count - 1, 100))

    def told(self, options: Mapping[str, str]) -> dict[str, str]:
        """Return the options as deltalake understands them, with these bounds in them."""
        out = {name: value for name, value in options.items() if name.lower() not in _FIELD}
        for name, (told, *_) in NAMES.items():
            value = getattr(self, name)
            out[told] = f"{value:g}" if name in ("max_retries", "base") else f"{value * 1e9:.0f}ns"
        return out

    def arrow(self) -> dict[str, Any]:
        """Return what `pyarrow.fs.S3FileSystem` takes for it."""
        # It knows no end of its retries: there are as many as fit if all of them time out.
        retries = min(self.max_retries, math.ceil(self.retry_timeout / self.timeout))
        return {
            "request_timeout": max(1.0, self.timeout),
            "connect_timeout": self.connect_timeout,
            "retry_strategy": pafs.AwsStandardS3RetryStrategy(max_attempts=retries + 1),
        }


def _seconds(option: str, value: str) -> float:
    text = value.strip().lower()
    parts = [(float(n), u if u in _UNITS else u[:-1]) for n, u in re.findall(_PART, text)]
    known = re.fullmatch(f"(?:{_PART})+", text) and all(unit in _UNITS for _, unit in parts)
    total = sum(number * _UNITS[unit] for number, unit in parts) if known else 0.0
    if not 1e-3 <= total <= 86400:
        raise InvalidOptionError(
            f"{option}={value!r} is no time from 1ms to 1day; write a number with its unit, as 500ms, 30s or 2m"
        )
    return total


def _count(option: str, value: str) -> int:
    if not re.fullmatch(r"[0-9]{1,4}", value.strip()):
        raise InvalidOptionError(
            f"{option}={value!r} is not a number of retries; write 0, 1, ... 9999"
        )
    return int(value)


def _factor(option: str, value: str) -> float:
    try:
        factor = float(value)
    except ValueError:
        factor = 0.0
    if not 1 < factor <= 100:
        raise InvalidOptionError(
            f"{option}={value!r} is no factor above 1, up to 100; write a number such as 2 or 1.5"
        )
    return factor
