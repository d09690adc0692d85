"""Compare the gradients of real architectures with directional differences, in double precision.

    python tools/check_zoo_gradients.py FOLDER [NAME ...] [--side 64] [--onnxruntime]

FOLDER has the models (`python ../shared/zoo/materialize.py`); without names, all of them are compared. The
loss is the sum of the first output times random numbers. Its gradients with respect to the floating-point
input and four of the weights are compared along random directions with central differences of three steps.
Both models are in double precision; LayerNormalization, which the standard lets compute in single precision,
is written out for the differences. Where a network has kinks, the smallest step is the one that counts: at
the others some of them lie between the two values. Images have `--side` pixels where the model admits it.
`--onnxruntime` compares the gradients in single precision with those by onnxruntime.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import sabir
from sabir.elements import DOUBLE, FLOAT
from sabir.ir import Tensor, TensorType, tensor_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

WEIGHTS = 4
STEPS = (1e-4, 1e-6, 1e-8)  # of the size of the values: with fewer digits, and with fewer kinks between
SIZES = {"batch": 1, "seq": 12}
VOCABULARY = 1000
FIXED = {"vit_small"}  # its positions belong to images of one size
IMAGE = 4  # dimensions of an image


def main() -> None:
    """Compare each model."""
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("folder", type=Path)
    cli.add_argument("names", nargs="*")
    cli.add_argument("--side", type=int, default=64, help="pixels of an image along both axes")
    cli.add_argument(
        "--onnxruntime", action="store_true", help="compare with onnxruntime, in single precision"
    )
    given = cli.parse_args()
    paths = sorted(p for p in given.folder.glob("*.onnx") if not given.names or p.stem in given.names)
    if not paths:
        raise SystemExit(f"no such .onnx files in {given.folder}")
    for path in paths:
        model = sabir.load(path)
        if path.stem not in FIXED:
            _shrink(model, given.side)
        for line in _single(model) if given.onnxruntime else _double(model):
            print(f"{path.stem}: {line}", flush=True)


def _double(model: sabir.Model) -> Iterator[str]:
    """Yield a line for each value whose gradient is compared with differences."""
    random, weights = np.random.default_rng(0), _weights(model)
    exact = _widened(sabir.inline(model.clone(), operators=["LayerNormalization"]), weights)
    of, feeds = _output(model), _feeds(exact, random)
    wide = _widened(model, weights)
    wrt = [v.name for v in wide.graph.inputs if _is_float(v)]
    session = sabir.Session(exact, engine="reference")
    seed = random.standard_normal(session.run(feeds)[of].shape)
    results = sabir.evaluate(sabir.differentiate(wide, of, wrt, seed="seed"), {**feeds, "seed": seed})

    def moved(name: str, change: np.ndarray) -> float:
        """Return the loss after a change of one value."""
        return float((seed * session.run({**feeds, name: at[name] + change})[of]).sum())

    at = {n: feeds[n] if n in feeds else _data(wide, n) for n in wrt}
    for name, x in at.items():
        direction = random.standard_normal(x.shape) * (np.abs(x).mean() or 1)
        analytic = float((results[f"grad_{name}"] * direction).sum())
        numeric = [(moved(name, h * direction) - moved(name, -h * direction)) / (2 * h) for h in STEPS]
        yield f"{name} {list(x.shape)}: {analytic:.6g}; relative differences {_relative(analytic, numeric)}"


def _relative(analytic: float, numeric: Sequence[float]) -> str:
    return ", ".join(f"{abs(analytic - n) / max(abs(n), 1e-12):.1e}" for n in numeric)


def _single(model: sabir.Model) -> Iterator[str]:
    """Yield a line for each gradient that onnxruntime computes too, relative to its largest number."""
    import onnxruntime  # ruff: ignore[import-outside-top-level]  needed on request

    random = np.random.default_rng(0)
    weights, of = _weights(model), _output(model)
    wrt = [*(v.name for v in model.graph.inputs if _is_float(v)), *weights]
    gradients = sabir.differentiate(model, of, wrt, seed="seed")
    feeds = _feeds(model, random)
    feeds = {n: x.astype(np.float32) if x.dtype == np.float64 else x for n, x in feeds.items()}
    shape = sabir.evaluate(model, feeds, outputs=[of])[of].shape
    feeds["seed"] = random.standard_normal(shape, np.float32)
    ours = sabir.evaluate(gradients, feeds)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    theirs = onnxruntime.InferenceSession(sabir.dumps(gradients), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in theirs.get_outputs()]
    results: Any = theirs.run(names, feeds)
    for name, other in zip(names, results, strict=True):
        spread = float(np.abs(other).max()) or 1.0
        yield f"{name} {list(other.shape)}: {float(np.abs(other - ours[name]).max()) / spread:.1e}"


def _output(model: sabir.Model) -> str:
    """Return the name of the first output."""
    return next(value.name for value in model.graph.outputs if value is not None)


def _data(model: sabir.Model, name: str) -> np.ndarray:
    """Return the data of an initializer."""
    constant: Any = model.graph.value(name).constant
    return constant.array()


def _weights(model: sabir.Model) -> list[str]:
    """Return the names of weights of all depths."""
    named = [v.name for v in model.graph.initializers if _is_float(v) and len(v.shape or ()) > 1]
    return list(dict.fromkeys(named[round(i * (len(named) - 1) / (WEIGHTS - 1))] for i in range(WEIGHTS)))


def _feeds(model: sabir.Model, random: np.random.Generator) -> Mapping[str, Any]:
    """Return random arrays for the inputs that have no value."""
    feeds: dict[str, Any] = {}
    for value in model.graph.inputs:
        if value.constant is not None:
            continue
        shape = [d if isinstance(d, int) else SIZES[str(d)] for d in value.shape or ()]
        if _is_float(value):
            feeds[value.name] = random.standard_normal(shape)
        elif value.name == "attention_mask":
            feeds[value.name] = np.ones(shape, np.int64)
        else:
            feeds[value.name] = random.integers(0, VOCABULARY, shape)
    return feeds


def _is_float(value: Any) -> bool:
    return isinstance(value.type, TensorType) and value.type.element.is_float


def _shrink(model: sabir.Model, side: int) -> None:
    """Let the images have another size, and forget what was declared for the old one."""
    for value in model.graph.inputs:
        kind = value.type
        if isinstance(kind, TensorType) and kind.element.is_float and len(kind.shape or ()) == IMAGE:
            value.type = tensor_type(kind.element, [*(kind.shape or ())[:2], side, side])
            for other in model.graph.defined():
                if other.node is not None:
                    other.type = None


def _widened(model: sabir.Model, weights: list[str]) -> sabir.Model:
    """Return the model in double precision, with some weights as inputs that have their values."""
    model = model.clone()
    for graph in [model.graph, *(g for n in model.graph.all_nodes() for g in n.graphs)]:
        for value in list(graph.defined()):
            if value.constant is not None and value.constant.element is FLOAT:
                graph.set_initializer(value, value.constant.array().astype(np.float64))
            if value.node is not None:
                value.type = None
            elif isinstance(value.type, TensorType) and value.type.element is FLOAT:
                value.type = TensorType(DOUBLE, value.type.shape)
    for node in model.graph.all_nodes():
        for key, attribute in list(node.attributes.items()):
            value = attribute.value
            if key == "to" and value == FLOAT.number:
                node.set(**{key: DOUBLE.number})
            elif isinstance(value, Tensor) and value.element is FLOAT:
                node.set(**{key: value.array().astype(np.float64)})
    for name in weights:
        value = model.graph.value(name)
        if not value.is_input:
            model.graph.inputs.append(value)
    return model


if __name__ == "__main__":
    main()
