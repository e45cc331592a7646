"""Tensors of PyTorch, sparse and dense, in and out; NumPy on the same bits is the oracle."""

import ml_dtypes
import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidTensorError, UnsupportedDtypeError
from tensorlake_spark.layouts.testing.laws import DTYPES, bits
from tensorlake_spark.tensor.sparse import SparseTensor, sparse_of
from tensorlake_spark.tensor.spec import dtype_of

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings(
        "ignore:Sparse (CSR|CSC|BSR|BSC) tensor support is in beta",
        "ignore:Sparse invariant checks are implicitly disabled",
        "ignore:ComplexHalf support is experimental",
        "ignore:torch.quantize_per_tensor",
    ),
]

# All that both know; PyTorch has no float8_e4m3, but its three relatives.
BOTH = [
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32",
    "float64", "complex64", "complex128", "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu",
]  # fmt: skip
SHAPES = [(4,), (3, 5), (2, 3, 4), (2, 1, 3, 2), (2, 2, 1, 2, 3), (2, 1, 2, 2, 1, 2), (2, 2, 1, 1, 2, 2, 2),
          (2, 1, 2, 2, 1, 2, 1, 2), (0, 3), (1000, 0), ()]  # fmt: skip


@pytest.fixture(scope="module")
def torch():
    import torch

    return torch


def array_of_bits(shape, name, seed=0, density=0.5):
    """An array of all kinds of bits: NaN, infinities, -0.0 and what rounding would change."""
    dtype, rng = dtype_of(name), np.random.default_rng(seed)
    if name == "bool":
        return np.asarray(rng.random(shape) < density)
    raw = rng.integers(0, 256, (*shape, dtype.itemsize), np.uint8)
    raw[rng.random(shape) >= density] = 0
    return raw.view(dtype).reshape(shape)


def torch_of(torch, array):
    """The tensor of an array, made of its bytes, so by a road that is not ours."""
    raw = torch.frombuffer(bytearray(array.tobytes() or b"\0" * 16), dtype=torch.uint8)
    return raw[: array.nbytes].view(getattr(torch, array.dtype.name)).reshape(array.shape)


def test_every_dtype_of_both_is_in_the_list(torch):
    ours = {name for name in DTYPES if isinstance(getattr(torch, name, None), torch.dtype)}
    assert ours <= set(BOTH)
    assert all(isinstance(getattr(torch, name), torch.dtype) for name in BOTH)
    float8 = {n for n in dir(ml_dtypes) if n.startswith("float8") and hasattr(torch, n)}
    assert float8 <= set(BOTH)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", BOTH)
def test_sparse_there_and_back(torch, name, shape):
    array = array_of_bits(shape, name)
    tensor = SparseTensor.from_dense(array)
    given = tensor.to_torch()
    assert given.dtype is getattr(torch, name)
    assert given.is_coalesced()
    assert tuple(given.shape) == shape
    torch._validate_sparse_coo_tensor_args(given._indices(), given._values(), given.shape, True)
    places = tuple(given._indices().numpy())
    stored = array[places] if shape else array.reshape(-1)[: tensor.nnz]
    assert given._values().view(torch.uint8).numpy().tobytes() == stored.tobytes()
    assert SparseTensor.from_torch(given).equals(tensor)
    assert sparse_of(given).equals(tensor)
    given._values()[:] = 0
    assert SparseTensor.from_dense(array).equals(tensor), "the tensor of PyTorch is its own"


@pytest.mark.parametrize("name", BOTH)
def test_elements_in_any_order_given_twice_or_zero(torch, name):
    one = torch_of(torch, np.ones(1, dtype_of(name)))
    dtype = getattr(torch, name)
    indices = torch.tensor([[2, 0, 2, 1], [3, 1, 3, 0]])
    given = torch.sparse_coo_tensor(
        indices, one.repeat(4), (3, 5), dtype=dtype, check_invariants=True
    )
    assert not given.is_coalesced()
    tensor = SparseTensor.from_torch(given)
    total = np.add(one := np.ones((), dtype_of(name)), one)
    assert tensor.coords.tolist() == [[0, 1, 2], [1, 0, 3]]
    assert bits(tensor.values) == bits(np.array([one, one, total], tensor.dtype))
    if name != "float8_e8m0fnu":  # has no zero
        zeros = torch_of(torch, np.zeros(2, dtype_of(name)))
        given = torch.sparse_coo_tensor(
            torch.tensor([[3, 1]]), zeros, (5,), dtype=dtype, check_invariants=True
        )
        tensor = SparseTensor.from_torch(given)
        assert (tensor.nnz, tensor.coords.tolist()) == (2, [[1, 3]])
        assert SparseTensor.from_torch(tensor.to_torch()).equals(tensor)


@pytest.mark.parametrize("name", ["bool", "int8", "int64", "float16", "float32", "complex64"])
def test_sums_are_those_of_pytorch(torch, name):
    rng = np.random.default_rng(1)
    values = torch_of(torch, rng.integers(0, 2, 500).astype(name) * np.array(100, name))
    indices = torch.from_numpy(rng.integers(0, 9, (3, 500)))
    given = torch.sparse_coo_tensor(indices, values, (9, 9, 9), check_invariants=True)
    want = given.coalesce()
    tensor = SparseTensor.from_torch(given)
    assert tensor.coords.tolist() == want.indices().tolist()
    assert tensor.values.tolist() == want.values().tolist()


def test_other_layouts_and_views(torch):
    array = array_of_bits((4, 6), "int32")
    dense = torch_of(torch, array)
    for given in (dense.to_sparse_csr(), dense.to_sparse_csc(), dense.to_sparse_bsr((2, 3)),
                  dense.to_sparse_bsc((2, 2)), dense.to_sparse()):  # fmt: skip
        assert bits(sparse_of(given).todense()) == bits(array)
    batched = torch.ones(2, 3, 4).to_sparse_csr()
    assert SparseTensor.from_torch(batched).todense().tolist() == np.ones((2, 3, 4)).tolist()
    complexes = torch.tensor([0, 1 + 2j, 0, -3j])
    assert SparseTensor.from_torch(complexes.to_sparse().conj()).values.tolist() == [1 - 2j, 3j]
    assert SparseTensor.from_torch(complexes.conj().to_sparse()).values.tolist() == [1 - 2j, 3j]
    graded = torch.eye(3).requires_grad_().to_sparse() * 2
    assert graded.requires_grad
    assert SparseTensor.from_torch(graded).todense().tolist() == (np.eye(3) * 2).tolist()


def test_what_is_no_sparse_tensor(torch):
    assert sparse_of(torch.eye(3)) is None
    with pytest.raises(InvalidTensorError, match="Tensor is not a sparse tensor of PyTorch"):
        SparseTensor.from_torch(torch.eye(3))
    with pytest.raises(InvalidTensorError, match="ndarray is not a sparse tensor of PyTorch"):
        SparseTensor.from_torch(np.eye(3))
    with pytest.raises(InvalidTensorError, match="the last 1 axes of the tensor are dense"):
        SparseTensor.from_torch(torch.eye(3).to_sparse(1))
    outside = torch.sparse_coo_tensor([[0, 9]], [1.0, 2.0], (4,), check_invariants=False)
    with pytest.raises(InvalidTensorError, match="coordinate 9 is out of bounds for axis 0"):
        SparseTensor.from_torch(outside)
    with pytest.raises(InvalidTensorError, match="no data"):
        SparseTensor.from_torch(
            torch.sparse_coo_tensor(torch.tensor([[0]]), torch.ones(1), (4,), device="meta")
        )
    for name in ("datetime64[D]", "float8_e4m3", "timedelta64[s]"):
        with pytest.raises(InvalidTensorError, match="PyTorch has no dtype") as info:
            SparseTensor([[0]], np.zeros(1, dtype_of(name)), (3,)).to_torch()
        assert name in str(info.value)


@pytest.mark.parametrize("name", BOTH)
def test_a_lake_takes_them(torch, lake, name):
    array = array_of_bits((7, 5, 3), name)
    dense = torch_of(torch, array)
    assert bits(lake.write("dense", dense, layout="ftsf")[...]) == bits(array)
    turned = lake.write("turned", dense.permute(2, 0, 1), layout="ftsf")
    assert bits(turned[...]) == bits(array.transpose(2, 0, 1))
    scalar = lake.write("scalar", dense[3, 2, 1], layout="ftsf")
    assert bits(scalar[...]) == bits(array[3, 2, 1])
    empty = lake.write("empty", dense[:0])
    assert (empty.shape, empty.dtype) == ((0, 5, 3), array.dtype)
    slabs = lake.write("slabs", iter([dense[:4], dense[4:]]), layout="ftsf")
    assert bits(slabs[...]) == bits(array)
    lake.write("dense", dense[:2], mode="append")
    assert bits(lake["dense"][7:]) == bits(array[:2])
    sparse = SparseTensor.from_dense(array)
    ref = lake.write("sparse", sparse.to_torch(), layout="coo")
    assert ref[...].equals(sparse)
    lake.write("sparse", sparse.to_torch(), mode="append")
    assert lake["sparse"][7:].equals(sparse)


@pytest.mark.parametrize(
    "name", ["bool", "int64", "float32", "complex128", "bfloat16", "float8_e5m2"]
)
@pytest.mark.parametrize("layout", ["ftsf", "coo", "bsgs"])
def test_parts_are_assigned(torch, lake, layout, name):
    want = array_of_bits((6, 8), name)
    ref = lake.write("x", want, layout=layout)
    part = array_of_bits((2, 8), name, seed=1)
    for values in (torch_of(torch, part), SparseTensor.from_dense(part).to_torch()):
        ref[2:4] = values
        want[2:4] = part
        assert bits(np.asarray(ref[...])) == bits(want)
        ref[2:4] = want[2:4] = want[:2].copy()
    ref[:, 3] = torch_of(torch, part[0])[:6]
    want[:, 3] = part[0, :6]
    ref[5, 5] = torch_of(torch, part)[1, 1]
    want[5, 5] = part[1, 1]
    assert bits(np.asarray(ref[...])) == bits(want)


def test_a_gradient_and_marks_of_views_are_no_part_of_what_is_stored(torch, lake):
    ref = lake.write("x", torch.nn.Parameter(torch.ones(2, 3)), layout="ftsf")
    ref[0] = torch.full((3,), 5.0, requires_grad=True)
    assert ref[...].tolist() == [[5, 5, 5], [1, 1, 1]]
    z = torch.tensor([1 + 2j, -3j])
    assert lake.write("conj", z.conj())[...].tolist() == [1 - 2j, 3j]
    assert lake.write("neg", z.conj().imag)[...].tolist() == [-2, 3]
    assert lake.write("list", [torch.ones(2), torch.zeros(2)])[...].tolist() == [[1, 1], [0, 0]]
    z = SparseTensor([[0, 2]], torch.ones(2, requires_grad=True), (3,))
    assert z.equals(SparseTensor.from_dense(torch.tensor([1.0, 0, 1], requires_grad=True)))


def test_what_a_lake_does_not_take(torch, lake):
    ref = lake.write("x", np.ones((2, 3), "float32"), layout="ftsf")
    none = [
        (torch.ones(3, device="meta"), InvalidTensorError, "no data"),
        (torch.ones(3).to_mkldnn(), InvalidTensorError, "Mkldnn"),
        (torch.nested.nested_tensor([torch.ones(2), torch.ones(1)], layout=torch.jagged), InvalidTensorError,
         "NestedTensor"),
        (torch.ones(3).to(torch.complex32), UnsupportedDtypeError, "complex32"),
        (torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8), UnsupportedDtypeError, "qint8"),
        ([torch.ones(2, requires_grad=True)], InvalidTensorError, "list.*: .*requires grad"),
    ]  # fmt: skip
    for data, error, match in none:
        with pytest.raises(error, match=match):
            lake.write("new", data)
        with pytest.raises(error, match=match):
            ref[0] = data
        with pytest.raises(error, match=match):
            lake.write("new", iter([data]))
    with pytest.raises(InvalidTensorError, match="float64 cannot be assigned"):
        lake.write("int", np.ones(3, int), layout="ftsf")[:] = torch.ones(3, dtype=torch.float64)
    assert "new" not in lake
    assert ref[...].tolist() == np.ones((2, 3)).tolist()


def test_a_key_may_be_a_tensor(torch, lake):
    x = np.arange(12.0).reshape(3, 4)
    ref = lake.write("x", x, layout="ftsf")
    rows, mask = torch.tensor([2, 0]), torch.from_numpy(x % 2 == 0)
    assert bits(ref[rows]) == bits(x[[2, 0]])
    assert bits(ref[torch.tensor(1)]) == bits(x[1])
    assert bits(ref.vindex[mask]) == bits(x[x % 2 == 0])
    assert torch.as_tensor(np.asarray(ref)).tolist() == x.tolist()
    assert tl.estimate(torch.from_numpy(x))["bytes"].tolist() == tl.estimate(x)["bytes"].tolist()


@pytest.mark.parametrize("name", BOTH)
def test_a_result_is_read_into_a_tensor(torch, lake, name):
    x = array_of_bits((4, 6), name)
    ref = lake.write("x", x, layout="ftsf", block_shape=(2, 4))
    out = torch_of(torch, np.zeros_like(x))
    assert ref.read(out=out) is out
    assert out.view(torch.uint8).numpy().tobytes() == x.tobytes()


def test_a_tensor_that_cannot_be_read_into(torch, lake):
    ref = lake.write("x", np.ones(3))
    for out in (torch.ones(3, dtype=torch.float64, requires_grad=True), torch.ones(3, device="meta"),
                torch.ones(3, dtype=torch.float64).to_sparse()):  # fmt: skip
        with pytest.raises(
            InvalidTensorError, match="out is of type Tensor, whose memory NumPy cannot use"
        ):
            ref.read(out=out)
    with pytest.raises(InvalidTensorError, match="out has shape"):
        ref.read(out=torch.ones(3))
