"""Queries that Hypothesis makes up, each in two texts: ours, and one that means the same to SQLite.

SQLite has the tensor's numbers as the columns ``total``, ``top`` and ``middle``. The texts differ in these names, and in
``/``, which SQLite does in whole numbers. Our booleans are SQLite's 0 and 1. Where the nulls stand is always written.
Values are so round that no order of additions changes a sum. Numbers of tensors follow the rules of NumPy, so they are
divided by constants alone.
"""

from typing import Any, NamedTuple

from hypothesis import strategies as st

NUMBER, TEXT, TRUTH = "number", "text", "truth"


class Piece(NamedTuple):
    """A part of a query in both texts; `tensor` if it needs tensors."""

    ours: str
    other: str
    tensor: bool = False


class Asked(NamedTuple):
    """A query in both texts, and whether its rows have an order."""

    ours: str
    other: str
    is_ordered: bool


def columns(prefix: str = "", tensors: bool = True) -> dict[str, list[Piece]]:
    """Return the columns of the dataset by kind."""
    found = {
        NUMBER: [Piece(prefix + name, prefix + name) for name in ("i", "j", "f")],
        TEXT: [Piece(prefix + "s", prefix + "s")],
        TRUTH: [Piece(prefix + "b", prefix + "b")],
    }
    if tensors:
        found[NUMBER] += [
            Piece(f"array_sum({prefix}x)", prefix + "total", True),
            Piece(f"array_max({prefix}x[1:3])", prefix + "top", True),
            Piece(f"array_mean({prefix}x[:2])", prefix + "middle", True),
        ]
    return found


def joined(form: str, *parts: Piece, other: str = "") -> Piece:
    """Return a piece of pieces."""
    return Piece(
        form.format(*(part.ours for part in parts)),
        (other or form).format(*(part.other for part in parts)),
        any(part.tensor for part in parts),
    )


class Maker:
    """Makes expressions over the columns of a query.

    Parameters
    ----------
    draw : callable
        Of Hypothesis.
    known : dict
        The columns by kind.
    """

    def __init__(self, draw: Any, known: dict[str, list[Piece]]) -> None:
        self.draw = draw
        self.known = known

    def one(self, *values: Any) -> Any:
        return self.draw(st.sampled_from(values))

    def few(self, low: int, high: int) -> range:
        return range(self.draw(st.integers(low, high)))

    def constant(self, kind: str) -> Piece:
        values = {
            NUMBER: ("-2", "-1", "0", "1", "2", "3", "0.5", "-1.25"),
            TEXT: ("'a'", "'ab'", "'b'", "''"),
            TRUTH: ("TRUE", "FALSE"),
        }
        return Piece(*(self.one(*values[kind]),) * 2)

    def column(self, kind: str) -> Piece:
        return self.one(*self.known[kind]) if self.known[kind] else self.constant(kind)

    def value(self, kind: str, depth: int) -> Piece:
        """Return an expression of a kind, with at most `depth` operations above each other."""
        if depth == 0:
            return self.column(kind) if self.one(True, True, True, False) else self.constant(kind)
        if kind == TRUTH:
            return self.condition(depth)
        less = depth - 1
        form = self.one("case", "short case", "coalesce", "own", "own", "own")
        if form == "case":
            return joined("CASE WHEN {} THEN {} ELSE {} END", self.condition(less), self.value(kind, less), self.value(kind, less))  # fmt: skip
        if form == "short case":
            return joined("CASE WHEN {} THEN {} END", self.condition(less), self.value(kind, less))
        if form == "coalesce":
            return joined("COALESCE({}, {})", self.value(kind, less), self.value(kind, less))
        if kind == TEXT:
            return joined("({} || {})", self.value(kind, less), self.value(kind, less))
        form = self.one("({} + {})", "({} - {})", "({} * {})", "/", "%", "abs({})", "(- {})")
        if form == "/":
            by = self.one("2", "4", "-2")
            return joined(f"({{}} / {by})", self.value(kind, less), other=f"({{}} / {by}.0)")
        if form == "%":
            return joined(f"({{}} % {self.one('2', '3')})", *self.whole())
        return joined(form, *(self.value(kind, less) for _ in range(form.count("{}"))))

    def key(self, kind: str) -> Piece:
        """Return what rows are ordered or grouped by: no constant, as a number would be the place of a column."""
        if self.one(True, False):
            return self.column(kind)
        if kind == TEXT:
            return joined("({} || {})", self.column(kind), self.value(kind, 0))
        if kind == TRUTH:
            return joined("({} > {})", self.column(NUMBER), self.value(NUMBER, 0))
        return joined("({} + {})", self.column(kind), self.value(kind, 1))

    def whole(self) -> list[Piece]:
        """Return a column of whole numbers from 0: below 0, NumPy and SQL disagree on the sign of a remainder."""
        found = [one for one in self.known[NUMBER] if one.ours.rpartition(".")[2] == "j"]
        return [self.one(*found) if found else Piece("7", "7")]

    def condition(self, depth: int) -> Piece:
        if depth == 0:
            return joined(
                f"({{}} {self.one('<', '<=', '=', '<>', '>', '>=')} {{}})",
                self.column(NUMBER),
                self.constant(NUMBER),
            )
        less = depth - 1
        form = self.one("({} AND {})", "({} OR {})", "(NOT {})", "compare", "compare", "between", "in", "null", "like", "sub", "truth")  # fmt: skip
        no = self.one("", "", "NOT ")
        if form == "truth":
            return self.value(TRUTH, 0)
        if form == "compare":
            kind, sign = (
                self.one(NUMBER, NUMBER, TEXT),
                self.one("<", "<=", "=", "<>", ">", ">=", "!="),
            )
            return joined(f"({{}} {sign} {{}})", self.value(kind, less), self.value(kind, less))
        if form == "between":
            return joined(f"({{}} {no}BETWEEN {{}} AND {{}})", *(self.value(NUMBER, less) for _ in range(3)))  # fmt: skip
        if form == "in":
            kind = self.one(NUMBER, TEXT)
            listed = [self.constant(kind).ours for _ in self.few(1, 3)]
            listed += ["NULL"] * self.one(0, 0, 0, 1)
            return joined(f"({{}} {no}IN ({', '.join(listed)}))", self.value(kind, less))
        if form == "null":
            return joined(f"({{}} IS {no}NULL)", self.value(self.one(NUMBER, TEXT, TRUTH), less))
        if form == "like":
            pattern = self.one("'a%'", "'_'", "'%b'")
            return joined(f"({{}} {no}LIKE {pattern})", self.value(TEXT, less))
        if form == "sub":
            inner = Maker(
                self.draw, {NUMBER: [Piece("k", "k"), Piece("v", "v")], TEXT: [], TRUTH: []}
            )
            where = inner.condition(less).ours if self.one(True, False) else "k IS NOT NULL"
            return joined(
                f"({{}} {no}IN (SELECT k FROM other WHERE {where}))", self.value(NUMBER, 0)
            )
        return joined(form, *(self.condition(less) for _ in range(form.count("{}"))))

    def where(self) -> Piece:
        return joined(" WHERE {}", self.condition(self.one(1, 2, 2))) if self.one(True, True, False) else Piece("", "")  # fmt: skip


def listed(values: list[Piece]) -> Piece:
    """Return a list of SELECT with the names c0, c1, and so on."""
    return joined(", ".join(f"{{}} AS c{n}" for n in range(len(values))), *values)


def finished(query: Piece, is_ordered: bool = False) -> Asked:
    return Asked(query.ours, query.other, is_ordered)


@st.composite
def queries(draw: Any) -> Asked:
    """Return a query on ``dataset`` and ``other``."""
    make = Maker(draw, columns())
    shape = make.one(plain, plain, grouped, distinct, combined, matched, outer, nested)
    return shape(make)


def kinds(make: Maker) -> list[str]:
    return [make.one(NUMBER, NUMBER, TEXT, TRUTH) for _ in make.few(1, 3)]


def ordered(make: Maker) -> Piece:
    key = make.key(make.one(NUMBER, NUMBER, TEXT))
    way = f"{make.one('', ' ASC', ' DESC')} NULLS {make.one('FIRST', 'LAST')}"
    return joined(f" ORDER BY {{}}{way}, sid{make.one('', ' DESC')}", key)


def plain(make: Maker) -> Asked:
    values = listed([make.value(kind, make.one(0, 1, 2)) for kind in kinds(make)])
    limit = make.one("", " LIMIT 5", " LIMIT 4 OFFSET 3", " LIMIT 0", " LIMIT 100 OFFSET 20")
    form = f"SELECT {{}} FROM dataset{{}}{{}}{limit}"
    return finished(joined(form, values, make.where(), ordered(make)), True)


def total(make: Maker) -> Piece:
    name = make.one("count(*)", "count", "count(DISTINCT {})", "sum", "min", "max", "avg")
    if name == "count(*)":
        return Piece(name, name)
    form = name if "{}" in name else name + "({})"
    return joined(form, make.value(NUMBER, make.one(0, 0, 1)))


def grouped(make: Maker) -> Asked:
    keys = [make.key(kind) for kind in kinds(make)[:2]]
    values = listed(keys + [total(make) for _ in make.few(1, 3)])
    by = joined(" GROUP BY " + ", ".join("{}" for _ in keys), *keys)
    having = Piece("", "")
    if make.one(True, False):
        having = joined(f" HAVING {{}} {make.one('>', '<=', '<>')} {make.one('0', '1', '2.5')}", total(make))  # fmt: skip
    return finished(joined("SELECT {} FROM dataset{}{}{}", values, make.where(), by, having))


def distinct(make: Maker) -> Asked:
    values = listed([make.value(kind, make.one(0, 1)) for kind in kinds(make)])
    return finished(joined("SELECT DISTINCT {} FROM dataset{}", values, make.where()))


def combined(make: Maker) -> Asked:
    how = make.one("UNION ALL", "UNION", "INTERSECT", "EXCEPT")
    chosen = kinds(make)
    sides = []
    for _ in range(2):
        values = [make.value(kind, make.one(0, 1)) for kind in chosen]
        sides.append(joined("SELECT {} FROM dataset{}", listed(values), make.where()))
    return finished(joined(f"{{}} {how} {{}}", *sides))


def side_by_side(make: Maker, tensors: bool) -> Maker:
    known = columns("d.", tensors)
    known[NUMBER] += [Piece("o.k", "o.k"), Piece("o.v", "o.v")]
    known[TEXT] += [Piece("o.name", "o.name")]
    return Maker(make.draw, known)


def matched(make: Maker) -> Asked:
    both = side_by_side(make, True)
    values = listed([both.value(kind, make.one(0, 1)) for kind in kinds(make)])
    on = Piece("d.j = o.k", "d.j = o.k")
    if make.one(True, False):
        on = joined("{} AND {}", on, both.condition(1))
    return finished(joined("SELECT {} FROM dataset d JOIN other o ON {}{}", values, on, both.where()))  # fmt: skip


def outer(make: Maker) -> Asked:
    """A join that keeps rows without a partner; it takes no conditions on tensors."""
    both = side_by_side(make, False)
    values = [side_by_side(make, True).value(kind, make.one(0, 1)) for kind in kinds(make)]
    form = "SELECT {} FROM dataset d LEFT JOIN other o ON d.j = o.k AND {}{}"
    return finished(joined(form, listed(values), both.condition(1), both.where()))


def nested(make: Maker) -> Asked:
    """A query on another one, by a name or in brackets."""
    chosen = kinds(make)
    inner = joined(
        "SELECT sid, {} FROM dataset{}",
        listed([make.value(kind, make.one(0, 1)) for kind in chosen]),
        make.where(),
    )
    known: dict[str, list[Piece]] = {NUMBER: [Piece("sid", "sid")], TEXT: [], TRUTH: []}
    for n, kind in enumerate(chosen):
        known[kind].append(Piece(f"c{n}", f"c{n}"))
    outside = Maker(make.draw, known)
    values = listed([outside.value(kind, make.one(0, 1)) for kind in kinds(make)])
    where = outside.where()
    if make.one(True, False):
        return finished(joined("WITH q AS ({}) SELECT {} FROM q{}", inner, values, where))
    if make.one(True, False):
        form = "SELECT {1}, {3} AS t FROM ({0}) AS q{2} GROUP BY {1}"
        keys = [outside.column(NUMBER)]
        key = joined("{} AS g", *keys)
        return finished(joined(form.replace("GROUP BY {1}", "GROUP BY g"), inner, key, where, total(outside)))  # fmt: skip
    return finished(joined("SELECT {1} FROM ({0}) AS q{2}", inner, values, where))
