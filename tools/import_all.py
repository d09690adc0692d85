"""Import every module of the installed package, where only its dependencies and the extra `cli` are."""

import importlib
import pkgutil
import sys

import sabir


def main() -> int:
    """Return 1 where a module cannot be imported, and say which."""
    names = [module.name for module in pkgutil.walk_packages(sabir.__path__, "sabir.")]
    failed = [name for name in names if not name.endswith("__main__") and not imports(name)]
    print(f"{len(names)} modules of {sabir.__path__[0]}, {len(failed)} cannot be imported")
    return 1 if failed else 0


def imports(name: str) -> bool:
    """Return whether a module can be imported; say why not."""
    try:
        importlib.import_module(name)
    except ImportError as error:
        print(f"{name}: {error}")
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
