"""Several tensors side by side: one loader for all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.lake.ref import TensorRef
from tensorlake_spark.loader.epoch_samples import Selection
from tensorlake_spark.loader.loader import Loader
from tensorlake_spark.loader.loader_options import checked_options, whole
from tensorlake_spark.loader.order.sampling import checked_weights
from tensorlake_spark.loader.sources.tensor_samples import TensorSamples


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
        samples: int | None = None,
        replacement: bool = True,
        **options: Any,
    ) -> Loader:
        """Return batches of slices, each with all tensors; see `TensorRef.loader`.

        Parameters
        ----------
        batch_size, axis, weights, samples, replacement, **options
            As `TensorRef.loader` takes them.

        Raises
        ------
        InvalidOptionError
            If an option is not what it should be, or tensors are not equally long along the axis.
        """
        checked = checked_options(batch_size, **options)
        source = TensorSamples(self.refs, axis, checked.memory, checked.cache)
        drawn = None if weights is None else checked_weights(np.asarray(weights), len(source))
        if samples is not None:
            whole("samples", samples, 1)
            if drawn is None:
                raise InvalidOptionError(
                    f"samples={samples} is how many are drawn by weights; give weights too"
                )
        return Loader(source, Selection(None, drawn, samples, replacement), checked)


def zip(*refs: TensorRef, **named: TensorRef) -> Zipped:  # noqa: A001 - tl.zip
    """Put tensors of equal length side by side, for one loader.

    Parameters
    ----------
    *refs : TensorRef
        Their names in batches are their ids.
    **named : TensorRef
        By the names that batches have.

    Returns
    -------
    Zipped
        Its `Zipped.loader` gives batches of all.

    Raises
    ------
    InvalidOptionError
        If there is none, one is no `TensorRef`, or two have one name.

    Examples
    --------
    >>> import tempfile, tensorlake_spark as tl
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
