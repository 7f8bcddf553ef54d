"""Tables of arrays: many arrays as one argument of a kernel.

A specification is a NamedTuple whose annotations give the element type and the axes of each array.
A kernel called from Python receives the arrays as one array, their *table*, and makes them from it:
one argument instead of thirty, and no reference counts, which would cost more than the work. The
owner of a table must keep the arrays alive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, get_type_hints

import numpy as np
from numba import extending as untyped_extending
from numba import types
from numba.core import cgutils as untyped_cgutils
from numba.core.typing import templates
from numba.np import arrayobj
from numba.np.numpy_support import as_dtype, from_dtype
from numpy.typing import NDArray

from crawl_envs.compiled import IntArray
from crawl_envs.compiled.compiling import check_compilation

cgutils: Any = untyped_cgutils
extending: Any = untyped_extending
Template: Any = templates.AttributeTemplate
make_array: Any = arrayobj.make_array
populate_array: Any = arrayobj.populate_array

Kinds: TypeAlias = Mapping[Any, Sequence[str]]
"""Element types that tables are viewed as, and axes that are empty in a table of this kind. Kernels
are compiled for each, without what needs arrays of these axes."""
Records: TypeAlias = NDArray[Any]
SmallArray: TypeAlias = NDArray[np.int32]


class Field(NamedTuple):
    """Name, element type and axes of one array of a specification; an axis is a name or length."""

    name: str
    dtype: np.dtype[Any]
    axes: tuple[str | int, ...]


def fields_of(specification: type) -> tuple[Field, ...]:
    """Return the Field of each array that a specification, a NamedTuple, declares by its types."""
    hints = get_type_hints(specification, include_extras=True)
    return tuple(
        Field(
            name,
            np.dtype(hint.__metadata__[0]),
            tuple(int(axis) if axis.isdigit() else axis for axis in hint.__metadata__[1].split()),
        )
        for name, hint in hints.items()
    )


def axes_of(fields: Sequence[Field]) -> tuple[str, ...]:
    """Return the names of all axes of the arrays, each once."""
    axes = (axis for field in fields for axis in field.axes)
    return tuple(dict.fromkeys(axis for axis in axes if isinstance(axis, str)))


def zeros(
    fields: Sequence[Field], lengths: Mapping[str, int], initial: Mapping[str, Any] | None = None
) -> Iterator[NDArray[Any]]:
    """Yield a new array for each field; ``lengths`` has the length of each axis, else 0.

    The arrays have zeros, or the value that ``initial`` has for the name of an array.
    """
    for name, dtype, axes in fields:
        array = np.zeros([lengths.get(a, 0) if isinstance(a, str) else a for a in axes], dtype)
        if initial is not None and name in initial:
            array[...] = initial[name]
        yield array


def resized(
    arrays: Sequence[NDArray[Any]],
    fields: Sequence[Field],
    lengths: Mapping[str, int],
    initial: Mapping[str, Any],
) -> Iterator[NDArray[Any]]:
    """Yield copies of arrays whose axes have new ``lengths``; the old entries are kept.

    An array whose shape stays is yielded itself. New entries are as in :func:`zeros`.
    """
    every: dict[Any, Any] = lengths_of(arrays, fields) | dict(lengths)
    for array, field in zip(arrays, fields, strict=True):
        if array.shape != tuple(every.get(axis, axis) for axis in field.axes):
            before = array
            (array,) = zeros([field], every, initial)
            array[tuple(map(slice, before.shape))] = before
        yield array


def lengths_of(arrays: Sequence[NDArray[Any]], fields: Sequence[Field]) -> dict[str, int]:
    """Return the length of each axis by name; ValueError if arrays do not fit their fields."""
    lengths: dict[str, int] = {}
    for array, (name, dtype, axes) in zip(arrays, fields, strict=True):
        if array.dtype != dtype or array.ndim != len(axes) or not array.flags.c_contiguous:
            raise ValueError(f"{name} must be {dtype} of axes {axes}, got {array.shape}")
        for axis, length in zip(axes, array.shape, strict=True):
            if length != (axis if isinstance(axis, int) else lengths.setdefault(axis, length)):
                raise ValueError(f"{name} must have axes {axes} like others, got {array.shape}")
    return lengths


def table_of(
    arrays: Sequence[NDArray[Any]], lengths: dict[str, int], kinds: Kinds | None = None
) -> IntArray:
    """Return the table of arrays: lengths of axes and then addresses, as one argument for kernels.

    ``lengths`` come from :func:`lengths_of`. The dtype of the table is the first of ``kinds`` whose
    axes are all empty, or int64.

    Raises:
        ValueError: Numba's compilation is switched off.
    """
    check_compilation()
    table = np.array([*lengths.values(), *(a.ctypes.data for a in arrays)], np.int64)
    for kind, empty in (kinds or {}).items():
        if all(lengths[axis] == 0 for axis in empty):
            return table.view(kind)
    return table


class StateType(types.Type):
    """The type of a specification's arrays in compiled code: the address of their table.

    Functions pass the address. An array is made where it is read, from loads that the compiler may
    move and merge, because a table does not change.

    Args:
        name: its name.
        fields: the arrays.
        empty: axes that have length 0; a table is ``lacking`` the arrays that have them.
    """

    def __init__(self, name: str, fields: Sequence[Field], empty: Sequence[str] = ()) -> None:
        super().__init__(name=" ".join((name, *empty)))
        self.names, self.axes = [field.name for field in fields], axes_of(fields)
        self.lacking = {field.name for field in fields if set(field.axes) & set(empty)}
        self.shapes = {field.name: field.axes for field in fields}
        self.arrays: dict[str, Any] = {
            name: types.Array(from_dtype(dtype), len(axes), "C") for name, dtype, axes in fields
        }


extending.register_model(StateType)(extending.models.OpaqueModel)


class StateAttributes(Template):  # type: ignore[misc]  # numba has no types
    """The attributes of a StateType in compiled code: the arrays of its table, by name."""

    key = StateType

    def generic_resolve(self, kind: Any, name: str) -> Any:
        """Return the Numba type of the array called ``name``, or None."""
        return kind.arrays.get(name)


extending.infer_getattr(StateAttributes)


def _array_of(context: Any, builder: Any, kind: Any, table: Any, name: str) -> Any:
    """Generate the code that makes array ``name`` from the lengths and addresses in a table."""
    array_type, axes = kind.arrays[name], kind.shapes[name]
    array = make_array(array_type)(context, builder)
    words = builder.bitcast(table, cgutils.intp_t.as_pointer())

    def word(position: int) -> Any:
        load = builder.load(cgutils.gep_inbounds(builder, words, position))
        load.set_metadata("invariant.load", builder.module.add_metadata([]))
        return load

    size = cgutils.intp_t(context.get_abi_sizeof(context.get_data_type(array_type.dtype)))
    shape = [word(kind.axes.index(a)) if isinstance(a, str) else cgutils.intp_t(a) for a in axes]
    strides = [size]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    data = builder.inttoptr(word(len(kind.axes) + kind.names.index(name)), array.data.type)
    populate_array(array, data, shape, strides, size, meminfo=None)
    return array._getvalue()


extending.lower_getattr_generic(StateType)(_array_of)


def type_of(name: str, fields: Sequence[Field], table: Any, kinds: Kinds) -> StateType:
    """Return the StateType of a table; the table's dtype tells which axes are empty."""
    return StateType(name, fields, kinds.get(as_dtype(table.dtype).type, ()))


def read_table(kind: StateType, table: Any) -> Any:
    """Return signature and code generator of an intrinsic that reads a table as a StateType."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        words = make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.bitcast(words, cgutils.voidptr_t)

    return kind(table), generate
