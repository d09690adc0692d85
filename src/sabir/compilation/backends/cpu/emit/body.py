"""The body of a loop nest: loads, scalar functions and stores at one point of its loops."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from sabir.compilation.backends.cpu.emit.arguments import buffer_at
from sabir.compilation.backends.cpu.emit.casts import SCALARS, cast, same_bits
from sabir.compilation.backends.cpu.emit.emitter import Kind, Register
from sabir.compilation.backends.cpu.emit.functions import FUNCTIONS
from sabir.compilation.backends.cpu.emit.nest import (
    ANY,
    NEXT,
    STILL,
    Accumulated,
    Apply,
    ConstantStep,
    Fold,
    Load,
    Position,
    SizeArgument,
    TakeStep,
    access_name,
    take_name,
)
from sabir.compilation.backends.cpu.emit.small_floats import EXPONENTS, SMALL_FLOATS
from sabir.compilation.plan.entries import ERRORS
from sabir.elements import BFLOAT16
from sabir.elements import element as kind_named
from sabir.loops import element_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.compilation.backends.cpu.emit.arguments import Arguments
    from sabir.compilation.backends.cpu.emit.emitter import Emitter
    from sabir.compilation.backends.cpu.emit.nest import Access, Nest, Step

_MOST_NEAR = (1 << 31) - 1  # elements that an index of 32 bits can address


def kind_of(element: str, lanes: int = 1) -> Kind:
    """Return the type of an element in registers, where a bool is i1; in memory it is a byte."""
    return Kind(SCALARS[element], lanes)


def constant_of(e: Emitter, element: str, number: float) -> Register:
    """Return a number of an element type."""
    if element == "bfloat16":
        number = int(np.array(number, BFLOAT16.dtype).view(np.uint16))
    elif element in SMALL_FLOATS or element == EXPONENTS:
        number = int(np.array(number, kind_named(element).dtype).view(np.uint8))
    return e.constant(kind_of(element), number)


def function_of(op: str, element: str) -> Callable[..., Register]:
    """Return the function that emits a scalar function for operands of an element type."""
    if element.startswith("uint"):
        if op == "abs":
            return _same
        op = f"{op}_u" if f"{op}_u" in FUNCTIONS else op
    return FUNCTIONS[op]


def _same(_: Emitter, operands: Sequence[Register]) -> Register:
    return operands[0]


def memory_kind(element: str, lanes: int) -> Kind:
    """Return the type of an element in memory."""
    return Kind("i8", lanes) if element == "bool" else kind_of(element, lanes)


def from_memory(e: Emitter, x: Register, element: str) -> Register:
    """Emit the conversion of elements from their type in memory to that in registers."""
    return e.compare("icmp ne", x, e.constant(x.kind, 0)) if element == "bool" else x


@dataclass(slots=True)
class Point:
    """A point of the loops: the index along each axis, the lanes along the inner axis, and computed values.

    `values` has the values of steps at this point; `outer` is a point of an outer loop, whose values are
    valid here too.
    """

    indices: list[Register]
    lanes: int = 1
    mask: Register | None = None
    values: dict[int, Register] = field(default_factory=dict[int, Register])
    outer: Point | None = None

    def find(self, step: int) -> Register | None:
        """Return the value of a step that was computed here or in an outer loop; None if it was not."""
        found = self.values.get(step)
        if found is None and self.outer is not None:
            return self.outer.find(step)
        return found


class Body:
    """Emits the steps of a nest; with `column`, folds have one accumulator lane for each inner index."""

    def __init__(self, nest: Nest, arguments: Arguments) -> None:
        """Take a nest and its arguments."""
        self.e, self.nest, self._arguments = arguments.e, nest, arguments
        e, accesses = self.e, [arguments.group(access_name(n)) for n in range(len(nest.accesses))]
        self.column = not nest.reduced[nest.inner] if nest.axes else False
        self.sizes = arguments.numbers("sizes")
        self.begin = e.index(0)  # where passes over a row begin along the inner axis: a multiple of a block
        self._bases = [access.pointer("tensor") for access in accesses]
        self._strides = {
            (number, axis): stride
            for number, access in enumerate(nest.accesses)
            for axis, stride in zip(_any_axes(access), accesses[number].numbers("strides"), strict=True)
        }
        self._extents = {  # hoisted out of all loops
            step: cast(e, arguments.number("extents", step.place), "int64", step.element)
            for step in nest.steps
            if isinstance(step, SizeArgument)
        }
        self.spans = nest.varying(nest.inner)

    def start(self, access: int) -> Register:
        """Emit the address of the first element of an access."""
        return self._arguments.group(access_name(access)).pointer("tensor")

    def own_scratch(self) -> Register:
        """Emit the address of the scratch memory of this thread."""
        return self._arguments.own_scratch()

    def rebase(self, access: int, base: Register) -> None:
        """Set the base address of an access."""
        self._bases[access] = base

    # ------------------------------------------------------------ memory

    def stride(self, access: int, axis: int) -> Register:
        """Return the stride of an access along an axis in bytes, if that is an argument."""
        return self._strides[access, axis]

    def step(self, number: int, axis: int) -> Register:
        """Return the stride of an access along an axis in bytes."""
        access = self.nest.accesses[number]
        if access.strides[axis] == STILL:
            return self.e.index(0)
        if access.strides[axis] == NEXT:
            return self.e.index(element_bytes(access.element))
        return self._strides[number, axis]

    def address(self, number: int, point: Point) -> Register:
        """Emit the address of an access; outer axes first, so that LLVM hoists their part out of loops."""
        e, found = self.e, self._bases[number]
        for axis, stride in enumerate(self.nest.accesses[number].strides):
            if stride != STILL:
                found = e.offset(found, e.mul(point.indices[axis], self.step(number, axis)))
        return found

    def read(self, number: int, point: Point, base: Register | None = None) -> Register:
        """Emit the load of an access."""
        access = self.nest.accesses[number]
        stride = access.strides[self.nest.inner] if self.nest.axes else STILL
        address = self.address(number, point) if base is None else base
        if stride == STILL or point.lanes == 1:
            return self._loaded(access.element, address, 1, None)
        if stride == NEXT:
            return self._loaded(access.element, address, point.lanes, point.mask)
        return self._gathered(access.element, address, self._lane_offsets(number, point.lanes), point)

    def _loaded(self, element: str, address: Register, lanes: int, mask: Register | None) -> Register:
        return from_memory(self.e, self.e.load(address, memory_kind(element, lanes), mask), element)

    def _lane_offsets(self, number: int, lanes: int) -> Register:
        e = self.e
        stride = e.splat(self._strides[number, self.nest.inner], lanes)
        return e.binary("mul", stride, self.lane_numbers(lanes))

    def lane_numbers(self, lanes: int) -> Register:
        """Return the lanes 0, 1, 2, … of 64 bits."""
        kind = Kind("i64", lanes)
        return Register(f"<{', '.join(f'i64 {n}' for n in range(lanes))}>", kind)

    def _gathered(self, element: str, address: Register, offsets: Register, point: Point) -> Register:
        """Emit a gather: a load from an address plus an offset in bytes for each lane."""
        e = self.e
        pointers = e.value(Kind("ptr", point.lanes), f"getelementptr i8, {address}, {offsets}")
        return from_memory(e, e.gather(pointers, memory_kind(element, point.lanes), point.mask), element)

    def write(self, number: int, x: Register, point: Point, base: Register | None = None) -> None:
        """Emit the store of a value to an access."""
        e, access = self.e, self.nest.accesses[number]
        lanes = point.lanes if self.nest.axes and access.strides[self.nest.inner] != STILL else 1
        x = self._in_memory(number, x, lanes)
        address = self.address(number, point) if base is None else base
        if lanes == 1 or access.strides[self.nest.inner] == NEXT:
            e.store(x, address, point.mask if lanes > 1 else None)
            return
        self._scattered(x, address, self._lane_offsets(number, lanes), point)

    def _in_memory(self, access: int, x: Register, lanes: int) -> Register:
        x = self.e.splat(x, lanes)
        return self.e.convert("zext", x, "i8") if self.nest.accesses[access].element == "bool" else x

    def _scattered(self, x: Register, address: Register, offsets: Register, point: Point) -> None:
        """Emit a scatter: a store to an address plus an offset in bytes for each lane."""
        e = self.e
        pointers = e.value(Kind("ptr", point.lanes), f"getelementptr i8, {address}, {offsets}")
        e.scatter(x, pointers, point.mask)

    # ------------------------------------------------------------ values

    def value(self, number: int, point: Point) -> Register:
        """Emit a step at a point, unless it is computed; it is scalar if it does not vary in the lanes."""
        found = point.find(number)
        if found is None:
            step = self.nest.steps[number]
            at = point if self.spans[number] or point.lanes == 1 else Point(point.indices, outer=point)
            found = point.values[number] = self._emit(number, step, at)
        return found

    def fixed(self) -> Point:
        """Emit the steps that vary along no axis, before the loops."""
        nest, point = self.nest, Point([self.e.index(0)] * self.nest.axes)
        for number, step in enumerate(nest.steps):
            match step:
                case Load():
                    still = all(stride == STILL for stride in nest.accesses[step.access].strides)
                case Apply():
                    still = all(o in point.values for o in step.operands)
                case _:
                    still = isinstance(step, (ConstantStep, SizeArgument))
            if still:
                self.value(number, point)
        return point

    def wide(self, number: int, point: Point) -> Register:
        """Emit a step in all lanes of a point."""
        return self.e.splat(self.value(number, point), point.lanes)

    def _emit(self, number: int, step: Step, point: Point) -> Register:
        e = self.e
        match step:
            case Load():
                return self.read(step.access, point)
            case ConstantStep():
                return constant_of(e, step.element, step.number)
            case SizeArgument():
                return self._extents[step]
            case Position():
                return self._position(step.axis, point)
            case TakeStep():
                return self._take(number, step, point)
            case Apply():
                return self._apply(step, [self.value(o, point) for o in step.operands], point)
            case Fold() | Accumulated():
                raise AssertionError(f"step {number} is computed by the loops around it")

    def _apply(self, step: Apply, operands: Sequence[Register], point: Point) -> Register:
        e = self.e
        lanes = max(o.kind.lanes for o in operands)
        same = tuple(e.splat(o, lanes) for o in operands)
        source = self.nest.steps[step.operands[-1]].element
        if step.op == "cast":
            return cast(e, same[0], source, step.element)
        if step.op == "bits":
            return same_bits(e, same[0], step.element)
        del point
        return function_of(step.op, source)(e, same)

    def _position(self, axis: int, point: Point) -> Register:
        e, place = self.e, point.indices[axis]
        if axis != self.nest.inner or point.lanes == 1:
            return place
        return e.binary("add", e.splat(place, point.lanes), self.lane_numbers(point.lanes))

    def _take(self, number: int, step: TakeStep, point: Point) -> Register:
        """Emit a load at an index with a bounds check: an index outside of the axis is an error."""
        if step.near and self.value(step.place, point).kind.lanes > 1:
            return self._take_near(number, step, point)
        offsets, inside = self.displaced(number, step, point)
        self.check(inside, point)
        return self.read_at(step.access, offsets, point)

    def _take_near(self, number: int, step: TakeStep, point: Point) -> Register:
        """Emit a gather with 32-bit indices: one instruction, if the processor has it.

        For an axis too long for 32 bits, a negative index counts as an error, and the interpreter runs it.
        """
        e, index = self.e, self.value(step.place, point)
        size = self._arguments.group(take_name(number)).number("size")
        countable = e.least(size, e.index(_MOST_NEAR))
        wraps = e.select(e.compare("icmp eq", size, countable), countable, e.index(0))
        count, end = (e.splat(e.convert("trunc", x, "i32"), index.kind.lanes) for x in (wraps, countable))
        negative = e.compare("icmp slt", index, e.constant(index.kind, 0))
        index = e.select(negative, e.binary("add", index, count), index)
        inside = e.compare("icmp ult", index, end)
        self.check(inside, point)
        index = e.select(inside, index, e.constant(index.kind, 0))
        kind = memory_kind(step.element, index.kind.lanes)
        address = self.address(step.access, point)
        places = e.value(Kind("ptr", kind.lanes), f"getelementptr {kind.scalar}, {address}, {index}")
        return from_memory(e, e.gather(places, kind, point.mask), step.element)

    def displaced(self, number: int, step: TakeStep, point: Point) -> tuple[Register, Register]:
        """Emit the offset of an index in bytes (0 if it is outside of the axis), and whether it is inside."""
        e, take = self.e, self._arguments.group(take_name(number))
        index = self.value(step.place, point)
        index = cast(e, index, self.nest.steps[step.place].element, "int64")
        size, stride = (e.splat(take.number(name), index.kind.lanes) for name in ("size", "stride"))
        negative = e.compare("icmp slt", index, e.constant(index.kind, 0))
        index = e.select(negative, e.binary("add", index, size), index)
        inside = e.compare("icmp ult", index, size)
        index = e.select(inside, index, e.constant(index.kind, 0))
        return e.binary("mul", index, stride), inside

    def read_at(self, access: int, offsets: Register, point: Point) -> Register:
        """Emit the load of an access at offsets in bytes: one for all lanes, or one for each."""
        address = self.address(access, point)
        if offsets.kind.lanes == 1:
            return self.read(access, point, self.e.offset(address, offsets))
        offsets = self._with_lanes(access, offsets, point)
        return self._gathered(self.nest.accesses[access].element, address, offsets, point)

    def write_at(self, access: int, x: Register, offsets: Register, point: Point) -> None:
        """Emit the store of a value to an access at offsets in bytes."""
        address = self.address(access, point)
        if offsets.kind.lanes == 1:
            self.write(access, x, point, self.e.offset(address, offsets))
        else:
            self._scattered(
                self._in_memory(access, x, point.lanes),
                address,
                self._with_lanes(access, offsets, point),
                point,
            )

    def _with_lanes(self, access: int, offsets: Register, point: Point) -> Register:
        """Return offsets plus the offset of each lane along the inner axis."""
        e, strides = self.e, self.nest.accesses[access].strides
        moves = strides[self.nest.inner] if self.nest.axes else STILL
        if moves == STILL:
            return offsets
        if moves == ANY:
            return e.binary("add", offsets, self._lane_offsets(access, point.lanes))
        unit = e.constant(offsets.kind, element_bytes(self.nest.accesses[access].element))
        return e.binary("add", offsets, e.binary("mul", unit, self.lane_numbers(point.lanes)))

    def check(self, inside: Register, point: Point) -> None:
        """Emit an error of the run if a condition is false in an active lane of the point."""
        e = self.e
        outside = e.binary("xor", inside, e.constant(inside.kind, 1))
        if inside.kind.lanes > 1 and point.mask is not None:
            outside = e.binary("and", outside, point.mask)
        self.fail_where(e.any(outside))

    def fail_where(self, condition: Register) -> None:
        """Emit an error of the run if a scalar condition is true."""
        e = self.e
        with e.when(condition):
            e.store(e.index(1), buffer_at(e, e.index(ERRORS)))


def _any_axes(access: Access) -> list[int]:
    """Return the axes along which the stride of an access is an argument."""
    return [axis for axis, stride in enumerate(access.strides) if stride == ANY]
