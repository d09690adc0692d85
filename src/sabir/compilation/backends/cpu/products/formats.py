"""Products of operands narrower than the accumulators: 8-bit integers, halves, blocks with scales."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.emit.terms import GROUPS
from sabir.compilation.backends.cpu.passes import is_packed_zero
from sabir.compilation.backends.cpu.products.panels import Panels, lanes_of, packed_panels
from sabir.compilation.backends.cpu.products.spec import INTEGER_BITS, PART_STEPS, WORD
from sabir.compilation.backends.cpu.products.tiles import scratch_rows
from sabir.compilation.plan.decisions import Reason
from sabir.compilation.plan.entries import count_of, start_of
from sabir.loops import BYTES, HALVES, SMALL_INTEGERS, element_bytes, uniform

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.backends.cpu.building import PlanBuilder
    from sabir.compilation.backends.cpu.emit.terms import Dot, Groups
    from sabir.compilation.backends.cpu.heuristics import Heuristics
    from sabir.compilation.backends.cpu.products.spec import Product
    from sabir.compilation.fusion.views import Located
    from sabir.compilation.native import Target
    from sabir.compilation.plan.entries import Buffer, Entry
    from sabir.compilation.plan.signature import Packable
    from sabir.loops import Contract, Expression, Size


_NO_BLOCKS = Reason("they have no blocks")
_SYMBOLIC = Reason("the size of a block is symbolic")
_BYTE = 8  # bits
_BYTES_IN_WORDS = "uint8"
_LOOKED_UP = 16  # lanes of the instruction of AVX-512 that looks up floats in a table
_WAITING = 6  # registers for products of bytes that are not added yet


def of_integers(
    builder: PlanBuilder, product: Product, contract: Contract, depth: Sequence[tuple[Size, Size]],
    entry: Entry,
) -> Product:  # fmt: skip
    """Return the product with the fields of integers: `dot`, `ragged` and the type of the zero point."""
    dot, last = dot_of(builder.target), depth[-1][0]
    builder.decisions.add(entry.nodes, "instruction", f"instruction {dot}", *_why_slower(dot))
    ragged = not isinstance(last, int) or last % GROUPS[dot] != 0
    zero = "" if contract.a_zero is None else contract.a_zero.element
    return replace(product, depth_axes=len(depth), dot=dot, ragged=ragged, zero=zero)


def narrow_of(contract: Contract) -> str:
    """Return the element type of the panels of a product of floats, or "" if it is that of the product."""
    if not contract.is_float or contract.b.element == contract.element:
        return ""
    if is_in_words(contract):
        return _integer_of(contract)
    return "int8" if contract.b.element in BYTES | SMALL_INTEGERS else contract.b.element


def _integer_of(contract: Contract) -> str:
    """Return the element type of the integers of the second operand, which bytes may pack."""
    return f"uint{_BYTE // contract.packs}" if contract.packs > 1 else contract.b.element


def is_in_words(contract: Contract) -> bool:
    """Return whether words of panels pack the integers of the second operand.

    Blocks then are whole words, and so short that their sums have one part.
    """
    integer, block = _integer_of(contract), contract.a.shape[-1]
    if contract.scale is None or integer not in INTEGER_BITS or not isinstance(block, int):
        return False
    if integer == _BYTES_IN_WORDS and contract.a_scale is None:
        return False  # they are converted as they are loaded
    return block <= PART_STEPS and block % (WORD // INTEGER_BITS[integer]) == 0


def _is_centred(contract: Contract) -> bool:
    """Return whether the zero point of integers in words is the middle of the range of unsigned ones."""
    integer = _integer_of(contract)
    if not is_in_words(contract) or not integer.startswith("u") or contract.b_zero is None:
        return False
    if integer == _BYTES_IN_WORDS:
        return True  # packing subtracts the middle of the range from zero points
    return uniform(contract.b_zero) == 1 << (INTEGER_BITS[integer] - 1)


def dot_of(target: Target) -> Dot:
    """Return the instruction of a target that multiplies and adds the most 8-bit integers."""
    if target.architecture == "aarch64":
        return "usdot" if target.has("i8mm") else "sdot" if target.has("dotprod") else "sadalp"
    return "vpdpbusd" if target.has("avx512vnni") or target.has("avxvnni") else "pmaddwd"


def _why_slower(dot: Dot) -> tuple[str, str]:
    """Return the fastest instruction of the architecture, and why the target lacks it; "" if it is `dot`."""
    match dot:
        case "pmaddwd":
            return "vpdpbusd", "the processor has neither avx512vnni nor avxvnni"
        case "sdot":
            return "usdot", "the processor has no i8mm"
        case "sadalp":
            return "usdot", "the processor has neither i8mm nor dotprod"
        case _:
            return "", ""


def pairs_of(target: Target) -> Dot:
    """Return the instruction that multiplies and adds pairs of 16-bit integers."""
    return "smull" if target.architecture == "aarch64" else "pmaddwd"


def registers_of(target: Target, contract: Contract) -> int:
    """Return the number of vector registers that a tile may fill.

    `sadalp` needs some for its products; with many registers, the parts of words of rounded rows do too.
    """
    waiting = not contract.is_float and dot_of(target) == "sadalp"
    has_parts = contract.a_scale is not None and target.vector_bits // 32 == _LOOKED_UP
    return target.registers - (_WAITING if waiting or has_parts else 0)


def group_of(target: Target, contract: Contract) -> Groups:
    """Return the number of adjacent elements along `k` that one instruction multiplies and adds."""
    return 1 if contract.is_float else GROUPS[dot_of(target)]


def zero_values(builder: PlanBuilder, contract: Contract, entry: Entry) -> dict[str, Packable]:
    """Return the argument `zero`, the address of the zero point of `a`; empty if there is none."""
    if contract.a_zero is None:
        return {}
    zero = builder.grouping.more[contract][contract.a_zero]
    located = builder.grouping.views.locate(zero)
    if not entry.choices:
        entry.reaches.append(builder.reach(located, zero.element, []))
    return {"zero": builder.pointer(located, zero.element, entry)}


def apart(contract: Contract, a: Located) -> list[tuple[Size, Size]]:
    """Return sizes and strides, in elements, of the axes [blocks, steps of a block] of a scaled `k`."""
    return list(zip(contract.a.shape[-2:], (a.strides[-2], 1), strict=True))


def _taken(contract: Contract) -> Expression | None:
    """Return the zero point that a kernel subtracts from panels; None if there is none, or it is implied."""
    if is_packed_zero(contract) or (_is_centred(contract) and contract.packs > 1):
        return None
    return contract.b_zero


def parameters_of(contract: Contract) -> list[Expression]:
    """Return the zero points and scales that a kernel reads in addition to both operands."""
    every = contract.a_zero, contract.scale, _taken(contract), contract.a_scale, contract.a_sums
    return [x for x in every if x is not None]


def scaled_product(target: Target, product: Product, contract: Contract) -> Product:
    """Return the product with the fields of blockwise quantized weights."""
    scale, zeros = ("" if p is None else p.element for p in (contract.scale, _taken(contract)))
    words = is_in_words(contract)
    return replace(
        product,
        depth_axes=2,
        narrow=narrow_of(contract),
        scaled=scale,
        zeros=zeros,
        words=words,
        centred=_is_centred(contract),
        lookup=words and target.has("avx512f") and product.nest.lanes == _LOOKED_UP,
        rounded=contract.a_scale is not None,
        dotted=contract.a_scale is not None and dot_of(target) == "vpdpbusd",
    )


def row_values(builder: PlanBuilder, contract: Contract, entry: Entry) -> dict[str, Packable]:
    """Return the arguments `row_scale` and `row_sum`: what the blocks of rows have; empty for floats."""
    found: dict[str, Packable] = {}
    for name, x in (("row_scale", contract.a_scale), ("row_sum", contract.a_sums)):
        if x is not None:
            located = builder.grouping.views.locate(builder.grouping.more[contract][x])
            rows, blocks = list(zip(x.shape, located.strides, strict=True))[-3:-1]
            if not entry.choices:
                entry.reaches.append(builder.reach(located, x.element, [rows, blocks]))
            size = element_bytes(x.element)
            tensor = builder.pointer(located, x.element, entry)
            found[name] = {"tensor": tensor, "row": rows[1] * size, "block": blocks[1] * size}
    return found


def in_blocks(axis: tuple[Size, Size], heuristics: Heuristics) -> list[tuple[Size, Size]]:
    """Return an axis of `k` as the axes [blocks, steps of a block], or alone if its size is symbolic."""
    count, step = axis
    if not isinstance(count, int):
        return [axis]
    parts = range(heuristics.unpacked_most, heuristics.unpacked_least - 1, -1)
    part = next((n for n in parts if count % n == 0), count)
    return [(count // part, part * step), (part, step)]


def unpacked_once(
    builder: PlanBuilder, product: Product, depth: Sequence[tuple[Size, Size]], rows: Size, entry: Entry
) -> Product:
    """Return the product; with many rows, it widens each block of weights once for all rows of a job."""
    block = depth[-1][0]
    if product.rounded:
        return product
    rejected = _NO_BLOCKS if len(depth) == 1 else _why_each(builder, product, rows)
    if rejected is None and not (isinstance(block, int) and isinstance(entry.scratch, int)):
        rejected = _SYMBOLIC
    _decide_widening(builder, product, rows, entry, rejected)
    if rejected is not None or not isinstance(block, int) or not isinstance(entry.scratch, int):
        return product
    line = product.width * element_bytes(product.element)
    waiting = product.waiting_bytes // product.rows
    sums = scratch_rows(rows, product.rows, builder.heuristics) * waiting
    entry.scratch = max(entry.scratch, sums + block * line)
    return replace(product, blocked=True, unpacks=True)


def widened_once(
    builder: PlanBuilder, product: Product, depth: Sequence[tuple[Size, Size]], rows: Size, entry: Entry
) -> Product:
    """Return the product; with many rows, it widens 16-bit weights once for all rows of a job."""
    if product.narrow not in HALVES:
        return product
    steps = count_of([n for n, _ in (depth[1:] if product.blocked else depth)])
    line, most = product.width * element_bytes(product.element), builder.heuristics.widened_bytes
    rejected = _why_each(builder, product, rows)
    if rejected is None and isinstance(steps, int) and steps * line > most:
        rejected = Reason("a panel of {} bytes > {}", (steps * line, most))
    elif rejected is None and not (isinstance(steps, int) and isinstance(entry.scratch, int)):
        rejected = _SYMBOLIC
    _decide_widening(builder, product, rows, entry, rejected)
    if rejected is not None or not isinstance(steps, int) or not isinstance(entry.scratch, int):
        return product
    waiting = product.waiting_bytes // product.rows
    sums = scratch_rows(rows, product.rows, builder.heuristics) * waiting if product.blocked else 0
    entry.scratch = max(entry.scratch, sums + steps * line)
    return replace(product, unpacks=True)


def _why_each(builder: PlanBuilder, product: Product, rows: Size) -> Reason | None:
    """Return why weights are widened for each tile; None if widening once for all rows of a job is faster."""
    few = builder.heuristics.few_rows
    if product.panels > 1 or product.rows <= few:
        return Reason("tiles of {} rows <= {}", (product.rows, few))
    if isinstance(rows, int) and rows <= 2 * product.rows:
        return Reason("{} rows <= 2 tiles of {}", (rows, product.rows))
    return None


def _decide_widening(
    builder: PlanBuilder, product: Product, rows: Size, entry: Entry, rejected: Reason | None
) -> None:
    if not isinstance(rows, int) and product.rows <= builder.heuristics.few_rows:
        return  # this kernel is for few rows: the decision is that of the kernel for many rows
    each, once = "weights widened for each tile", "widened once for all rows of a job"
    if rejected is None:
        builder.decisions.add(entry.nodes, "weights", f"weights {once}")
    else:
        builder.decisions.add(entry.nodes, "weights", each, once, rejected)


def scale_values(builder: PlanBuilder, contract: Contract, entry: Entry, vectors: int) -> dict[str, Packable]:
    """Return the arguments `scale` and `zeros`: the panels of scales and zero points."""
    found: dict[str, Packable] = {}
    for name, (buffer, panel) in packed_scales(builder, contract, vectors).items():
        builder.use(buffer, entry)
        found[name] = {"tensor": start_of(buffer), "bytes": panel}
    return found


def packed_scales(builder: PlanBuilder, contract: Contract, vectors: int) -> dict[str, tuple[Buffer, Size]]:
    """Return the buffers of packed scales (`scale`) and zero points (`zeros`), with the bytes of a panel.

    The first call adds the entries that pack them: it must precede the entry of the product.
    """
    found: dict[str, tuple[Buffer, Size]] = {}
    for name, x in (("scale", contract.scale), ("zeros", _taken(contract))):
        if x is not None:
            located = builder.grouping.views.locate(builder.grouping.more[contract][x])
            lines, _, columns = zip(x.shape, located.strides, strict=True)
            panels = Panels(x.element, [], [lines], columns, vectors * lanes_of(builder, contract.element))
            found[name] = packed_panels(builder, contract, located, panels), panels.panel
    return found
