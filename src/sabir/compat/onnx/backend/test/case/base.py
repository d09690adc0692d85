"""Classes of cases that programs add: each function `export…` of a subclass of Base calls `expect`."""

from __future__ import annotations

import inspect
import textwrap
from typing import Any, ClassVar

_PREFIX = "export"


def process_snippet(op_name: str, name: str, export: Any) -> tuple[str, str]:
    """Return the name of a snippet and the statements of an `export…` function, without their indentation."""
    source = textwrap.dedent(inspect.getsource(export))
    body = source[source.index(":\n", source.index(export.__name__)) + 2 :]
    return name.removeprefix(_PREFIX).removeprefix("_") or op_name.lower(), textwrap.dedent(body)


class Base:
    """The base class of cases: the functions `export…` of a subclass are called when it is defined."""

    snippets: ClassVar[dict[str, list[tuple[str, str]]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in [name for name in vars(cls) if name.startswith(_PREFIX)]:
            export = getattr(cls, name)
            Base.snippets.setdefault(cls.__name__, []).append(process_snippet(cls.__name__, name, export))
            export()


__all__ = ["Base", "process_snippet"]
