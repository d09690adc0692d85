"""One version of an operator as `onnx.defs.OpSchema` describes it."""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from sabir.compat.onnx import _attributes
from sabir.compat.onnx._errors import SchemaError
from sabir.compat.onnx.onnx_ml_pb2 import AttributeProto
from sabir.elements import ELEMENTS
from sabir.schema import Constraint, Version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sabir.schema import Attribute as VersionAttribute
    from sabir.schema import Port

    InferenceFunction: TypeAlias = Callable[[Any], None]

_INFINITE = 2**31 - 1
_ELEMENT_NAMES = frozenset(e.name for e in ELEMENTS)
# names of Sabir that differ from those of AttributeProto
_TYPE_NAMES = {"type": "TYPE_PROTO", "types": "TYPE_PROTOS"}
# operators that contain others: what they compute is not known from their own text
_HOLDERS = frozenset({"If", "Loop", "Scan", "SequenceMap"})


class _NodeDeterminism(enum.Enum):
    Unknown = 0
    NonDeterministic = 1
    Deterministic = 2


class _SupportType(enum.IntEnum):
    COMMON = 0
    EXPERIMENTAL = 1


class _Option(enum.IntEnum):
    Single = 0
    Optional = 1
    Variadic = 2


class _Differentiation(enum.IntEnum):
    Unknown = 0
    Differentiable = 1
    NonDifferentiable = 2


_AttrType: Any = enum.IntEnum(
    "AttrType", {n: v for n, v in AttributeProto.AttributeType.items() if n != "UNDEFINED"}
)


@dataclass(frozen=True, init=False)
class _FormalParameter:
    """A formal input or output."""

    name: str
    type_str: str
    description: str
    option: _Option
    is_homogeneous: bool
    min_arity: int
    differentiation_category: _Differentiation
    types: set[str] = field(compare=False)

    def __init__(
        self,
        name: str,
        type_str: str,
        description: str = "",
        *,
        param_option: _Option = _Option.Single,
        is_homogeneous: bool = True,
        min_arity: int = 1,
        differentiation_category: _Differentiation = _Differentiation.Unknown,
        types: Iterable[str] = (),
    ) -> None:
        values = (
            name, type_str, description, param_option, is_homogeneous, min_arity, differentiation_category,
            set(types),
        )  # fmt: skip
        for key, value in zip(type(self).__dataclass_fields__, values, strict=True):
            object.__setattr__(self, key, value)

    @classmethod
    def of(cls, port: Port) -> _FormalParameter:
        """Return a port of a version."""
        constrained = isinstance(port.type, Constraint)
        return cls(
            port.name,
            port.type.name if isinstance(port.type, Constraint) else port.type,
            port.doc,
            param_option=_option(port),
            is_homogeneous=not port.heterogeneous,
            min_arity=port.minimum if port.variadic else 1,
            differentiation_category=_differentiation(port),
            types=port.allowed if constrained else {str(port.type)},
        )

    def __repr__(self) -> str:
        return (
            f"OpSchema.FormalParameter(name={self.name!r}, type_str={self.type_str!r}, "
            f"description={self.description!r}, param_option={self.option}, "
            f"is_homogeneous={self.is_homogeneous}, min_arity={self.min_arity}, "
            f"differentiation_category={self.differentiation_category})"
        )


@dataclass(frozen=True)
class _TypeConstraintParam:
    """A named set of types."""

    type_param_str: str
    allowed_type_strs: list[str]
    description: str = ""

    def __post_init__(self) -> None:
        """Take any sequence of types."""
        object.__setattr__(self, "allowed_type_strs", list(self.allowed_type_strs))

    def __repr__(self) -> str:
        return (
            f"OpSchema.TypeConstraintParam(type_param_str={self.type_param_str!r}, "
            f"allowed_type_strs={self.allowed_type_strs}, description={self.description!r})"
        )


class _Attribute:
    """A formal attribute: with a type, or with a default, an AttributeProto, that also gives the type."""

    def __init__(
        self,
        name: str,
        type: Any = None,
        description: str = "",
        *,
        default_value: Any = None,
        required: bool | None = None,
    ) -> None:
        kind = type
        if isinstance(kind, AttributeProto):
            default_value, kind = kind, None
        default = AttributeProto() if default_value is None else default_value
        self.name = name
        self.description = description
        self.default_value = default
        self.type = _AttrType(default.type if kind is None else kind)
        self.required = default_value is None if required is None else required

    @property
    def _default_value(self) -> bytes:
        return self.default_value.SerializeToString()

    def __repr__(self) -> str:
        return (
            f"OpSchema.Attribute(name={self.name!r}, type={self.type}, description={self.description!r}, "
            f"default_value={self.default_value}, required={self.required})"
        )


class OpSchema:  # ruff: ignore[too-many-public-methods]  they are those of onnx
    """One version of an operator: its inputs, outputs, attributes, type constraints, documentation.

    The constructor makes a schema for `register_schema`. Raises ValueError for a port whose type is neither
    the name of a constraint nor a type, and SchemaError for a version below 1.
    """

    AttrType = _AttrType
    Attribute = _Attribute
    DifferentiationCategory = _Differentiation
    FormalParameter = _FormalParameter
    FormalParameterOption = _Option
    NodeDeterminism = _NodeDeterminism
    SupportType = _SupportType
    TypeConstraintParam = _TypeConstraintParam

    def __init__(
        self,
        name: str,
        domain: str,
        since_version: int,
        doc: str = "",
        *,
        inputs: Sequence[_FormalParameter] = (),
        outputs: Sequence[_FormalParameter] = (),
        type_constraints: Sequence[tuple[str, Sequence[str], str]] = (),
        attributes: Sequence[_Attribute] = (),
        node_determinism: _NodeDeterminism = _NodeDeterminism.Deterministic,
    ) -> None:
        text: tuple[Any, ...] = (name, domain)
        if not all(isinstance(part, str) for part in text):
            raise TypeError(f"a name and a domain are text, and these are {name!r} and {domain!r}")
        if since_version < 1:
            raise SchemaError(f"the version of {name} is {since_version}; versions begin with 1")
        self.name = name
        self.domain = domain
        self.since_version = since_version
        self.doc = doc
        constraints = [
            _TypeConstraintParam(n, list(types), description) for n, types, description in type_constraints
        ]
        self._described: dict[str, _TypeConstraintParam] = {c.type_param_str: c for c in constraints}
        self._inputs = [_completed(port, self._described) for port in inputs]
        self._outputs = [_completed(port, self._described) for port in outputs]
        self._attributes = {attribute.name: attribute for attribute in attributes}
        self.node_determinism = node_determinism
        self.deprecated = False
        self.support_level = _SupportType.COMMON
        self._version: Version | None = None
        self._infer: InferenceFunction | None = None

    @classmethod
    @functools.cache
    def of(cls, version: Version) -> OpSchema:
        """Return the schema of a version of Sabir's registry."""
        operator = version.operator
        schema = cls(
            operator.name, operator.domain, version.since, f"{operator.summary}\n\n{version.changes}"
        )
        schema._described = {
            name: _TypeConstraintParam(name, sorted(c.allowed)) for name, c in version.constraints.items()
        }
        schema._inputs = [_FormalParameter.of(port) for port in version.inputs]
        schema._outputs = [_FormalParameter.of(port) for port in version.outputs]
        schema._attributes = {a.name: _attribute(a) for a in version.attributes}
        schema.deprecated = version.deprecated
        if version.status == "experimental":
            schema.support_level = _SupportType.EXPERIMENTAL
        if operator.random or operator.name in _HOLDERS:
            schema.node_determinism = _NodeDeterminism.NonDeterministic
        schema._version = version
        return schema

    # properties

    @property
    def inputs(self) -> list[_FormalParameter]:
        """The formal inputs."""
        return self._inputs

    @property
    def outputs(self) -> list[_FormalParameter]:
        """The formal outputs."""
        return self._outputs

    @property
    def attributes(self) -> dict[str, _Attribute]:
        """The formal attributes by name."""
        return self._attributes

    @property
    def type_constraints(self) -> list[_TypeConstraintParam]:
        """The named sets of types."""
        return list(self._described.values())

    @property
    def min_input(self) -> int:
        """The least number of inputs of a call."""
        return _fewest(self._inputs)

    @property
    def max_input(self) -> int:
        """The greatest number of inputs of a call; see `is_infinite`."""
        return _most(self._inputs)

    @property
    def min_output(self) -> int:
        """The least number of outputs of a call."""
        return _fewest(self._outputs)

    @property
    def max_output(self) -> int:
        """The greatest number of outputs of a call; see `is_infinite`."""
        return _most(self._outputs)

    @property
    def non_deterministic(self) -> bool:
        """Whether equal calls may have different results."""
        return self.node_determinism is _NodeDeterminism.NonDeterministic

    @property
    def file(self) -> str:
        """The module of the operator in Sabir; empty for a registered schema."""
        found = self._version.find("infer") if self._version else self._infer
        return "" if found is None else getattr(found, "__module__", "")

    @property
    def line(self) -> int:
        """The line of its inference in that module, 0 where there is none."""
        found = self._version.find("infer") if self._version else self._infer
        code = getattr(found, "__code__", None)
        return 0 if code is None else code.co_firstlineno

    @staticmethod
    def is_infinite(v: int) -> bool:
        """Whether a number of inputs or outputs has no bound."""
        return v == _INFINITE

    # behaviours

    @property
    def has_type_and_shape_inference_function(self) -> bool:
        """Whether the types of the outputs follow from those of the inputs."""
        return self._infer is not None or self._has("infer")

    @property
    def has_data_propagation_function(self) -> bool:
        """Whether known contents of outputs may follow from those of inputs: as far as types follow."""
        return self._has("infer")

    @property
    def has_function(self) -> bool:
        """Whether the standard defines the operator by a function that does not depend on the call."""
        return bool(self.function_body.node)

    @property
    def has_context_dependent_function(self) -> bool:
        """Whether the standard defines the operator by a function that depends on the call."""
        return self._has("body") and not self.has_function

    @property
    def function_opset_versions(self) -> list[int]:
        """The versions of the default domain from which a function applies."""
        return [self.since_version] if self.has_function else []

    @property
    def context_dependent_function_opset_versions(self) -> list[int]:
        """The versions of the default domain from which a function that depends on the call applies."""
        return [self.since_version] if self.has_context_dependent_function else []

    @property
    def all_function_opset_versions(self) -> list[int]:
        """Both lists of versions."""
        return [*self.function_opset_versions, *self.context_dependent_function_opset_versions]

    @property
    def function_body(self) -> Any:
        """The FunctionProto that defines the operator, an empty one if `has_function` is False."""
        from sabir.compat.onnx.defs import _bodies  # ruff: ignore[import-outside-top-level]  it imports the inliner

        return _bodies.body_of(self)

    def get_context_dependent_function(self, node: bytes, input_types: Sequence[bytes]) -> bytes:
        """Return the serialized function that defines a call: a NodeProto, with the TypeProtos of its inputs.

        Raises SchemaError where the operator has none, or the types do not suffice.
        """
        from sabir.compat.onnx.defs import _bodies  # ruff: ignore[import-outside-top-level]  it imports the inliner

        return _bodies.body_of_call(self, node, input_types).SerializeToString()

    def get_context_dependent_function_with_opset_version(
        self, opset_version: int, node: bytes, input_types: Sequence[bytes]
    ) -> bytes:
        """Return what `get_context_dependent_function` does, for the version of the schema alone."""
        if opset_version not in self.all_function_opset_versions:
            raise SchemaError(f"{self.name} has no function for opset {opset_version}")
        return self.get_context_dependent_function(node, input_types)

    def get_function_with_opset_version(self, opset_version: int) -> bytes:
        """Return the serialized `function_body`; empty for a version without one."""
        return (
            self.function_body.SerializeToString() if opset_version in self.function_opset_versions else b""
        )

    def set_type_and_shape_inference_function(self, func: InferenceFunction) -> OpSchema:
        """Set the function that infers types, which takes an InferenceContext; return the schema."""
        self._infer = func
        return self

    def get_type_and_shape_inference_function(self) -> InferenceFunction | None:
        """Return the function that was set, None for a schema without one."""
        return self._infer

    @property
    def version(self) -> Version | None:
        """The version of Sabir's registry that this schema describes, None for one that a program made."""
        return self._version

    def _has(self, behaviour: Any) -> bool:
        return self._version is not None and self._version.find(behaviour) is not None

    def __repr__(self) -> str:
        return (
            f"OpSchema(name={self.name!r}, domain={self.domain!r}, since_version={self.since_version}, "
            f"doc={self.doc!r}, type_constraints={self.type_constraints}, inputs={self.inputs}, "
            f"outputs={self.outputs}, attributes={self.attributes})"
        )


def _completed(port: _FormalParameter, constraints: dict[str, _TypeConstraintParam]) -> _FormalParameter:
    """Return a port with its types; raises ValueError for a type that is not known."""
    named = constraints.get(port.type_str)
    if named is None and "(" not in port.type_str and port.type_str not in _ELEMENT_NAMES:
        raise ValueError(
            f"the type {port.type_str!r} of {port.name!r} is neither a type, such as tensor(float), nor "
            "the name of a type constraint"
        )
    types = named.allowed_type_strs if named else [port.type_str]
    return _FormalParameter(
        port.name,
        port.type_str,
        port.description,
        param_option=port.option,
        is_homogeneous=port.is_homogeneous,
        min_arity=port.min_arity,
        differentiation_category=port.differentiation_category,
        types=types,
    )


def _option(port: Port) -> _Option:
    if port.variadic:
        return _Option.Variadic
    return _Option.Optional if port.optional else _Option.Single


def _differentiation(port: Port) -> _Differentiation:
    if port.differentiable is None:
        return _Differentiation.Unknown
    return _Differentiation.Differentiable if port.differentiable else _Differentiation.NonDifferentiable


def _attribute(formal: VersionAttribute) -> _Attribute:
    kind = _AttrType[_TYPE_NAMES.get(formal.type, formal.type.upper())]
    if formal.default is None:
        return _Attribute(formal.name, kind, formal.doc, required=formal.required)
    default = _attributes.make(formal.name, formal.default, None, int(kind))
    return _Attribute(formal.name, kind, formal.doc, default_value=default)


def _fewest(ports: Sequence[_FormalParameter]) -> int:
    """Return the place after the last port that a call needs."""
    needed = 0
    for place, port in enumerate(ports):
        if port.option is _Option.Single:
            needed = place + 1
        elif port.option is _Option.Variadic:
            needed = place + port.min_arity
    return needed


def _most(ports: Sequence[_FormalParameter]) -> int:
    return _INFINITE if ports and ports[-1].option is _Option.Variadic else len(ports)
