"""Run the unit tests of onnx's repository against `sabir.compat`: `python tools/run_onnx_tests.py FOLDER`.

FOLDER has the Python tests of onnx 1.23: from its repository, or from the sdist on PyPI. `--only NAME` runs
one module, `--write` also writes docs/compat-tests.md, the failures with their reasons. Nothing is fetched.
"""

from __future__ import annotations

import argparse
import re
import subprocess  # ruff: ignore[suspicious-subprocess-import]  a process for each module
import sys
import tempfile
import types
import xml.etree.ElementTree as ET  # ruff: ignore[suspicious-xml-etree-import]  pytest wrote it
from collections import Counter
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, NamedTuple

import sabir.compat

PAGE = Path(__file__).parents[1] / "docs" / "compat-tests.md"
# they test parts of onnx that no other package has
LEFT_OUT = {
    "backend_test": "runs onnx's own cases by their names, which tests/backend runs",
    "backend_reference_test": "runs onnx's own cases by their names, which tests/backend runs",
    "onnx_sphinx_test": "tests onnx's documentation",
}
# a pattern in the module, the name or the message of a failure, and its reason
REASONS: tuple[tuple[str, str], ...] = (
    (
        "test_split_2|test_undefined_(out|in)put",
        "its model reads values that nothing defines, which Sabir refuses",
    ),
    (
        "test_sub_overflow|test_unknown_shape|test_infer_with_initializer_without_input",
        "asserts that a shape is unknown, which Sabir knows",
    ),
    ("test_stft_reals", "asserts a whole spectrum; the default of `onesided` is 1"),
    (
        "test_(tile_dimension|conv_transpose_output_channels|pad_legacy_total_padding)_overflow",
        "asserts an error for a size beyond int64, which is unknown to Sabir",
    ),
    ("test_function_output_count_mismatch", "calls a function without its last output, as a call may"),
    (
        "test_scan_max_iter_zero|test_reduce_log_sum_ops_reject_integer_input",
        "asserts that onnx's evaluator refuses a call that the signature admits; Sabir computes it",
    ),
    ("test_onehot_negative_indices", "OneHot:9 has a row of off values for an index out of range"),
    ("test_conv_transpose_with_pads_and_auto_pads", "`pads` beside `auto_pad` are ignored, as for Conv"),
    (
        "test_parse_data_with_undefined_tensor_type",
        "the checker reports a tensor without a type, not inference",
    ),
    ("test_mod_opset28_schema", "asserts sentences of onnx's documentation"),
    ("test_string_unicode_dtype", "asserts another dtype of strings; Sabir has objects"),
    ("test_function_body_conflicting", "shape annotations are compared in the main graph alone"),
    ("test_cast_float_to_string", "feeds another type than declared, which is converted as it is"),
    ("uses_versioned_implementations", "calls a private function of onnx's reference implementation"),
    (
        "Regex pattern did not match|Expected regex",
        "asserts the wording of a message; the class of the error is the same",
    ),
    (
        "is a private part of onnx|_validate_attention25",
        "calls a private function of onnx's reference implementation",
    ),
    (
        r"'(Clip|ReduceMean|Conv)_\d+'|isinstance\(<abc\.Conv",
        "asserts the names of private classes of onnx's evaluator",
    ),
    (
        "rt_nodes_|declares no linked attribute|test_overload_reference",
        "reads private attributes of onnx's evaluator",
    ),
    (r"Im2Col|experimental\.", "calls an operator that only onnx's own evaluator has"),
    (
        "printer_test",
        "asserts spaces, digits or the field of values in printed text; the text means the same",
    ),
    ("parser_test", "asserts a dimension or complex values as they were spelled"),
    (
        (
            r"does not admit|it admits|takes one type for|which this version does not admit"
            r"|must be none, add or mul|has no attribute|must be floats"
        ),
        "its model breaks the signature of an operator, which Sabir refuses",
    ),
    (
        (
            r"must have the shape|must be 1-D|do not match|do not fit|does not fit|must be a scalar"
            r"|must have one element|ranks? .*must be equal|has rank|C of rank|must be float\["
            r"|of a tensor of rank 1|no floored remainder|coefficients cannot|membership_values"
            r"|windows cover only|not both|declared as .*but it is|cannot be divided"
        ),
        "its model has shapes or values that contradict the operator, which Sabir refuses",
    ),
    (
        r"(automatic_|version_converter).*DID NOT RAISE",
        "asserts a refusal; Sabir converts the model",
    ),
    (
        r"version_converter_test.*(assert '\w+' == '\w+'|assert 1 == 2|list index|StopIteration)",
        "asserts the nodes of a conversion, where Sabir writes others",
    ),
    (
        r"ConvertError.*(computed at run time|is unknown|knows no|not every uint64|element type of an input)",
        "asserts a conversion that is only right for some inputs; Sabir refuses it",
    ),
    ("version_converter_test.*GRAPH005", "its model is invalid: ValidationError instead of ConvertError"),
    ("doc=|docstrings|_type_constraints.*in '", "asserts sentences of onnx's documentation"),
    (
        "schema_test.*has_function|context_dependent_function",
        "asserts the nodes of onnx's own function bodies",
    ),
    (r"\.CustomOp<", "a name that begins with a point is no name of the text syntax"),
    (
        (
            "complex64|complex128|GRAPH013|test_expand_out_dim|NODE00[15]|ATTR009|TENSOR0|TYPE0"
            "|GRAPH0|FUNC0|MODEL0"
        ),
        "asserts what the specification forbids; [rules.md](rules.md) has the sentence",
    ),
    (
        r"PROBIT|test_linear_classifier|SOFTMAX_ZERO|test_dict_vectorizer|reference_evaluator_ml",
        "asserts numbers of onnx's evaluator, which Sabir computes otherwise",
    ),
    (
        r"shape_inference_test.*(dim_value|HasField|dim_param|shape)",
        "asserts that a shape is unknown, which Sabir knows",
    ),
    (
        "DID NOT RAISE",
        "asserts a refusal that Sabir does not have",
    ),
)
SECONDS = 1500


class Result(NamedTuple):
    """One test: its module, its name, `passed`, `failed` or `skipped`, and the last line of the failure."""

    module: str
    name: str
    outcome: str
    message: str = ""


class PrivateParts:
    """Finds modules of onnx's reference implementation, whose private functions some tests import.

    A test that calls one of them fails; the other tests of its module run.
    """

    # ruff: ignore[unused-method-argument]  the protocol of finders
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the module, for names below `onnx.reference.ops` and `onnx.backend.test` alone."""
        private = ("onnx.reference.ops.op_", "onnx.reference.ops._op_common")
        more = ("onnx.reference.ops_optimized", "onnx.backend.test")
        return ModuleSpec(name, self, is_package=True) if name.startswith((*private, *more)) else None  # pyright: ignore[reportArgumentType]  a loader

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Return a module that has any name."""
        module = types.ModuleType(spec.name)
        module.__path__ = []
        module.__getattr__ = lambda name: _absent(f"{spec.name}.{name}")  # pyright: ignore[reportAttributeAccessIssue]  PEP 562
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing: the module is complete."""


def _absent(name: str) -> Any:
    if name.rpartition(".")[2].startswith("__"):
        raise AttributeError(name)

    class Private(type):
        def __getattr__(cls, part: str) -> Any:
            return _absent(f"{name}.{part}")

    class Absent(metaclass=Private):
        def __init__(self, *_: Any, **__: Any) -> None:
            raise NotImplementedError(f"{name} is a private part of onnx")

        def __class_getitem__(cls, _: Any) -> Any:
            return cls

        eval = create = __init__

    return Absent


def run_inside(arguments: list[str]) -> int:
    """Run pytest in this process, in which onnx means Sabir."""
    import pytest  # ruff: ignore[import-outside-top-level]  after `install`

    sabir.compat.install()
    sys.meta_path.insert(0, PrivateParts())  # pyright: ignore[reportArgumentType]  importlib calls `find_spec` alone
    return pytest.main(arguments)


def results_of(path: Path) -> list[Result]:
    """Run one module of tests in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        options = [
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "--tb=line",
            f"--junit-xml={report}",
            "--rootdir",
            folder,
        ]
        command = [sys.executable, __file__, "--inside", "-c", "/dev/null", *options, str(path)]
        # ruff: ignore[subprocess-without-shell-equals-true]  this script
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=SECONDS, cwd=folder
        )
        if not report.exists():
            return [Result(path.stem, "(module)", "failed", (done.stdout + done.stderr).strip()[-300:])]
        return [_result(path.stem, case) for case in ET.parse(report).iter("testcase")]  # ruff: ignore[suspicious-xml-element-tree-usage]  as above


def _result(module: str, case: ET.Element) -> Result:
    name = f"{(case.get('classname') or '').rpartition('.')[2]}::{case.get('name')}"
    for kind, outcome in (("failure", "failed"), ("error", "failed"), ("skipped", "skipped")):
        found = case.find(kind)
        if found is not None:
            return Result(module, name, outcome, " ".join((found.get("message") or "").split())[:300])
    return Result(module, name, "passed")


def reason_of(result: Result) -> str:
    """Return why a test fails: that of the first pattern, else its message."""
    text = f"{result.module} {result.name} {result.message}"
    found = next((reason for pattern, reason in REASONS if re.search(pattern, text)), "")
    return found or f"`{result.name.partition('::')[2]}`: another result"


def page(results: list[Result]) -> str:
    """Return docs/compat-tests.md."""
    total = Counter(r.outcome for r in results)
    lines = [
        "# onnx's own unit tests on Sabir",
        "",
        f"Of the unit tests of onnx {sabir.compat.VERSION} (`tests/python` of its sources), "
        f"{total['passed']:,} of {total['passed'] + total['failed']:,} pass on Sabir; "
        f"{total['skipped']} skip themselves. "
        "`tools/run_onnx_tests.py FOLDER --write` runs them and writes this page. Left out: "
        + "; ".join(f"`{name}`, which {reason}" for name, reason in LEFT_OUT.items())
        + ".",
        "",
        "| module | passed | failed | skipped |",
        "|---|---:|---:|---:|",
    ]
    for module in dict.fromkeys(r.module for r in results):
        counts = Counter(r.outcome for r in results if r.module == module)
        lines.append(f"| {module} | {counts['passed']} | {counts['failed']} | {counts['skipped']} |")
    lines += ["", "## Why tests fail", "", "| reason | tests | which |", "|---|---:|---|"]
    reasons: dict[str, list[str]] = {}
    for result in results:
        if result.outcome == "failed":
            reasons.setdefault(reason_of(result), []).append(result.name.partition("::")[2].partition("[")[0])
    for reason, names in sorted(reasons.items(), key=lambda item: -len(item[1])):
        shown = ", ".join(f"`{name}`" for name in dict.fromkeys(names))
        lines.append(f"| {reason} | {len(names)} | {shown} |")
    return "\n".join(lines) + "\n"


def summary(results: list[Result]) -> list[str]:
    """Return a line for each module, and one for all."""
    lines: list[str] = []
    for module in dict.fromkeys(r.module for r in results):
        counts = Counter(r.outcome for r in results if r.module == module)
        lines.append(f"{module:40} {_counts(counts)}")
    total = Counter(r.outcome for r in results)
    lines.append(f"{'all':40} {_counts(total)}")
    return lines


def _counts(counts: Counter[str]) -> str:
    return f"{counts['passed']:5} passed {counts['failed']:5} failed {counts['skipped']:4} skipped"


def main() -> None:
    """Run the tests and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--failures", action="store_true", help="print the failures too")
    parser.add_argument("--write", action="store_true", help="write docs/compat-tests.md")
    arguments = parser.parse_args()
    paths = sorted(p for p in arguments.folder.rglob("*_test.py") if p.stem not in LEFT_OUT)
    paths = [p for p in paths if not arguments.only or p.stem in arguments.only]
    results: list[Result] = []
    for path in paths:
        found = results_of(path)
        results += found
        print(summary(found)[0], flush=True)
        if arguments.failures:
            for result in found:
                if result.outcome == "failed":
                    print(f"    {result.name}: {result.message}")
    print(summary(results)[-1])
    if arguments.write:
        PAGE.write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        sys.exit(run_inside(sys.argv[2:]))
    main()
