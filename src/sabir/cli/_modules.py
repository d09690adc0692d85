"""Objects of the user's own Python modules, which options name as MODULE:NAME."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from sabir.base import ACCIDENTS, SchemaError, suggest


def imported(option: str, flag: str) -> Any:
    """Return the object that `MODULE:NAME` names; the module is imported, from the working folder too.

    Raises SchemaError, which names the flag, if there is no such module or object.
    """
    module, _, name = option.partition(":")
    if not module or not name:
        raise SchemaError(f"{flag} {option!r}: write it as MODULE:NAME")
    sys.path.insert(0, "")  # as `python -m` does
    try:
        found = importlib.import_module(module)
    except (ImportError, SchemaError, *ACCIDENTS) as error:
        raise SchemaError(f"{flag} {option!r}: {module} cannot be imported: {error}") from error
    finally:
        sys.path.remove("")
    if not hasattr(found, name):
        raise SchemaError(f"{flag} {option!r}: {module} has nothing of that name{suggest(name, dir(found))}")
    return getattr(found, name)
