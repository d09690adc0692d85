"""Arguments of kernels, declared once: each has a name and a kind, and so many 64-bit words of a block.

A block has all arguments of one call. The planner packs a block by the names of a signature, the code of the
kernel loads by the same names, and so does what analyses a plan. Nothing else counts words.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

from sabir.compilation.plan.entries import SCRATCH

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sabir.compilation.plan.entries import Argument
    from sabir.loops import Size

Kind: TypeAlias = Literal["size", "stride", "bytes", "number", "tensor", "address"]
"""What an argument is: a size or an index counts elements, a stride and bytes count bytes.

A tensor is the number of its buffer and its offset there in bytes; an address is one in this process.
"""

_TENSOR = 2  # words
_NO_TENSOR = (0, 0)

Packable: TypeAlias = (
    "Argument | Sequence[Argument] | Mapping[str, Packable] | Sequence[Mapping[str, Packable]] | None"
)
"""The value of an argument: one number, several, or those of a group by name; None for no tensor."""


class Repeated(NamedTuple):
    """A group of arguments, the last one of its signature, that a block has any number of times."""

    signature: KernelSignature


Declared: TypeAlias = "Kind | tuple[Kind, int] | KernelSignature | Repeated"
"""An argument of a kind, so many of them, or a group of arguments under one name."""


class KernelSignature:
    """The arguments of a kernel by name, in their order; `words` are those before a repeated group.

    >>> operand = KernelSignature(tensor='tensor', strides=('stride', 2))
    >>> signature = KernelSignature(rows='size', a=operand, b=operand)
    >>> signature.span('b', 'strides')
    (7, 9)
    """

    __slots__ = ("_items", "words")

    def __init__(self, **arguments: Declared) -> None:
        """Take the arguments; raises TypeError where one follows a repeated group."""
        self._items: dict[str, tuple[int, Declared]] = {}
        self.words = 0
        last = next(reversed(arguments), "")
        for name, declared in arguments.items():
            self._items[name] = self.words, declared
            if not isinstance(declared, Repeated):
                self.words += words_of(declared)
            elif name != last:
                raise TypeError(f"arguments follow the repeated group {name!r}")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arguments in order."""
        return tuple(self._items)

    def pack(self, values: Mapping[str, Packable], within: str = "") -> list[Argument]:
        """Return the block of values by name.

        Raises TypeError where a name is missing or unknown, or a value has another form or number of words.
        """
        if values.keys() != self._items.keys():
            raise TypeError(self._mismatch(values, within))
        found: list[Argument] = []
        for name, (_, declared) in self._items.items():
            value: Any = values[name]
            kind, is_list = type(declared), type(value) is list  # a match takes twice as long
            if kind is str and declared != "tensor" and not is_list:
                found.append(value)
            elif declared == "tensor" and is_list and len(value) == _TENSOR:
                found += value
            elif declared == "tensor" and value is None:
                found += _NO_TENSOR
            elif kind is str or kind is tuple:
                found += _words(declared, value, within + name)
            else:
                found += _group(declared, value, f"{within}{name}.")
        return found

    def _mismatch(self, values: Mapping[str, Packable], within: str) -> str:
        """Return the message for values of other names."""
        missing = [within + name for name in self._items if name not in values]
        unknown = [within + name for name in values if name not in self._items]
        parts = [f"no value for {', '.join(missing)}"] if missing else []
        parts += [f"no argument {', '.join(unknown)}"] if unknown else []
        return f"{' and '.join(parts)}; the arguments are {', '.join(self.names)}"

    def find(self, name: str, *path: str) -> tuple[int, Declared]:
        """Return the first word of an argument and its declaration; a `path` leads into a group.

        Raises TypeError for a name that there is not.
        """
        if name not in self._items:
            raise TypeError(f"no argument {name}; the arguments are {', '.join(self.names)}")
        first, declared = self._items[name]
        if not path:
            return first, declared
        place, found = group_of(declared, name).find(*path)
        return first + place, found

    def span(self, *path: str) -> tuple[int, int]:
        """Return the first word of an argument or a group and the word after it."""
        first, declared = self.find(*path)
        return first, first + words_of(declared)

    def read(self, block: Sequence[Argument], *path: str) -> Sequence[Argument]:
        """Return the words of an argument, or of a group, in a block."""
        first, end = self.span(*path)
        return block[first:end]


def words_of(declared: Declared) -> int:
    """Return the words of an argument, or of a group each time that it is there."""
    if isinstance(declared, str):
        return _TENSOR if declared == "tensor" else 1
    if isinstance(declared, KernelSignature):
        return declared.words
    return declared.signature.words if isinstance(declared, Repeated) else declared[1]


def group_of(declared: Declared, name: str) -> KernelSignature:
    """Return the arguments of a group; raises TypeError for an argument that is none."""
    found = declared.signature if isinstance(declared, Repeated) else declared
    if not isinstance(found, KernelSignature):
        raise TypeError(f"{name} is no group of arguments")
    return found


def of_kind(kind: Kind, names: Iterable[str]) -> dict[str, Declared]:
    """Return the declarations of some arguments of one kind."""
    return dict.fromkeys(names, kind)


def _words(declared: Declared, value: Any, name: str) -> Sequence[Argument]:
    """Return the words of a tensor or of several numbers; raises TypeError for another number of them."""
    if not isinstance(value, (list, tuple)) or len(cast("list[object]", value)) != words_of(declared):
        raise TypeError(f"the argument {name} has {words_of(declared)} words, not {value}")
    return cast("Sequence[Argument]", value)


def _group(declared: Declared, value: Any, within: str) -> Sequence[Argument]:
    """Return the words of a group; raises TypeError as `KernelSignature.pack`."""
    is_repeated = isinstance(declared, Repeated)
    if not isinstance(value, list if is_repeated else dict):
        raise TypeError(f"the group {within[:-1]} needs {'a list' if is_repeated else 'values by name'}")
    signature = group_of(declared, within[:-1])
    if not is_repeated:
        return signature.pack(cast("dict[str, Packable]", value), within)
    each = cast("list[dict[str, Packable]]", value)
    return [word for values in each for word in signature.pack(values, within)]


@functools.lru_cache(maxsize=1 << 10)
def declared(**arguments: Declared) -> KernelSignature:
    """Return the signature with some arguments, one for all equal ones: kernels of a plan share few."""
    return KernelSignature(**arguments)


SCRATCH_MEMORY = KernelSignature(memory="tensor", bytes="bytes")
"""The scratch memory of all threads, and how many bytes of it each has."""


def scratch_memory(size: Size) -> Mapping[str, Packable]:
    """Return the values of `SCRATCH_MEMORY` for so many bytes of each thread."""
    return {"memory": [SCRATCH, 0], "bytes": size}
