"""The passes for CPUs: `PIPELINE` lists them in order."""

from sabir.compilation.backends.cpu.passes._pipeline import PASSES, PIPELINE

__all__ = ["PASSES", "PIPELINE"]
