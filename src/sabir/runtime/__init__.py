"""Sessions: a model loaded once and run many times."""

from sabir.runtime._session import Session

__all__ = ["Session"]
