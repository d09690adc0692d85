"""Arguments of kernels, declared once: each has a name and a kind, and so many 64-bit words of a block.

A block has all arguments of one call. The planner packs a block by the names of a signature, the code of the
kernel loads by the same names, and so does what analyses a plan. Nothing else counts words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, cast

from sabir.compilation.plan.entries import SCRATCH

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sabir.compilation.plan.entries import Argument
    from sabir.loops import Size

Kind: TypeAlias = Literal["size", "stride", "bytes", "number", "tensor", "address"]
"""What an argument is: a size or an index counts elements, a stride and bytes count bytes.

A tensor is the number of its buffer and its offset there in bytes; an address is one in this process.
"""

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
        missing = [within + name for name in self._items if name not in values]
        unknown = [within + name for name in values if name not in self._items]
        if missing or unknown:
            parts = [f"no value for {', '.join(missing)}"] if missing else []
            parts += [f"no argument {', '.join(unknown)}"] if unknown else []
            raise TypeError(f"{' and '.join(parts)}; the arguments are {', '.join(self.names)}")
        found: list[Argument] = []
        for name, (_, declared) in self._items.items():
            found += _packed(declared, values[name], within + name)
        return found

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
    match declared:
        case KernelSignature():
            return declared.words
        case Repeated():
            return declared.signature.words
        case (_, length):
            return length
        case _:
            return 2 if declared == "tensor" else 1


def group_of(declared: Declared, name: str) -> KernelSignature:
    """Return the arguments of a group; raises TypeError for an argument that is none."""
    found = declared.signature if isinstance(declared, Repeated) else declared
    if not isinstance(found, KernelSignature):
        raise TypeError(f"{name} is no group of arguments")
    return found


def of_kind(kind: Kind, names: Iterable[str]) -> dict[str, Declared]:
    """Return the declarations of some arguments of one kind."""
    return dict.fromkeys(names, kind)


def _packed(declared: Declared, value: Packable, name: str) -> Sequence[Argument]:
    """Return the words of an argument or of a group; raises TypeError as `KernelSignature.pack`."""
    if isinstance(declared, (KernelSignature, Repeated)):
        is_repeated = isinstance(declared, Repeated)
        if not isinstance(value, list if is_repeated else Mapping):
            raise TypeError(f"the group {name} needs {'a list' if is_repeated else 'values by name'}")
        each = cast("list[Mapping[str, Packable]]", value if is_repeated else [value])
        return [word for values in each for word in group_of(declared, name).pack(values, f"{name}.")]
    if declared == "tensor" and value is None:
        return [0, 0]
    words = [value] if isinstance(declared, str) and declared != "tensor" else value
    if not isinstance(words, (list, tuple)) or len(cast("list[object]", words)) != words_of(declared):
        raise TypeError(f"the argument {name} has {words_of(declared)} words, not {words}")
    return cast("Sequence[Argument]", words)


SCRATCH_MEMORY = KernelSignature(memory="tensor", bytes="bytes")
"""The scratch memory of all threads, and how many bytes of it each has."""


def scratch_memory(size: Size) -> Mapping[str, Packable]:
    """Return the values of `SCRATCH_MEMORY` for so many bytes of each thread."""
    return {"memory": [SCRATCH, 0], "bytes": size}
