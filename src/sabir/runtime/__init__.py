"""Sessions: a model loaded once and run many times; derivatives of a model as numbers."""

from typing import TYPE_CHECKING

from sabir.base import importing_later, listing_public
from sabir.runtime._engines import ENGINES, Engine, why_not_compiled
from sabir.runtime._node_args import NodeArg
from sabir.runtime._session import Session

if TYPE_CHECKING:
    from sabir.runtime._derivatives import hessian, jacobian, vjp

# sessions need no interpreter
_LATER = {"hessian": "_derivatives", "jacobian": "_derivatives", "vjp": "_derivatives"}

__getattr__ = importing_later(__name__, _LATER)
__dir__ = listing_public(__name__)

__all__ = ["ENGINES", "Engine", "NodeArg", "Session", "hessian", "jacobian", "vjp", "why_not_compiled"]
