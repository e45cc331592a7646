"""Operations on sparse tensors, as each package spells them; results without duplicates, sorted, in memory.

A package gets its tensors in the layout that suits an operation best, for ours keep what they need after the first
call. What it returns is made canonical inside of what is timed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

Operations = dict[str, Callable[[], Any]]
RANK = 16
CLOCK = "BENCH_OPERATIONS_CLOCK"
"""Variable of the environment that is set where times are by the clock, and threads are not counted."""
WORST_S = 10.0
"""What takes longer is not waited for."""


class Work(NamedTuple):
    """Two tensors of one shape, and dense factors of every axis.

    Attributes
    ----------
    shape : tuple of int
        Their shape; of rank 2 they are square.
    places : tuple of ndarray
        Ascending places of the elements of each.
    values : tuple of ndarray
        Their values.
    vectors, matrices : list of ndarray
        Of shapes (length,) and (length, RANK).
    """

    shape: tuple[int, ...]
    places: tuple[np.ndarray, np.ndarray]
    values: tuple[np.ndarray, np.ndarray]
    vectors: list[np.ndarray]
    matrices: list[np.ndarray]

    def coords(self, which: int) -> np.ndarray:
        """Return the coordinates of one of the tensors."""
        return np.array(np.unravel_index(self.places[which], self.shape))

    def dense(self) -> np.ndarray:
        """Return an array of their shape, of which no part is kept in a cache."""
        return np.full(self.shape, 1.5)

    def triangle(self) -> tuple[np.ndarray, np.ndarray]:
        """Return coordinates and values of a lower triangle with a full diagonal."""
        row, col = self.coords(0)
        inside = row > col
        diagonal = np.arange(self.shape[0])
        coords = np.concatenate(
            (np.stack((row, col))[:, inside], np.stack((diagonal, diagonal))), 1
        )
        values = np.concatenate((self.values[0][inside], np.full(self.shape[0], 8.0)))
        order = np.lexsort((coords[1], coords[0]))
        return coords[:, order], values[order]


def work(shape: tuple[int, ...], count: int) -> Work:
    """Return tensors with about so many elements each, a tenth of them at the same places."""
    rng = np.random.default_rng(7)
    size = math.prod(shape)
    shared = rng.integers(0, size, count // 10)
    places = tuple(
        np.unique(np.concatenate((shared, rng.integers(0, size, count - len(shared)))))
        for _ in range(2)
    )
    values = tuple(rng.standard_normal(len(p)) for p in places)
    return Work(
        shape, places, values,
        [rng.standard_normal(n) for n in shape], [rng.standard_normal((n, RANK)) for n in shape],
    )  # fmt: skip


class Plain(NamedTuple):
    """A result without a package: places in C order and values, or a dense array, flat."""

    places: np.ndarray | None
    values: np.ndarray


def same(got: Plain, want: Plain) -> bool:
    """Return whether two results hold the same elements, but for rounding; it may be that one of them is dense."""
    (p, v), (q, w) = _sparse(got), _sparse(want)
    return np.array_equal(p, q) and np.allclose(v, w, rtol=1e-9, atol=1e-9)


def _sparse(x: Plain) -> tuple[np.ndarray, np.ndarray]:
    kept = np.flatnonzero(x.values)
    return (kept if x.places is None else x.places[kept]), x.values[kept]


def _dense(array: Any) -> Plain:
    return Plain(None, np.asarray(array).reshape(-1))


# ------------------------------------------------------------------------------ ours


def ours(w: Work) -> Operations:
    """Return what this package does, with the coordinates of results, which wait until they are asked for."""

    def whole(call: Callable[[], Any]) -> Any:
        result = call()
        if not isinstance(result, (np.ndarray, np.generic)):
            assert result.coords is not None
        return result

    return {name: partial(whole, call) for name, call in _ours(w).items()}


def _ours(w: Work) -> Operations:
    import tensorlake_spark as tl
    from tensorlake_spark.ops.products import blas

    x, y = (tl.SparseTensor(w.coords(k), w.values[k], w.shape) for k in (0, 1))
    last = len(w.shape) - 1
    out: Operations = {
        "x + y": lambda: x + y,
        "x * y": lambda: x * y,
        "2 x": lambda: 2 * x,
        "sum": lambda: x.sum(),
        "sum, first axis": lambda: x.sum(axis=0),
        "sum, last axis": lambda: x.sum(axis=last),
        "var, last axis": lambda: x.var(axis=last),
        "max, last axis": lambda: x.max(axis=last),
        "argmax, last axis": lambda: x.argmax(axis=last),
        "transpose": lambda: x.transpose(),
        "reshape": lambda: x.reshape(-1, w.shape[-1] // 2),
        "concatenate": lambda: np.concatenate((x, y)),
        "slice": lambda: x[w.shape[0] // 3 : w.shape[0] // 2, ..., ::2],
    }
    if last == 2:
        dense = w.dense()
        out["x * dense"] = lambda: x * dense
    if last == 1:
        coords, values = w.triangle()
        triangle = tl.SparseTensor(coords, values, w.shape)
        small = np.array([[1.0, 2.0], [0.0, 3.0]])
        return out | {
            "A v": lambda: x @ w.vectors[1],
            "v A": lambda: w.vectors[0] @ x,
            "A B, dense": lambda: x @ w.matrices[1],
            "A B": lambda: x @ y,
            "triangle": lambda: blas.trsv(triangle, w.vectors[0], lower=1),
            "triangle, 16 sides": lambda: blas.trsm(1.0, triangle, w.matrices[0], lower=1),
            "kron": lambda: np.kron(x, small),
        }
    axes = list(range(1, last + 1))
    turned = [u.T.copy() for u in w.matrices]
    return out | {
        "ttv, first axis": lambda: x.ttv(w.vectors[0], 0),
        "ttv, last axis": lambda: x.ttv(w.vectors[-1], last),
        "ttm, first axis": lambda: x.ttm(turned[0], 0),
        "ttm, last axis": lambda: x.ttm(turned[-1], last),
        "mttkrp, first mode": lambda: x.mttkrp(w.matrices, 0),
        "mttkrp, second mode": lambda: x.mttkrp(w.matrices, 1),
        "mttkrp, last mode": lambda: x.mttkrp(w.matrices, last),
        "tensordot": lambda: np.tensordot(x, y, (axes, axes)),
    }


def plain_of_ours(result: Any) -> Plain:
    """Return a result of this package without its class."""
    if isinstance(result, (np.ndarray, np.generic)):
        return _dense(result)
    return Plain(result.places, result.values)


# ------------------------------------------------------------------------------ peers


def scipy_(w: Work) -> Operations:
    """Return what SciPy does: of rank 2 by CSR, of more by COO."""
    from scipy import sparse
    from scipy.sparse.linalg import spsolve_triangular

    last = len(w.shape) - 1
    arrays = [sparse.coo_array((w.values[k], tuple(w.coords(k))), w.shape) for k in (0, 1)]
    for array in arrays:
        array.has_canonical_format = True

    def sorted_(result: Any) -> Any:
        if result.format == "csr":
            result.sum_duplicates()
            return result
        result = result.tocoo()
        result.has_canonical_format = False
        result.sum_duplicates()
        return result

    x, y = arrays if last > 1 else (array.tocsr() for array in arrays)
    third, half = w.shape[0] // 3, w.shape[0] // 2
    out: Operations = {
        "x + y": lambda: sorted_(x + y),
        "x * y": lambda: sorted_(x * y),
        "2 x": lambda: 2 * x,
        "sum": lambda: x.sum(),
        "sum, first axis": lambda: x.sum(axis=0),
        "sum, last axis": lambda: x.sum(axis=last),
        "max, last axis": lambda: x.max(axis=last),
        "argmax, last axis": lambda: x.argmax(axis=last),
        "transpose": lambda: sorted_(x.transpose().tocsr() if last == 1 else x.transpose()),
        "reshape": lambda: sorted_(x.reshape(-1, w.shape[-1] // 2)),
        "slice": lambda: sorted_(x[third:half, ..., ::2]),
    }
    if last == 2:
        dense = w.dense()
        out["x * dense"] = lambda: sorted_(x.multiply(dense))
    if last == 1:
        coords, values = w.triangle()
        triangle = sparse.csr_array((values, tuple(coords)), w.shape)
        small = np.array([[1.0, 2.0], [0.0, 3.0]])
        return out | {
            "A v": lambda: x @ w.vectors[1],
            "v A": lambda: w.vectors[0] @ x,
            "A B, dense": lambda: x @ w.matrices[1],
            "A B": lambda: sorted_(x @ y),
            "triangle": lambda: spsolve_triangular(triangle, w.vectors[0]),
            "triangle, 16 sides": lambda: spsolve_triangular(triangle, w.matrices[0]),
            "kron": lambda: sorted_(sparse.kron(x, small, format="csr")),
            "concatenate": lambda: sorted_(sparse.vstack((x, y))),
        }
    axes = tuple(range(1, last + 1))
    lines = x.reshape(-1, w.shape[-1]).tocsr()
    planes = x.reshape(w.shape[0], -1).tocsr().T
    return out | {
        "ttv, first axis": lambda: planes @ w.vectors[0],
        "ttv, last axis": lambda: lines @ w.vectors[-1],
        "ttm, first axis": lambda: (planes @ w.matrices[0]).T,
        "ttm, last axis": lambda: lines @ w.matrices[-1],
        "tensordot": lambda: sorted_(x.tensordot(y, (axes, axes))),
    }


def plain_of_scipy(result: Any) -> Plain:
    """Return a result of SciPy without its class."""
    if isinstance(result, (np.ndarray, np.generic, float)):
        return _dense(result)
    coo = result.tocoo()
    return Plain(np.ravel_multi_index(coo.coords, coo.shape), coo.data)


def pydata(w: Work) -> Operations:
    """Return what the package ``sparse`` does."""
    import sparse

    last = len(w.shape) - 1
    x, y = (
        sparse.COO(w.coords(k), w.values[k], w.shape, has_duplicates=False, sorted=True)
        for k in (0, 1)
    )
    third, half = w.shape[0] // 3, w.shape[0] // 2
    out: Operations = {
        "x + y": lambda: x + y,
        "x * y": lambda: x * y,
        "2 x": lambda: 2 * x,
        "sum": lambda: x.sum(),
        "sum, first axis": lambda: x.sum(axis=0),
        "sum, last axis": lambda: x.sum(axis=last),
        "var, last axis": lambda: x.var(axis=last),
        "max, last axis": lambda: x.max(axis=last),
        "argmax, last axis": lambda: sparse.argmax(x, axis=last),
        "transpose": lambda: x.transpose(),
        "reshape": lambda: x.reshape((-1, w.shape[-1] // 2)),
        "concatenate": lambda: sparse.concatenate((x, y)),
        "slice": lambda: x[third:half, ..., ::2],
    }
    if last == 2:
        dense = w.dense()
        out["x * dense"] = lambda: x * dense
    if last == 1:
        small = np.array([[1.0, 2.0], [0.0, 3.0]])
        return out | {
            "A v": lambda: x @ w.vectors[1],
            "v A": lambda: w.vectors[0] @ x,
            "A B, dense": lambda: x @ w.matrices[1],
            "A B": lambda: x @ y,
            "kron": lambda: sparse.kron(x, small),
        }
    axes = list(range(1, last + 1))
    unfolded = [
        x.transpose((mode, *(k for k in range(last + 1) if k != mode))).reshape((w.shape[mode], -1))
        for mode in (0, 1, last)
    ]

    def mttkrp(which: int) -> Any:
        # einsum of three operands takes minutes.
        mode = (0, 1, last)[which]
        product = np.ones((1, RANK))
        for factor in (u for k, u in enumerate(w.matrices) if k != mode):
            product = (product[:, None] * factor).reshape(-1, RANK)
        return unfolded[which] @ product

    return out | {
        "ttv, first axis": lambda: sparse.tensordot(x, w.vectors[0], ([0], [0])),
        "ttv, last axis": lambda: sparse.tensordot(x, w.vectors[-1], ([last], [0])),
        "ttm, first axis": lambda: np.moveaxis(
            sparse.tensordot(x, w.matrices[0], ([0], [0])), -1, 0
        ),
        "ttm, last axis": lambda: sparse.tensordot(x, w.matrices[-1], ([last], [0])),
        "mttkrp, first mode": lambda: mttkrp(0),
        "mttkrp, second mode": lambda: mttkrp(1),
        "mttkrp, last mode": lambda: mttkrp(2),
        "tensordot": lambda: sparse.tensordot(x, y, (axes, axes)),
    }


def plain_of_pydata(result: Any) -> Plain:
    """Return a result of the package ``sparse`` without its class."""
    if not hasattr(result, "coords"):
        return _dense(result)
    if not result.ndim:  # its value may be what it fills with
        return _dense(result.todense())
    return Plain(np.ravel_multi_index(tuple(result.coords), result.shape), result.data)


def torch_(w: Work) -> Operations:
    """Return what PyTorch does."""
    import torch

    if CLOCK not in os.environ:
        torch.set_num_threads(1)
    last = len(w.shape) - 1
    x, y = (
        torch.sparse_coo_tensor(
            torch.from_numpy(w.coords(k)), torch.from_numpy(w.values[k]), w.shape, is_coalesced=True
        )
        for k in (0, 1)
    )
    vectors, matrices = (list(map(torch.from_numpy, some)) for some in (w.vectors, w.matrices))
    out: Operations = {
        "x + y": lambda: (x + y).coalesce(),
        "x * y": lambda: (x * y).coalesce(),
        "2 x": lambda: 2 * x,
        "sum": lambda: torch.sparse.sum(x),
        "sum, first axis": lambda: torch.sparse.sum(x, 0).coalesce(),
        "sum, last axis": lambda: torch.sparse.sum(x, last).coalesce(),
        "transpose": lambda: x.permute(*range(last, -1, -1)).coalesce(),
        "concatenate": lambda: torch.cat((x, y)).coalesce(),
    }
    if last == 2:
        dense = torch.from_numpy(w.dense())
        out["x * dense"] = lambda: (x * dense).coalesce()
    if last == 1:
        coords, values = w.triangle()
        triangle = torch.sparse_coo_tensor(
            torch.from_numpy(coords), torch.from_numpy(values), w.shape
        )
        triangle = triangle.coalesce().to_sparse_csr()
        a, b = x.to_sparse_csr(), y.to_sparse_csr()

        def sorted_(product: Any) -> Any:
            indices = product.to_sparse_coo()._indices()
            return torch.sparse_coo_tensor(indices, product.values(), product.shape).coalesce()

        return out | {
            "A v": lambda: a @ vectors[1],
            "A B, dense": lambda: a @ matrices[1],
            "A B": lambda: sorted_(a @ b),
            "triangle": lambda: torch.triangular_solve(vectors[0][:, None], triangle, upper=False)[
                0
            ],
            "triangle, 16 sides": lambda: torch.triangular_solve(
                matrices[0], triangle, upper=False
            )[0],
        }
    places = torch.from_numpy(w.places[0])
    count = math.prod(w.shape[1:])
    lines = torch.sparse_coo_tensor(
        torch.stack((places // w.shape[-1], places % w.shape[-1])),
        x.values(),
        (math.prod(w.shape[:-1]), w.shape[-1]),
    )
    planes = torch.sparse_coo_tensor(
        torch.stack((places % count, places // count)), x.values(), (count, w.shape[0])
    )
    lines, planes = (some.coalesce().to_sparse_csr() for some in (lines, planes))
    return out | {
        "ttv, first axis": lambda: planes @ vectors[0],
        "ttv, last axis": lambda: lines @ vectors[-1],
        "ttm, first axis": lambda: (planes @ matrices[0]).T,
        "ttm, last axis": lambda: lines @ matrices[-1],
    }


def plain_of_torch(result: Any) -> Plain:
    """Return a result of PyTorch without its class."""
    import torch

    if result.layout == torch.strided:
        return _dense(result.numpy())
    coo = result if result.layout == torch.sparse_coo else result.to_sparse_coo()
    coo = coo.coalesce()
    return Plain(
        np.ravel_multi_index(tuple(coo.indices().numpy()), tuple(coo.shape)), coo.values().numpy()
    )


def graphblas(w: Work) -> Operations:
    """Return what SuiteSparse:GraphBLAS does, of more than two axes on the unfolding by the last one."""
    import graphblas as gb

    gb.ss.config["nthreads"] = 1
    last = len(w.shape) - 1
    flat = math.prod(w.shape[:-1]), w.shape[-1]
    x, y = (
        gb.Matrix.from_coo(
            *np.unravel_index(w.places[k], flat), w.values[k], nrows=flat[0], ncols=flat[1]
        )
        for k in (0, 1)
    )
    vectors = [gb.Vector.from_dense(v) for v in w.vectors]

    def done(expression: Any) -> Any:
        result = expression.new()
        result.wait()
        return result

    semiring = gb.semiring.plus_times
    out: Operations = {
        "x + y": lambda: done(x.ewise_add(y, gb.binary.plus)),
        "x * y": lambda: done(x.ewise_mult(y, gb.binary.times)),
        "2 x": lambda: done(x.apply(gb.binary.times, right=2.0)),
        "sum, last axis": lambda: done(x.reduce_rowwise(gb.monoid.plus)),
    }
    if last == 1:
        return out | {
            "A v": lambda: done(semiring(x @ vectors[1])),
            "A B": lambda: done(semiring(x @ y)),
            "v A": lambda: done(semiring(vectors[0] @ x)),
        }
    factor = gb.Matrix.from_dense(w.matrices[-1])
    return out | {
        "ttv, last axis": lambda: done(semiring(x @ vectors[-1])),
        "ttm, last axis": lambda: done(semiring(x @ factor)),
    }


def plain_of_graphblas(result: Any) -> Plain:
    """Return a result of GraphBLAS without its class."""
    *coords, values = result.to_coo()
    places = np.ravel_multi_index(tuple(c.astype(np.int64) for c in coords), result.shape)
    return Plain(places, values)


def pyttb_(w: Work) -> Operations:
    """Return what the Tensor Toolbox does; it has no order of elements."""
    import pyttb

    last = len(w.shape) - 1
    if last < 2:
        return {}
    x, y = (
        pyttb.sptensor(np.ascontiguousarray(w.coords(k).T), w.values[k][:, None], w.shape)
        for k in (0, 1)
    )
    return {
        "2 x": lambda: x * 2.0,
        "x + y": lambda: x + y,
        "ttv, first axis": lambda: x.ttv(w.vectors[0], 0),
        "ttv, last axis": lambda: x.ttv(w.vectors[-1], last),
        "ttm, last axis": lambda: x.ttm(w.matrices[-1].T, last),
        "mttkrp, first mode": lambda: x.mttkrp(w.matrices, 0),
        "mttkrp, second mode": lambda: x.mttkrp(w.matrices, 1),
        "mttkrp, last mode": lambda: x.mttkrp(w.matrices, last),
    }


def plain_of_pyttb(result: Any) -> Plain:
    """Return a result of the Tensor Toolbox without its class."""
    if isinstance(result, np.ndarray):
        return _dense(result)
    if not hasattr(result, "subs"):
        return _dense(np.asarray(result.data))
    places = np.ravel_multi_index(tuple(result.subs.T), tuple(result.shape))
    order = np.argsort(places)
    return Plain(places[order], result.vals[order, 0])


class Engine(NamedTuple):
    """A package: its name at the registry, what it does, how its results are read, whether it sets the bound."""

    package: str
    operations: Callable[[Work], Operations]
    plain: Callable[[Any], Plain]
    sets_bound: bool


ENGINES = {
    "numpy": Engine("tensorlake-spark", ours, plain_of_ours, False),
    "fast": Engine("tensorlake-spark", ours, plain_of_ours, False),
    "SciPy": Engine("scipy", scipy_, plain_of_scipy, True),
    "sparse": Engine("sparse", pydata, plain_of_pydata, True),
    "torch": Engine("torch", torch_, plain_of_torch, True),
    "GraphBLAS": Engine("python-graphblas", graphblas, plain_of_graphblas, False),
    "pyttb": Engine("pyttb", pyttb_, plain_of_pyttb, False),
}
