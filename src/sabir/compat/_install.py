"""The finder that makes `import onnx` mean the modules of `sabir.compat.onnx`, and its metadata."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from typing import TYPE_CHECKING, Any

from sabir.base import SabirError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import ModuleType

VERSION = "1.23.2"
"""The version of the `onnx` package whose API `sabir.compat.onnx` has."""

_NAME = "onnx"
_HOME = "sabir.compat.onnx"
# a name that onnx 1.23 has, or that programs ask for, and that Sabir does not have
_ABSENT = {
    "onnx.hub": "it downloads models, and Sabir never uses the network; fetch the file, then `onnx.load` it",
    "onnx.mapping": "onnx removed it in version 1.19; use the functions of `onnx.helper`",
    "onnx.version_utils": "onnx removed it; compare with `onnx.__version__`",
    "onnx.tools.net_drawer": "onnx removed it; `sabir view` shows a model",
    "onnx.backend.test.report": "it is a plugin of pytest for the pages of onnx's repository",
    "onnx.backend.test.stat_coverage": "it writes a page of onnx's repository about onnx's own cases",
    "onnx.fuzz": "it is a set of programs of onnx's repository",
}


class CompatError(SabirError):
    """`import onnx` cannot be given to Sabir, as this process already uses the package `onnx`.

    >>> issubclass(CompatError, sabir.SabirError)
    True
    """


def install() -> None:
    """Make `import onnx` and its submodules mean `sabir.compat.onnx` in this process.

    `importlib.metadata.version("onnx")` then answers `VERSION`. A second call changes nothing. Call it
    before anything imports `onnx`.

    Raises CompatError if the real package is already imported.

        import sabir.compat

        sabir.compat.install()
        import onnx  # sabir.compat.onnx
    """
    if is_installed():
        return
    found = sys.modules.get(_NAME)
    if found is not None:
        raise CompatError(
            f"the package onnx is already imported from {getattr(found, '__file__', 'an unknown place')}; "
            "call sabir.compat.install() first, or run the program by `python -m sabir.compat`"
        )
    sys.meta_path.insert(0, _FINDER)


def take_over() -> None:
    """Do what `install` does, from within the import of the package `onnx` of the wheel of `write_wheel`.

    >>> take_over.__module__
    'sabir.compat._install'
    """
    if not is_installed():
        sys.meta_path.insert(0, _FINDER)
    _provide(_NAME)


def uninstall() -> None:
    """Undo `install`: the next `import onnx` finds the real package again, if there is one.

    Modules that were imported meanwhile keep what they imported. Without a call of `install` it does nothing.

    >>> import sabir.compat
    >>> sabir.compat.uninstall()
    >>> sabir.compat.is_installed()
    False
    """
    if not is_installed():
        return
    sys.meta_path.remove(_FINDER)
    for name in [n for n in sys.modules if n == _NAME or n.startswith(f"{_NAME}.")]:
        sys.modules.pop(name).__name__ = _home(name)


def is_installed() -> bool:
    """Whether `import onnx` means Sabir in this process.

    >>> import sabir.compat
    >>> sabir.compat.is_installed()
    False
    """
    return _FINDER in sys.meta_path


class _Loader:
    """Puts the module of Sabir into `sys.modules` under the name of onnx."""

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:  # ruff: ignore[unused-method-argument]  the protocol
        return None

    def exec_module(self, module: ModuleType) -> None:
        _provide(module.__name__)


class _Finder(DistributionFinder):
    """Finds the modules of `onnx` and its distribution."""

    # ruff: ignore[unused-method-argument]  the protocol of finders
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _NAME and not fullname.startswith(f"{_NAME}."):
            return None
        if (reason := _reason_of_absence(fullname)) is not None:
            raise ModuleNotFoundError(f"Sabir has no module {fullname}: {reason}", name=fullname)
        found = importlib.util.find_spec(_home(fullname))
        if found is None:
            raise ModuleNotFoundError(
                f"Sabir has no module {fullname}; docs/compat.md lists those that it has", name=fullname
            )
        return ModuleSpec(
            fullname,
            _Loader(),  # pyright: ignore[reportArgumentType]  importlib calls the two methods that it has
            origin=found.origin,
            is_package=found.submodule_search_locations is not None,
        )

    def find_distributions(self, context: DistributionFinder.Context | None = None) -> Iterable[Distribution]:
        if context is None or context.name in {_NAME, None}:
            yield _SabirsOnnx()


class _SabirsOnnx(Distribution):
    """What `importlib.metadata` answers about `onnx`."""

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        return (
            f"Metadata-Version: 2.1\nName: {_NAME}\nVersion: {VERSION}\nSummary: The API of onnx on Sabir.\n"
        )

    def locate_file(self, path: Any) -> Any:
        raise FileNotFoundError(f"the distribution onnx is Sabir's own and has no file {path}")


_FINDER = _Finder()


def _provide(name: str) -> None:
    """Put a module of Sabir into `sys.modules` under its name in onnx.

    A loader may replace the module that is being imported so. The module also gets that name, which programs
    compare: hummingbird looks for the backend `onnx.__name__`.
    """
    module = importlib.import_module(_home(name))
    module.__name__ = name
    sys.modules[name] = module


def _home(name: str) -> str:
    return _HOME + name.removeprefix(_NAME)


def _reason_of_absence(name: str) -> str | None:
    for absent, reason in _ABSENT.items():
        if name == absent or name.startswith(f"{absent}."):
            return reason
    return None
