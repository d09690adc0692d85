"""The features of a 64-bit Arm processor, as the operating system reports them.

LLVM derives most of them from the name of the processor. The system also knows which features a virtual
machine hides, and which ones all cores have if the cores differ.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from typing import NamedTuple


class _Sign(NamedTuple):
    """How systems report a feature: a bit of an entry of the auxiliary vector (Linux), a name (macOS)."""

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
"""LLVM's names of the features that kernels use."""


def arm_features() -> dict[str, bool]:
    """Return whether this processor has each of `FEATURES`; False if the system does not report it."""
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
