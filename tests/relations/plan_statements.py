"""Statements about people drawn at random, each with its definition in plain Python: slow and obvious."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cmp_to_key

from hypothesis import strategies as st

from plan_oracle import COMPARED, KINDS, TABLES, Expression, Expressions, known


@dataclass(frozen=True)
class Rows:
    """A relation: what stands in FROM, the kinds of its columns beside ``pid``, and its rows in a database."""

    sql: str
    columns: dict
    of: Callable
    mixes: bool = False

    def seen(self, alias):
        """Its columns as expressions."""

        def value(name):
            return lambda row: row[f"{alias}.{name}"]

        return [Expression(f"{alias}.{name}", kind, value(name)) for name, kind in self.columns.items()]

    def counted(self, database):
        """How often each row occurs."""
        return Counter(tuple(row.values()) for row in self.of(database))


def within(alias):
    """Rows whose columns have an alias before their names."""
    return lambda row: {name if name == "pid" else f"{alias}.{name}": value for name, value in row.items()}


def table(name):
    """A stored table, without rows of nobody known."""
    kinds = {each: KINDS.get(each, "float") for each in TABLES[name]}

    def of(database):
        rows = [{label: known(value) for label, value in row.items()} for row in database[name]]
        return rows if name == "codes" else [row for row in rows if row["pid"] is not None]

    return Rows(name, kinds, of)


class Statements(Expressions):
    """Makes relations of people's rows; with ``ties``, windows in an order of one column, without a definition."""

    ties = False

    def narrow(self, columns):
        """An expression that becomes a column: BIGINT holds it."""
        found = self.expression(columns, self.one(sorted({each.kind for each in columns})), self.few(2))
        return self.narrow(columns) if found.is_wide else found

    def relation(self, depth):
        """People's rows, made of those of tables."""
        if depth == 0:
            return table(self.one(["visits", "drugs"]))
        makers = [self.filtered, self.joined, self.beside_codes, self.reduced, self.united, self.grouped, self.numbered]
        return self.one(makers)(depth - 1)

    def items(self, columns, sql, *, extra=()):
        """SELECT list of the person and a few expressions, the columns that they become, and their values."""
        listed = [*(self.narrow(columns) for _ in range(1 + self.few(2))), *extra]
        return self.listed(listed, sql)

    def listed(self, listed, pid):
        names = [self.alias() for _ in listed]
        text = ", ".join([f"{pid} AS pid", *(f"{e.sql} AS {name}" for e, name in zip(listed, names, strict=True))])
        kinds = {name: each.kind for name, each in zip(names, listed, strict=True)}

        def row(pid_value, values):
            return {"pid": pid_value} | {n: each.of(values) for n, each in zip(names, listed, strict=True)}

        return text, kinds, row

    def where(self, columns):
        """A WHERE, or none."""
        if self.few(2) == 0:
            return "", lambda _: True
        found = self.condition(columns)
        return f" WHERE {found.sql}", lambda row: found.of(row) is True

    def filtered(self, depth):
        below = self.relation(depth)
        columns = below.seen("q")
        text, kinds, row = self.items(columns, "q.pid")
        where, holds = self.where(columns)
        return Rows(
            f"(SELECT {text} FROM {below.sql} AS q{where})", kinds,
            lambda db: [row(each["pid"], each) for each in map(within("q"), below.of(db)) if holds(each)],
        )  # fmt: skip

    def joined(self, depth):
        left, right = self.relation(depth), self.relation(0)
        columns, how = [*left.seen("l"), *right.seen("r")], self.one(["JOIN", "LEFT JOIN"])
        more = self.condition(columns, 1) if self.few(1) else None
        text, kinds, row = self.items(columns, "l.pid")
        where, holds = self.where(columns)
        on = "l.pid = r.pid" + ("" if more is None else f" AND {more.sql}")

        def rows(db):
            for one in left.of(db):
                own = within("l")(one)
                found = [within("r")(other) | own for other in right.of(db) if other["pid"] == one["pid"]]
                found = [each for each in found if more is None or more.of(each) is True]
                if not found and how == "LEFT JOIN":
                    found = [own | {f"r.{name}": None for name in right.columns}]
                yield from (row(one["pid"], each) for each in found if holds(each))

        sql = f"(SELECT {text} FROM {left.sql} AS l {how} {right.sql} AS r ON {on}{where})"
        return Rows(sql, kinds, lambda db: list(rows(db)))

    def beside_codes(self, depth):
        """A join with the public table."""
        left = self.relation(depth)
        pairs = [
            (f"l.{name}", of) for name, kind in left.columns.items() for of in {"int": "k", "text": "t"}.get(kind, "")
        ]
        if not pairs:
            return self.filtered(depth)
        own, of = self.one(sorted(pairs))
        how = self.one(["JOIN", "LEFT JOIN"])
        columns = [*left.seen("l"), *table("codes").seen("c")]
        text, kinds, row = self.items(columns, "l.pid")
        where, holds = self.where(columns)

        def rows(db):
            for each in map(within("l"), left.of(db)):
                found = [
                    each | within("c")(code)
                    for code in table("codes").of(db)
                    if each[own] is not None and code[of] == each[own]
                ]
                if not found and how == "LEFT JOIN":
                    found = [each | {f"c.{name}": None for name in "kwt"}]
                yield from (row(each["pid"], one) for one in found if holds(one))

        sql = f"(SELECT {text} FROM {left.sql} AS l {how} codes AS c ON {own} = c.{of}{where})"
        return Rows(sql, kinds, lambda db: list(rows(db)))

    def reduced(self, depth):
        """Rows of people of whom another relation has rows, or none."""
        left, right = self.relation(depth), self.relation(0)
        word = self.one(["", "NOT "])
        by = [name for name, kind in left.columns.items() if kind == "int"]
        text, kinds, row = self.items(left.seen("q"), "q.pid")
        exists = bool(self.few(1))
        seen = [*right.seen("s"), *(left.seen("q") if exists else [])]
        where, holds = (f" AND {c.sql}", c) if (c := self.condition(seen, 1)) and self.few(1) else ("", None)
        if exists:
            said = f"{word}EXISTS (SELECT 1 FROM {right.sql} AS s WHERE s.pid = q.pid{where})"
        elif by and self.few(2) == 0:
            name = self.one(by)
            said, holds = f"q.{name} {word}IN (SELECT k FROM codes)", None
        else:
            said = f"q.pid {word}IN (SELECT s.pid FROM {right.sql} AS s{where.replace(' AND ', ' WHERE ', 1)})"
        of_codes = "FROM codes" in said

        def is_there(db, each):
            if of_codes:  # NOT IN is read as NOT EXISTS, of what has a value
                value = each[f"q.{name}"]
                return value is not None and any(code["k"] == value for code in table("codes").of(db))
            others = (within("s")(other) for other in right.of(db) if other["pid"] == each["pid"])
            return any(holds is None or holds.of(other | each) is True for other in others)

        def rows(db):
            for each in map(within("q"), left.of(db)):
                unknown = of_codes and each[f"q.{name}"] is None
                if is_there(db, each) != bool(word) and not unknown:
                    yield row(each["pid"], each)

        return Rows(f"(SELECT {text} FROM {left.sql} AS q WHERE {said})", kinds, lambda db: list(rows(db)))

    def united(self, depth):
        parts = [self.relation(depth), self.relation(0)]
        both_kinds = sorted(set(parts[0].columns.values()) & set(parts[1].columns.values()) - {"int"}) or ["text"]
        kinds = [self.one(both_kinds) for _ in range(1 + self.few(1))]
        names, texts, rows = [], [], []
        for part in parts:
            columns = part.seen("q")
            text, _, row = self.listed([self.expression(columns, kind, 1) for kind in kinds], "q.pid")
            where, holds = self.where(columns)
            texts.append(f"SELECT {text} FROM {part.sql} AS q{where}")
            rows.append((part, row, holds))
            names.append(re.findall(r"AS (a\d+)(?=,|$)", text))

        def of(db):
            for part, row, holds in rows:
                for each in map(within("q"), part.of(db)):
                    if holds(each):
                        yield {"pid": each["pid"]} | dict(zip(names[0], [*row(0, each).values()][1:], strict=True))

        columns = dict(zip(names[0], kinds, strict=True))
        return Rows(f"({' UNION ALL '.join(texts)})", columns, lambda db: list(of(db)))

    def grouped(self, depth):
        """One row for each person, or for each group of a person's rows."""
        below = self.relation(depth)
        columns = below.seen("q")
        by = [self.one(columns)] if self.few(1) else []
        where, holds = self.where(columns)
        made_of = [self.aggregate(columns) for _ in range(1 + self.few(1))]
        text, kinds, row = self.listed([*by, *made_of], "q.pid")
        least, kept = self.few(2), self.condition(made_of, 1) if self.few(1) else None
        having = " HAVING COUNT(*) > 1" if least == 2 else "" if kept is None else f" HAVING {kept.sql}"

        def is_kept(group):
            return len(group["rows"]) > 1 if least == 2 else kept is None or kept.of(group) is True

        def of(db):
            groups = {}
            for each in filter(holds, map(within("q"), below.of(db))):
                groups.setdefault((each["pid"], *(one.of(each) for one in by)), []).append(each)
            for (pid, *_), rows in groups.items():
                group = rows[0] | {"rows": rows}
                if is_kept(group):
                    yield row(pid, group)

        grouping = ", ".join(["q.pid", *(each.sql for each in by)])
        sql = f"(SELECT {text} FROM {below.sql} AS q{where} GROUP BY {grouping}{having})"
        return Rows(sql, kinds, lambda db: list(of(db)))

    def aggregate(self, columns):
        """An aggregate, whose definition reads the rows of a group."""
        kind = self.one(sorted({each.kind for each in columns}))
        part = self.expression(columns, kind, 1)
        if part.is_wide:
            return self.aggregate(columns)
        kept = self.condition(columns, 1) if self.few(2) == 0 else None

        def values(group):
            rows = [each for each in group["rows"] if kept is None or kept.of(each) is True]
            return [value for value in map(part.of, rows) if value is not None]

        names = ["COUNT", "COUNT(DISTINCT", "MIN", "MAX"]
        names += ["SUM", "AVG", "COUNT(*)"] if kind == "int" else ["MEDIAN"] if kind == "float" else []
        name = self.one(["BOOL_OR", "BOOL_AND", "COUNT"] if kind == "truth" else names)
        function, is_numeric = AGGREGATES[name], kind in ("int", "float")
        found = {"COUNT": "int", "COUNT(DISTINCT": "int", "COUNT(*)": "int"}.get(name, "float" if is_numeric else kind)
        sql = f"{name} {part.sql})" if name.endswith("DISTINCT") else f"{name}({part.sql})"
        if name == "MEDIAN":  # engines round between two values each its own way, and some between infinite ones
            kept = between(part, 0.25, 64.0)
            sql = f"PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY {part.sql})"
        if name == "COUNT(*)":
            sql = name
            return self.filtered_by(
                sql, found, kept, lambda group: sum(kept is None or kept.of(e) is True for e in group["rows"])
            )
        return self.filtered_by(sql, found, kept, lambda group: as_double(function(values(group)), found))

    @staticmethod
    def filtered_by(sql, kind, kept, of):
        return Expression(sql if kept is None else f"{sql} FILTER (WHERE {kept.sql})", kind, of)

    def numbered(self, depth):
        """Rows with a number among those of their person, or beside what stands before them."""
        below = self.relation(depth)
        columns = below.seen("q")
        order = [(each, self.one(["ASC", "DESC"]), self.one(["FIRST", "LAST"])) for each in self.shuffled(columns)]
        function = self.one(["ROW_NUMBER", "RANK", "LAG", "LEAD"])
        if function == "RANK" or self.ties:
            order = order[:1]
        part = self.one(columns)
        said = ", ".join(f"{each.sql} {way} NULLS {nulls}" for each, way, nulls in order)
        call = f"{function}({part.sql})" if function in ("LAG", "LEAD") else f"{function}()"
        name, most = self.alias(), 1 + self.few(1)
        kind = part.kind if function in ("LAG", "LEAD") else "int"
        kind = "float" if kind == "int" and function in ("LAG", "LEAD") else kind
        listed = ", ".join(each.sql for each in columns)
        window = f"{call} OVER (PARTITION BY q.pid ORDER BY {said}) AS {name}"
        sql = f"(SELECT q.pid, {listed}, {window} FROM {below.sql} AS q)"

        def of(db):
            people = {}
            for each in map(within("q"), below.of(db)):
                people.setdefault(each["pid"], []).append(each)
            for rows in people.values():
                rows.sort(key=cmp_to_key(lambda one, other: compared(one, other, order)))
                for at, each in enumerate(rows):
                    if function == "ROW_NUMBER":
                        value = at + 1
                    elif function == "RANK":
                        value = 1 + sum(compared(other, each, order) < 0 for other in rows)
                    else:
                        beside = at + (1 if function == "LEAD" else -1)
                        value = part.of(rows[beside]) if 0 <= beside < len(rows) else None
                        value = float(value) if type(value) is int else value
                    yield {"pid": each["pid"]} | {n: each[f"q.{n}"] for n in below.columns} | {name: value}

        rows = Rows(sql, below.columns | {name: kind}, lambda db: list(of(db)))
        if function != "ROW_NUMBER" or self.few(2) == 0:
            return rows
        symbol = self.one(["=", "<="])
        text, kinds, row = self.listed(rows.seen("v"), "v.pid")

        def firsts(db):
            for each in map(within("v"), rows.of(db)):
                if COMPARED[symbol](each[f"v.{name}"], most):
                    yield row(each["pid"], each)

        sql = f"(SELECT {text} FROM {sql} AS v WHERE v.{name} {symbol} {most})"
        return Rows(sql, kinds, lambda db: list(firsts(db)))


def compared(one, other, order):
    """-1, 0 or 1, by the items of an ORDER BY."""
    for part, way, nulls in order:
        left, right = part.of(one), part.of(other)
        if left is None or right is None:
            if left is not right:
                return -1 if (left is None) == (nulls == "FIRST") else 1
        elif left != right:
            return -1 if (left < right) == (way == "ASC") else 1
    return 0


def between(part, low, high):
    """Whether a number is far from what overflows."""
    sql = f"({part.sql} BETWEEN CAST({low} AS DOUBLE PRECISION) AND CAST({high} AS DOUBLE PRECISION))"
    return Expression(sql, "truth", lambda row: (value := part.of(row)) is not None and low <= value <= high)


def median(values):
    """Midway between the two middle ones."""
    values = sorted(values)
    low, high = (values[(len(values) - 1) // 2], values[len(values) // 2])
    return low if low == high else low + (high - low) * 0.5


def as_double(value, kind):
    """What a person's rows come to: numbers are DOUBLEs, but for those of rows."""
    return known(float(value)) if kind == "float" and value is not None else value


AGGREGATES = {
    "COUNT": len, "COUNT(DISTINCT": lambda values: len(set(values)), "COUNT(*)": None,
    "MIN": lambda values: min(values, default=None), "MAX": lambda values: max(values, default=None),
    "SUM": lambda values: float(sum(values)) if values else None,
    "AVG": lambda values: float(sum(values)) / len(values) if values else None,
    "BOOL_OR": lambda values: any(values) if values else None,
    "BOOL_AND": lambda values: all(values) if values else None,
    "MEDIAN": lambda values: median(values) if values else None,
}  # fmt: skip


@st.composite
def statements(draw, ties=False):
    """A relation of people's rows, as a statement and as its definition."""
    return made_by(lambda most: draw(st.integers(0, most)), ties)


@st.composite
def neighbours(draw, several=8):
    """Statements of which each is drawn by the numbers of the first but for one."""
    numbers = []

    def drawn(most):
        numbers.append(draw(st.integers(0, most)))
        return numbers[-1]

    found = [made_by(drawn)]
    for _ in range(several):
        again, other = list(numbers), draw(st.integers(0, len(numbers) - 1))
        again[other] += 1
        left = iter(again)
        found.append(made_by(lambda most, left=left: next(left, 0) % (most + 1)))
    return found


def made_by(number, ties=False):
    """A relation by the numbers that are drawn."""
    maker = Statements(number)
    maker.ties = ties
    found = maker.relation(1 + maker.few(1))
    return Rows(found.sql, found.columns, found.of, maker.mixes)
