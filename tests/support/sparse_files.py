"""Files of sparse matrices, and the elements that a reader makes of them."""

import numpy as np
import scipy.sparse

SHAPE = (60, 84)


def random(form, dtype=np.float32, shape=SHAPE):
    """Return a matrix in one of SciPy's forms; the same each time."""
    rng = np.random.default_rng(3)
    made = scipy.sparse.random_array(
        shape,
        density=0.1,
        format="coo",
        rng=rng,
        data_sampler=lambda size: rng.integers(1, 99, size),
    )
    if form == "dia":
        made = scipy.sparse.triu(scipy.sparse.tril(made, 20), -20)
    return made.astype(dtype).asformat(form)


def saved(path, form):
    """Write a matrix; return what it is, dense."""
    matrix = random(form.removesuffix(" packed").removesuffix(" fortran"))
    if "fortran" in form:
        matrix.data = np.asfortranarray(matrix.data)
    scipy.sparse.save_npz(path, matrix, compressed="packed" in form)
    return matrix.toarray()


def dense(pieces, shape, dtype):
    """Return what elements make, each of them once."""
    out, seen = np.zeros(shape, dtype), np.zeros(shape, int)
    for coords, values in pieces:
        assert coords.dtype == np.int64
        out[tuple(coords)] = values
        np.add.at(seen, tuple(coords), 1)
    assert seen.max(initial=0) <= 1
    return out
