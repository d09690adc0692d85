"""The version of the API."""

from sabir.compat import VERSION

version = VERSION
git_version = ""
"""Empty: this is not a build of onnx's repository."""

__all__ = ["git_version", "version"]
