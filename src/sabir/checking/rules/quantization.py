"""Quantization annotations: the tensors with scale and zero point of another tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import quote
from sabir.checking._examples import RELU, X, Y, in_graph
from sabir.checking._rule import Problem, Textproto, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.base import Location
    from sabir.checking._survey import GraphSite
    from sabir.ir import Annotation

_KEYS = ("SCALE_TENSOR", "ZERO_POINT_TENSOR")
_LAW = "An annotation names a tensor of the graph and the tensors with its quantization parameters."
_SCALE = 'quant_parameter_tensor_names { key: "SCALE_TENSOR" value: "s" }'


def _annotated(*annotations: str) -> Textproto:
    """Return an example with a scale s and these annotations."""
    scale = 'initializer { name: "s" data_type: 1 float_data: 0.5 }'
    entries = " ".join(f"quantization_annotation {{ {a} }}" for a in annotations)
    return in_graph(f'{RELU} name: "g" {scale} {X} {Y} {entries}')


_GOOD = _annotated(f'tensor_name: "y" {_SCALE}', 'tensor_name: "x"')


def _annotations(site: GraphSite) -> Iterator[tuple[Location, Annotation]]:
    for index, annotation in enumerate(site.graph.annotations):
        name = annotation.value.name
        yield site.where.at("quantization_annotation", index=index, name=name), annotation


@rule(
    "QUANT001",
    _LAW,
    source="onnx.proto",
    over="graph",
    bad=(_annotated(f'tensor_name: "ghost" {_SCALE}'), _annotated(_SCALE)),
    good=_GOOD,
)
def known_tensor(site: GraphSite) -> Iterator[Problem]:
    """An annotated tensor is defined in the graph or an enclosing one."""
    for where, annotation in _annotations(site):
        if annotation.value.source is None:
            name = annotation.value.name
            message = (
                f"the annotated tensor {quote(name)} is not defined"
                if name
                else "the annotation names no tensor"
            )
            yield Problem(message, where, "drop the annotation")


@rule(
    "QUANT002",
    _LAW,
    source="onnx.proto",
    over="graph",
    bad=(
        _annotated('tensor_name: "x" quant_parameter_tensor_names { key: "SCALE_TENSOR" value: "ghost" }'),
        _annotated('tensor_name: "x" quant_parameter_tensor_names { key: "SCALE_TENSOR" }'),
    ),
    good=_GOOD,
)
def known_parameters(site: GraphSite) -> Iterator[Problem]:
    """Each parameter of an annotation is defined in the graph or an enclosing one."""
    for where, annotation in _annotations(site):
        for key, value in annotation.parameters:
            if value.source is None:
                message = f"the parameter {key} names {quote(value.name)}, which is not defined"
                yield Problem(message, where, "name a tensor, or drop the parameter")


@rule(
    "QUANT003",
    _LAW,
    source="onnx.proto",
    over="graph",
    bad=_annotated(f'tensor_name: "x" {_SCALE}', f'tensor_name: "x" {_SCALE}'),
    good=_GOOD,
)
def annotated_once(site: GraphSite) -> Iterator[Problem]:
    """A tensor is annotated once."""
    seen: set[str] = set()
    for where, annotation in _annotations(site):
        name = annotation.value.name
        if name and name in seen:
            yield Problem(f"{quote(name)} is annotated twice", where, "keep one of the two")
        seen.add(name)


@rule(
    "QUANT004",
    "The keys of an annotation are those that the standard defines: SCALE_TENSOR and ZERO_POINT_TENSOR.",
    source="onnx.proto",
    over="graph",
    severity="warning",
    note="the standard defines two keys, and allows more",
    bad=(
        _annotated('tensor_name: "x" quant_parameter_tensor_names { key: "scale" value: "s" }'),
        _annotated(f'tensor_name: "x" {_SCALE} {_SCALE}'),
    ),
    good=_GOOD,
)
def known_keys(site: GraphSite) -> Iterator[Problem]:
    """The key of a parameter is defined in the standard, and occurs once."""
    for where, annotation in _annotations(site):
        keys = [key for key, _ in annotation.parameters]
        odd = next((k for k in keys if k not in _KEYS), None)
        if odd is not None:
            yield Problem(
                f"the key {quote(odd)} is not in the standard", where, f"the keys are {' and '.join(_KEYS)}"
            )
        elif len(set(keys)) < len(keys):
            again = next(k for i, k in enumerate(keys) if k in keys[:i])
            yield Problem(f"the key {again} of the annotation occurs twice", where, "keep one of the two")
