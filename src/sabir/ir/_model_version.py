"""The version of a model: semantic versioning, packed into one signed 64-bit number."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sabir.base import SchemaError, quote, suggest

VersionPart: TypeAlias = Literal["major", "minor", "patch"]

_MOST = {"major": (1 << 16) - 1, "minor": (1 << 16) - 1, "patch": (1 << 32) - 1}
_LARGEST, _MODULUS = (1 << 63) - 1, 1 << 64
_MOST_DIGITS = 10  # of the largest patch
_SHAPE = re.compile(r"([0-9]+)\.([0-9]+)\.([0-9]+)([-+].*)?", re.DOTALL)


@dataclass(frozen=True, order=True, slots=True)
class ModelVersion:
    """A semantic version of a model, MAJOR.MINOR.PATCH, as the field `model_version` stores it.

    The number has 16 bits of major, 16 of minor and 32 of patch, and is negative for a major of 32768 or
    more. A number whose upper four bytes are zero is a simple number, not a semantic version; so 0.0.n
    cannot be stored. Versions are ordered by their parts, not by their numbers. Raises SchemaError for parts
    that the number cannot contain, TypeError for a part that is not an int.

    >>> version = ModelVersion(1, 2, 345)
    >>> print(version, hex(version.packed))
    1.2.345 0x1000200000159
    >>> ModelVersion.parse('1.10.0') > version
    True
    """

    major: int
    minor: int
    patch: int

    def __post_init__(self) -> None:
        for name, most in _MOST.items():
            part: object = getattr(self, name)
            if not isinstance(part, int) or isinstance(part, bool):
                raise TypeError(f"the {name} version must be an int, and is {part!r}")
            if not 0 <= part <= most:
                raise SchemaError(f"the {name} version must be from 0 to {most}")
        if not self.major and not self.minor:
            raise SchemaError(
                f"a model cannot have the version {self}, as its number would be the simple number "
                f"{self.patch}; use 0.1.0 or a later version, or the simple number {self.patch}"
            )

    @classmethod
    def parse(cls, text: str) -> ModelVersion:
        """Read `1.2.345`; raises SchemaError for any other text, and as the constructor does.

        Pre-release and build metadata (`1.2.3-rc1+build`) are refused: a model does not store them.

        >>> ModelVersion.parse('1.2.345')
        ModelVersion(major=1, minor=2, patch=345)
        """
        found = _SHAPE.fullmatch(text)
        if found is None:
            raise SchemaError(
                f"{quote(text)} is not a semantic version; write MAJOR.MINOR.PATCH, such as 1.2.345"
            )
        *parts, rest = found.groups()
        if rest:
            raise SchemaError(
                f"{quote(text)}: a model stores no pre-release and no build metadata; leave out {quote(rest)}"
            )
        for name, part in zip(_MOST, parts, strict=True):
            if part != "0" and part.startswith("0"):
                raise SchemaError(f"{quote(text)}: the {name} version must not start with a zero")
        # what is cut here is too large either way, and `int` refuses very long numbers
        return cls(*(int(part[: _MOST_DIGITS + 1]) for part in parts))

    @classmethod
    def unpack(cls, number: int) -> ModelVersion:
        """Return the version that a number of the field `model_version` means.

        Raises SchemaError for a simple number, and for one that is not a signed 64-bit number.

        >>> print(ModelVersion.unpack(0x0001000200000159))
        1.2.345
        """
        if cls.is_simple(number):
            raise SchemaError(
                f"the model version {number} is a simple number: its upper four bytes, major and minor, are 0"
            )
        return cls(number >> 48 & _MOST["major"], number >> 32 & _MOST["minor"], number & _MOST["patch"])

    @staticmethod
    def is_simple(number: int) -> bool:
        """Return whether a number of the field `model_version` is a simple number, not a semantic version.

        Raises SchemaError for one that is not a signed 64-bit number.

        >>> ModelVersion.is_simple(7), ModelVersion.is_simple(1 << 32)
        (True, False)
        """
        if not ~_LARGEST <= number <= _LARGEST:
            raise SchemaError("a model version must be a signed 64-bit number, from -2**63 to 2**63 - 1")
        return not number >> 32

    @property
    def packed(self) -> int:
        """The number of the field `model_version`, negative for a major of 32768 or more."""
        number = self.major << 48 | self.minor << 32 | self.patch
        return number if number <= _LARGEST else number - _MODULUS

    def bump(self, part: VersionPart) -> ModelVersion:
        """Return the next version of a part, with the lower parts zero.

        The standard recommends a new major version for a breaking change of inputs or outputs, a minor one
        for another change of them, and a patch for a change of accuracy or performance. Raises SchemaError
        where the part is at its maximum, and for an unknown part.

        >>> print(ModelVersion(1, 2, 345).bump('minor'))
        1.3.0
        """
        if part not in _MOST:
            known = f"; the parts are {', '.join(_MOST)}"
            raise SchemaError(f"a version has no part {quote(part)}{suggest(part, _MOST) or known}")
        if getattr(self, part) == _MOST[part]:
            raise SchemaError(f"the {part} version of {self} is at its maximum, {_MOST[part]}")
        match part:
            case "major":
                return ModelVersion(self.major + 1, 0, 0)
            case "minor":
                return ModelVersion(self.major, self.minor + 1, 0)
            case "patch":
                return ModelVersion(self.major, self.minor, self.patch + 1)

    def __int__(self) -> int:
        return self.packed

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"
