"""The small models that make answers of the results of a network: classes, scores, boxes."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from sabir.base import NotFoundError, SchemaError, UnsupportedError, listed_names, quote, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sabir.ir import Builder, Value

BOX_FORMATS = ("corners", "center")
OLDEST_OPSET = 13  # that has all operators of these steps as they are used here


def softmax(b: Builder, scores: Value, *, axis: int = -1) -> dict[str, Value]:
    """Return `probabilities`: exponentials of the scores along an axis, divided by their sum.

    >>> list(inspect.signature(softmax).parameters)
    ['b', 'scores', 'axis']
    """
    return {"probabilities": b.Softmax(scores, axis=axis)}


def argmax(b: Builder, scores: Value, *, axis: int = -1) -> dict[str, Value]:
    """Return `classes`: the index of the largest score along an axis, which the result does not have.

    >>> list(inspect.signature(argmax).parameters)
    ['b', 'scores', 'axis']
    """
    return {"classes": b.ArgMax(scores, axis=axis, keepdims=0)}


def top_k(b: Builder, scores: Value, *, k: int = 5, axis: int = -1) -> dict[str, Value]:
    """Return `scores`, the k largest along an axis in descending order, and `classes`, their indices.

    >>> list(inspect.signature(top_k).parameters)
    ['b', 'scores', 'k', 'axis']
    """
    if k < 1:
        raise UnsupportedError(f"`k` is 1 or more, and not {k}")
    values, indices = b.TopK(scores, [k], axis=axis)
    return {"scores": values, "classes": indices}


def nms(
    b: Builder,
    boxes: Value,
    scores: Value,
    *,
    iou_threshold: float = 0.5,
    score_threshold: float = 0.0,
    max_boxes: int = 100,
    box_format: str = "corners",
) -> dict[str, Value]:
    """Return the boxes that non-maximum suppression selects, of boxes [N,B,4] and scores [N,C,B].

    `selected` [M,3] has the indices of image, class and box, `selected_boxes` [M,4] and `selected_scores` [M]
    what they refer to. A box is [y1,x1,y2,x2], or with the format "center" [x,y,width,height]. At most
    `max_boxes` of each class of an image are selected.

    >>> list(inspect.signature(nms).parameters)[:3]
    ['b', 'boxes', 'scores']
    """
    if box_format not in BOX_FORMATS:
        raise UnsupportedError(f"`box_format` is one of {', '.join(BOX_FORMATS)}, not {quote(box_format)}")
    selected = b.NonMaxSuppression(
        boxes, scores, [max_boxes], [iou_threshold], [score_threshold],
        center_point_box=int(box_format == "center"),
    )  # fmt: skip
    image_and_box = b.Gather(selected, [0, 2], axis=1)
    return {
        "selected": selected,
        "selected_boxes": b.GatherND(boxes, image_and_box),
        "selected_scores": b.GatherND(scores, selected),
    }


STEPS: Mapping[str, Callable[..., dict[str, Value]]] = {
    "softmax": softmax,
    "argmax": argmax,
    "top_k": top_k,
    "nms": nms,
}


def find_step(name: str, options: Mapping[str, Any]) -> tuple[Callable[..., dict[str, Value]], int]:
    """Return a step and the number of its inputs; raises NotFoundError, and SchemaError for its options.

    >>> find_step('top_k', {'k': 3})[1]
    1
    """
    step = STEPS.get(name)
    if step is None:
        near = suggest(name, STEPS) or f"; the steps are {listed_names(STEPS)}"
        raise NotFoundError(f"there is no step {quote(name)}{near}")
    parameters = list(inspect.signature(step).parameters.values())[1:]
    known = [p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]
    for option in options:
        if option not in known:
            near = suggest(option, known) or f"; it has {listed_names(known)}"
            raise SchemaError(f"the step {name} has no option {quote(option)}{near}")
    return step, len(parameters) - len(known)
