"""Work on several processes and machines, with Ray, which is imported when it is needed."""

from sabir.distributed._mapping import map_batches
from sabir.distributed._starting import connected

__all__ = ["connected", "map_batches"]
