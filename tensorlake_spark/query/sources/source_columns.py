"""What a source, or a query inside another, has under a name: a stored column, or a tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from tensorlake_spark.datasets.types.base import Type

if TYPE_CHECKING:
    from tensorlake_spark.query.sources.dataset_source import DatasetSource

Ref: TypeAlias = "tuple[str, str]"
"""A column that DuckDB knows: the alias of its table, ``""`` for the result itself, and its name."""


@dataclass(frozen=True)
class Stored:
    """A column with a value a row that DuckDB has.

    Attributes
    ----------
    ref : Ref
        Where it is.
    type : Type, or None
        What a dataset says of it, where it is a column of one.
    """

    ref: Ref
    type: Type | None = None


@dataclass(frozen=True)
class TensorLeaf:
    """A column of a dataset that is read for the samples that `key` numbers.

    Attributes
    ----------
    source : DatasetSource
        The dataset.
    column : str
        Its name there.
    key : Ref
        The sids.
    """

    source: DatasetSource = field(compare=False)
    column: str
    key: Ref
    source_name: str = ""


@dataclass(frozen=True)
class ScalarLeaf:
    """A stored column inside an expression on tensors."""

    ref: Ref
    type: Type | None = field(default=None, compare=False)


@dataclass(frozen=True)
class CollectedLeaf:
    """Values of the rows of a group, or what lies in lists: the keys of `lazy` are columns of lists."""

    lazy: Lazy


@dataclass(frozen=True)
class BranchLeaf:
    """Values of the part of a UNION that a row is from: `chosen` has its number."""

    branches: tuple[Lazy, ...]
    chosen: Ref


@dataclass(frozen=True)
class ItemLeaf:
    """An element of a value, along its first axis: `index` has its number."""

    lazy: Lazy
    index: Ref


Leaf: TypeAlias = "TensorLeaf | ScalarLeaf | CollectedLeaf | BranchLeaf | ItemLeaf"


@dataclass(frozen=True)
class Lazy:
    """A value a row that NumPy computes when it is asked for.

    Attributes
    ----------
    node : sqlglot expression
        Its columns are named as the leaves.
    leaves : mapping from str to Leaf
        What these are.
    """

    node: Any = field(compare=False)
    leaves: Mapping[str, Leaf] = field(compare=False)
    text: str = ""
    identity: tuple[Leaf, ...] = ()

    @staticmethod
    def of(node: Any, leaves: Mapping[str, Leaf]) -> Lazy:
        """Return an expression with what its columns are; two are equal if they compute the same."""
        return Lazy(node, dict(leaves), node.sql(), tuple(leaves.values()))

    @property
    def bare(self) -> TensorLeaf | None:
        """The column of a dataset that it is, None if it is computed."""
        from sqlglot import exp

        if not isinstance(self.node, exp.Column):
            return None
        leaf = self.leaves[self.node.name]
        return leaf if isinstance(leaf, TensorLeaf) else None

    def refs(self) -> list[Ref]:
        """Return the columns of DuckDB that it needs."""
        out: dict[Ref, None] = {}
        for leaf in self.leaves.values():
            out |= dict.fromkeys(refs_of(leaf))
        return list(out)

    def moved(self, places: Mapping[Ref, Ref]) -> Lazy:
        """Return the same over other columns of DuckDB."""
        return Lazy.of(
            self.node, {name: _moved(leaf, places) for name, leaf in self.leaves.items()}
        )

    def tensors(self) -> list[TensorLeaf]:
        """Return the columns of datasets that it reads."""
        out: list[TensorLeaf] = []
        for leaf in self.leaves.values():
            if isinstance(leaf, TensorLeaf):
                out.append(leaf)
            elif isinstance(leaf, (CollectedLeaf, ItemLeaf)):
                out += leaf.lazy.tensors()
            elif isinstance(leaf, BranchLeaf):
                out += [tensor for branch in leaf.branches for tensor in branch.tensors()]
        return out


Output: TypeAlias = "Stored | Lazy"


def refs_of(leaf: Leaf) -> list[Ref]:
    """Return the columns of DuckDB that a leaf needs."""
    if isinstance(leaf, TensorLeaf):
        return [leaf.key]
    if isinstance(leaf, ScalarLeaf):
        return [leaf.ref]
    if isinstance(leaf, CollectedLeaf):
        return leaf.lazy.refs()
    if isinstance(leaf, ItemLeaf):
        return [*leaf.lazy.refs(), leaf.index]
    return [leaf.chosen, *(ref for branch in leaf.branches for ref in branch.refs())]


def _moved(leaf: Leaf, places: Mapping[Ref, Ref]) -> Leaf:
    if isinstance(leaf, TensorLeaf):
        return TensorLeaf(leaf.source, leaf.column, places[leaf.key], leaf.source_name)
    if isinstance(leaf, ScalarLeaf):
        return ScalarLeaf(places[leaf.ref], leaf.type)
    if isinstance(leaf, CollectedLeaf):
        return CollectedLeaf(leaf.lazy.moved(places))
    if isinstance(leaf, ItemLeaf):
        return ItemLeaf(leaf.lazy.moved(places), places[leaf.index])
    return BranchLeaf(tuple(b.moved(places) for b in leaf.branches), places[leaf.chosen])


def is_collected(output: Output) -> bool:
    """Whether a column has the values of a group."""
    return isinstance(output, Lazy) and any(
        isinstance(leaf, CollectedLeaf) for leaf in output.leaves.values()
    )


@dataclass(frozen=True)
class Named:
    """What a table has under a name.

    Attributes
    ----------
    name : str
        As it is written to users.
    output : Output
        What it is.
    starred : bool
        Whether ``*`` means it, too.
    """

    name: str
    output: Output
    starred: bool = True


Parts: TypeAlias = "tuple[str, ...]"


def folded(name: str) -> Parts:
    """Return the parts of a name with groups, as names are compared.

    Examples
    --------
    >>> folded("Training/Boxes")
    ('training', 'boxes')
    """
    return tuple(part.casefold() for part in name.split("/"))
