"""What notebooks show of objects of the lower packages, which know nothing of markup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable


class Displayed:
    """An object that notebooks show as a table or a picture, which `sabir` supplies, and else as its `repr`.

    `bundle` returns the forms of an object by MIME type.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> list(model.graph._repr_mimebundle_())
    ['text/html', 'image/svg+xml']
    """

    __slots__ = ()

    bundle: ClassVar[Callable[[Any], dict[str, str]] | None] = None

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """Return all forms; IPython leaves out those that a front end does not want."""
        return displayed(self)

    def _repr_html_(self) -> str | None:
        return displayed(self).get("text/html")


def displayed(item: object) -> dict[str, str]:
    """Return the forms of an object by MIME type, none where `sabir` has supplied no function.

    >>> list(displayed(sabir.base.Finding('NODE001', 'unknown', sabir.base.Location())))
    ['text/html']
    """
    return {} if Displayed.bundle is None else Displayed.bundle(item)


__all__ = ["Displayed", "displayed"]
