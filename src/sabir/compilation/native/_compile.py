"""The compilation of the text of a kernel (LLVM IR) to machine code: parse, verify, optimize, generate.

LLVM aborts the process when it generates code for an invalid module, for an intrinsic of another processor,
or for assembly that it cannot parse. So texts are verified first, and such intrinsics and assembly are
refused.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any

from sabir.base import UnsupportedError, quote
from sabir.compilation.native._elf import undefined_symbols
from sabir.compilation.native._llvm import LOCK, llvm
from sabir.compilation.native._target import machine

if TYPE_CHECKING:
    from collections.abc import Generator

    from sabir.compilation.native._target import Target

_LONG = 1 << 14  # characters
_ENTRY = "kernel"  # the one function of a text
_SPECIAL = re.compile(
    r"@(llvm\.(?:aarch64|amdgcn|arm|hexagon|loongarch|mips|nvvm|ppc|r600|riscv|s390|spv|ve|wasm|x86|xcore)"
    r"\.[\w.]+)"
)
_ASSEMBLY = re.compile(r"(?<![\w.%@$-])asm\b")
_WIDE = ("avx512f", "avx512bw", "avx512dq", "avx512vl")
_ARM = {
    "sdot": "dotprod", "udot": "dotprod", "usdot": "i8mm", "smmla": "i8mm", "ummla": "i8mm", "usmmla": "i8mm",
}  # fmt: skip
_BYTE_PRODUCTS = re.compile(r"vpdp(bus|wss)ds?\.(\d+)")  # their names begin with avx512 on every processor


def object_of(text: str, symbol: str, target: Target) -> bytes:
    """Return the object file of a kernel: position-independent, with equal bytes for equal texts.

    `symbol` is the name of its function. Raises UnsupportedError if the text is invalid, or uses an intrinsic
    of another processor or an undefined symbol.
    """
    with kernel_module(text, symbol, target) as module:
        return checked(machine(target).emit_object(module))


@contextlib.contextmanager
def kernel_module(text: str, symbol: str, target: Target) -> Generator[Any]:
    """Parse, verify and optimize a kernel, and rename its function; raises UnsupportedError."""
    with _module(text, target) as module:
        try:
            module.get_function(_ENTRY).name = symbol
        except NameError:
            raise UnsupportedError(f"the text of a kernel has no function @{_ENTRY}") from None
        yield module


def checked(image: bytes) -> bytes:
    """Return an object; raises UnsupportedError if it has undefined symbols."""
    missing = undefined_symbols(image)
    if missing:
        raise UnsupportedError(
            f"a kernel calls {', '.join(map(quote, missing))}, which its machine code does not contain"
        )
    return image


def disassemble(text: str, target: Target) -> str:
    """Return the assembly of a kernel's text for a processor.

    Raises UnsupportedError as `Library.load` does.

    >>> from sabir.compilation.native import disassemble, target_named
    >>> 'ret' in disassemble('define void @kernel() { ret void }', target_named('aarch64'))
    True
    """
    with _module(text, target) as module:
        assembly: str = machine(target).emit_assembly(module)
    return assembly


def optimized(text: str, target: Target) -> str:
    """Return the LLVM IR of a kernel's text after all passes for a processor.

    Raises UnsupportedError as `Library.load` does.

    >>> from sabir.compilation.native import optimized, target_named
    >>> 'ret void' in optimized('define void @kernel() { ret void }', target_named('x86-64-v3'))
    True
    """
    with _module(text, target) as module:
        return str(module)


@contextlib.contextmanager
def _module(text: str, target: Target) -> Generator[Any]:
    """Parse, verify and optimize a text for a processor; free the module afterwards."""
    _require_safe(text, target)
    with LOCK, contextlib.ExitStack() as stack:
        # a separate context: types and constants of the global context are never freed
        context = stack.enter_context(contextlib.closing(llvm().create_context()))
        try:
            module = stack.enter_context(contextlib.closing(llvm().parse_assembly(text, context=context)))
            module.verify()
        except (RuntimeError, UnicodeEncodeError) as error:
            raise UnsupportedError(f"the text of a kernel is not valid LLVM IR: {error}") from error
        _optimize(module, machine(target), is_long=len(text) > _LONG)
        yield module


def _optimize(module: Any, target: Any, *, is_long: bool) -> None:
    """Run two LLVM passes: SROA (stack slots to registers), and instruction combining for short texts.

    The emitters already write optimized loops. The other passes of O2 double the compile time, and speed up
    no kernel that reads its arguments before its loops. A long text is an unrolled tile of a product, of
    windows or of a transposition: instruction combining does not speed it up, and takes a tenth of the
    compile time.
    """
    builder = llvm().create_pass_builder(target, llvm().create_pipeline_tuning_options(speed_level=1))
    passes = llvm().create_new_module_pass_manager()
    passes.add_sroa_pass()
    if not is_long:
        passes.add_instruction_combine_pass()
    passes.run(module, builder)


def _require_safe(text: str, target: Target) -> None:
    """Raise UnsupportedError for a text on which LLVM would abort, or of which it would read only a part."""
    if "\0" in text:
        raise UnsupportedError("the text of a kernel contains a null character")
    if "asm" in text and _ASSEMBLY.search(text):  # the pattern alone takes 20 times as long
        raise UnsupportedError("the text of a kernel contains assembly; intrinsics are supported")
    for name in sorted(set(_SPECIAL.findall(text))):
        if not any(all(map(target.has, features)) for features in _alternatives(name)):
            raise UnsupportedError(f"a kernel calls {name}, which the processor ({target.cpu}) does not have")


def _alternatives(name: str) -> list[tuple[str, ...]]:
    """Return the sets of processor features any of which suffices for an intrinsic; [] if none does."""
    _, processor, family, *rest = name.split(".")
    if processor == "aarch64":
        return [(_ARM.get(rest[0], "neon") if rest else "neon",)]
    if processor != "x86":
        return []
    products = _BYTE_PRODUCTS.fullmatch(".".join(rest))
    if family == "avx512" and products:
        with_avx512 = (*_WIDE, "avx512vnni")
        return [with_avx512] if products[2] == "512" else [with_avx512, ("avxvnni",)]
    if family == "avx512":
        return [_WIDE]
    if family == "avx2" and rest and rest[0].startswith("vpdp"):
        return [("avxvnniint16" if rest[0].startswith("vpdpw") else "avxvnniint8",)]
    if family in {"sse41", "sse42"}:
        family = f"sse4.{family[-1]}"
    return [({"vcvtps2ph": "f16c", "vcvtph2ps": "f16c"}.get(family, family),)]
