"""Signs in a file that its exporter has computed a layer away that training needs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sabir.base import counted, listed_names
from sabir.ir import Tensor
from sabir.training._exported import advice, is_batch_norm, module_of

if TYPE_CHECKING:
    from sabir.ir import Model

_FOLDED_WEIGHT = re.compile(r"onnx::Conv(?:Transpose)?_\d+")
_CONSEQUENCE = "so training does not normalize by batches as the module does"
_MOST = 5


def folded_layers(model: Model) -> list[str]:
    """Return a sentence for each kind of layer that an exporter has folded into others."""
    found = [*_merged_normalizations(model), *_computed_convolutions(model)]
    return [f"{what}; export with {advice(model)}" for what in found]


def _merged_normalizations(model: Model) -> list[str]:
    """Find modules of the class BatchNorm of which the graph has nodes, but no BatchNormalization."""
    modules: dict[str, bool] = {}
    for node in model.graph.all_nodes():
        if is_batch_norm(node):
            module = module_of(node) or node.name
            modules[module] = modules.get(module, False) or node.op == "BatchNormalization"
    merged = [module for module, is_kept in modules.items() if not is_kept]
    if not merged:
        return []
    count, names = counted(len(merged), "BatchNormalization"), listed_names(merged, _MOST)
    return [f"the exporter has folded {count} ({names}) into the weights of other layers, {_CONSEQUENCE}"]


def _computed_convolutions(model: Model) -> list[str]:
    """Find convolutions whose weights have names that TorchScript gives to what it has computed."""
    layers = [
        module_of(node) or node.name
        for node in model.graph.all_nodes()
        if node.op in {"Conv", "ConvTranspose"} and len(node.inputs) > 1
        for weight in node.inputs[1:2]
        if weight is not None and isinstance(weight.constant, Tensor)
        if _FOLDED_WEIGHT.fullmatch(weight.name)
    ]
    if not layers:
        return []
    count, names = counted(len(layers), "convolution"), listed_names(layers, _MOST)
    how = "as it does where it folds BatchNormalization into them"
    return [f"the exporter has computed the weights of {count} ({names}), {how}, {_CONSEQUENCE}"]


__all__ = ["folded_layers"]
