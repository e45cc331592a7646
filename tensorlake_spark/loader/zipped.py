"""Several tensors side by side: one loader for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorlake_spark.errors import InvalidOptionError, did_you_mean
from tensorlake_spark.lake.ref import TensorRef
from tensorlake_spark.loader.epoch_samples import Selection
from tensorlake_spark.loader.loader import Loader
from tensorlake_spark.loader.loader_options import checked_options
from tensorlake_spark.loader.sources.tensor_samples import TensorSamples
from tensorlake_spark.loader.weighing import drawing_weights


class Zipped:
    """Tensors whose slices belong together; `zip` makes one.

    Parameters
    ----------
    refs : dict of str to TensorRef
        The tensors by the names that batches have.
    """

    def __init__(self, refs: dict[str, TensorRef]) -> None:
        self.refs = refs

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={ref.shape}" for name, ref in self.refs.items())
        return f"<Zipped of {inside}>"

    def loader(
        self,
        batch_size: int,
        axis: int = 0,
        *,
        weights: Any = None,
        balance: str | None = None,
        samples: int | None = None,
        replacement: bool = True,
        **options: Any,
    ) -> Loader:
        """Return batches of slices, each with all tensors; see `TensorRef.loader`.

        Parameters
        ----------
        batch_size, axis, weights, samples, replacement, **options
            As `TensorRef.loader` takes them. `weights` may also be the name of one of the tensors.
        balance : str, optional
            The name of a tensor of labels: each is drawn as often as the others.

        Raises
        ------
        InvalidOptionError
            If an option is not what it should be, or tensors are not equally long along the axis.
        """
        for name in ("columns", "where"):
            if options.pop(name, None) is not None:
                raise InvalidOptionError(
                    f"{name}= is for datasets, and these are tensors; give tl.zip the tensors, and weights of 0 for "
                    "slices that are left out"
                )
        checked = checked_options(batch_size, **options)
        if isinstance(checked.transform, Mapping):
            for name, one in checked.transform.items():
                _check_transform(name, one, list(self.refs))
        source = TensorSamples(self.refs, axis, checked.memory, checked.cache)
        drawn = drawing_weights(weights, balance, samples, replacement, self._values, len(source))
        return Loader(source, Selection(None, drawn, samples, replacement), checked)

    def _values(self, name: str) -> Any:
        if not isinstance(name, str) or name not in self.refs:
            raise InvalidOptionError(
                f"there is no tensor {name!r:.80} here{did_you_mean(str(name), list(self.refs))}; give one of "
                f"{', '.join(self.refs)}, or an array"
            )
        return self.refs[name][...]


def _check_transform(name: Any, transform: Any, names: list[str]) -> None:
    if name not in names:
        raise InvalidOptionError(
            f"transform names {name!r:.80}, which is not one of the tensors{did_you_mean(str(name), names)}; there are "
            f"{', '.join(names)}"
        )
    if not callable(transform):
        raise InvalidOptionError(
            f"transform={transform!r:.80} of tensor {name!r} is not a function of a slice"
        )


def zip(*refs: TensorRef, **named: TensorRef) -> Zipped:  # noqa: A001 - tl.zip
    """Put tensors of equal length side by side, for one loader.

    Parameters
    ----------
    *refs : TensorRef
        Tensors that are called by their ids in batches.
    **named : TensorRef
        Tensors that are called by these names in batches.

    Returns
    -------
    Zipped
        Its `Zipped.loader` gives batches of all.

    Raises
    ------
    InvalidOptionError
        If there is no tensor, an argument is not a `TensorRef`, or two tensors have the same name.

    Examples
    --------
    >>> import tempfile, numpy as np, tensorlake_spark as tl
    >>> lake = tl.open(tempfile.mkdtemp())
    >>> x, y = lake.write("x", np.arange(8).reshape(4, 2)), lake.write("y", np.arange(4))
    >>> [batch["label"].tolist() for batch in tl.zip(x, label=y).loader(3)]
    [[0, 1, 2], [3]]
    """
    out: dict[str, TensorRef] = {}
    for name, ref in [*((getattr(ref, "id", ""), ref) for ref in refs), *named.items()]:
        if not isinstance(ref, TensorRef):
            raise InvalidOptionError(
                f"tl.zip takes tensors of a lake, such as lake['x'], not {type(ref).__name__}"
            )
        if name in out:
            raise InvalidOptionError(
                f"tl.zip got two tensors named {name!r}; name them: tl.zip(a=..., b=...)"
            )
        out[name] = ref
    if not out:
        raise InvalidOptionError("tl.zip got no tensor; give at least one, such as lake['x']")
    return Zipped(out)
