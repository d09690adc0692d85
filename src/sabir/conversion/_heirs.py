"""What new nodes take over from the node that they replace: its name, texts and annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.schema import is_default

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sabir.ir import FreshNames, Node, NodeDevice, Residue, Value
    from sabir.schema import Version


class Estate(NamedTuple):
    """What a node leaves to the nodes that replace it, recorded before it is erased."""

    op: str
    name: str
    doc: str
    metadata: dict[str, str] | None
    devices: tuple[NodeDevice, ...]
    residue: Residue | None
    attributes: frozenset[str]
    outputs: tuple[Value | None, ...]

    @classmethod
    def of(cls, node: Node) -> Estate:
        """Record what a node has."""
        return cls(
            node.op, node.name, node.doc, node.metadata, node.devices, node.residue,
            frozenset(node.attributes), node.outputs,
        )  # fmt: skip


def inherit(estate: Estate, nodes: Sequence[Node], names: FreshNames) -> None:
    """Let the nodes of a replacement take over what the node had.

    One node takes its name, documentation and layouts: that of the same operator, or else the last. All take
    its metadata, which says where it came from, and its place in each device configuration. The others are
    named after it if it has a name.
    """
    heir = _heir(estate, nodes)
    for node in nodes:
        node.metadata = estate.metadata and dict(estate.metadata)
        is_heir = node is heir
        if is_heir:
            node.name, node.doc, node.residue = estate.name, estate.doc, estate.residue
        elif estate.name:
            node.name = names.fresh(f"{estate.name}_{node.op.lower()}")
        node.devices = tuple(_layout(device, node, is_heir=is_heir) for device in estate.devices)


def _heir(estate: Estate, nodes: Sequence[Node]) -> Node | None:
    same = [node for node in nodes if node.op == estate.op]
    final = [node for node in nodes if any(v is not None and v in estate.outputs for v in node.outputs)]
    return next(iter((*same, *reversed(final), *reversed(nodes))), None)


def _layout(device: NodeDevice, node: Node, *, is_heir: bool) -> NodeDevice:
    """Return a node's place in a configuration: only layouts of values that it has, and those not linked."""
    values: Collection[Value | None] = (*node.inputs, *node.outputs)
    kept = tuple(s for s in device.shardings if (s.value in values if s.value is not None else is_heir))
    return device if kept == device.shardings else device._replace(shardings=kept, wire=b"")


def drop_defaults(estate: Estate, node: Node, version: Version) -> None:
    """Remove the attributes of a new node that have their defaults, unless the old node stated them."""
    stated = estate.attributes if node.op == estate.op else frozenset[str]()
    for name, attribute in list(node.attributes.items()):
        formal = version.formal.attributes.get(name)
        if formal is None or formal.required or name in stated or formal.default is None:
            continue
        if is_default(attribute, formal):
            del node.attributes[name]
