"""How the values of a column become the indices of an axis: ``--axis NAME[=COLUMN][:RULE][@START]``.

No Spark here: a rule is what the user said, `settle` holds it against the labels that a tensor has.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError, did_you_mean
from tensorlake_spark.tensor.labels import Labels, Listed, Regular

UNITS = {
    "year": "Y", "month": "M", "week": "W", "day": "D", "hour": "h", "minute": "m", "second": "s",
    "millisecond": "ms", "microsecond": "us",
}  # fmt: skip
NAMES = ("int", "label", *UNITS)

_AXIS = re.compile(r"(?P<name>[^=:@]+)(=(?P<column>[^:@]+))?(:(?P<rule>[^:@]*))?(@(?P<start>.+))?")
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_TIME = re.compile(r"(\d*)\s*([a-z]+?)s?")
_START = re.compile(r"\d{4}(-\d\d(-\d\d([T ]\d\d(:\d\d(:\d\d(\.\d+)?)?)?)?)?)?")
_MONDAY = -3  # days from 1970-01-01, a Thursday, to the Monday before


@dataclass(frozen=True)
class Rule:
    """How values become indices.

    Attributes
    ----------
    kind : {"int", "label", "bins", "time"}
        An integer less `start`; the place in a list of labels; bins of numbers; bins of time.
    step : int or float
        Length of a bin, for time in units of `unit`.
    unit : str, or None
        A unit of `numpy.datetime64`.
    start : int, float, str, or None
        Where the first bin begins; None while nothing says so.
    align : int
        Where bins begin if `start` is None: at this number plus a multiple of `step`.
    is_labelled : bool
        Whether `start` is kept with the tensor; that of a format that counts from 1 is not.

    Examples
    --------
    >>> parse_axis("t=pickup:15 minutes")[2]
    Rule(kind='time', step=15, unit='m', start=None, align=0, is_labelled=True)
    """

    kind: str
    step: Any = 1
    unit: str | None = None
    start: Any = None
    align: int = 0
    is_labelled: bool = True

    @property
    def is_regular(self) -> bool:
        """Whether indices are computed from values, not looked up."""
        return self.kind != "label"

    @property
    def origin(self) -> Any:
        """Where the first bin begins, as a number: of time in units since 1970."""
        if self.kind == "time":
            return int(_time(self.start, self.unit).astype(np.int64))
        return self.start or 0

    def begin(self, least: Any) -> Rule:
        """Return the rule with its start, from the least value if nothing else says so."""
        if self.start is not None or self.kind == "int":
            return self
        if self.kind == "time":
            first = (least - self.align) // self.step * self.step + self.align
            return replace(self, start=str(_time(int(first), self.unit)))
        step = Decimal(repr(self.step))
        at = Decimal(int(self.places(least, 0))) * step
        return replace(self, start=int(at) if isinstance(self.step, int) else float(at))

    def places(self, value: Any, origin: Any = None) -> int:
        """Return the bin of a value as it was measured: see `spark.coordinates`."""
        origin = self.origin if origin is None else origin
        if self.kind == "bins":
            exact = float((float(value) - origin) / self.step)
            near = round(exact)
            return near if abs(exact - near) < 1e-9 else math.floor(exact)
        return int((value - origin) // self.step)

    def labels(self) -> Regular | None:
        """Return what is kept with the tensor, None where an index is the value itself."""
        if self.kind == "int":
            return Regular(self.start, 1) if self.start and self.is_labelled else None
        return Regular(self.start, self.step, self.unit)

    def __str__(self) -> str:
        if self.kind == "label":
            return "labels"
        bins = "integers" if self.kind == "int" else f"bins of {self.step}{self.unit or ''}"
        return bins + (f" from {self.start} on" if self.start is not None else "")


def _time(value: Any, unit: str | None) -> Any:
    """Return a time as NumPy has it, by its text or by the number of units since 1970."""
    return np.array(value, f"datetime64[{unit}]" if unit else "datetime64")


def parse_axis(text: str) -> tuple[str, str, Rule | None]:
    """Return name, column and rule of an axis; the rule is None where the column's type decides.

    Raises
    ------
    InvalidOptionError
        If the text is no axis, or the rule is unknown.

    Examples
    --------
    >>> parse_axis("carrier"), parse_axis("day=time_hour:day")[:2]
    (('carrier', 'carrier', None), ('day', 'time_hour'))
    """
    found = _AXIS.fullmatch(text.strip())
    if not found:
        raise InvalidOptionError(
            f"--axis {text!r} is not NAME[=COLUMN][:RULE][@START], such as day=pickup:day, lat:0.01 or "
            "user@1"
        )
    name, column, rule, start = (found[part] for part in ("name", "column", "rule", "start"))
    if not name.isidentifier() or name == "value":
        raise InvalidOptionError(
            f"--axis {text!r}: {name!r} cannot name an axis: letters, digits and _, and not 'value'; "
            "NAME=COLUMN takes a column of another name"
        )
    return name, (column or name).strip(), _rule(text, (rule or "").strip(), start)


def _rule(text: str, rule: str, start: str | None) -> Rule | None:
    made: Rule | None
    if _NUMBER.fullmatch(rule):
        step = int(rule) if rule.isdigit() else float(rule)
        if not 0 < step < math.inf:
            raise InvalidOptionError(f"--axis {text!r}: bins have a length above 0, not {rule}")
        made = Rule("bins", step)
    elif rule in ("int", "label"):
        made = Rule(rule)
    elif rule:
        made = _times(text, rule)
    else:
        made = None if start is None else Rule("int")
    if made is None or start is None:
        return made
    return replace(made, start=_start(text, made, start.strip()))


def _times(text: str, rule: str) -> Rule:
    found = _TIME.fullmatch(rule)
    if not found or found[2] not in UNITS or found[1] == "0":
        raise InvalidOptionError(
            f"--axis {text!r}: unknown rule {rule!r}{did_you_mean(rule, NAMES)}; known are a number (the "
            f"length of bins) and {', '.join(NAMES)}, those of time also with a count, as 15minute"
        )
    step, unit = int(found[1] or 1), UNITS[found[2]]
    if unit == "W":
        return Rule("time", 7 * step, "D", align=_MONDAY)
    return Rule("time", step, unit)


def _start(text: str, rule: Rule, start: str) -> Any:
    try:
        if rule.kind == "int":
            return int(start)
        if rule.kind == "bins":
            number = float(start)
            if math.isfinite(number):
                return int(start) if re.fullmatch(r"[+-]?\d+", start) else number
        if rule.kind == "time" and _START.fullmatch(start):
            return str(_time(start, None).astype(f"datetime64[{rule.unit}]"))
    except ValueError:
        pass
    wanted = {"int": "an integer", "bins": "a number", "time": "a time such as 2013-01-01T05:00"}
    raise InvalidOptionError(
        f"--axis {text!r}: "
        + (
            f"{start!r} is not {wanted[rule.kind]}"
            if rule.kind in wanted
            else "labels have no start"
        )
    )


def settle(axis: str, given: Rule | None, stored: Labels | None) -> Rule | None:
    """Return the rule by which an append goes on: as the tensor's labels say.

    Parameters
    ----------
    axis : str
        Its name, for messages.
    given : Rule, or None
        What the user says now.
    stored : Labels, or None
        What is kept with the tensor.

    Raises
    ------
    InvalidTensorError
        If they do not go together.

    Examples
    --------
    >>> str(settle("t", None, Regular("2013-01-01T05", 1, "h")))
    'bins of 1h from 2013-01-01T05 on'
    """
    if stored is None:
        base = Rule("int")
        fits = given is None or (given.kind == "int" and not (given.is_labelled and given.start))
    elif isinstance(stored, Listed):
        base = Rule("label")
        fits = given is None or given.kind == "label"
    else:
        base = _of_regular(stored)
        fits = given is None or (
            (given.kind == "time", given.step, given.unit)
            == (base.kind == "time", base.step, base.unit)
            and given.is_regular
            and given.start in (None, base.start)
        )
    if not fits:
        raise InvalidTensorError(
            f"axis {axis!r} of the tensor has {base}; {given} do not go with them: leave the rule out, or "
            "overwrite the tensor"
        )
    if given is not None and given.is_regular and stored is not None:
        return replace(given, start=base.start)
    return given or base


def _of_regular(stored: Regular) -> Rule:
    if stored.unit is not None:
        return Rule("time", stored.step, stored.unit, stored.start)
    whole = stored.step == 1 and float(stored.start).is_integer()
    return Rule("int" if whole else "bins", stored.step, None, stored.start)


def merged_labels(axis: str, stored: tuple[Any, ...], found: list[Any]) -> tuple[Any, ...]:
    """Return the labels of an axis: those that it has, then new ones in order.

    Raises
    ------
    InvalidTensorError
        If new labels are of another type.

    Examples
    --------
    >>> merged_labels("carrier", ("UA", "AA"), ["AA", "B6", "9E"])
    ('UA', 'AA', '9E', 'B6')
    """
    known = set(stored)
    new = sorted(label for label in found if label not in known)
    if stored and all(isinstance(label, int) for label in stored):
        new = [int(x) if isinstance(x, float) and x.is_integer() else x for x in new]
    wrong = [label for label in new if stored and type(label) is not type(stored[0])]
    if wrong:
        raise InvalidTensorError(
            f"axis {axis!r} has labels such as {stored[0]!r}; {wrong[0]!r} is none of that type: "
            "--column makes a column of another type, as --column 'zone=int(zone)'"
        )
    return (*stored, *new)
