"""A module of a user's, for `make lint`: mypy has to know the public names, and to find the mistake."""
# mypy: warn-unused-ignores

import tensorlake_spark as tl
from tensorlake_spark import TensorLake, open  # noqa: A004


def first(path: str) -> tl.TensorRef:
    lake: TensorLake = open(path)
    return lake.write("x", [1])


def types() -> None:
    shape: tuple[int, ...] = tl.open("a")["x"].shape
    # An ignore that is not needed is an error here: without types the mistake would go by.
    wrong: int = tl.open("a")  # type: ignore[assignment]
    print(shape, wrong)
