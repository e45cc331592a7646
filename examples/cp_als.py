"""CP decomposition of a sparse tensor of a lake, by alternating least squares; --help tells how.

A tensor becomes a sum of components, each an outer product of a vector for every axis. Of the flights of the demo a
component is a pattern: on these days, at these hours, from here to there, by these carriers.

    make demo
    python examples/cp_als.py
    spark-submit examples/cp_als.py

Plain Python reads the tensor in threads of one process. Under spark-submit the executors read it, and each pass over
it brings one small matrix to the driver. The factors become tensors of the lake.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

import tensorlake_spark as tl
from tensorlake_spark.errors import (
    ConcurrentWriteError,
    InvalidOptionError,
    InvalidTensorError,
    TensorLakeError,
    UnknownLabelError,
)
from tensorlake_spark.tensor.spec import check_id

Array = np.ndarray[Any, Any]

MOST = 10_000
"""Components at the most: every round makes matrices of their number squared, here of 800 MB."""


@dataclass(frozen=True, eq=False)
class Decomposition:
    """A sum of components: outer products of columns of the factors, each with a weight.

    Attributes
    ----------
    weights : ndarray, shape (rank,)
        Of the components.
    factors : list of ndarray
        For each axis a matrix of shape (its length, rank); columns have the norm 1.
    fit : float
        One minus the norm of what is left, as a share of the tensor's norm.
    rounds : int
        Passes over all axes.
    """

    weights: Array
    factors: list[Array]
    fit: float
    rounds: int


def decompose(
    x: Any, start: Sequence[Array], rounds: int = 50, tolerance: float = 1e-5
) -> Iterator[Decomposition]:
    """Yield the decomposition after each round, until the fit changes by less than `tolerance`.

    Parameters
    ----------
    x : TensorRef, or what `tensorlake_spark.spark.compute` returns
        The tensor; all that is asked of it is its norm, and ``x.mttkrp(factors, axis)``.
    start : sequence of ndarray
        Factors to begin with; that of the first axis is not looked at.

    Raises
    ------
    InvalidTensorError
        If the tensor has one axis or none, complex numbers, a norm that is not finite, or numbers too small for one.
    """
    if x.ndim < 2 or x.dtype.kind == "c":
        raise InvalidTensorError(
            f"the tensor has the shape {tuple(x.shape)} and the dtype {x.dtype}; take one of real numbers with two "
            "axes or more"
        )
    found = x.norm()
    norm, least = float(found), float(np.sqrt(np.finfo(np.asarray(found).dtype).tiny))
    if not np.isfinite(norm):
        raise InvalidTensorError(
            f"the norm of the tensor is {norm}: it holds NaN or infinity, or numbers too large for {x.dtype}; replace "
            "them, or write it with a wider dtype"
        )
    factors, weights, before = list(start), np.ones(start[0].shape[1]), -np.inf
    for number in range(1, rounds + 1):
        for axis in range(len(factors)):
            product = x.mttkrp(factors, axis)
            if norm < least and product.any():  # a fit would be of what is left of the squares
                raise InvalidTensorError(
                    f"the norm of the tensor is {norm}, below {least:.1e}: its numbers are too small to be squared as "
                    f"{x.dtype}; multiply them by a constant, or write it with a wider dtype"
                )
            others = [u.T @ u for k, u in enumerate(factors) if k != axis]
            factor = product @ np.linalg.pinv(reduce(np.multiply, others), hermitian=True)
            weights = np.linalg.norm(factor, axis=0)
            factors[axis] = factor / np.where(weights > 0, weights, 1)
        # |x - y|^2 = |x|^2 - 2 <x, y> + |y|^2, and <x, y> comes with the product of the last axis.
        inner = float((product * factors[-1] * weights).sum())
        grams = reduce(np.multiply, (u.T @ u for u in factors))
        left = max(0.0, norm**2 - 2 * inner + float(weights @ grams @ weights))
        fit = 1 - np.sqrt(left) / norm if norm else 1.0
        yield Decomposition(weights, [*factors], fit, number)
        if abs(fit - before) < tolerance:
            return
        before = fit


def names_of(ref: tl.TensorRef, into: str) -> tuple[str, ...]:
    """Return the names of the factors, one for each axis; raise an error if they cannot be written below `into`."""
    names = ref.axes or tuple(f"axis{k}" for k in range(ref.ndim))
    if "weights" in names:
        raise InvalidOptionError(
            f"an axis of {ref.id!r} is called weights, as the weights of the components are; give it another name"
        )
    for name in ("weights", *names):
        check_id(f"{into}/{name}")
    return names


def write(lake: tl.TensorLake, tensor_id: str, into: str, found: Decomposition) -> None:
    """Write weights and factors as tensors of the lake, in one commit, with the labels of the tensor."""
    ref = lake[tensor_id]
    names = names_of(ref, into)
    strongest = np.argsort(-found.weights)
    with lake.transaction() as changes:
        attrs = {"fit": found.fit, "rounds": found.rounds, "of": tensor_id}
        changes.write(f"{into}/weights", found.weights[strongest], mode="overwrite", attrs=attrs)
        for name, factor in zip(names, found.factors, strict=True):
            changes.write(
                f"{into}/{name}",
                factor[:, strongest],
                mode="overwrite",
                axes=(name, "component"),
                labels=labels_of(ref, name),
            )


def labels_of(ref: tl.TensorRef, axis: str) -> dict[str, list[Any]]:
    """Return the labels of an axis as a write takes them; none where it has none."""
    try:
        found = ref.labels(axis)
    except UnknownLabelError:
        return {}
    return {axis: (found.astype(str) if found.dtype.kind == "M" else found).tolist()}


@contextmanager
def tensor_of(lake: str, tensor_id: str) -> Iterator[Any]:
    """Yield the tensor: computed on by executors under spark-submit, else by this process."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        yield tl.open(lake, create=False)[tensor_id]
        return
    from pyspark.sql import SparkSession

    from tensorlake_spark.spark import compute

    session = SparkSession.builder.getOrCreate()
    try:
        yield compute(session, lake, tensor_id)
    finally:
        session.stop()


def main(arguments: Sequence[str] | None = None) -> int:
    """Decompose a tensor, say how well it fits, and write the factors; 2 if that cannot be, 1 after a lost race."""
    parser = argparse.ArgumentParser(prog="cp_als.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lake", default="demo-output/lake", help="path or URL (%(default)s)")
    parser.add_argument("--id", default="flights", help="the tensor (%(default)s)")
    parser.add_argument("--into", help="where the factors go (ID/cp): INTO/weights, INTO/AXIS")
    parser.add_argument("--rank", type=int, default=8, help="components (%(default)s)")
    parser.add_argument("--rounds", type=int, default=50, help="at the most (%(default)s)")
    parser.add_argument("--tolerance", type=float, default=1e-5, help="of the fit (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the factors to begin with")
    args = parser.parse_args(arguments)
    for name, least in (("rank", 1), ("rounds", 1), ("seed", 0)):
        if getattr(args, name) < least:
            parser.error(f"--{name} is {getattr(args, name)}; give {least} or more")
    if args.rank > MOST:
        parser.error(
            f"--rank is {args.rank}; give {MOST} or less, for memory grows with its square"
        )
    into = args.into or f"{args.id}/cp"
    try:
        names_of(tl.open(args.lake, create=False)[args.id], into)  # or it is told after all rounds
        with tensor_of(args.lake, args.id) as x:
            rng = np.random.default_rng(args.seed)
            start = [rng.random((n, args.rank)) for n in x.shape]
            for found in decompose(x, start, args.rounds, args.tolerance):
                print(f"round {found.rounds}: fit {found.fit:.6f}", flush=True)
        write(tl.open(args.lake), args.id, into, found)
    except ConcurrentWriteError:
        print(
            f"cp_als.py: another writer changed {args.id} or what is below {into} meanwhile, and no factors were "
            "written; run it again, or give another --into",
            file=sys.stderr,
        )
        return 1
    except TensorLakeError as error:
        print(f"cp_als.py: {error}", file=sys.stderr)
        return 2
    except MemoryError as error:
        print(
            f"cp_als.py: there is not enough memory for --rank {args.rank}, give fewer: {error}",
            file=sys.stderr,
        )
        return 2
    print(f"{args.rank} components of {args.id} are in {args.lake} below {into}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
