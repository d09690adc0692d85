"""Products whose operands are narrower than what they sum up: integers, halves, blocks with scales."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.emit.terms import GROUPS
from sabir.compilation.backends.cpu.products.panels import Panels, lanes_of, packed_panels
from sabir.compilation.backends.cpu.products.tiles import FEW, scratch_rows
from sabir.compilation.plan.entries import count_of, start_of
from sabir.loops import BYTES, HALVES, SMALL_INTEGERS, element_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.backends.cpu.building import PlanBuilder
    from sabir.compilation.backends.cpu.emit.terms import Dot, Groups
    from sabir.compilation.backends.cpu.products.spec import Product
    from sabir.compilation.fusion.views import Located
    from sabir.compilation.native import Host
    from sabir.compilation.plan.entries import Buffer, Entry
    from sabir.compilation.plan.signature import Packable
    from sabir.loops import Contract, Size


_LEAST_UNPACKED, _MOST_UNPACKED = 16, 128  # places of `k` whose numbers wait in scratch memory
_MOST_WIDENED = 3 << 19  # bytes of a panel of floats in scratch memory: it stays in the cache of a core
_WAITING = 6  # products of bytes in registers of their own


def of_integers(
    builder: PlanBuilder, product: Product, contract: Contract, depth: Sequence[tuple[Size, Size]]
) -> Product:
    """Return the product of integers: how many it adds at a time, and what it subtracts."""
    dot, last = dot_of(builder.host), depth[-1][0]
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


def zero_values(builder: PlanBuilder, contract: Contract, entry: Entry) -> dict[str, Packable]:
    """Return where the zero point of a product of integers begins, if it has one."""
    if contract.zero is None:
        return {}
    zero = builder.grouping.more[contract][contract.zero]
    located = builder.grouping.views.locate(zero)
    if not entry.choices:
        entry.reaches.append(builder.reach(located, zero.element, []))
    return {"zero": builder.pointer(located, zero.element, entry)}


def apart(contract: Contract, a: Located) -> list[tuple[Size, Size]]:
    """Return sizes and strides of both axes of `k`, of which the first counts blocks with scales."""
    return list(zip(contract.a.shape[-2:], (a.strides[-2], 1), strict=True))


def scaled_product(product: Product, contract: Contract) -> Product:
    """Return the product by blocks of weights with scales."""
    scale, less = ("" if p is None else p.element for p in (contract.scale, contract.less))
    return replace(product, depth_axes=2, narrow=narrow_of(contract), scaled=scale, less=less)


def in_blocks(axis: tuple[Size, Size]) -> list[tuple[Size, Size]]:
    """Return the axis of `k` as blocks and what is in a block, where it divides into such."""
    count, step = axis
    if not isinstance(count, int):
        return [axis]
    part = next((n for n in range(_MOST_UNPACKED, _LEAST_UNPACKED - 1, -1) if count % n == 0), count)
    return [(count // part, part * step), (part, step)]


def unpacked_once(product: Product, depth: Sequence[tuple[Size, Size]], rows: Size, entry: Entry) -> Product:
    """Return the product by blocks of weights, which it widens once for all rows where these are many."""
    block = depth[-1][0]
    if len(depth) == 1 or not _has_many_rows(product, rows):
        return product
    if not isinstance(block, int) or not isinstance(entry.scratch, int):
        return product
    line = product.width * element_bytes(product.element)
    waiting = product.waiting_bytes // product.rows
    entry.scratch = max(entry.scratch, scratch_rows(rows, product.rows) * waiting + block * line)
    return replace(product, blocked=True, unpacks=True)


def widened_once(product: Product, depth: Sequence[tuple[Size, Size]], rows: Size, entry: Entry) -> Product:
    """Return the product by constants of 16 bits, which it widens once for all rows where these are many."""
    steps = count_of([n for n, _ in (depth[1:] if product.blocked else depth)])
    if product.narrow not in HALVES or not _has_many_rows(product, rows):
        return product
    line = product.width * element_bytes(product.element)
    if not isinstance(steps, int) or steps * line > _MOST_WIDENED or not isinstance(entry.scratch, int):
        return product
    waiting = product.waiting_bytes // product.rows
    sums = scratch_rows(rows, product.rows) * waiting if product.blocked else 0
    entry.scratch = max(entry.scratch, sums + steps * line)
    return replace(product, unpacks=True)


def _has_many_rows(product: Product, rows: Size) -> bool:
    """Return whether numbers that are computed once for all rows of a job pay the memory between."""
    if product.panels > 1 or product.rows <= FEW:
        return False
    return not isinstance(rows, int) or rows > 2 * product.rows


def scale_values(builder: PlanBuilder, contract: Contract, entry: Entry, vectors: int) -> dict[str, Packable]:
    """Return the panels of the scales of blocks, and of what is subtracted."""
    found: dict[str, Packable] = {}
    for name, (buffer, panel) in packed_scales(builder, contract, vectors).items():
        builder.use(buffer, entry)
        found[name] = {"tensor": start_of(buffer), "bytes": panel}
    return found


def packed_scales(builder: PlanBuilder, contract: Contract, vectors: int) -> dict[str, tuple[Buffer, Size]]:
    """Return the panels of scales, and of what is subtracted, by name, with the bytes of each.

    The first call adds the entries that pack them, which must come before that of the product.
    """
    found: dict[str, tuple[Buffer, Size]] = {}
    for name, x in (("scale", contract.scale), ("less", contract.less)):
        if x is not None:
            located = builder.grouping.views.locate(builder.grouping.more[contract][x])
            lines, _, columns = zip(x.shape, located.strides, strict=True)
            panels = Panels(x.element, [], [lines], columns, vectors * lanes_of(builder, contract.element))
            found[name] = packed_panels(builder, contract, located, panels), panels.panel
    return found
