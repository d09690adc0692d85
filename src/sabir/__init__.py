"""Sabir: the whole ONNX system in Python.

model = sabir.load("model.onnx")
session = sabir.Session(model)
outputs = session.run({"x": array})
"""

import functools
import importlib
from typing import TYPE_CHECKING, Any

# first, and from here: deep in a chain of imports numpy's own take a third longer
import numpy as np  # ruff: ignore[unused-import]  # pyright: ignore[reportUnusedImport] - for its effect alone

from sabir._version import __version__
from sabir.base import (
    CancelledError,
    CheckError,
    ConversionError,
    Displayed,
    EvaluationError,
    ExternalDataError,
    FeedError,
    FileError,
    InferenceError,
    LimitError,
    Limits,
    ParseError,
    SabirError,
    SabirWarning,
    SchemaError,
    UnsupportedError,
    WireError,
    importing_later,
    listing_public,
    set_default_limits,
)
from sabir.ir import Builder, Listed, Model, ModelVersion, OperatorSet, releases

if TYPE_CHECKING:
    from sabir.checking import check, findings
    from sabir.comparison import accepts, compare
    from sabir.consumers import requirements
    from sabir.conversion import convert
    from sabir.debugging import compare_runs, reduce, summary, trace
    from sabir.differentiation import differentiate
    from sabir.editing import (
        add_outputs,
        append,
        extract,
        initializers_to_inputs,
        inputs_to_initializers,
        merge,
        outline,
        prepend,
        rename,
        split,
    )
    from sabir.evaluation import evaluate
    from sabir.generation import TextGenerator
    from sabir.inference import infer, set_dims
    from sabir.inlining import inline
    from sabir.optimization import rewrite, simplify
    from sabir.patterns import RewriteRule
    from sabir.quantization import quantize
    from sabir.repairing import fix
    from sabir.runtime import Session, hessian, jacobian, vjp
    from sabir.serial import dumps, from_proto, load, loads, save, text, to_proto
    from sabir.syntax import parse
    from sabir.training import TrainingSession, strip_training
    from sabir.viewing import view

# imported on first use, so that `import sabir` is fast
_LATER = {
    "accepts": "comparison", "check": "checking", "compare": "comparison", "findings": "checking",
    "convert": "conversion", "evaluate": "evaluation", "infer": "inference", "inline": "inlining",
    "Session": "runtime", "dumps": "serial", "from_proto": "serial", "load": "serial", "loads": "serial",
    "save": "serial", "text": "serial", "to_proto": "serial", "parse": "syntax", "requirements": "consumers",
    "set_dims": "inference", "summary": "debugging",
    "trace": "debugging", "compare_runs": "debugging", "reduce": "debugging",
    "add_outputs": "editing", "extract": "editing", "initializers_to_inputs": "editing",
    "inputs_to_initializers": "editing", "outline": "editing", "split": "editing",
    "differentiate": "differentiation", "hessian": "runtime", "jacobian": "runtime", "vjp": "runtime",
    "fix": "repairing", "simplify": "optimization", "quantize": "quantization",
    "append": "editing", "merge": "editing", "prepend": "editing", "rename": "editing",
    "TrainingSession": "training", "strip_training": "training", "TextGenerator": "generation",
    "RewriteRule": "patterns", "rewrite": "optimization", "view": "viewing",
}  # fmt: skip

# packages with public names, which need no `import` of their own
_PACKAGES = (
    "base", "checking", "comparison", "compat", "compilation", "consumers", "conversion", "debugging",
    "differentiation", "distributed", "drawing", "editing", "elements", "evaluation", "generation",
    "inference", "inlining", "ir", "opsets", "optimization", "patterns", "quantization", "repairing",
    "rewriting", "runtime", "schema", "serial", "simplification", "syntax", "training", "viewing",
)  # fmt: skip
_later = importing_later(__name__, _LATER)


def __getattr__(name: str) -> Any:
    return importlib.import_module(f"{__name__}.{name}") if name in _PACKAGES else _later(name)


__dir__ = listing_public(__name__, _PACKAGES)


class _BuilderHooks:
    """The functions of packages above `ir` that a Builder needs, imported on first use."""

    @staticmethod
    @functools.lru_cache(maxsize=16)
    def callees(registry: Any) -> Any:
        from sabir.opsets import STANDARD  # ruff: ignore[import-outside-top-level]  see the class
        from sabir.schema import BuilderCalls  # ruff: ignore[import-outside-top-level]  see the class

        return BuilderCalls(STANDARD if registry is None else registry)

    @staticmethod
    def types(model: Model, registry: Any) -> Any:
        from sabir.inference import GrowingTypes  # ruff: ignore[import-outside-top-level]  see the class

        return GrowingTypes(model) if registry is None else GrowingTypes(model, registry)

    @staticmethod
    def complete(model: Model, registry: Any) -> None:
        from sabir.inference import type_outputs  # ruff: ignore[import-outside-top-level]  see the class

        type_outputs(model) if registry is None else type_outputs(model, registry)


class _OperatorSetFiles:
    """The functions of `serial` that read and write operator sets, imported on first use."""

    @staticmethod
    def load(source: Any, **options: Any) -> OperatorSet:
        from sabir.serial import load_operator_set  # ruff: ignore[import-outside-top-level]  see the class

        return load_operator_set(source, **options)

    @staticmethod
    def loads(data: Any, **options: Any) -> OperatorSet:
        from sabir.serial import loads_operator_set  # ruff: ignore[import-outside-top-level]  see the class

        return loads_operator_set(data, **options)

    @staticmethod
    def save(operator_set: OperatorSet, path: Any, **options: Any) -> None:
        from sabir.serial import save_operator_set  # ruff: ignore[import-outside-top-level]  see the class

        save_operator_set(operator_set, path, **options)

    @staticmethod
    def dumps(operator_set: OperatorSet, **options: Any) -> bytes:
        from sabir.serial import dumps_operator_set  # ruff: ignore[import-outside-top-level]  see the class

        return dumps_operator_set(operator_set, **options)


def _listing(item: Any) -> str:
    """Return what `print` shows of a model object; the syntax is imported for the first one."""
    from sabir.syntax import listing  # ruff: ignore[import-outside-top-level]  as all of `_LATER`

    return listing(item)


def _bundle(item: Any) -> dict[str, str]:
    """Return what notebooks show of an object; pictures and tables are imported for the first one."""
    from sabir.drawing import bundle  # ruff: ignore[import-outside-top-level]  as all of `_LATER`

    return bundle(item)


Builder.hooks = _BuilderHooks()
OperatorSet.files = _OperatorSetFiles()
Listed.listing = _listing
Displayed.bundle = _bundle

__all__ = [
    "Builder",
    "CancelledError",
    "CheckError",
    "ConversionError",
    "EvaluationError",
    "ExternalDataError",
    "FeedError",
    "FileError",
    "InferenceError",
    "LimitError",
    "Limits",
    "Model",
    "ModelVersion",
    "OperatorSet",
    "ParseError",
    "RewriteRule",
    "SabirError",
    "SabirWarning",
    "SchemaError",
    "Session",
    "TextGenerator",
    "TrainingSession",
    "UnsupportedError",
    "WireError",
    "__version__",
    "accepts",
    "add_outputs",
    "append",
    "check",
    "compare",
    "compare_runs",
    "convert",
    "differentiate",
    "dumps",
    "evaluate",
    "extract",
    "findings",
    "fix",
    "from_proto",
    "hessian",
    "infer",
    "initializers_to_inputs",
    "inline",
    "inputs_to_initializers",
    "jacobian",
    "load",
    "loads",
    "merge",
    "outline",
    "parse",
    "prepend",
    "quantize",
    "reduce",
    "releases",
    "rename",
    "requirements",
    "rewrite",
    "save",
    "set_default_limits",
    "set_dims",
    "simplify",
    "split",
    "strip_training",
    "summary",
    "text",
    "to_proto",
    "trace",
    "view",
    "vjp",
]
