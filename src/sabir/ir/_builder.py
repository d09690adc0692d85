"""Build a graph one call at a time: `y = b.Softmax(x, axis=1)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast, overload

import numpy as np

from sabir._version import __version__
from sabir.base import InferenceError, LimitError, SchemaError, UnsupportedError
from sabir.ir._attributes import Attribute
from sabir.ir._expressions import register
from sabir.ir._fresh import FreshNames
from sabir.ir._graph import Graph
from sabir.ir._imports import bound_opsets, canonical_domain
from sabir.ir._model import Function, Model
from sabir.ir._node import Node
from sabir.ir._operators import OperatorMethods
from sabir.ir._tensors import ArrayTensor, SparseTensor, Tensor
from sabir.ir._types import TensorType, Type, tensor_type
from sabir.ir._used_features import least_ir
from sabir.ir._value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sabir.ir._dims import Dim
    from sabir.ir._functions import LocalFunction
    from sabir.ir._hooks import Callee, Hooks, OperatorRegistry, TypeSource
    from sabir.ir._model import FunctionKey
    from sabir.ir._operands import Operand
    from sabir.ir._tensors import Constant
    from sabir.ir._types import ElementKey

_MOST_CHECKED = 4  # levels of subgraphs
_SHARED_BYTES = 64  # the size up to which equal constants become one


class Builder(OperatorMethods):
    """Appends nodes to a graph; every operator is a method: `b.Softmax(x, axis=1)`.

    Each node is checked against the signature of its operator, in the version that applies, when it is built:
        SchemaError. `op` can call any operator of a domain that the registry does not have.

    >>> b = sabir.Builder(opset=21)
    >>> y = b.output(b.Softmax(b.input('x', 'float', ['N', 3])), 'y')
    >>> print(b.model().graph.outputs[0].type)
    float[N,3]
    """

    hooks: ClassVar[Hooks | None] = None  # `sabir` sets it

    def __init__(
        self,
        opset: int = 21,
        *,
        name: str = "main",
        graph: Graph | None = None,
        opsets: dict[str, int] | None = None,
        after: Callable[[Node], None] | None = None,
        names: FreshNames | None = None,
        registry: OperatorRegistry | None = None,
        functions: Iterable[Function] = (),
        check: bool = True,
    ) -> None:
        """Start a graph at `opset`, or continue `graph`; `after` is called on each new node.

        `names` names new values, by default unlike all others of the graph.

        `opsets` are more imports; a version of the default domain in it, under either name, replaces `opset`.
        `registry` has the operators, those of the standard by default, `functions` are the model's. Without
        `check` any operator may be called in any way; constants then have the types that Python gives them.
        """
        self.graph = Graph(name) if graph is None else graph
        self.opsets = bound_opsets(opsets or {}, opset)
        self._after, self._registry, self._check = after, registry, check
        if check and graph is None and self.hooks is not None:
            self.hooks.callees(registry).require(self.opsets)
        self._functions: dict[FunctionKey, Function] = {f.key: f for f in functions}
        if names is None:
            names = FreshNames.beside([self.graph])
        self._names = names
        self._constants: dict[tuple[object, ...], Value] = {}
        self._constants_are_nodes = False  # in the body of a function, which has no initializers
        self._outer: Builder | None = None
        self._inner: Builder | None = None  # of a subgraph or function while it is built
        self._types: tuple[int, TypeSource] | None = None
        register(self)

    @property
    def opset(self) -> int:
        """The version of the default domain."""
        return self.opsets[""]

    @property
    def innermost(self) -> Builder:
        """The builder of the innermost subgraph or function body that is built now; else this one."""
        found = self
        while found._inner is not None:
            found = found._inner
        return found

    # inputs, constants and outputs

    def input(
        self, name: str, kind: ElementKey | Type, shape: Sequence[int | str | Dim] | None = None
    ) -> Value:
        """Add a graph input: `b.input("x", "float", ["N", 3])`; `kind` may also be a complete type."""
        return self.graph.add_input(self._names.fresh(name), _type(kind, shape))

    def initializer(self, name: str, data: Constant | object) -> Value:
        """Add a constant from an array, a tensor, or anything that numpy accepts as an array.

        In the body of a function it is a `Constant` node, since functions have no initializers.
        """
        return self._store(self._names.fresh(name), data)

    def output(
        self,
        value: Value,
        name: str = "",
        kind: ElementKey | Type | None = None,
        shape: Sequence[int | str | Dim] | None = None,
    ) -> Value:
        """Make a value a graph output, renamed and typed as specified; return it."""
        if name and name != value.name:
            value.name = self._names.fresh(name)
        if kind is not None:
            value.type = _type(kind, shape)
        self.graph.outputs.append(value)
        return value

    # nodes

    @overload
    def op(
        self, op: str, /, *inputs: Operand | None, outputs: Literal[1] = 1, domain: str = "",
        overload: str = "", name: str = "", **attributes: Any,
    ) -> Value: ...  # fmt: skip
    @overload
    def op(
        self, op: str, /, *inputs: Operand | None, outputs: int, domain: str = "", overload: str = "",
        name: str = "", **attributes: Any,
    ) -> Any: ...  # fmt: skip
    def op(
        self,
        op: str,
        /,
        *inputs: Operand | None,
        outputs: int = 1,
        domain: str = "",
        overload: str = "",
        name: str = "",
        **attributes: Any,
    ) -> Any:
        """Append a node of any domain; return its output, or a tuple of them if `outputs` is not 1.

        An attribute that is None is left out. Raises SchemaError for an invalid call.
        """
        callee = self.callee(domain, op, overload)
        if callee is None:
            from sabir.ir._functions import bind_freely  # ruff: ignore[import-outside-top-level]  `import sabir` need not wait for it

            operands, facts = bind_freely(self, inputs, attributes, op)
        else:
            operands, facts = callee.bind(self, inputs, outputs, attributes)
        reads = [v if v is None or isinstance(v, Value) else self._constant(v) for v in operands]
        stem = f"{op.lower()}_out"
        results = tuple([Value(self._names.fresh(stem)) for _ in range(outputs)])
        named = {key: Attribute.of(key, fact) for key, fact in facts.items()}
        node = Node.linked(op, reads, results, named, domain=domain, overload=overload, name=name)
        self.graph.append(node)
        if self._after is not None:
            self._after(node)
        elif callee is not None:
            self._check_types(node)
        return results[0] if outputs == 1 else results

    def callee(self, domain: str, op: str, overload: str = "") -> Callee | None:
        """Return what a node calls; None where anything may be called.

        Raises SchemaError for an operator that a known domain does not have in the opset imported.
        """
        function = self._functions.get((canonical_domain(domain), op, overload)) if self._functions else None
        if function is not None:
            from sabir.ir._functions import FunctionCallee  # ruff: ignore[import-outside-top-level]  `import sabir` need not wait for it

            return FunctionCallee(function)
        if not self._check or self.hooks is None or overload:
            return None
        return self.hooks.callees(self._registry).find(domain, op, self.opsets)

    def operator_names(self, domain: str = "") -> list[str]:
        """Return the names of the operators of a domain in the opset imported, and of functions in it."""
        domain = canonical_domain(domain)
        functions = [name for d, name, _ in self._functions if d == domain]
        if self.hooks is None:
            return functions
        return [*functions, *self.hooks.callees(self._registry).names(domain, self.opsets)]

    def subscript(self, value: Value, key: object) -> Value:
        """Append the nodes of `value[key]`, with the meaning that it has in numpy; raises SchemaError."""
        from sabir.ir._indexing import indexed  # ruff: ignore[import-outside-top-level]  `import sabir` need not wait for it

        return indexed(self, value, key)

    def type_of(self, value: Value) -> Type | None:
        """Return the type of a value as declared or, if it is not, as inferred; None if it does not follow.

        Raises InferenceError for an invalid node among those that compute the value.
        """
        if _is_known(value.type):
            return value.type
        return self._root._infer(value) or value.type

    # subgraphs and functions

    def subgraph(
        self, build: Callable[[Builder], Operand | Sequence[Operand] | None], *, name: str = ""
    ) -> Graph:
        """Return a subgraph, for an attribute of a node: `b.subgraph(lambda g: g.Neg(x))`.

        `build` takes the builder of the subgraph, declares inputs with it, and returns the outputs; it may
        read the values of this graph. While it runs, operators on values append to the subgraph. A call also
        accepts such a function as the attribute itself.
        """
        inner = self._inside(Graph(name or _identifier(build, "subgraph")))
        inner._names = self._names
        inner._add_outputs(inner._run(build))
        return inner.graph

    def function(
        self, build: Callable[..., Any], *, name: str = "", domain: str = "local", overload: str = ""
    ) -> LocalFunction:
        """Define a model-local function; the result, called like an operator, appends a call of it.

        `build` takes the builder of the body, then the inputs, and returns the outputs. Its keyword-only
        parameters are the attributes; in the body they are references to those of the call. The docstring of
        `build` becomes that of the function. May be used as a decorator. Raises SchemaError for a body that
        reads values outside.
        """
        from sabir.ir._functions import (  # ruff: ignore[import-outside-top-level]  `import sabir` need not wait
            LocalFunction,
            domains_of,
            parameters_of,
        )

        inputs, attributes, references = parameters_of(build)
        body = self._inside(Graph(name or _identifier(build, "function")))
        body._constants_are_nodes = True
        values = [body.graph.add_input(body._names.fresh(parameter)) for parameter in inputs]
        body._add_outputs(body._run(build, *values, **references))
        body.graph.doc = (build.__doc__ or "").strip()
        captures = body.graph.captures()
        if captures:
            raise SchemaError(
                f"the function {body.graph.name!r} reads {captures[0].name!r} of the graph around it;"
                " pass it as an input"
            )
        function = Function(body.graph.name, domain, overload, body.graph, attributes)
        function.opsets = domains_of(function, self.opsets)
        self.opsets.setdefault(canonical_domain(domain), 1)
        self._functions[function.key] = function
        return LocalFunction(self, function)

    def model(self, *, ir_version: int | None = None, **fields: Any) -> Model:
        """Return the model of this graph, with the functions defined; `fields` are further ones of `Model`.

        Its IR version is the oldest that has all that it uses. Outputs without a type get the inferred one.
        """
        fields.setdefault("producer_name", "sabir")
        fields.setdefault("producer_version", __version__)
        fields["functions"] = [*self._functions.values(), *fields.get("functions", ())]
        model = Model(self.graph, dict(self.opsets), **fields)
        if self.hooks is not None:
            self.hooks.complete(model, self._registry)
        model.ir_version = ir_version or least_ir(model)  # the types of the outputs may need a later one
        return model

    # inside

    def _check_types(self, node: Node) -> None:
        """Erase a call whose operands have types that its operator refuses; raises SchemaError."""
        result = node.outputs[0] if node.outputs else None
        if result is None or self._constants_are_nodes:
            return  # the types of a function's inputs belong to each call
        if node.graphs or self._depth > _MOST_CHECKED:
            return  # the nodes inside were checked one by one; once more for each level would take too long
        try:
            self._root._infer(result)
        except InferenceError as error:
            self.graph.erase(node)
            reason = str(error.__cause__ or error)
            named = reason.startswith(node.op)
            raise SchemaError(reason if named else f"{node.op}: {reason}") from error
        except (LimitError, UnsupportedError):
            return  # the call may be valid: an inference of the model reports what it costs

    @property
    def _depth(self) -> int:
        """How many builders are around this one."""
        return 0 if self._outer is None else self._outer._depth + 1

    @property
    def _root(self) -> Builder:
        root = self
        while root._outer is not None:
            root = root._outer
        return root

    def _inside(self, graph: Graph) -> Builder:
        """Return the builder of a graph inside this one: same opsets, functions and checks."""
        inner = Builder(graph=graph, after=self._after, registry=self._registry, check=self._check)
        inner.opsets, inner._functions, inner._outer = self.opsets, self._functions, self
        inner._constants_are_nodes = self._constants_are_nodes
        return inner

    def _run(self, build: Callable[..., Any], *values: Value, **attributes: Attribute) -> Any:
        outer: Any = self._outer
        previous, outer._inner = outer._inner, self
        try:
            return build(self, *values, **attributes)
        finally:
            outer._inner = previous

    def _add_outputs(self, results: Any) -> None:
        """Append the outputs of a subgraph or body; each must be a different value that it computes."""
        if results is None:
            results = ()
        for result in cast("Sequence[Any]", results if isinstance(results, (tuple, list)) else (results,)):
            node = result.node if isinstance(result, Value) else None
            fits = node is not None and node.graph is self.graph and result not in self.graph.outputs
            self.graph.outputs.append(result if fits else self.op("Identity", result))
        if not self.graph.outputs:
            raise SchemaError(f"{self.graph.name!r} has no outputs; return its values from the function")

    def _infer(self, value: Value) -> Type | None:
        if self.hooks is None:
            return None
        if self._types is None or self._types[0] != len(self._functions):
            model = Model(self.graph, self.opsets, functions=list(self._functions.values()))
            self._types = len(self._functions), self.hooks.types(model, self._registry)
        return self._types[1].type_of(value)

    def _constant(self, tensor: Constant) -> Value:
        """Return a constant; equal small ones are one value."""
        key = _key(tensor)
        found = self._constants.get(key) if key is not None else None
        if found is None or found.source is None:
            found = self._store(self._names.numbered("const"), tensor)
            if key is not None:
                self._constants[key] = found
        return found

    def _store(self, name: str, data: Constant | object) -> Value:
        if not self._constants_are_nodes:
            return self.graph.add_initializer(name, data)
        tensor = data if isinstance(data, (Tensor, SparseTensor)) else ArrayTensor(np.asarray(data))
        fields: dict[str, Any] = {"sparse_value" if isinstance(tensor, SparseTensor) else "value": tensor}
        value = self.op("Constant", **fields)
        value.name = name
        return value


def _key(tensor: Constant) -> tuple[object, ...] | None:
    """Return what equal small constants have in common; None for others."""
    if not isinstance(tensor, ArrayTensor) or tensor.array().nbytes > _SHARED_BYTES:
        return None
    if tensor.element.kind == "string":
        return tensor.element, tensor.shape, *tensor.array().ravel().tolist()
    return tensor.element, tensor.shape, tensor.array().tobytes()


def _is_known(type_: Type | None) -> bool:
    return type_ is not None and not (isinstance(type_, TensorType) and not type_.element.number)


def _identifier(build: Callable[..., Any], default: str) -> str:
    name = getattr(build, "__name__", default)
    return name if name.isidentifier() else default


def _type(kind: ElementKey | Type, shape: Sequence[int | str | Dim] | None) -> Type:
    negative = next((d for d in shape or () if isinstance(d, int) and d < 0), None)
    if negative is not None:
        raise SchemaError(
            f"{negative} is no dimension; write a name such as 'N' for a size that each run decides, or None"
        )
    return kind if isinstance(kind, Type) else tensor_type(kind, shape)
