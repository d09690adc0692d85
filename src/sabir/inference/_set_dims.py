"""Dimensions of a model fixed, renamed or freed, and the sizes that its constants still contain."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sabir.base import (
    NotFoundError,
    SabirWarning,
    UnsupportedError,
    listed_names,
    quote,
    run_with_limits,
    suggest,
)
from sabir.inference._causes import Cause
from sabir.inference._diagnostics import Diagnostic
from sabir.inference._engine import Inference
from sabir.inference._mending import ChangedAxis, Mended, Mending
from sabir.ir import Expr, Node, TensorType, change_dims, check_is_model, read_dim, walk
from sabir.opsets import STANDARD

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sabir.base import Limits, Location
    from sabir.ir import Dim, Model, Value
    from sabir.schema import Registry

_AXIS = re.compile(r"(?P<input>.+)\[(?P<axis>\d{1,9})\]", re.DOTALL)
_PROBES = (7919, 7927, 7933, 7937, 7949, 7951, 7963, 7993)  # primes, so that no other size divides them


class ChangedDims(NamedTuple):
    """A model with other dimensions, and what contradicts them: sizes that are constants of the model.

    `mended` are the nodes that read other constants now, or computed shapes.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> change_model_dims(model, {'N': 4}).problems
    ()
    """

    model: Model
    problems: tuple[Diagnostic, ...]
    mended: tuple[Mended, ...] = ()


def set_dims(
    model: Model,
    dims: Mapping[str, int | str | None],
    *,
    repair: bool = False,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> Model:
    """Return a copy of a model with other dimensions: `dims` fixes, renames or frees them.

    A key is a dimension variable, which changes in every type of the model, or one axis of an input that is a
    number or unknown: `image[0]`. A number fixes a dimension, a text is the name of a variable or an
    expression (`2*N`), and None leaves the size unknown. All changes are made at once. The types of computed
    values follow from those of the inputs.

    A size may also be in a constant, such as the target of a Reshape. With `repair`, a node that reads the
    old size of an input's axis reads another constant, with 0 or -1, or a shape that is computed of the
    input's; with the old size it computes what it did. Each place that still contradicts the new dimensions
    is a SabirWarning; `change_model_dims` returns these places instead, and those that were mended.

    Raises NotFoundError, a KeyError, for a variable or an input that the model does not have,
    UnsupportedError for an invalid size or axis, LimitError beyond `limits`.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[batch,seq] x) => (float[batch,seq] y) { y = Relu (x) }''')
    >>> print(sabir.set_dims(model, {'batch': 4, 'seq': 'tokens'}).graph.outputs[0].type)
    float[4,tokens]
    >>> print(model.graph.outputs[0].type)
    float[batch,seq]
    """
    changed = change_model_dims(model, dims, repair=repair, registry=registry, limits=limits)
    for problem in changed.problems:
        warnings.warn(f"{problem.location}: {problem.message}", SabirWarning, stacklevel=2)
    return changed.model


def change_model_dims(
    model: Model,
    dims: Mapping[str, int | str | None],
    *,
    repair: bool = False,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> ChangedDims:
    """Return what `set_dims` returns, with the places that contradict the new dimensions.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[1,6] x) => (float[1,2,3] y)
    ... <int64[3] shape = {1, 2, 3}> { y = Reshape (x, shape) }''')
    >>> changed = change_model_dims(model, {'x[0]': 'N'})
    >>> print(changed.model.graph.inputs[0].type, *(problem.location for problem in changed.problems))
    float[N,6] graph/node[0] 'Reshape'
    """
    check_is_model(model)
    return run_with_limits(limits, lambda: _changed(model, dims, registry, repair=repair))


def _changed(
    model: Model, dims: Mapping[str, int | str | None], registry: Registry, *, repair: bool
) -> ChangedDims:
    changed = model.clone()
    variables = _variables(changed)
    sizes: dict[str, Dim] = {}
    axes: dict[tuple[Value, int], Dim] = {}
    for key, wanted in dims.items():
        size = _size(key, wanted)
        if key in variables:
            sizes[key] = size
        else:
            axes[_axis(changed, key, variables)] = size
    change_dims(changed, lambda dim: _substituted(dim, sizes))
    previous = {key: _set_axis(*key, size) for key, size in axes.items()}
    fresh = bool(axes)  # a declared number may be the size that an input no longer has
    before = _problems(model, registry, fresh=fresh)

    def report(*, annotate: bool = False) -> tuple[Inference, tuple[Diagnostic, ...]]:
        inference = Inference(changed, registry=registry, fresh=fresh)
        inference.run()
        if annotate:
            inference.annotate()
        found = _contradictions(inference, axes, set(previous.values()), registry)
        return inference, tuple(d for d in found if _key(d) not in before)

    mended: tuple[Mended, ...] = ()
    if repair:
        mended = Mending(changed, _mendable(axes, previous), report).run()
    _, found = report(annotate=True)
    return ChangedDims(changed, found, mended)


def _contradictions(
    inference: Inference, axes: Mapping[tuple[Value, int], Dim], old: set[Dim], registry: Registry
) -> Iterable[Diagnostic]:
    """Return the problems of a model with new sizes of axes, one for each location."""
    inputs = [value for value, _ in axes]
    freed = {name for dim in axes.values() if isinstance(dim, Expr) for name in dim.symbols}
    found: dict[Location, Diagnostic] = {}
    for diagnostic in (
        *inference.diagnostics,
        *_fixed_shapes(inference, inputs, freed, old),
        *_probed(inference.model, freed, registry),
    ):
        found.setdefault(diagnostic.location, diagnostic)
    return found.values()


def _mendable(
    axes: Mapping[tuple[Value, int], Dim], previous: Mapping[tuple[Value, int], Dim]
) -> list[ChangedAxis]:
    """Return the axes whose old size a constant may contain."""
    found: list[ChangedAxis] = []
    for (value, axis), new in axes.items():
        old = previous[value, axis]
        if isinstance(old, int) and old > 0 and new is not None:
            found.append(ChangedAxis(value, axis, old, new))
    return found


# the arguments


def _size(key: str, wanted: int | str | None) -> Dim:
    if wanted is None:
        return None
    if isinstance(wanted, str):
        size = read_dim(wanted)
        if not wanted.strip() or wanted.strip().isdigit():
            raise UnsupportedError(
                f"the new size of {quote(key)} is the text {quote(wanted)}; pass a number, the name of a "
                "variable, or None for an unknown size"
            )
        return size
    if not isinstance(wanted, int) or isinstance(wanted, bool) or wanted < 0:  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
        raise UnsupportedError(
            f"the new size of {quote(key)} must be a number, 0 or more, the name of a variable, or None; got "
            f"{wanted!r}"
        )
    return wanted


def _axis(model: Model, key: str, variables: list[str]) -> tuple[Value, int]:
    """Return the input and the axis that a key names; raises NotFoundError or UnsupportedError."""
    match = _AXIS.fullmatch(key)
    if match is None:
        raise NotFoundError(
            f"the model has no dimension variable {quote(key)}"
            + (
                suggest(key, variables)
                or (f"; it has {listed_names(variables)}" if variables else "; it has none")
            )
            + "; an axis of an input is written as INPUT[AXIS]"
        )
    inputs = {value.name: value for value in model.graph.inputs}
    value = inputs.get(match["input"])
    if value is None:
        near = suggest(match["input"], inputs) or f"; its inputs are {listed_names(inputs)}"
        raise NotFoundError(f"{quote(key)}: the model has no input {quote(match['input'])}{near}")
    axis, type_ = int(match["axis"]), value.type
    if not isinstance(type_, TensorType) or type_.shape is None or axis >= len(type_.shape):
        raise UnsupportedError(
            f"{quote(key)}: the input is {type_ or 'of unknown type'}, which has no axis {axis}"
        )
    dim = type_.shape[axis]
    if isinstance(dim, Expr):
        raise UnsupportedError(
            f"{quote(key)}: this axis is {dim}; name the variable instead, and it changes in all types"
        )
    return value, axis


# the change


def _variables(model: Model) -> list[str]:
    """Return the dimension variables of all types of a model."""
    found: set[str] = set()

    def collect(dim: Dim) -> Dim:
        found.update(dim.symbols if isinstance(dim, Expr) else ())
        return dim

    change_dims(model, collect)
    return sorted(found)


def _substituted(dim: Dim, sizes: Mapping[str, Dim]) -> Dim:
    if not isinstance(dim, Expr) or dim.symbols.isdisjoint(sizes):
        return dim
    known = {name: size for name, size in sizes.items() if size is not None}
    if any(name not in known for name in dim.symbols & sizes.keys()):
        return None
    try:
        return dim.substitute(known)
    except OverflowError:
        return None


def _set_axis(value: Value, axis: int, size: Dim) -> Dim:
    """Set one dimension of an input, and return the one that it had."""
    type_ = value.type
    if not isinstance(type_, TensorType) or type_.shape is None:
        return None
    value.type = replace(type_, shape=(*type_.shape[:axis], size, *type_.shape[axis + 1 :]))
    return type_.shape[axis]


# what contradicts it


def _key(diagnostic: Diagnostic) -> tuple[object, ...]:
    return diagnostic.cause, diagnostic.location


def _problems(model: Model, registry: Registry, *, fresh: bool) -> set[tuple[object, ...]]:
    inference = Inference(model, registry=registry, fresh=fresh)
    inference.run()
    return {_key(d) for d in inference.diagnostics}


def _fixed_shapes(
    inference: Inference, inputs: Iterable[Value], freed: set[str], old: set[Dim]
) -> Iterator[Diagnostic]:
    """Yield the nodes whose shape operand contains an old size, so that a freed axis is lost.

    For a Reshape of `[N, 3, 8]` to `[1, -1]` every N is possible, and the batch is no longer an axis. What is
    computed of a result without the variable has shapes of the old size too; there a 1 says nothing.
    """
    dependent = set(inputs)
    for where, node in walk(inference.model, Node):
        if not dependent.intersection(v for v in node.inputs if v is not None):
            continue
        dependent.update(v for v in node.outputs if v is not None)
        operands = _tensors(inference, node.inputs)
        if any(_follows(type_, freed) for type_ in operands):
            continue
        dims = {dim for type_ in operands for dim in type_.shape or ()}
        for result in _tensors(inference, node.outputs):
            if _follows(result, freed):
                continue
            new = [d for d in result.shape or () if isinstance(d, Expr) and d.symbols & freed]
            merged = next((d for d in new if d not in dims), None)
            sizes: set[Dim] = set() if new else old - {1}
            sizes = sizes if merged is None else old
            fixed = next((s for t in operands for s in _kept_sizes(t, result) if s in sizes), None)
            if fixed is not None:
                what = f"where {merged} includes the new variable" if merged else "without the new variable"
                message = (
                    f"a shape that this node reads contains {fixed}, the size that an input had; the result "
                    f"is {result}, {what}"
                )
                hint = "put -1, or a 0 that copies the operand's size, in the place of the fixed size"
                yield Diagnostic(Cause.DECLARED_SIZE, message, where, hint)


def _follows(type_: TensorType, freed: set[str]) -> bool:
    """Return whether a value is arithmetic on sizes that follows the freed variables."""
    return any(isinstance(entry, Expr) and entry.symbols & freed for entry in type_.known or ())


def _tensors(inference: Inference, values: Iterable[Value | None]) -> list[TensorType]:
    types = [inference.type_of(v) for v in values if v is not None]
    return [type_ for type_ in types if isinstance(type_, TensorType)]


def _kept_sizes(operand: TensorType, result: TensorType) -> Iterator[Dim]:
    """Yield the numbers in the known contents of a shape operand that are sizes of the result."""
    dims = result.shape or ()
    if operand.rank == 1 and operand.known is not None and len(operand.known) == len(dims):
        yield from (d for s, d in zip(operand.known, dims, strict=True) if isinstance(d, int) and s == d)


def _probed(model: Model, freed: set[str], registry: Registry) -> list[Diagnostic]:
    """Return what inference reports where each freed variable has a size that no constant suits.

    With a variable a contradiction is often no more than possible: `192*N` may be 192.
    """
    if not freed:
        return []
    sizes: dict[str, Dim] = {name: _PROBES[i % len(_PROBES)] for i, name in enumerate(sorted(freed))}
    probe = model.clone()
    change_dims(probe, lambda dim: _substituted(dim, sizes))
    inference = Inference(probe, registry=registry, fresh=True)
    inference.run()
    when = f"with {', '.join(f'{name} = {size}' for name, size in sizes.items())}"
    return [d._replace(message=f"{when}: {d.message}") for d in inference.diagnostics]
