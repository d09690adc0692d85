"""The tests of an engine: cases of each operator, their loader, and the runner `BackendTest`."""

from sabir.compat.onnx.backend.test.runner import Runner as BackendTest

__all__ = ["BackendTest"]
