"""The API of onnx on Sabir against onnx itself, in one process.

`python benchmarks/compat.py FOLDER` also measures the models of a folder, with their weights in the files.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import harness as h  # before numpy: it pins the threads
import numpy as np
import onnx  # ruff: ignore[banned-api]  the peer
import onnx.reference  # ruff: ignore[banned-api]  the peer

from sabir.compat import onnx as compat
from sabir.compat.onnx import reference

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NODES = 20_000
FEW = 2_000
ROUNDS = 5
# models of onnx's package whose weights are computed by nodes
LIGHT = ("squeezenet", "shufflenet", "resnet50")
LIGHT_ROUNDS = 3
PACKAGES = (("sabir.compat", compat, reference), ("onnx", onnx, onnx.reference))


def build(package: Any, nodes: int) -> Any:
    """Return a chain of Add and Relu with one small initializer for every tenth node."""
    helper = package.helper
    made = [_node(package, number) for number in range(nodes)]
    ones = np.ones(8, np.float32)
    weights = [package.numpy_helper.from_array(ones, f"w{number}") for number in range((nodes + 9) // 10)]
    x = helper.make_tensor_value_info("t0", 1, ["N", 8])
    y = helper.make_tensor_value_info(f"t{nodes}", 1, ["N", 8])
    graph = helper.make_graph(made, "g", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _node(package: Any, number: int) -> Any:
    adds = number % 2 == 0
    inputs = [f"t{number}", f"w{number // 10}"] if adds else [f"t{number}"]
    return package.helper.make_node("Add" if adds else "Relu", inputs, [f"t{number + 1}"], name=f"n{number}")


class Subject(NamedTuple):
    """A package with what its tasks work on."""

    package: Any
    large: Any
    small: Any
    path: Path
    evaluator: Any


ARRAY = np.random.default_rng(0).standard_normal((512, 512), np.float32)
VALUES = ARRAY.ravel()[:10_000].tolist()
FEEDS = {"t0": np.ones((4, 8), np.float32)}
TASKS: tuple[tuple[str, Callable[[Subject], Any]], ...] = (
    (f"build {NODES:,} nodes with helpers", lambda s: build(s.package, NODES)),
    ("1,000 times make_node with 3 attributes", lambda s: _nodes(s.package)),
    (
        "make_tensor of 10,000 floats in a list",
        lambda s: s.package.helper.make_tensor("t", 1, [10_000], VALUES),
    ),
    (
        "from_array and to_array of 1 MiB",
        lambda s: s.package.numpy_helper.to_array(s.package.numpy_helper.from_array(ARRAY)),
    ),
    (f"load {NODES:,} nodes", lambda s: s.package.load(s.path)),
    (f"save {NODES:,} nodes", lambda s: s.package.save(s.large, s.path)),
    (f"check_model, {NODES:,} nodes", lambda s: s.package.checker.check_model(s.large)),
    (
        f"check_model with full_check, {NODES:,} nodes",
        lambda s: s.package.checker.check_model(s.large, full_check=True),
    ),
    (f"infer_shapes, {NODES:,} nodes", lambda s: s.package.shape_inference.infer_shapes(s.large)),
    (
        f"convert_version 21 to 22, {FEW:,} nodes",
        lambda s: s.package.version_converter.convert_version(s.small, 22),
    ),
    (f"a run of the evaluator, {FEW:,} nodes", lambda s: s.evaluator.run(None, FEEDS)),
)


ZOO_TASKS: tuple[tuple[str, Callable[[Any, Any, Path, Path], Any]], ...] = (
    ("load", lambda package, _model, path, _folder: package.load(path)),
    ("save", lambda package, model, _path, folder: package.save(model, folder / "saved.onnx")),
    ("check_model", lambda package, model, _path, _folder: package.checker.check_model(model)),
    ("with full_check", lambda package, model, _path, _folder: _full_check(package, model)),
    ("infer_shapes", lambda package, model, _path, _folder: package.shape_inference.infer_shapes(model)),
)


def main(zoo: Path | None) -> None:
    """Measure each task with both packages, alternately."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        subjects = {name: _subject(name, package, module, place) for name, package, module in PACKAGES}
        rows = [_row(task, work, subjects) for task, work in TASKS]
    h.table(("task", "sabir.compat", "onnx", "against sabir"), rows)
    h.table(("a run of the evaluator", "sabir.compat", "onnx", "against sabir"), [*map(_light_row, LIGHT)])
    if zoo is not None:
        head = [name for name, _ in ZOO_TASKS]
        h.table(("against sabir", *head), [_zoo_row(path) for path in sorted(zoo.glob("*.onnx"))])
    print("Times are of the processor. `onnx` checks and infers in C++; messages cross to it as bytes.")


def _zoo_row(path: Path) -> tuple[str, ...]:
    """Return the ratios of the times of the tasks on a model."""
    h.progress(path.stem)
    messages = {name: package.load(path) for name, package, _ in PACKAGES}
    ratios: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for _, work in ZOO_TASKS:
            cases = [
                h.Case(name, lambda _, p=package, m=messages[name], w=work: w(p, m, path, Path(folder)))
                for name, package, _ in PACKAGES
            ]
            found = h.medians(cases, ROUNDS, min, time.process_time)
            ratios.append(h.ratio_text(found["onnx"], found["sabir.compat"]))
    return path.stem, *ratios


def _subject(name: str, package: Any, module: Any, folder: Path) -> Subject:
    large, small = build(package, NODES), build(package, FEW)
    path = folder / f"{name}.onnx"
    package.save(large, path)
    return Subject(package, large, small, path, module.ReferenceEvaluator(small))


def _full_check(package: Any, model: Any) -> None:
    package.checker.check_model(model, full_check=True)


def _nodes(package: Any) -> list[Any]:
    return [
        package.helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1], group=1, auto_pad="VALID")
        for _ in range(1000)
    ]


def _row(task: str, work: Callable[[Subject], Any], subjects: Mapping[str, Subject]) -> tuple[str, ...]:
    cases = [h.Case(name, lambda _, s=subject: work(s)) for name, subject in subjects.items()]
    return _compared(task, cases, ROUNDS)


def _light_row(name: str) -> tuple[str, ...]:
    path = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / f"light_{name}.onnx"
    cases: list[h.Case] = []
    for package, module, evaluating in PACKAGES:
        graph = (model := module.load(path)).graph
        weights = {tensor.name for tensor in graph.initializer}
        (port,) = (value for value in graph.input if value.name not in weights)
        sizes = [size.dim_value for size in port.type.tensor_type.shape.dim]
        image = np.random.default_rng(0).random(sizes, np.float32)
        evaluator = evaluating.ReferenceEvaluator(model)
        cases.append(h.Case(package, lambda _, e=evaluator, x={port.name: image}: e.run(None, x)))
    return _compared(f"{name} of the light models", cases, LIGHT_ROUNDS)


def _compared(task: str, cases: list[h.Case], rounds: int) -> tuple[str, ...]:
    h.progress(task)
    found = h.medians(cases, rounds, min, time.process_time)
    ours, theirs = found["sabir.compat"], found["onnx"]
    return task, h.time_text(ours), h.time_text(theirs), h.ratio_text(theirs, ours)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else None)
