"""Sessions: a model loaded once and run many times; derivatives of a model as numbers."""

from sabir.runtime._derivatives import hessian, jacobian, vjp
from sabir.runtime._engines import ENGINES, Engine
from sabir.runtime._node_args import NodeArg
from sabir.runtime._session import Session

__all__ = ["ENGINES", "Engine", "NodeArg", "Session", "hessian", "jacobian", "vjp"]
