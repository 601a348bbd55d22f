"""Compute columns with their transforms, and conditions (`weir.model.transforms`), of rows.

A value that a transform can't make of a row, such as `int(text)` of `x`, is null there, and the row
is among those that fail. Types are known from rows that are none.
"""

import functools
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import InvalidInput
from weir.kernel.comparisons import Side, compared, is_exact
from weir.kernel.schema import absent, from_arrow
from weir.kernel.transform_values import (
    INSTANT,
    Mask,
    Outcome,
    Unfit,
    Values,
    day,
    instant,
    made,
    shown,
    texts_of,
)
from weir.model.schema import Kind, show
from weir.model.transform_nodes import Call, Column, Constant, Node, Transform
from weir.model.transforms import COMPARISONS


@dataclass(frozen=True)
class Computation:
    """A transform or a condition over rows with the columns of a schema, of which the rows may lack
    some: these are null, or what `weir.kernel.schema.to_read` says. Processes may send it to each
    other.

    `what` names it in errors."""

    transform: Transform
    schema: pa.Schema
    what: str

    @classmethod
    def of(cls, transform: Transform, schema: pa.Schema, what: str) -> "Computation":
        """Return what computes the transform of rows with these columns. Raises InvalidInput for a
        column that is not there, and for a type that a transform does not take."""
        used = {name.lower() for name in transform.columns}
        found = cls(transform, pa.schema([one for one in schema if one.name.lower() in used]), what)
        found.over(schema.empty_table())
        return found

    @classmethod
    def of_key(cls, transform: Transform, schema: pa.Schema, what: str) -> "Computation":
        """Return what computes keys, as `of`. Raises InvalidInput for values without texts, too."""
        found = cls.of(transform, schema, what)
        found.texts(found.schema.empty_table())
        return found

    @property
    def columns(self) -> list[str]:
        """The columns that it uses, as the schema names them."""
        return list(self.schema.names)

    @functools.cached_property
    def type(self) -> pa.DataType:
        """The type of the values."""
        return self.over(self.schema.empty_table()).values.type

    @property
    def kind(self) -> Kind:
        """The type of the values in Spark's JSON form."""
        return from_arrow(pa.schema([pa.field("value", self.type)]))[0]["type"]

    def over(self, rows: pa.Table) -> Outcome:
        """Return the values of rows."""
        return self._over(rows, lambda found: found)

    def texts(self, rows: pa.Table) -> Outcome:
        """Return the values of rows as texts, as routing keys have them (semantics 1.6)."""
        return self._over(rows, lambda found: Outcome(texts_of(found.values), found.failed))

    def _over(self, rows: pa.Table, form: Callable[[Outcome], Outcome]) -> Outcome:
        used = {name.lower() for name in self.transform.columns}
        there = [name for name in reversed(rows.column_names) if name.lower() in used]
        columns = {name.lower(): rows[name] for name in there}
        for one in self.schema:
            if one.name.lower() not in columns:
                columns[one.name.lower()] = pa.chunked_array([absent(one, rows.num_rows)])
        for name in self.transform.columns:
            if name.lower() not in columns:
                names = ", ".join([one for one in rows.column_names if one[0] != "_"][:8])
                raise InvalidInput(
                    "expression_not_computable",
                    f"the {self.what} {self.transform.text!r} uses {name!r}, which is no column of "
                    f"the rows (they have {names}); name a column, or put a text in quotes.",
                )
        try:
            return form(_Rows(columns, rows.num_rows).outcome(self.transform.node))
        except pa.ArrowCapacityError:  # of so many rows the texts are too long for one array
            if rows.num_rows < 2:
                raise
            half = rows.num_rows // 2
            return _appended(*(self._over(one, form) for one in (rows[:half], rows[half:])))
        except Unfit as wrong:
            raise InvalidInput(
                "expression_not_computable",
                f"the {self.what} {self.transform.text!r} can't be computed from these rows: "
                f"{wrong}.",
            ) from None


def condition_over(transform: Transform, schema: pa.Schema, what: str) -> Computation:
    """Return what computes a condition. Raises InvalidInput as `Computation.of`, and for one that
    is neither true nor false."""
    found = Computation.of(transform, schema, what)
    if not pa.types.is_boolean(found.type):
        raise InvalidInput(
            "expression_invalid",
            f"the {what} {transform.text!r} is {show(found.kind)}, neither true nor false; compare "
            "it with something, such as customer = 'C123'.",
        )
    return found


def fulfilled(found: Outcome) -> Mask:
    """Return which rows fulfil a condition: not those for which it is null, nor those that fail."""
    true = pc.fill_null(found.values, False)
    return true if found.failed is None else pc.and_not(true, found.failed)


def failing(found: Outcome) -> Mask:
    """Return which rows fail."""
    return _false(found.values) if found.failed is None else found.failed


class _Rows:
    """Rows of which values are computed. `columns`: by their names in lower case."""

    def __init__(self, columns: dict[str, Values], rows: int) -> None:
        self._columns, self._count = columns, rows

    def outcome(self, node: Node) -> Outcome:
        """Return the values of a node."""
        if isinstance(node, Column):
            return Outcome(self._column(node))
        if isinstance(node, Constant):
            return Outcome(pa.chunked_array([pa.repeat(_scalar(node), self._count)]))
        if node.name in ("and", "or", "not"):
            return self._joined(node)
        if node.name == "coalesce":
            return self._first(node)
        if node.name == "in":
            return self._one_of(node)
        if node.name in COMPARISONS:
            return self._compared(node)
        if node.name == "concat":
            return self._concat(node)
        options = [arg.value for arg in node.args if isinstance(arg, Constant)]
        of = [arg for arg in node.args if not isinstance(arg, Constant)]
        if len(of) != 1:
            raise Unfit(f"{node.name} takes a column")
        given = self.outcome(of[0])
        if node.name == "is null":
            return Outcome(_null_at(given.failed, pc.is_null(given.values)), given.failed)
        found = made(node, given.values, options)
        return Outcome(found.values, _either(given.failed, found.failed))

    def _column(self, node: Column) -> Values:
        found = self._columns[node.path[0].lower()]
        for at, name in enumerate(node.path[1:], start=1):
            if not pa.types.is_struct(found.type):
                raise Unfit(f"{'.'.join(node.path[:at])} is {shown(found.type)} and has no fields")
            names = {found.type.field(i).name.lower(): i for i in range(found.type.num_fields)}
            if name.lower() not in names:
                raise Unfit(f"{'.'.join(node.path[:at])} has no field {name!r}")
            found = pc.struct_field(found, names[name.lower()])
        return found

    def _joined(self, node: Call) -> Outcome:
        """Return a condition made of others. It fails where one of these does and the others do not
        decide it."""
        some = [self.outcome(arg) for arg in node.args]
        for one in some:
            if not pa.types.is_boolean(one.values.type):
                raise Unfit(
                    f"{node.name.upper()} takes conditions, and not {shown(one.values.type)}"
                )
        parts = [one.values for one in some]
        if node.name == "not":
            return Outcome(pc.invert(parts[0]), some[0].failed)
        join = pc.and_kleene if node.name == "and" else pc.or_kleene
        found = functools.reduce(join, parts)
        failed = functools.reduce(_either, [one.failed for one in some])
        return Outcome(found, failed and pc.and_(failed, pc.is_null(found)))

    def _first(self, node: Call) -> Outcome:
        """Return the first value that is not null; what comes after it may fail."""
        columns = [self.outcome(a) for a in node.args if not isinstance(a, Constant)]
        if not columns:
            raise Unfit("coalesce takes at least one column")
        kinds = [one.values.type for one in columns]
        kinds += [_scalar(a).type for a in node.args if isinstance(a, Constant)]
        kind = next((one for one in kinds if not pa.types.is_null(one)), kinds[0])
        numbers = [one.values.type for one in columns if not pa.types.is_null(one.values.type)]
        if numbers and all(map(is_exact, numbers)):
            kind = _wide_enough(numbers)
        found, failed = pa.chunked_array([pa.nulls(self._count, kind)]), None
        for arg in node.args:
            if isinstance(arg, Constant):
                constant = _in_type(_scalar(arg, kind), kind)
                one = Outcome(pa.chunked_array([pa.repeat(constant, self._count)]))
            else:
                one = columns.pop(0)
                one = Outcome(_in_type(one.values, kind), one.failed)
            if one.failed is not None:
                failed = _either(failed, pc.and_(one.failed, pc.is_null(found)))
            found = pc.coalesce(found, one.values)
        return Outcome(_null_at(failed, found), failed)

    def _concat(self, node: Call) -> Outcome:
        parts, failed = list[Side](), None
        for arg in node.args:
            if isinstance(arg, Constant):
                parts.append(pa.scalar(_constant_text(arg)))
                continue
            one = self.outcome(arg)
            parts.append(texts_of(one.values))
            failed = _either(failed, one.failed)
        return Outcome(pc.binary_join_element_wise(*parts, ""), failed)

    def _compared(self, node: Call) -> Outcome:
        found = [self.outcome(arg) for arg in node.args if not isinstance(arg, Constant)]
        if not found:
            raise Unfit("a comparison names at least one column")
        kind, columns = found[0].values.type, iter(found)
        left, right = (
            _scalar(arg, kind) if isinstance(arg, Constant) else next(columns).values
            for arg in node.args
        )
        failed = functools.reduce(_either, [one.failed for one in found])
        return Outcome(_against(node.name, left, right), failed)

    def _one_of(self, node: Call) -> Outcome:
        """Return whether a value is one of some constants."""
        if isinstance(node.args[0], Constant):
            raise Unfit("a comparison names at least one column")
        values, failed = self.outcome(node.args[0])
        options = [one for one in node.args[1:] if isinstance(one, Constant)]
        same = (_against("=", values, _scalar(one, values.type)) for one in options)
        found = functools.reduce(pc.or_kleene, same)
        return Outcome(found, failed and pc.and_(failed, pc.is_null(found)))


def _against(sign: str, left: Side, right: Side) -> Mask:
    """Return what a comparison gives. Raises Unfit."""
    try:
        return compared(sign, left, right)
    except TypeError:
        raise Unfit(f"{shown(left.type)} with {shown(right.type)} can't be compared") from None


def _scalar(constant: Constant, kind: pa.DataType | None = None) -> pa.Scalar:
    """Return a constant in a type that can be compared with a column's. Raises Unfit for a text
    that is no date or time where one is needed."""
    given = constant.value
    wanted: pa.DataType | None = None
    if constant.kind == "date":
        wanted = pa.date32()
    elif constant.kind:  # a column of times without a zone is compared with one of its kind
        wanted = kind if kind is not None and pa.types.is_timestamp(kind) else INSTANT
    elif isinstance(given, str) and kind is not None:
        is_time = pa.types.is_date32(kind) or pa.types.is_timestamp(kind)
        wanted = kind if is_time else None
    if wanted is not None:
        texts = pa.chunked_array([[str(given)]], pa.string())
        found = day(texts) if pa.types.is_date32(wanted) else instant(texts)
        if found.values.null_count:
            raise Unfit(f"a text in it is no {shown(wanted)}")  # without what may be a secret
        return found.values.cast(wanted)[0]
    if isinstance(given, Decimal):
        whole = given == given.to_integral_value() and abs(given) < 1 << 63
        return pa.scalar(int(given)) if whole else _of_decimal(given)
    return pa.scalar(given)


def _of_decimal(given: Decimal) -> pa.Scalar:
    _, digits, exponent = given.as_tuple()
    assert isinstance(exponent, int), given  # a text of digits
    scale = max(0, -exponent)
    if max(len(digits), scale) <= 38 and exponent <= 0:
        return pa.scalar(given, pa.decimal128(38, scale))
    return pa.scalar(float(given))


def _appended(one: Outcome, other: Outcome) -> Outcome:
    """Return what was computed of rows, and of those after them."""
    values = pa.chunked_array([*one.values.chunks, *other.values.chunks], one.values.type)
    if one.failed is None and other.failed is None:
        return Outcome(values)
    return Outcome(values, pa.chunked_array([*failing(one).chunks, *failing(other).chunks]))


def _constant_text(constant: Constant) -> str:
    given = constant.value
    if constant.kind:
        return str(texts_of(pa.chunked_array([[_scalar(constant)]]))[0])
    if isinstance(given, bool):
        return str(given).lower()
    return format(given, "f") if isinstance(given, Decimal) else given


def _wide_enough(kinds: list[pa.DataType]) -> pa.DataType:
    """Return the type that has all values of whole numbers and decimals. Raises Unfit."""
    if all(map(pa.types.is_integer, kinds)):
        return max(kinds, key=lambda one: one.bit_width)
    whole = [(one.precision, one.scale) if pa.types.is_decimal(one) else (19, 0) for one in kinds]
    scale = max(scale for _, scale in whole)
    precision = max(digits - scale for digits, scale in whole) + scale
    if precision > 38:
        raise Unfit("no decimal has all values of these columns")
    return pa.decimal128(precision, scale)


def _in_type(given: Side, kind: pa.DataType) -> Side:
    """Return a column or a constant in another type that has its values. Raises Unfit."""
    if given.type == kind:
        return given
    if pa.types.is_null(given.type):
        return given.cast(kind)
    if is_exact(given.type) and is_exact(kind):
        with suppress(pa.ArrowInvalid):
            if pa.types.is_integer(given.type) and pa.types.is_decimal(kind):
                given = given.cast(pa.int64()).cast(pa.decimal128(19, 0))
            return given.cast(kind)
    raise Unfit(f"{shown(given.type)} is not {shown(kind)}")


def _null_at(failed: Mask | None, values: Values) -> Values:
    """Return values without those of rows that fail."""
    return values if failed is None else pc.if_else(failed, pa.scalar(None, values.type), values)


def _either(one: Mask | None, other: Mask | None) -> Mask | None:
    if one is None or other is None:
        return one if other is None else other
    return pc.or_(one, other)


def _false(like: Values) -> Mask:
    return pa.chunked_array([pa.repeat(pa.scalar(False), len(like))])
