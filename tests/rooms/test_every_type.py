"""Evaluation and inference agree in every element type that a version admits."""

import functools
import re
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from sabir.base import SabirError
from sabir.elements import BOOL, FLOAT8E8M0, STRING, ElementType, element
from sabir.ir import OptionalType, TensorType
from sabir.schema import Constraint, Example, Port, Version
from support.cases import each_of
from support.rooms import OPERATORS, by_operator, examples_of, inferred, model_of, run, type_of

# bodies of examples declare types that other examples and types do not have
pytestmark = pytest.mark.filterwarnings("ignore::sabir.SabirWarning")

# calls that one type is tried on, more only while none of them takes it: by the first version that computes with some
# functions, and by the later ones, which compute by the very same functions: there, one type in so many
FIRST, LATER = {"reference": 2, "compiled": 1}, {"reference": 1, "compiled": 0}
SHARE = 4
TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype", "output_datatype", "stash_type")
# constraints that must take the same type for a call to mean anything
TOGETHER = {
    "BitCast": ("T1", "T2"),  # both sides are as wide
    "SequenceAt": ("S", "T"),
    "SequenceInsert": ("S", "T"),
    "SequenceErase": ("S", "T"),
    "ConcatFromSequence": ("S", "T"),
    "OptionalGetElement": ("O", "V"),
}
# attributes without which some types are refused
EXTRA = {
    ("RandomNormalLike", "T1"): {"dtype": 1},
    ("RandomUniformLike", "T1"): {"dtype": 1},
    ("DequantizeLinear", "T2"): {"output_dtype": 1},
}

# the errors of rooms for values and attributes that a type does not admit
REFUSALS = re.compile(
    r"has no integer value|floats have no floored remainder|texts cannot be added up|cannot be interpolated"
    r"|are not a table|imputed values are given|a pool of|there are no categories|strings cannot be multiplied"
)
# (operator, constraint): the types that no example can take, and why
EXEMPT: dict[tuple[str, str], tuple[tuple[str, ...], str]] = {
    ("Col2Im", "T"): (("string",), "the columns are summed, and texts have no sum"),
    ("com.microsoft.QLinearConcat", "TV"): (
        ("float", "int8", "uint8"),
        "its inputs are tensors and scales in turn",
    ),
    ("com.microsoft.BeamSearch", "F"): (("float16",), "the encoder of the examples reads floats"),
    ("com.microsoft.WhisperBeamSearch", "F"): (
        ("float16", "int32"),
        "the encoder of the examples reads floats",
    ),
    ("com.microsoft.WhisperBeamSearch", "V"): (("float",), "it is the type of `cross_qk`, which is refused"),
    ("com.microsoft.GridSample", "T1"): (
        (
            *("bool", "complex128", "complex64", "int16", "int32", "int64", "int8", "string"),
            *("uint16", "uint32", "uint64", "uint8"),
        ),
        "the samples are floats, and of which type those of other images are is not specified",
    ),
}


def cast(x, to: ElementType):
    """The values of `x`, as near as the type has them; of a sequence, those of its items."""
    if isinstance(x, list):
        return [cast(item, to) for item in x]
    x = np.asarray(x)
    if x.dtype == to.dtype:
        return x
    if to is STRING:
        return strings(x)
    wide = numbers(x)
    if to is BOOL:
        return wide != 0
    if to.is_complex:
        return wide.astype(to.dtype)
    wide = np.nan_to_num(wide.real if wide.dtype.kind == "c" else wide, nan=0)
    if to is FLOAT8E8M0:
        return np.exp2(np.rint(np.log2(np.clip(np.abs(wide), 0.125, 8)))).astype(to.dtype)
    low, high = limits(to, whole=x.dtype.kind in "iub")
    with np.errstate(over="ignore"):
        return np.clip(wide if to.is_float else np.rint(wide), low, high).astype(to.dtype)


def strings(x: np.ndarray) -> np.ndarray:
    made = np.empty(x.shape, object)
    made.reshape(-1)[:] = [str(int(i) if isinstance(i, bool) else i) for i in x.reshape(-1).tolist()]
    return made


def numbers(x: np.ndarray) -> np.ndarray:
    """`x` as float64 or complex128; of texts, their lengths."""
    if x.dtype.kind in "OUST":
        return np.array([len(item) for item in x.reshape(-1).tolist()], np.float64).reshape(x.shape)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def limits(to: ElementType, *, whole: bool) -> tuple[float, float]:
    """A range of values of the type: small for narrow floats, and for integers that come from floats."""
    if to.is_float:
        return (-np.inf, np.inf) if to.bits >= 32 else (-4.0, 6.0)
    least, most = -(2 ** (to.bits - 1)) if to.is_signed else 0, 2 ** (to.bits - to.is_signed) - 1
    if whole:
        return max(least, -(2.0**53)), min(most, 2.0**53)
    return max(least, -4), min(most, 6)


@dataclass(frozen=True)
class Case:
    """A version, one of its constraints, and the types that this admits."""

    version: Version
    constraint: Constraint

    def types(self) -> list[ElementType]:
        names = [t.removeprefix("tensor(")[:-1] for t in self.constraint.allowed if t.startswith("tensor(")]
        return sorted((element(n) for n in names), key=lambda e: e.number)

    def examples(self) -> list[Example]:
        operator = self.version.operator
        return [e for e in examples_of(operator) if operator.at(e.opset) is self.version]

    def borrowed(self) -> list[Example]:
        """The calls of other versions, which may fit this one too."""
        operator = self.version.operator
        own = {a.name for a in self.version.attributes}
        every = (e for e in examples_of(operator) if operator.at(e.opset) is not self.version)
        return [e for e in every if e.attributes.keys() <= own]


CASES = [
    pytest.param(Case(v, c), id=f"{v}-{name}")
    for o in OPERATORS
    for v in o.versions
    if not v.deprecated and v.find("evaluate") is not None
    for name, c in sorted(v.constraints.items())
]


@functools.cache
def first_with() -> dict[tuple[Any, ...], Version]:
    """The first version that computes a type of a constraint by the same functions as later ones do."""
    found: dict[tuple[Any, ...], Version] = {}
    for case, *_ in (p.values for p in CASES):
        for to in case.types():
            found.setdefault(computed_by(case, to), case.version)
    return found


def computed_by(case: Case, to: ElementType) -> tuple[Any, ...]:
    """What decides how a type is computed: the functions of the version, the constraint and the type."""
    functions = [case.version.find(name) for name in ("infer", "evaluate", "lower", "parts", "body")]
    return case.version.operator, *functions, case.constraint.name, to


def tries(case: Case, to: ElementType, engine: str) -> int:
    """The number of calls to try a type on."""
    if first_with()[computed_by(case, to)] is case.version:
        return FIRST[engine]
    name = f"{case.version} {case.constraint.name} {to}"
    return LATER[engine] if zlib.crc32(name.encode()) % SHARE == 0 else 0


def port_at(ports, place: int) -> Port:
    return ports[min(place, len(ports) - 1)]


def retyped(case: Case, example: Example, to: ElementType) -> Example:
    """The example with `to` for the constraint, on its inputs or through the attribute that names it."""
    version, name = case.version, case.constraint.name
    together = TOGETHER.get(version.operator.name, ())
    chosen = together if name in together else (name,)
    inputs, types = list(example.inputs), list(example.types or [None] * len(example.inputs))
    changed = False
    for place, x in enumerate(example.inputs):
        kind = port_at(version.inputs, place).type
        if isinstance(kind, Constraint) and kind.name in chosen and x is not None and not isinstance(x, dict):
            inputs[place], changed = cast(x, to), True
            if isinstance(types[place], OptionalType):
                types[place] = OptionalType(type_of(inputs[place]))
    attributes = dict(example.attributes)
    if not changed or together:
        attributes = ({} if version.operator.name == "Constant" else attributes) | type_attribute(version, to)
    own = {a.name for a in version.attributes}
    extra = EXTRA.get((version.operator.name, name), {})
    attributes |= {key: value for key, value in extra.items() if key in own}
    outputs = max(example.outputs, *asked(version, name), 0)
    return Example(version.since, *inputs, outputs=outputs, types=types, **attributes)


def asked(version: Version, name: str) -> list[int]:
    """The number of outputs that a call requests so that a constraint of outputs alone is checked."""
    if any(isinstance(p.type, Constraint) and p.type.name == name for p in version.inputs):
        return [0]
    places = [i for i, p in enumerate(version.outputs, 1) if p.type == version.constraints[name]]
    return places[:1]


def type_attribute(version: Version, to: ElementType) -> dict[str, Any]:
    """The attribute that names the type of an output, where the version has one."""
    for attribute in version.attributes:
        if attribute.name in TYPE_ATTRIBUTES:
            return {attribute.name: to.number if attribute.type == "int" else to.name.upper()}
        if attribute.name == "value" and attribute.type == "tensor":
            return {"value": np.zeros(1, to.dtype)}
    return {}


def computes(case: Case, example: Example, to: ElementType, engine: str) -> bool:
    """Evaluate the example with that type; return whether a value of the constraint had it."""
    call = retyped(case, example, to)
    model, feeds = model_of(case.version.operator, call)
    got = run(model, feeds, engine)
    kinds = inferred(model, feeds, known=True)
    seen: dict[str, set[ElementType]] = {}
    for ports, values in ((case.version.inputs, call.inputs), (case.version.outputs, got)):
        for place, value in enumerate(values):
            port = port_at(ports, place)
            if isinstance(port.type, Constraint) and is_tensor(value):
                seen.setdefault(port.type.name, set()).add(element(np.asarray(value).dtype))
    for place, (kind, value) in enumerate(zip(kinds, got, strict=True)):
        agree(port_at(case.version.outputs, place), kind, value)
    free = {p.type.name for p in (*case.version.inputs, *case.version.outputs) if p.heterogeneous}
    assert all(len(kinds) == 1 or name in free for name, kinds in seen.items()), seen
    return to in seen.get(case.constraint.name, ())


def is_tensor(value) -> bool:
    return value is not None and not isinstance(value, (list, dict))


def agree(port: Port, kind, value) -> None:
    if not is_tensor(value):
        return
    assert isinstance(value, np.ndarray)
    actual = type_of(value)
    signature = actual.signature
    if isinstance(kind, OptionalType):
        kind, signature = kind.item, f"optional({signature})"
    assert isinstance(kind, TensorType)
    assert kind.element == actual.element
    assert signature in port.allowed
    assert kind.shape is None or len(kind.shape) == value.ndim
    assert kind.shape is None or all(
        d is None or d == n for d, n in zip(kind.shape, value.shape, strict=True)
    )


# calls whose body works on the type itself


def branches(opset: int, to: ElementType) -> Example:
    body = f"b () => ({to}[0] z) {{ z = Constant <value = {to}[0] {{}}> () }}"
    return Example(opset, np.ones((), bool), then_branch=body, else_branch=body)


def looped(opset: int, to: ElementType) -> Example:
    body = (
        f"b (int64 i, bool c, {to}[2] s) => (bool k, {to}[2] t, {to}[2] u)"
        " { k = Identity (c) t = Identity (s) u = Identity (s) }"
    )
    return Example(opset, np.array(3), np.ones((), bool), np.ones(2, np.float32), body=body, outputs=2)


def scanned(opset: int, to: ElementType) -> Example:
    body = f"b ({to}[2] s, {to}[2] x) => ({to}[2] t, {to}[2] y) {{ t = Identity (x) y = Identity (s) }}"
    state, rows = np.ones(2, np.float32), np.ones((3, 2), np.float32)
    inputs = (None, state[None], rows[None]) if opset == 8 else (state, rows)
    return Example(opset, *inputs, body=body, outputs=2, num_scan_inputs=1)


def mapped(opset: int, to: ElementType) -> Example:
    body = f"b (float[2] x, {to}[1] a) => ({to}[1] y) {{ y = Identity (a) }}"
    return Example(opset, [np.ones(2, np.float32)], np.ones(1, np.float32), body=body)


BODIES = {"If": branches, "Loop": looped, "Scan": scanned, "SequenceMap": mapped}


def refused(error: BaseException) -> bool:
    """Whether a rule of ours, rather than a failing computation, turned the call down."""
    while error.__cause__ is not None:
        error = error.__cause__
    return isinstance(error, SabirError) or REFUSALS.search(str(error)) is not None


def uncomputed(case: Case, engine: str) -> list[str]:
    """The types of a case that no example takes, neither one of its version nor one of another version."""
    examples, left = case.examples(), []
    for turn, to in enumerate(case.types()):
        most = tries(case, to, engine)
        if not most:
            continue
        start = turn % len(examples)  # other types, other examples
        calls = (*examples[start:], *examples[:start])[:most]
        if case.version.operator.name in BODIES and case.constraint.name == "V":
            calls = (BODIES[case.version.operator.name](case.version.since, to),)
        computed = [tried(case, e, to, engine) for e in calls]
        others = (*examples, *case.borrowed())
        if not any(computed) and not any(tried(case, e, to, engine) for e in others):
            left.append(to.name)
    return left


def tried(case: Case, example: Example, to: ElementType, engine: str) -> bool:
    """Whether the example computes the type; not where a rule refuses the call."""
    try:
        return computes(case, example, to, engine)
    except SabirError as error:
        if refused(error):
            return False
        raise


@each_of("case", CASES, group=lambda case: by_operator(case.version.operator))
def test_every_admitted_type_is_computed(case, engine):
    reason = EXEMPT.get((by_operator(case.version.operator), case.constraint.name), ((), ""))
    assert sorted(uncomputed(case, engine)) == sorted(
        {t.name for t in case.types() if tries(case, t, engine)} & set(reason[0])
    )
