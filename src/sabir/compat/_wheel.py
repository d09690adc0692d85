"""A wheel named `onnx` whose only module hands the import to Sabir, for pip and for any Python program."""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from sabir.compat._install import VERSION
from sabir.files import absolute, replace_file

if TYPE_CHECKING:
    import os

_LABEL = f"{VERSION}+sabir"
_INFO = f"onnx-{_LABEL}.dist-info"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time of an archive, so that equal contents give equal files
_FILES = {
    "onnx/__init__.py": (
        '"""The API of onnx on Sabir: see docs/compat.md of Sabir."""\n\n'
        "from sabir.compat import take_over\n\n"
        "take_over()\n"
    ),
    f"{_INFO}/METADATA": (
        f"Metadata-Version: 2.1\nName: onnx\nVersion: {_LABEL}\n"
        "Summary: The API of onnx on Sabir: `import onnx` means sabir.compat.onnx.\n"
        "Requires-Python: >=3.11\nRequires-Dist: sabir\n"
    ),
    f"{_INFO}/WHEEL": "Wheel-Version: 1.0\nGenerator: sabir\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}


def write_wheel(directory: str | os.PathLike[str]) -> Path:
    """Write a wheel of the distribution `onnx` into an existing directory; return its path.

    Its version is `VERSION` with the local label `sabir`, which requirements such as `onnx>=1.16` admit. pip
    knows no other way for a distribution to satisfy a requirement on another name. The wheel requires
    `sabir`, and its module does what `install` does.

    Raises FileError if the directory is missing or cannot be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_wheel(folder).name
    'onnx-1.23.2+sabir-py3-none-any.whl'
    """
    path = absolute(Path(directory)) / f"onnx-{_LABEL}-py3-none-any.whl"
    replace_file(path, [_archive()])
    return path


def _archive() -> bytes:
    record = "".join(f"{name},sha256={_digest(text)},{len(text.encode())}\n" for name, text in _FILES.items())
    files = {**_FILES, f"{_INFO}/RECORD": f"{record}{_INFO}/RECORD,,\n"}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), text)
    return stream.getvalue()


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
