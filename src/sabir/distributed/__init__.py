"""Work on several processes and machines, with Ray, which is imported when it is needed."""

from sabir.distributed._exchange import Exchange, even_ranges
from sabir.distributed._mapping import map_batches
from sabir.distributed._peers import Address, Listener, PeerLost, Peers
from sabir.distributed._starting import connected

__all__ = [
    "Address", "Exchange", "Listener", "PeerLost", "Peers", "connected", "even_ranges", "map_batches",
]  # fmt: skip
