"""Steps before and after a model, as small models that are merged with it."""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, Any

from sabir.base import NotFoundError, SchemaError, counted, listed_names, quote, suggest
from sabir.editing._image_steps import ImageSteps
from sabir.editing._merge import merge
from sabir.editing._naming import named_values
from sabir.editing._result_steps import OLDEST_OPSET, find_step
from sabir.inference import infer
from sabir.ir import Builder, FreshNames, TensorType, check_is_model, dim_variables, name_of, names_of
from sabir.opsets import STANDARD

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sabir.editing._image_steps import Layout, PixelFormat
    from sabir.ir import Model, Value, ValueOrName
    from sabir.schema import Registry


def prepend(  # ruff: ignore[too-many-arguments]  each is a fact about the images
    model: Model,
    input: ValueOrName,  # ruff: ignore[builtin-argument-shadowing]  the standard's own name
    *,
    mean: Sequence[float] = (),
    std: Sequence[float] = (),
    scale: float = 1 / 255,
    size: tuple[int, int] | None = None,
    layout: Layout = "NHWC",
    network_layout: Layout = "NCHW",
    decode: bool = False,
    pixel_format: PixelFormat = "RGB",
    registry: Registry = STANDARD,
) -> Model:
    """Return a copy of a model whose input takes the pixels of images: uint8, by default [N,H,W,C].

    The pixels are resized to `size` (height, width), if given: linearly, with antialiasing, not rounded. Then
    each becomes `(pixel * scale - mean) / std`, with one number of `mean` and `std` for each channel, or one
    for all. `layout` is that of the pixels, `network_layout` that of the model's own input; `HWC` and `CHW`
    are one image without a batch axis. With `decode` the input takes the bytes of an image file [bytes], such
    as PNG or JPEG, in `pixel_format`; then `size` is by default the one that the model declares.

    The input keeps its name and position. The model is converted to opset 18 where it is resized, and to
    opset 20 where it is decoded, if it is older. Raises NotFoundError, a KeyError, for an input that the
    model does not have, SchemaError for one that takes no image and for steps that do not fit it,
    UnsupportedError for an unknown layout.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N,3,224,224] image) => (float[N,3,224,224] y) { y = Relu (image) }''')
    >>> ready = sabir.prepend(model, 'image', mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
    >>> print(ready.graph.inputs[0].type, [node.op for node in ready.graph])
    uint8[N,224,224,3] ['Cast', 'Transpose', 'Mul', 'Sub', 'Relu']
    """
    check_is_model(model)
    name = name_of(model, "input", input)
    inputs = {value.name: value for value in model.graph.inputs}
    if name not in inputs:
        raise NotFoundError(f"the model has no input {quote(name)}{_near(name, inputs)}")
    type_ = inputs[name].type
    if not isinstance(type_, TensorType):
        raise SchemaError(f"the input {quote(name)} is {type_ or 'of unknown type'}, and takes no image")
    steps = ImageSteps(
        tuple(mean), tuple(std), scale, size, layout, network_layout, decode, pixel_format
    )  # fmt: skip
    names, dims = _fresh_names(model)
    b = steps.build(type_, name, names, dims, max(model.opset("") or 1, steps.opset))
    (made,) = (value.name for value in b.graph.outputs if value is not None)
    merged = merge(_library(b, model), model, {made: name}, registry=registry)
    image = merged.graph.inputs[0]
    del merged.graph.inputs[0]
    merged.graph.inputs.insert(list(inputs).index(name), image)
    return merged


def append(
    model: Model,
    step: str,
    outputs: ValueOrName | Iterable[ValueOrName] | None = None,
    *,
    keep: bool = False,
    registry: Registry = STANDARD,
    **options: Any,
) -> Model:
    """Return a copy of a model with one more step after its outputs, which the results of the step replace.

    The steps, with their options and results, where `outputs` are by default the first outputs of the model:

    * `softmax` (`axis` = -1): `probabilities`;
    * `argmax` (`axis` = -1): `classes`, the index of the largest score, without the axis;
    * `top_k` (`k` = 5, `axis` = -1): `scores`, the largest in descending order, and `classes`, their indices;
    * `nms` (`iou_threshold` = 0.5, `score_threshold` = 0, `max_boxes` = 100 for each class of an image,
      `box_format` = "corners" or "center"), of two outputs, boxes [N,B,4] and scores [N,C,B]: `selected`
      [M,3], the indices of image, class and box, `selected_boxes` [M,4], `selected_scores` [M].

    With `keep` the model's own outputs remain. A model of an opset before 13 is converted. Raises
    NotFoundError, a KeyError, for a step or an output that is not there, SchemaError for an option that the
    step does not have, for a wrong number of outputs, and for types that the step does not take.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N,1000] x) => (float[N,1000] logits) { logits = Neg (x) }''')
    >>> top = sabir.append(sabir.append(model, 'softmax'), 'top_k', k=3)
    >>> [(value.name, str(value.type)) for value in top.graph.outputs]
    [('scores', 'float[N,3]'), ('classes', 'int64[N,3]')]
    """
    check_is_model(model)
    build, count = find_step(step, options)
    known = [value.name for value in model.graph.outputs if value is not None]
    chosen = known[:count] if outputs is None else names_of(model, "outputs", outputs)
    for name in chosen:
        if name not in known:
            raise NotFoundError(f"the model has no output {quote(name)}{_near(name, known)}")
    if len(chosen) != count:
        raise SchemaError(
            f"the step {step} reads {counted(count, 'output')}, and gets {listed_names(chosen)}"
        )
    types = _output_types(model, chosen, registry)
    b = Builder(max(model.opset("") or 1, OLDEST_OPSET), names=_fresh_names(model)[0])
    values = list(starmap(b.input, zip(chosen, types, strict=True)))
    connect = dict(zip(chosen, (value.name for value in values), strict=True))
    results = build(b, *values, **options)
    for name, value in results.items():
        b.output(value).name = name
    return merge(
        model, _library(b, model), connect, keep_outputs=chosen if keep else (), registry=registry
    )  # fmt: skip


def _output_types(model: Model, names: Iterable[str], registry: Registry) -> list[TensorType]:
    """Return the types of outputs, inferred where the model does not declare them."""
    found: dict[str, Value] = {
        v.name: v for v in infer(model, registry=registry).graph.outputs if v is not None
    }
    types: list[TensorType] = []
    for name in names:
        type_ = found[name].type
        if not isinstance(type_, TensorType):
            raise SchemaError(f"the output {quote(name)} is {type_ or 'of unknown type'}, and no tensor")
        types.append(type_)
    return types


def _library(b: Builder, model: Model) -> Model:
    """Return the small model of some steps, with the texts of a model, so that the merged one has them."""
    library = b.model(
        producer_name=model.producer_name,
        producer_version=model.producer_version,
        domain=model.domain,
        version=model.version,
    )
    library.graph.name = model.graph.name
    return library


def _fresh_names(model: Model) -> tuple[FreshNames, FreshNames]:
    """Return the names that a model leaves free: of values, and of dimension variables."""
    values = list(named_values(model))
    dims = {name for v in values if v.type is not None for name in dim_variables(v.type)}
    return FreshNames(v.name for v in values), FreshNames(dims)


def _near(name: str, known: Iterable[str]) -> str:
    known = list(known)
    return suggest(name, known) or f"; it has {listed_names(known)}"
