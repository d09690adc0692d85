"""Products whose operands are narrower than what they sum up: integers, halves, blocks with scales."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.emit.terms import GROUPS
from sabir.compilation.backends.cpu.products.panels import Panels, lanes_of, packed_panels
from sabir.compilation.backends.cpu.products.tiles import scratch_rows
from sabir.compilation.plan.decisions import Reason
from sabir.compilation.plan.entries import BufferNumber, Offset, count_of
from sabir.loops import BYTES, HALVES, SMALL_INTEGERS, element_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.backends.cpu.building import PlanBuilder
    from sabir.compilation.backends.cpu.emit.terms import Dot, Groups
    from sabir.compilation.backends.cpu.heuristics import Heuristics
    from sabir.compilation.backends.cpu.products.spec import Product
    from sabir.compilation.fusion.views import Located
    from sabir.compilation.native import Host
    from sabir.compilation.plan.entries import Argument, Buffer, Entry
    from sabir.loops import Contract, Size


_NO_BLOCKS = Reason("they have no blocks")
_SYMBOLIC = Reason("the size of a block is symbolic")
_WAITING = 6  # products of bytes in registers of their own


def of_integers(
    builder: PlanBuilder, product: Product, contract: Contract, depth: Sequence[tuple[Size, Size]],
    entry: Entry,
) -> Product:  # fmt: skip
    """Return the product of integers: how many it adds at a time, and what it subtracts."""
    dot, last = dot_of(builder.host), depth[-1][0]
    builder.decisions.add(entry.nodes, "instruction", f"instruction {dot}", *_why_slower(dot))
    ragged = not isinstance(last, int) or last % GROUPS[dot] != 0
    zero = "" if contract.zero is None else contract.zero.element
    return replace(product, depth_axes=len(depth), dot=dot, ragged=ragged, zero=zero)


def narrow_of(contract: Contract) -> str:
    """Return the element type of the panels of a product of floats, if it is another one."""
    if not contract.is_float or contract.b.element == contract.element:
        return ""
    return "int8" if contract.b.element in BYTES | SMALL_INTEGERS else contract.b.element


def dot_of(host: Host) -> Dot:
    """Return the instruction that multiplies and adds up most integers of 8 bits."""
    if host.architecture == "aarch64":
        return "usdot" if host.has("i8mm") else "sdot" if host.has("dotprod") else "sadalp"
    return "vpdpbusd" if host.has("avx512vnni") or host.has("avxvnni") else "pmaddwd"


def _why_slower(dot: Dot) -> tuple[str, str]:
    """Return the instruction that multiplies most integers on such processors, and why it is not `dot`."""
    match dot:
        case "pmaddwd":
            return "vpdpbusd", "the processor has neither avx512vnni nor avxvnni"
        case "sdot":
            return "usdot", "the processor has no i8mm"
        case "sadalp":
            return "usdot", "the processor has neither i8mm nor dotprod"
        case _:
            return "", ""


def pairs_of(host: Host) -> Dot:
    """Return the instruction that multiplies and adds up pairs of integers of 16 bits."""
    return "smull" if host.architecture == "aarch64" else "pmaddwd"


def registers_of(host: Host, contract: Contract) -> int:
    """Return how many vector registers a tile may fill: products that wait to be added up need some."""
    waiting = not contract.is_float and dot_of(host) == "sadalp"
    return host.registers - (_WAITING if waiting else 0)


def group_of(host: Host, contract: Contract) -> Groups:
    """Return how many neighbours along `k` one instruction multiplies and adds up."""
    return 1 if contract.is_float else GROUPS[dot_of(host)]


def zero_arguments(builder: PlanBuilder, contract: Contract, entry: Entry) -> list[Argument]:
    """Return where the zero point of a product of integers lies, if it has one."""
    if contract.zero is None:
        return []
    zero = builder.grouping.more[contract][contract.zero]
    located = builder.grouping.views.locate(zero)
    if not entry.choices:
        entry.reaches.append(builder.reach(located, zero.element, []))
    return builder.pointer(located, zero.element, entry)


def apart(contract: Contract, a: Located) -> list[tuple[Size, Size]]:
    """Return sizes and strides of both axes of `k`, of which the first counts blocks with scales."""
    return list(zip(contract.a.shape[-2:], (a.strides[-2], 1), strict=True))


def scaled_product(product: Product, contract: Contract) -> Product:
    """Return the product by blocks of weights with scales."""
    scale, less = ("" if p is None else p.element for p in (contract.scale, contract.less))
    return replace(product, depth_axes=2, narrow=narrow_of(contract), scaled=scale, less=less)


def in_blocks(axis: tuple[Size, Size], heuristics: Heuristics) -> list[tuple[Size, Size]]:
    """Return the axis of `k` as blocks and what is in a block, where it divides into such."""
    count, step = axis
    if not isinstance(count, int):
        return [axis]
    parts = range(heuristics.unpacked_most, heuristics.unpacked_least - 1, -1)
    part = next((n for n in parts if count % n == 0), count)
    return [(count // part, part * step), (part, step)]


def unpacked_once(
    builder: PlanBuilder, product: Product, depth: Sequence[tuple[Size, Size]], rows: Size, entry: Entry
) -> Product:
    """Return the product by blocks of weights, which it widens once for all rows where these are many."""
    block = depth[-1][0]
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
    """Return the product by constants of 16 bits, which it widens once for all rows where these are many."""
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
    """Return why weights are widened for each tile; None where once for all rows of a job takes less time."""
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
        return  # there is another kernel for many rows
    each, once = "weights widened for each tile", "widened once for all rows of a job"
    if rejected is None:
        builder.decisions.add(entry.nodes, "weights", f"weights {once}")
    else:
        builder.decisions.add(entry.nodes, "weights", each, once, rejected)


def scale_arguments(builder: PlanBuilder, contract: Contract, entry: Entry, vectors: int) -> list[Argument]:
    """Return where the scales of blocks lie, and what is subtracted: in panels, with the bytes of each."""
    found: list[Argument] = []
    for buffer, panel in packed_scales(builder, contract, vectors):
        builder.use(buffer, entry)
        found += [BufferNumber(buffer), Offset(buffer, 0), panel]
    return found


def packed_scales(builder: PlanBuilder, contract: Contract, vectors: int) -> list[tuple[Buffer, Size]]:
    """Return the panels of scales, and of what is subtracted, with the bytes of each.

    The first call adds the entries that pack them, which must come before that of the product.
    """
    found: list[tuple[Buffer, Size]] = []
    for x in (contract.scale, contract.less):
        if x is not None:
            located = builder.grouping.views.locate(builder.grouping.more[contract][x])
            lines, _, columns = zip(x.shape, located.strides, strict=True)
            panels = Panels(x.element, [], [lines], columns, vectors * lanes_of(builder, contract.element))
            found.append((packed_panels(builder, contract, located, panels), panels.panel))
    return found
