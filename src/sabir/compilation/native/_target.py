"""Targets: the processors that kernels are compiled for, this machine's and others by name."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sabir.base import UnsupportedError, quote
from sabir.compilation.native._arm import FEATURES, arm_features
from sabir.compilation.native._facts import facts
from sabir.compilation.native._llvm import llvm, prepare_all
from sabir.compilation.native._system import machine as processor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_VARIABLE = "SABIR_CPU"
_V3 = frozenset(
    (
        "64bit", "avx", "avx2", "bmi", "bmi2", "cmov", "crc32", "cx16", "cx8", "f16c", "fma", "fxsr", "lzcnt",
        "mmx", "movbe", "popcnt", "sahf", "sse", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3", "xsave",
    )
)  # fmt: skip
_WIDE = frozenset(("avx512f", "avx512bw", "avx512dq", "avx512vl"))
_NEEDED = ("avx2", "fma", "f16c")
_ARM = frozenset(("fp-armv8", "neon"))  # every 64-bit Arm processor that runs an operating system has them
_SCALABLE = ("sve", "sve2")  # never used: kernels have vectors of fixed width
# Without it, LLVM adds a branch with a 32-bit division to each 64-bit one, which takes a ninth of the time of
# code generation. Kernels divide once for many elements, so it makes none faster.
_WHOLE_DIVISION = "-idivq-to-divl"


class _Level(NamedTuple):
    """A named processor: its architecture, LLVM's name for it, and the features that kernels may use."""

    architecture: str
    cpu: str
    features: frozenset[str]


_LEVELS = {
    "x86-64-v3": _Level("x86_64", "x86-64-v3", _V3),  # a level of the x86-64 psABI, like the next one
    "x86-64-v4": _Level("x86_64", "x86-64-v4", _V3 | _WIDE | {"avx512cd"}),
    "aarch64": _Level("aarch64", "generic", _ARM),
    "neoverse-n1": _Level("aarch64", "neoverse-n1", _ARM | {"dotprod", "lse"}),
    "neoverse-v1": _Level("aarch64", "neoverse-v1", _ARM | {"dotprod", "i8mm", "lse"}),
    "apple-m1": _Level("aarch64", "apple-m1", _ARM | {"dotprod", "lse"}),
}
TARGETS = tuple(_LEVELS)
"""The names of processors that every machine can compile for."""


@dataclass(frozen=True)
class Target:
    """A processor that kernels are compiled for: the one of this machine, or another one.

    `architecture` is `x86_64` or `aarch64`. `features` is LLVM's sorted list of present and absent features:
    `+avx2,-avx512f`. `vector_bits` is the width of its vectors, `registers` the number of vector registers.
    They determine the shapes of kernels and tiles.

    >>> from sabir.compilation.native import target_named
    >>> target_named('x86-64-v3').has('avx2'), target_named('aarch64').has('avx2')
    (True, False)
    """

    architecture: str
    triple: str
    cpu: str
    features: str
    vector_bits: int
    registers: int

    def has(self, feature: str) -> bool:
        """Return whether the processor has a feature, by LLVM's name for it: `avx512vnni`, `dotprod`."""
        return feature in self._present

    @property
    def has_masks(self) -> bool:
        """Whether it has masked vector loads and stores; else each lane under a mask is a branch."""
        return self.architecture == "x86_64"

    @functools.cached_property
    def _present(self) -> frozenset[str]:
        return frozenset(f[1:] for f in self.features.split(",") if f[:1] == "+")


def host() -> Target:
    """Return the processor of this machine, limited to the features of `SABIR_CPU` if that is set.

    Raises UnsupportedError if it is neither an x86-64 processor with AVX2, FMA and F16C nor a 64-bit Arm
    processor, if it lacks a feature of the processor in `SABIR_CPU`, and if llvmlite is missing.

    >>> from sabir.compilation.native import host
    >>> host().vector_bits in (128, 256, 512)
    True
    """
    return _host(os.environ.get(_VARIABLE, ""))


def target_named(name: str) -> Target:
    """Return a processor of `TARGETS`, which any machine can compile for.

    Raises UnsupportedError for another name, and if llvmlite is missing.

    >>> from sabir.compilation.native import target_named
    >>> target_named('neoverse-n1').vector_bits
    128
    """
    if name not in _LEVELS:
        raise UnsupportedError(f"there is no target {quote(name)}; the targets are {', '.join(TARGETS)}")
    return _named(name)


@functools.cache
def _named(name: str) -> Target:
    level = _LEVELS[name]
    llvm()
    triple = f"{level.architecture}-unknown-linux-gnu"
    return _described(level.architecture, triple, level.cpu, dict.fromkeys(level.features, True))


@functools.cache
def _host(level: str) -> Target:
    architecture = processor()
    if architecture not in _FEATURES:
        raise UnsupportedError(
            "models are compiled for x86-64 processors with AVX2 and for 64-bit Arm processors, and this one "
            f"is {architecture or 'unknown'}; choose another engine"
        )
    levels = {name: chosen for name, chosen in _LEVELS.items() if chosen.architecture == architecture}
    if level and level not in levels:
        raise UnsupportedError(f"{_VARIABLE} is {quote(level)}; it may be {' or '.join(levels)}, or unset")
    found, triple = _FEATURES[architecture](), facts().triple
    cpu = levels[level].cpu if level else facts().cpu
    if level:
        features = levels[level].features
        missing = sorted(name for name in features if not found.get(name))
        if missing:
            raise UnsupportedError(f"{_VARIABLE} is {level}, and this processor has no {', '.join(missing)}")
        found = {name: has and name in features for name, has in found.items()}
    return _described(architecture, triple, cpu, found)


def _x86_features() -> dict[str, bool]:
    return dict(facts().features)


def _arm_features() -> dict[str, bool]:
    return dict.fromkeys(_ARM, True) | arm_features()


_FEATURES: dict[str, Callable[[], dict[str, bool]]] = {"x86_64": _x86_features, "aarch64": _arm_features}


def _described(architecture: str, triple: str, cpu: str, found: Mapping[str, bool]) -> Target:
    if architecture == "aarch64":
        # LLVM assumes the features of the named processor; disable those that the system does not report
        named = dict.fromkeys((*FEATURES, *_SCALABLE), False) | dict(found)
        return Target(architecture, triple, cpu, _text(named), 128, 32)
    missing = [name for name in _NEEDED if not found.get(name)]
    if missing:
        raise UnsupportedError(
            f"models are compiled for x86-64 processors with AVX2, FMA and F16C, and this one has no "
            f"{', '.join(missing)}; choose another engine"
        )
    wide = all(found.get(name) for name in _WIDE)
    return Target(architecture, triple, cpu, _text(found), 512 if wide else 256, 32 if wide else 16)


def _text(found: Mapping[str, bool]) -> str:
    return ",".join(f"{'+' if found[name] else '-'}{name}" for name in sorted(found))


@functools.cache
def machine(target: Target) -> Any:
    """Return the shared target machine of LLVM for position-independent code; hold the lock to use it."""
    return new_machine(target)


def new_machine(target: Target) -> Any:
    """Return a new target machine of LLVM for position-independent code, for one thread at a time."""
    if target.architecture != processor():
        prepare_all()
    triple, features = target.triple, target.features
    if target.architecture == "x86_64":
        features = f"{features},{_WHOLE_DIVISION}"
    if "linux" not in triple:
        triple += "-elf"  # one object format on every system; LLVM's linker loads it on each
    return (
        llvm()
        .Target.from_triple(triple)
        .create_target_machine(cpu=target.cpu, features=features, opt=2, reloc="pic", codemodel="small")
    )
