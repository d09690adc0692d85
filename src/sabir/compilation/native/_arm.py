"""What a 64-bit Arm processor has, as the system says.

LLVM guesses most of it from the name of the processor. The system knows what a virtual machine hides, and
what all cores have where they differ.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from typing import NamedTuple


class _Sign(NamedTuple):
    """Where systems say that a processor has a feature: a bit of an auxiliary vector's entry, a name."""

    entry: int
    bit: int
    name: str


_CAPABILITIES, _MORE_CAPABILITIES = 16, 26  # AT_HWCAP and AT_HWCAP2 of Linux
_SIGNS = {
    "dotprod": _Sign(_CAPABILITIES, 20, "hw.optional.arm.FEAT_DotProd"),
    "i8mm": _Sign(_MORE_CAPABILITIES, 13, "hw.optional.arm.FEAT_I8MM"),
    "lse": _Sign(_CAPABILITIES, 8, "hw.optional.arm.FEAT_LSE"),
}
FEATURES = tuple(_SIGNS)
"""What kernels have a use for, by LLVM's names."""


def arm_features() -> dict[str, bool]:
    """Return which features this processor has; none on a system that does not say."""
    if sys.platform == "linux":
        return _from_linux()
    if sys.platform == "darwin":
        return _from_macos()
    return dict.fromkeys(FEATURES, False)


def _from_linux() -> dict[str, bool]:
    with contextlib.suppress(AttributeError, OSError):  # a C library without the function
        entry = ctypes.CDLL(None).getauxval
        entry.restype, entry.argtypes = ctypes.c_ulong, [ctypes.c_ulong]
        return {name: bool(entry(sign.entry) >> sign.bit & 1) for name, sign in _SIGNS.items()}
    return dict.fromkeys(FEATURES, False)


def _from_macos() -> dict[str, bool]:
    with contextlib.suppress(AttributeError, OSError):
        ask = ctypes.CDLL(None).sysctlbyname

        def says(name: str) -> bool:
            answer, size = ctypes.c_int(0), ctypes.c_size_t(ctypes.sizeof(ctypes.c_int))
            failed = ask(name.encode(), ctypes.byref(answer), ctypes.byref(size), None, ctypes.c_size_t(0))
            return not failed and answer.value != 0

        return {name: says(sign.name) for name, sign in _SIGNS.items()}
    return dict.fromkeys(FEATURES, False)
