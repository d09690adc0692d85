"""Levels of this machine's architecture, for SABIR_CPU."""

from sabir.compilation.native import host

LEVELS = (
    ("", "neoverse-n1", "aarch64") if host().architecture == "aarch64" else ("", "x86-64-v4", "x86-64-v3")
)
"""From the host itself to the oldest: dot products of bytes where the host has them, and of 16 bits."""
OLDEST = LEVELS[-1]
