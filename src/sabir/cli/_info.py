"""`sabir info`: the installation and the machine, for a report of a problem."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Any

from sabir._version import __version__
from sabir.base import usable_memory
from sabir.cli._json import JsonOption, write_json
from sabir.cli._screen import Screen, bytes_text, plain
from sabir.compilation.disk import cache
from sabir.compilation.native import host, usable_cores
from sabir.ir import releases
from sabir.runtime import why_not_compiled

EXAMPLES = ("sabir info", "sabir info --json")
_PACKAGES = (
    "numpy", "ml_dtypes", "protobuf", "llvmlite", "google-re2", "threadpoolctl", "typer", "rich", "pillow",
    "matplotlib", "ray",
)  # fmt: skip
_LEVEL = "SABIR_CPU"


def info(*, as_json: JsonOption = False) -> None:
    """Show the version, the engine and the machine.

    With the cache and the packages. SABIR_CPU limits the processor features that compiled code uses,
    SABIR_CACHE names the folder of the cache.
    """
    facts = _facts()
    if as_json:
        write_json(facts)
        return
    target, kept = facts["target"], facts["cache"]
    rows = [
        ("sabir", f"{facts['version']}, for ONNX {facts['standard']}"),
        ("python", f"{facts['python']} on {facts['platform']}"),
        ("engine", f"reference: {facts['problem']}" if facts["problem"] else "compiled"),
        ("target", f"{target['cpu']}, vectors of {target['vector_bits']} bits" if target else "none"),
        ("features", target["features"] if target else "none"),
        ("machine", f"{_counted(target)}, {_memory(facts['memory'])}"),
        ("cache", f"{kept['folder']}: {bytes_text(kept['bytes'])} of {bytes_text(kept['limit'])}"
         if kept["folder"] else "off"),
        *((name, version or "not installed") for name, version in facts["packages"].items()),
    ]  # fmt: skip
    Screen().table(((name, plain(text)) for name, text in rows), "", "")


def _facts() -> dict[str, Any]:
    problem, kept = why_not_compiled(), cache()
    return {
        "version": __version__,
        "standard": releases()[-1].name,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "engine": "reference" if problem else "compiled",
        "problem": problem or None,
        "target": None if problem else _target(),
        "memory": usable_memory(),
        "cache": {
            "folder": None if kept.folder is None else str(kept.folder),
            "bytes": sum(entry.size for entry in kept.entries()),
            "limit": kept.limit,
        },
        "packages": {name: _installed(name) for name in _PACKAGES},
    }


def _target() -> dict[str, Any]:
    found = host()
    has = [f.removeprefix("+") for f in found.features.split(",") if f.startswith("+")]
    return {
        "architecture": found.architecture, "cpu": found.cpu, "vector_bits": found.vector_bits,
        "cores": usable_cores(), "features": " ".join(has),
    }  # fmt: skip


def _installed(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _counted(target: dict[str, Any] | None) -> str:
    return f"{target['cores']} cores" if target else "cores unknown"


def _memory(size: int | None) -> str:
    return "memory unknown" if size is None else f"{bytes_text(size)} of memory"
