"""The emitter: LLVM IR as text, one function at a time.

A kernel is a function `void(ptr args, ptr buffers, i64 share, i64 shares, i64 thread)`; one of control flow
returns an i64. `args` is a block of 64-bit constants, `buffers` the addresses of the run's memory. A call
computes share number `share` of `shares`, in the scratch memory of its thread. Variables that loops change
are stack slots, which LLVM promotes to registers. Vectors and scalars are emitted by the same methods.
"""

from __future__ import annotations

import contextlib
import struct
from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.backends.cpu.emit.interleaving import interleaved

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "i128": 128, "half": 16, "float": 32, "double": 64}


class Kind(NamedTuple):
    """An LLVM type: a scalar (`float`, `double`, `i1` to `i64`, `ptr`), or a vector of `lanes` of it."""

    scalar: str
    lanes: int = 1

    def __str__(self) -> str:
        return self.scalar if self.lanes == 1 else f"<{self.lanes} x {self.scalar}>"

    @property
    def bits(self) -> int:
        """The bits of one lane."""
        return BITS[self.scalar]

    @property
    def is_float(self) -> bool:
        """Whether the scalar is float, double or half."""
        return self.scalar in {"float", "double", "half"}

    def of(self, scalar: str) -> Kind:
        """Return the type with the same lanes of another scalar."""
        return Kind(scalar, self.lanes)

    @property
    def suffix(self) -> str:
        """The type in the name of an intrinsic: `f32`, `v16f32`."""
        base = {"float": "f32", "double": "f64", "half": "f16"}.get(self.scalar, self.scalar)
        return base if self.lanes == 1 else f"v{self.lanes}{base}"


class Register(NamedTuple):
    """An SSA value: its name or constant text, and its type."""

    name: str
    kind: Kind

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Variable(NamedTuple):
    """A stack slot that a loop changes."""

    address: str
    kind: Kind


_RARELY = ", !prof !0"
_WEIGHTS = '!0 = !{!"branch_weights", i32 1, i32 1000}'
POINTER, INDEX, BOOL = Kind("ptr"), Kind("i64"), Kind("i1")


class Emitter:  # ruff: ignore[too-many-public-methods]  the instructions that kernels consist of
    """Collects the instructions of one function.

    >>> e = Emitter()
    >>> x = e.binary("add", e.index(1), e.index(2))
    >>> str(x)
    'i64 %t1'
    """

    def __init__(self, *, opaque_loops: bool = False) -> None:
        """Begin a function. With `opaque_loops` the indices of loops are opaque.

        LLVM then does not try to reduce the strength of addresses, which for a large tile takes a third of
        the time to generate code, and makes it no faster.
        """
        self._opaque_loops = opaque_loops
        self._entry: list[str] = []  # stack slots: they must be in the first block
        self._lines: list[str] = []
        self._tables: dict[str, str] = {}  # the names of constants
        self._declared: set[str] = set()
        self._has_rare = False
        self._count = 0
        self.block = Register("%args", POINTER)  # of arguments

    # ------------------------------------------------------------ text

    def fresh(self) -> str:
        """Return a new number for a name."""
        self._count += 1
        return str(self._count)

    def value(self, kind: Kind, text: str) -> Register:
        """Emit an instruction with a result."""
        name = f"%t{self.fresh()}"
        self._lines.append(f"  {name} = {text}")
        return Register(name, kind)

    def effect(self, text: str) -> None:
        """Emit an instruction without a result."""
        self._lines.append(f"  {text}")

    def label(self, name: str) -> None:
        """Begin a block."""
        self._lines.append(f"{name}:")

    def interleave(self, parts: Iterable[Callable[[], None]]) -> None:
        """Emit the instructions of independent parts interleaved."""
        lines, found = self._lines, list[list[str]]()
        for part in parts:
            self._lines = []
            part()
            found.append(self._lines)
        self._lines = [*lines, *interleaved(found)]

    def text(self, name: str = "kernel", result: Register | None = None) -> str:
        """Return the module: the function, which returns `result` if there is one, and declarations."""
        last, kind = ("  ret void", "void") if result is None else (f"  ret {result}", str(result.kind))
        body = "\n".join([*self._entry, "  br label %begin", "begin:", *self._lines, last])
        tables = [f"{place} = private unnamed_addr constant {row}" for row, place in self._tables.items()]
        numbers = "i64 %share, i64 %shares, i64 %thread"
        head = f"define {kind} @{name}(ptr noalias %args, ptr noalias %buffers, {numbers})"
        weights = [_WEIGHTS] if self._has_rare else []
        return "\n".join([*tables, f"{head} {{\nentry:\n{body}\n}}", *sorted(self._declared), *weights, ""])

    # ------------------------------------------------------------ constants

    @staticmethod
    def index(number: int) -> Register:
        """Return a 64-bit constant."""
        return Register(str(number), INDEX)

    @staticmethod
    def constant(kind: Kind, number: float) -> Register:
        """Return a constant in every lane; a number out of range is wrapped or rounded."""
        if kind.is_float:
            exact = struct.unpack("<f", struct.pack("<f", number))[0] if kind.scalar == "float" else number
            text = f"0x{struct.unpack('<Q', struct.pack('<d', exact))[0]:016X}"
            if kind.scalar == "half":
                text = f"0xH{struct.unpack('<H', struct.pack('<e', number))[0]:04X}"
        else:
            wrapped = int(number) & ((1 << kind.bits) - 1)
            text = str(
                wrapped - (1 << kind.bits) if kind.bits > 1 and wrapped >> (kind.bits - 1) else wrapped
            )
        return Register(text if kind.lanes == 1 else f"splat ({kind.scalar} {text})", kind)

    # ------------------------------------------------------------ arithmetic

    def binary(self, op: str, a: Register, b: Register) -> Register:
        """Emit `op a, b` of two registers of one type."""
        return self.value(a.kind, f"{op} {a.kind} {a.name}, {b.name}")

    def unary(self, op: str, a: Register) -> Register:
        """Emit `op a`, as fneg."""
        return self.value(a.kind, f"{op} {a}")

    def compare(self, op: str, a: Register, b: Register) -> Register:
        """Emit a comparison, `fcmp olt` or `icmp eq`; the result has i1 lanes."""
        return self.value(a.kind.of("i1"), f"{op} {a.kind} {a.name}, {b.name}")

    def select(self, condition: Register, a: Register, b: Register) -> Register:
        """Emit `a` where the condition is true, else `b`."""
        return self.value(a.kind, f"select {condition}, {a}, {b}")

    def convert(self, op: str, a: Register, scalar: str) -> Register:
        """Emit a conversion, `sext`, `fptrunc`, `bitcast` and so on."""
        to = a.kind.of(scalar)
        return self.value(to, f"{op} {a} to {to}")

    def intrinsic(self, name: str, *operands: Register, kind: Kind | None = None) -> Register:
        """Call the intrinsic `llvm.<name>.<type of the first operand>`."""
        result = kind or operands[0].kind
        return self.call(f"llvm.{name}.{operands[0].kind.suffix}", result, *operands)

    def call(self, name: str, kind: Kind, *operands: Register) -> Register:
        """Call a function by its full name."""
        self._declared.add(f"declare {kind} @{name}({', '.join(str(o.kind) for o in operands)})")
        return self.value(kind, f"call {kind} @{name}({', '.join(map(str, operands))})")

    def fma(self, a: Register, b: Register, c: Register) -> Register:
        """Emit `a * b + c`, rounded once."""
        return self.intrinsic("fma", a, b, c)

    def splat(self, x: Register, lanes: int) -> Register:
        """Emit a scalar in every lane."""
        if lanes in {1, x.kind.lanes}:
            return x
        kind = Kind(x.kind.scalar, lanes)
        first = self.value(kind, f"insertelement {kind} poison, {x}, i32 0")
        return self.value(
            kind, f"shufflevector {kind} {first.name}, {kind} poison, <{lanes} x i32> zeroinitializer"
        )

    def lane(self, x: Register, place: Register) -> Register:
        """Emit the lane at an index."""
        if x.kind.lanes == 1:
            return x
        return self.value(Kind(x.kind.scalar), f"extractelement {x}, {place}")

    def with_lane(self, x: Register, place: Register, lane: Register) -> Register:
        """Emit the lanes with another value at an index."""
        if x.kind.lanes == 1:
            return lane
        return self.value(x.kind, f"insertelement {x}, {lane}, {place}")

    def shuffle(self, x: Register, lanes: Sequence[int]) -> Register:
        """Emit other lanes of a vector, as many as it has."""
        places = ", ".join(f"i32 {lane}" for lane in lanes)
        return self.value(x.kind, f"shufflevector {x}, {x.kind} poison, <{len(lanes)} x i32> <{places}>")

    def any(self, condition: Register) -> Register:
        """Emit whether a condition is true in any lane."""
        if condition.kind.lanes == 1:
            return condition
        return self.intrinsic("vector.reduce.or", condition, kind=BOOL)

    def opaque(self, x: Register) -> Register:
        """Emit a copy of a value that LLVM cannot analyse across iterations."""
        return self.value(x.kind, f"freeze {x}")

    def _opaque_sum(self, index: Register) -> Register:
        # the sum with 0, as LLVM moves an instruction that makes the index itself opaque out of the loop
        return self.opaque(self.binary("add", index, self.index(0)))

    # ------------------------------------------------------------ indices

    def add(self, a: Register, b: Register | int) -> Register:
        """Emit the sum of two indices; adding 0 emits nothing."""
        if isinstance(b, int):
            if b == 0:
                return a
            b = self.index(b)
        return self.binary("add", a, b)

    def mul(self, a: Register, b: Register | int) -> Register:
        """Emit the product of two indices; multiplying by 1 emits nothing."""
        if isinstance(b, int):
            if b == 1:
                return a
            b = self.index(b)
        return self.binary("mul", a, b)

    def least(self, a: Register, b: Register) -> Register:
        """Emit the smaller of two signed indices."""
        return self.select(self.compare("icmp slt", a, b), a, b)

    def greatest(self, a: Register, b: Register) -> Register:
        """Emit the larger of two signed indices."""
        return self.select(self.compare("icmp sgt", a, b), a, b)

    # ------------------------------------------------------------ memory

    def argument(self, place: Register | int, scalar: str = "i64") -> Register:
        """Emit the load of a word of the block of arguments."""
        place = self.index(place) if isinstance(place, int) else place
        address = self.offset(self.block, place, "i64")
        return self.value(Kind(scalar), f"load {scalar}, {address}, align 8")

    def table(self, scalar: str, numbers: Sequence[int]) -> Register:
        """Return the address of a table of constant integers next to the code."""
        row = ", ".join(str(self.constant(Kind(scalar), number)) for number in numbers)
        text = f"[{len(numbers)} x {scalar}] [{row}]"
        return Register(self._tables.setdefault(text, f"@table{len(self._tables)}"), POINTER)

    def offset(self, base: Register, index: Register, scalar: str = "i8") -> Register:
        """Emit the address `index` elements after `base`."""
        if index.name == "0":
            return base
        return self.value(POINTER, f"getelementptr {scalar}, {base}, {index}")

    def load(
        self, address: Register, kind: Kind, mask: Register | None = None, align: int | None = None
    ) -> Register:
        """Emit a load; masked-off lanes are 0 and do not touch memory."""
        align = align or max(1, kind.bits // 8)
        if mask is None:
            return self.value(kind, f"load {kind}, {address}, align {align}")
        name = f"llvm.masked.load.{kind.suffix}.p0"
        self._declared.add(f"declare {kind} @{name}(ptr, i32, {mask.kind}, {kind})")
        return self.value(
            kind, f"call {kind} @{name}({address}, i32 {align}, {mask}, {kind} zeroinitializer)"
        )

    def store(
        self, x: Register, address: Register, mask: Register | None = None, align: int | None = None
    ) -> None:
        """Emit a store; masked-off lanes are not written."""
        align = align or max(1, x.kind.bits // 8)
        if mask is None:
            self.effect(f"store {x}, {address}, align {align}")
            return
        name = f"llvm.masked.store.{x.kind.suffix}.p0"
        self._declared.add(f"declare void @{name}({x.kind}, ptr, i32, {mask.kind})")
        self.effect(f"call void @{name}({x}, {address}, i32 {align}, {mask})")

    def gather(self, addresses: Register, kind: Kind, mask: Register | None) -> Register:
        """Emit a load from an address for each lane; masked-off lanes are 0."""
        lanes, align = kind.lanes, max(1, kind.bits // 8)
        chosen = mask or self.constant(Kind("i1", lanes), 1)
        name = f"llvm.masked.gather.{kind.suffix}.v{lanes}p0"
        self._declared.add(f"declare {kind} @{name}({addresses.kind}, i32, {chosen.kind}, {kind})")
        operands = f"{addresses}, i32 {align}, {chosen}, {kind} zeroinitializer"
        return self.value(kind, f"call {kind} @{name}({operands})")

    def scatter(self, x: Register, addresses: Register, mask: Register | None) -> None:
        """Emit a store to an address for each lane of the mask."""
        lanes, align = x.kind.lanes, max(1, x.kind.bits // 8)
        chosen = mask or self.constant(Kind("i1", lanes), 1)
        name = f"llvm.masked.scatter.{x.kind.suffix}.v{lanes}p0"
        self._declared.add(f"declare void @{name}({x.kind}, {addresses.kind}, i32, {chosen.kind})")
        self.effect(f"call void @{name}({x}, {addresses}, i32 {align}, {chosen})")

    def prefetch(self, address: Register) -> None:
        """Emit a prefetch of a cache line; any address is safe."""
        self._declared.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.effect(f"call void @llvm.prefetch.p0({address}, i32 0, i32 3, i32 1)")

    # ------------------------------------------------------------ variables and control flow

    def variable(self, initial: Register) -> Variable:
        """Return a new variable with a value."""
        slot = self.unset(initial.kind)
        self.assign(slot, initial)
        return slot

    def unset(self, kind: Kind) -> Variable:
        """Return a new variable without a value."""
        slot = Variable(f"%v{self.fresh()}", kind)
        self._entry.append(f"  {slot.address} = alloca {slot.kind}, align 64")
        return slot

    def stack(self, size: int) -> Register:
        """Return the address of `size` bytes on the stack."""
        name = f"%v{self.fresh()}"
        self._entry.append(f"  {name} = alloca [{size} x i8], align 64")
        return Register(name, POINTER)

    def get(self, slot: Variable) -> Register:
        """Emit the value of a variable."""
        return self.value(slot.kind, f"load {slot.kind}, ptr {slot.address}")

    def assign(self, slot: Variable, x: Register) -> None:
        """Emit a new value for a variable."""
        self.effect(f"store {x}, ptr {slot.address}")

    @contextlib.contextmanager
    def loop(self, low: Register, high: Register, step: Register | int = 1) -> Generator[Register]:
        """Emit a loop over indices from `low` while below `high`."""
        slot = self.variable(low)
        head, body, after = (f"l{self.fresh()}" for _ in range(3))
        self.effect(f"br label %{head}")
        self.label(head)
        place = self.get(slot)
        self.effect(f"br {self.compare('icmp slt', place, high)}, label %{body}, label %{after}")
        self.label(body)
        # ruff: ignore[fallible-context-manager]  an error ends the whole emission
        yield self._opaque_sum(place) if self._opaque_loops else place
        self.assign(slot, self.add(place, step))
        self.effect(f"br label %{head}")
        self.label(after)

    @contextlib.contextmanager
    def when(self, condition: Register, *, rarely: bool = False) -> Generator[None]:
        """Emit instructions that run if a scalar condition is true; `rarely` moves them out of line."""
        body, after = f"l{self.fresh()}", f"l{self.fresh()}"
        self._has_rare |= rarely
        self.effect(f"br {condition}, label %{body}, label %{after}{_RARELY if rarely else ''}")
        self.label(body)
        yield  # ruff: ignore[fallible-context-manager]  the same
        self.effect(f"br label %{after}")
        self.label(after)

    def repeat(self, body: Callable[[], Register]) -> None:
        """Emit a loop: `body` emits its instructions and the scalar condition to run them once more."""
        head, after = f"l{self.fresh()}", f"l{self.fresh()}"
        self.effect(f"br label %{head}")
        self.label(head)
        self.effect(f"br {body()}, label %{head}, label %{after}")
        self.label(after)

    def share(self, jobs: Register) -> tuple[Register, Register]:
        """Emit the bounds of the jobs of this share."""
        share, shares = Register("%share", INDEX), Register("%shares", INDEX)
        low = self.binary("udiv", self.mul(jobs, share), shares)
        high = self.binary("udiv", self.mul(jobs, self.add(share, 1)), shares)
        return low, high
