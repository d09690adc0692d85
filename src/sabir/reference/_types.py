"""Sets of types, described in few words."""

from __future__ import annotations

from sabir.schema import (
    CLASSIC,
    COMPLEX,
    FLOAT6,
    FLOAT8,
    FLOATS,
    INT2,
    INT4,
    INTEGERS,
    NUMBERS,
    SIGNED,
    UNSIGNED,
    optionals,
    sequences,
)

_NAMED = (
    ("every tensor of the first release", CLASSIC),
    ("float16 to double and all integers", NUMBERS),
    ("float16, float, double", FLOATS),
    ("int8 to int64, uint8 to uint64", INTEGERS),
    ("int8 to int64", SIGNED),
    ("uint8 to uint64", UNSIGNED),
    ("complex64, complex128", COMPLEX),
    ("the four float8 types", FLOAT8),
    ("both float6 types", FLOAT6),
    ("int4, uint4", INT4),
    ("int2, uint2", INT2),
)


def summarised(types: frozenset[str]) -> str:
    """Return a set of types in words, groups first; every type is in it."""
    left, words = set(types), list[str]()
    for description, group in _NAMED:
        for kind, whole in (
            ("{}", group),
            ("sequences of {}", sequences(group)),
            ("optionals of {}", optionals(group)),
        ):
            if whole <= left:
                words.append(kind.format(description))
                left -= whole
    rest = sorted(t.removeprefix("tensor(").removesuffix(")") if t.startswith("tensor(") else t for t in left)
    return "; ".join([*words, ", ".join(rest)] if rest else words)
