"""The compiler: models as plans of native kernels."""

from sabir.compilation._engine import Compiled

__all__ = ["Compiled"]
