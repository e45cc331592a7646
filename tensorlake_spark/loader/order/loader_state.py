"""Where a loader is: a few integers, from which any number of ranks goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from tensorlake_spark.errors import FormatError, InvalidOptionError
from tensorlake_spark.loader.order.epoch_order import MOST_SPLITS, SHUFFLES, Shuffle
from tensorlake_spark.loader.order.sliding_shuffle import MOST_BUFFER

STATE_FORMAT = 1

_LEAST = {"splits": 1, "buffer": 1, "batch": 1}
_MOST = {"splits": MOST_SPLITS, "buffer": MOST_BUFFER}


@dataclass(frozen=True)
class LoaderState:
    """A place in the sequence of an epoch, and all that the sequence depends on.

    A state is the same on all ranks: the state of any one is enough for all. Another number of ranks, of workers or
    another batch goes on at the same sample, because `EpochOrder` cuts batches from a sequence that depends on none of
    them. What the sequence does depend on is kept here; `seed`, `splits` and `buffer` of a loader are taken from its
    state.

    Attributes
    ----------
    epoch, samples : int
        The epoch, from 0, and how many of its samples were delivered, by all ranks together.
    seed, splits, buffer : int
        Of the order; see `EpochOrder`. `buffer` is in samples.
    batch : int
        Samples in a batch of all ranks together. For information: it may be another one when the loader goes on.
    shuffle : None, "global" or "block"
    version : int
        Of the dataset; the same version is read on.
    source, selection : str
        Digests, of up to 64 characters: where the dataset lies, and which samples were selected, by what weights.

    Raises
    ------
    InvalidOptionError
        A field has a wrong type, or is out of range.

    Examples
    --------
    >>> state = LoaderState(2, 640, seed=7, splits=16, buffer=4096, batch=64, shuffle="block", version=3)
    >>> LoaderState.from_dict(state.to_dict()) == state, state.after(64).samples
    (True, 704)
    """

    epoch: int = 0
    samples: int = 0
    seed: int = 0
    splits: int = 1
    buffer: int = 1
    batch: int = 1
    shuffle: Shuffle = None
    version: int = 0
    source: str = ""
    selection: str = ""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "shuffle":
                if value not in SHUFFLES:
                    raise InvalidOptionError(
                        f"shuffle={value!r} of a state is not one of None, 'global' and 'block'"
                    )
            elif field.name in ("source", "selection"):
                if not isinstance(value, str) or len(value) > 64:
                    raise InvalidOptionError(
                        f"{field.name} of a state is a text of up to 64 characters"
                    )
            elif isinstance(value, bool) or not isinstance(value, int):
                raise InvalidOptionError(f"{field.name}={value!r} of a state is not an integer")
            elif field.name != "seed" and value < _LEAST.get(field.name, 0):
                raise InvalidOptionError(f"{field.name}={value} of a state is too small")
            elif value > _MOST.get(field.name, value):
                raise InvalidOptionError(
                    f"{field.name}={value} of a state is more than {_MOST[field.name]}"
                )

    def after(self, samples: int) -> LoaderState:
        """Return the state when so many more samples of this epoch were delivered."""
        return replace(self, samples=self.samples + samples)

    def next_epoch(self) -> LoaderState:
        """Return the state at the beginning of the epoch after this one."""
        return replace(self, epoch=self.epoch + 1, samples=0)

    def to_dict(self) -> dict[str, int | str | None]:
        """Return integers and short texts, which any format of checkpoints keeps."""
        return {"format": STATE_FORMAT, **asdict(self)}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> LoaderState:
        """Return the state that `to_dict` gave.

        Raises
        ------
        FormatError
            It is no state of a loader, or one of a newer package.
        InvalidOptionError
            A value is out of range.
        """
        if not isinstance(state, Mapping) or "format" not in state:
            raise FormatError(
                "this is not the state of a loader: it comes from state_dict() and has 'format' in it"
            )
        if type(state["format"]) is not int or state["format"] != STATE_FORMAT:
            raise FormatError(
                f"the state has format {state['format']!r}, and this package reads {STATE_FORMAT}: "
                "update the package, or begin the epoch anew"
            )
        known = {field.name for field in fields(cls)}
        given = {name: value for name, value in state.items() if name != "format"}
        if missing := sorted(known - given.keys()):
            raise FormatError(f"the state of a loader lacks {', '.join(missing)}")
        if unknown := sorted(given.keys() - known, key=str):
            raise FormatError(
                f"the state of a loader has {', '.join(map(str, unknown))}, which is unknown here"
            )
        return cls(**given)

    def check(self, here: LoaderState, count: int) -> None:
        """See that a loader can go on from this state.

        Parameters
        ----------
        here : LoaderState
            What the loader is at: its `shuffle`, `version`, `source` and `selection` are looked at.
        count : int
            Samples in an epoch of the loader.

        Raises
        ------
        InvalidOptionError
            The sequence would be another one; it is said in what they differ.
        """
        why = {
            # Another version has other samples, too: so it is looked at first.
            "version": "open it with version={0}",
            "source": "this is another dataset, tensor or query: open the one that the state is of",
            "selection": "columns of weights, where, or the samples that they select are others: take those of before",
            "shuffle": "take shuffle={0!r}",
        }
        for name, remedy in why.items():
            before, now = getattr(self, name), getattr(here, name)
            if before != now:
                raise InvalidOptionError(
                    f"the state has {name}={before!r}, and this loader {now!r}: {remedy.format(before)}"
                )
        if self.samples > count:
            raise InvalidOptionError(
                f"the state is at sample {self.samples}, and an epoch of this loader has {count}"
            )
