"""Other dimensions of the inputs and outputs of a model."""

from __future__ import annotations

from typing import Any

from sabir.compat.onnx import checker
from sabir.compat.onnx.onnx_ml_pb2 import ModelProto


def update_inputs_outputs_dims(
    model: Any, input_dims: dict[str, list[Any]], output_dims: dict[str, list[Any]]
) -> Any:
    """Return a model whose inputs and outputs have these dimensions: numbers, names, or -1 for a new name.

    A negative number becomes the name `x_2` of dimension 2 of `x`. The types of all other values are removed,
    as they may no longer hold. Raises ValueError for names and ranks that the model does not have, for a
    number that contradicts a declared one, and for a new name that the model has already; ValidationError for
    a result that is invalid.
    """
    known = {d.dim_param for v in [*model.graph.input, *model.graph.output] for d in _dims(v) if d.dim_param}
    result = ModelProto()
    result.CopyFrom(model)
    for values, wanted in ((result.graph.input, input_dims), (result.graph.output, output_dims)):
        missing = set(wanted) - {value.name for value in values}
        if missing:
            raise ValueError(f"the model has no inputs or outputs {sorted(missing)}")
        for value in values:
            if value.name in wanted:
                _update(value, wanted[value.name], known)
    checker.check_model(result)
    return result


def _update(value: Any, sizes: list[Any], known: set[str]) -> None:
    dims = _dims(value)
    if len(dims) != len(sizes):
        raise ValueError(f"{value.name} has {len(dims)} dimensions, and the new shape has {len(sizes)}")
    for place, (dim, size) in enumerate(zip(dims, sizes, strict=True)):
        if isinstance(size, str):
            dim.dim_param = size
        elif not isinstance(size, int):
            raise TypeError(f"a dimension is a number or a name, and not {size!r}")
        elif size >= 0:
            if dim.HasField("dim_value") and dim.dim_value != size:
                raise ValueError(
                    f"dimension {place} of {value.name!r} is {dim.dim_value} in the model, and cannot become "
                    f"{size}; pass {dim.dim_value} or a name"
                )
            dim.dim_value = size
        else:
            name = f"{value.name}_{place}"
            if name in known:
                raise ValueError(f"the name {name} of a new dimension is in use already")
            dim.dim_param = name


def _dims(value: Any) -> Any:
    return value.type.tensor_type.shape.dim


__all__ = ["update_inputs_outputs_dims"]
