"""The machine that code is compiled for: its processor, the features that may be used, and its cores."""

from __future__ import annotations

import functools
import os
import platform
from dataclasses import dataclass
from typing import Any

from sabir.base import UnsupportedError, quote
from sabir.compilation.native._cores import usable_cores
from sabir.compilation.native._facts import facts
from sabir.compilation.native._llvm import llvm

_VARIABLE = "SABIR_CPU"
_V3 = frozenset(
    (
        "64bit", "avx", "avx2", "bmi", "bmi2", "cmov", "crc32", "cx16", "cx8", "f16c", "fma", "fxsr", "lzcnt",
        "mmx", "movbe", "popcnt", "sahf", "sse", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3", "xsave",
    )
)  # fmt: skip
_WIDE = frozenset(("avx512f", "avx512bw", "avx512dq", "avx512vl"))
_LEVELS = {"x86-64-v3": _V3, "x86-64-v4": _V3 | _WIDE | {"avx512cd"}}  # of the x86-64 psABI
_NEEDED = ("avx2", "fma", "f16c")


@dataclass(frozen=True)
class Host:
    """The processor that kernels are compiled for.

    `features` is LLVM's text of what it has and lacks, sorted: `+avx2,-avx512f`. `vector_bits` is the width
    of its vectors, `registers` the number of vector registers, `cores` how many cores this process may use.

    >>> from sabir.compilation.native import host
    >>> host().has('avx2'), host().has('avx2048')
    (True, False)
    """

    triple: str
    cpu: str
    features: str
    vector_bits: int
    registers: int
    cores: int

    def has(self, feature: str) -> bool:
        """Return whether the processor has a feature, by LLVM's name for it: `avx512vnni`."""
        return feature in self._present

    @functools.cached_property
    def _present(self) -> frozenset[str]:
        return frozenset(f[1:] for f in self.features.split(",") if f[:1] == "+")


def host() -> Host:
    """Return the machine that this process runs on, limited to the level in `SABIR_CPU` where that is set.

    Raises UnsupportedError where it is not an x86-64 processor with AVX2, FMA and F16C, where it lacks a
    feature of the level in `SABIR_CPU`, and where llvmlite is missing.

    >>> from sabir.compilation.native import host
    >>> host().vector_bits in (256, 512)
    True
    """
    return _host(os.environ.get(_VARIABLE, ""))


@functools.cache
def _host(level: str) -> Host:
    if level and level not in _LEVELS:
        raise UnsupportedError(f"{_VARIABLE} is {quote(level)}; it may be {' or '.join(_LEVELS)}, or unset")
    machine = platform.machine()
    if machine.lower() not in {"x86_64", "amd64"}:
        raise UnsupportedError(
            f"models are compiled for x86-64 processors with AVX2, and this one is {machine or 'unknown'}; "
            "choose another engine"
        )
    found, triple, cpu = dict(facts().features), facts().triple, level or facts().cpu
    if level:
        missing = sorted(name for name in _LEVELS[level] if not found.get(name))
        if missing:
            raise UnsupportedError(f"{_VARIABLE} is {level}, and this processor has no {', '.join(missing)}")
        found = {name: has and name in _LEVELS[level] for name, has in found.items()}
    return _described(triple, cpu, found)


def _described(triple: str, cpu: str, found: dict[str, bool]) -> Host:
    missing = [name for name in _NEEDED if not found.get(name)]
    if missing:
        raise UnsupportedError(
            f"models are compiled for x86-64 processors with AVX2, FMA and F16C, and this one has no "
            f"{', '.join(missing)}; choose another engine"
        )
    features = ",".join(f"{'+' if found[name] else '-'}{name}" for name in sorted(found))
    wide = all(found.get(name) for name in _WIDE)
    return Host(triple, cpu, features, 512 if wide else 256, 32 if wide else 16, usable_cores())


@functools.cache
def machine(target: Host) -> Any:
    """Return LLVM's target machine for position-independent code; use it with the lock held."""
    return new_machine(target)


def new_machine(target: Host) -> Any:
    """Return a target machine of the caller's own, for one thread at a time."""
    triple = target.triple
    if "linux" not in triple:
        triple += "-elf"  # one object format on every system; LLVM's linker loads it on each
    return (
        llvm()
        .Target.from_triple(triple)
        .create_target_machine(
            cpu=target.cpu, features=target.features, opt=2, reloc="pic", codemodel="small"
        )
    )
