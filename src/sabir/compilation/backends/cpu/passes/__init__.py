"""The passes for CPUs: `PIPELINE` lists them in order."""

from sabir.compilation.backends.cpu.passes._pipeline import PASSES, PIPELINE
from sabir.compilation.backends.cpu.passes._unsigned_bytes import is_packed_zero, packed_zero

__all__ = ["PASSES", "PIPELINE", "is_packed_zero", "packed_zero"]
