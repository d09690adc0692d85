"""The linear transforms of Winograd's algorithms: of tiles of an image, of filters, and of products.

F(m, 3) computes m adjacent results of three taps from m + 2 elements with m + 2 products. Its transforms
derive from the product of two polynomials by their values at m + 2 points, one of them infinity. In two
dimensions a transform is applied along one axis, then along the other. See Lavin and Gray, "Fast Algorithms
for Convolutional Neural Networks" (2016).

The points of F(2, 3) are 0, 1, -1 and infinity: its transforms are sums, differences and halves. Those of
F(4, 3) are 0, 3/4, -3/4, 3/2, -3/2 and infinity: its rounding error is half of that with the points 0, 1, -1,
2, -2 and infinity, and three times that of F(2, 3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.backends.cpu.emit.emitter import Emitter, Register

TAPS = 3
_NEAR, _FAR = 0.75, 1.5  # the points of F(4, 3) are 0, these, their opposites, and infinity
_SUM, _PRODUCT = _NEAR**2 + _FAR**2, (_NEAR * _FAR) ** 2


class Transform(Protocol):
    """The transforms along one axis, which emit code; `results` is the number of results of a tile."""

    results: int

    def image(self, e: Emitter, d: Sequence[Register]) -> list[Register]:
        """Return the `results + 2` factors of as many elements of an image."""
        ...

    def filters(self, e: Emitter, taps: Sequence[Register]) -> list[Register]:
        """Return the `results + 2` factors of three taps of a filter."""
        ...

    def folded(self, e: Emitter, products: Sequence[Register]) -> list[Register]:
        """Return the `results` results of the `results + 2` products of factors."""
        ...


class _Two:
    """F(2, 3)."""

    results = 2

    def image(self, e: Emitter, d: Sequence[Register]) -> list[Register]:
        return [
            e.binary("fsub", d[0], d[2]), e.binary("fadd", d[1], d[2]),
            e.binary("fsub", d[2], d[1]), e.binary("fsub", d[1], d[3]),
        ]  # fmt: skip

    def filters(self, e: Emitter, taps: Sequence[Register]) -> list[Register]:
        first, middle, last = taps
        half = e.constant(first.kind, 0.5)
        ends = e.binary("fadd", first, last)
        more, less = e.binary("fadd", ends, middle), e.binary("fsub", ends, middle)
        return [first, e.binary("fmul", more, half), e.binary("fmul", less, half), last]

    def folded(self, e: Emitter, products: Sequence[Register]) -> list[Register]:
        m = products
        first = e.binary("fadd", e.binary("fadd", m[0], m[1]), m[2])
        return [first, e.binary("fsub", e.binary("fsub", m[1], m[2]), m[3])]


class _Four:
    """F(4, 3): the factors of a point and its opposite are `even + point * odd` and `even - point * odd`."""

    results = 4

    def image(self, e: Emitter, d: Sequence[Register]) -> list[Register]:
        found = [self._ends(e, d[0], d[2], d[4])]
        for point, other in ((_NEAR, _FAR), (_FAR, _NEAR)):
            even = _scaled_sum(e, -(other**2), d[2], d[4])
            odd = _scaled_sum(e, -(other**2), d[1], d[3])
            found += [_scaled_sum(e, point, odd, even), _scaled_sum(e, -point, odd, even)]
        return [*found, self._ends(e, d[1], d[3], d[5])]

    def _ends(self, e: Emitter, a: Register, b: Register, c: Register) -> Register:
        return _scaled_sum(e, _PRODUCT, a, _scaled_sum(e, -_SUM, b, c))

    def filters(self, e: Emitter, taps: Sequence[Register]) -> list[Register]:
        first, middle, last = taps
        found = [e.binary("fmul", first, e.constant(first.kind, 1 / _PRODUCT))]
        for point, other in ((_NEAR, _FAR), (_FAR, _NEAR)):
            scale = e.constant(first.kind, 1 / (2 * point**2 * (point**2 - other**2)))
            even = _scaled_sum(e, point**2, last, first)
            both = [_scaled_sum(e, sign, middle, even) for sign in (point, -point)]
            found += [e.binary("fmul", x, scale) for x in both]
        return [*found, last]

    def folded(self, e: Emitter, products: Sequence[Register]) -> list[Register]:
        m = products
        near, far = e.binary("fadd", m[1], m[2]), e.binary("fadd", m[3], m[4])
        first = e.binary("fadd", e.binary("fadd", m[0], near), far)
        third = _weighted(e, _NEAR**2, near, _FAR**2, far)
        near, far = e.binary("fsub", m[1], m[2]), e.binary("fsub", m[3], m[4])
        second = _weighted(e, _NEAR, near, _FAR, far)
        return [first, second, third, e.binary("fadd", _weighted(e, _NEAR**3, near, _FAR**3, far), m[5])]


def _scaled_sum(e: Emitter, scale: float, x: Register, y: Register) -> Register:
    """Emit `scale * x + y`."""
    return e.fma(x, e.constant(x.kind, scale), y)


def _weighted(e: Emitter, scale: float, x: Register, other: float, y: Register) -> Register:
    """Emit `scale * x + other * y`."""
    return _scaled_sum(e, scale, x, e.binary("fmul", y, e.constant(y.kind, other)))


_TRANSFORMS: dict[int, Transform] = {2: _Two(), 4: _Four()}


def transform_of(results: int) -> Transform:
    """Return the transforms for `results` results of a tile along an axis, 2 or 4."""
    return _TRANSFORMS[results]
