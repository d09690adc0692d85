"""Every public name of onnx 1.23 and what Sabir has of it: the contents of docs/compat.md."""

import functools
import importlib
import inspect
import pkgutil
import re
import warnings
from typing import NamedTuple

import onnx  # ruff: ignore[banned-api]  the oracle

HOME = "sabir.compat.onnx"
# parts of onnx that are programs, data or implementations of single operators
LEFT_OUT = (
    "onnx.backend.sample", "onnx.backend.test.case.model.", "onnx.backend.test.case.node.", "onnx.backend.test.report",
    "onnx.backend.test.stat_coverage", "onnx.bin", "onnx.defs.gen", "onnx.fuzz", "onnx.frontend",
    "onnx.reference.ops", "onnx.reference.custom_element_types",
)  # fmt: skip
# constants that modules of onnx import for their own use
IMPORTED = {"IR_VERSION", "ONNX_ML", "TYPE_CHECKING"}
NOT = {
    "onnx.gen_proto": "Sabir builds its messages from its own descriptors, so there is nothing to generate",
    "onnx.onnx_cpp2py_export": "a C++ module; its exceptions and contexts are those of the Python modules",
    "onnx.backend.test.case.model.BASE_URL": "the address of onnx's models; Sabir never uses the network",
    "onnx.backend.test.cmd_tools.TOP_DIR": "a folder of onnx's own cases",
    "onnx.backend.test.case.node.function_expand_helper": "a helper of onnx's own cases; `sabir.inline` expands calls",
    "onnx.backend.test.case.node.function_testcase_helper": "a helper of onnx's own cases; `sabir.inline` expands calls",
    "onnx.reference.op_run.DefaultNone": "a private sign of onnx's evaluator",
    "onnx.reference.op_run.Graph": "a private class of onnx's evaluator",
    "onnx.reference.op_run.OnnxType": "a private class of onnx's evaluator",
    "onnx.reference.op_run.OpFunctionContextDependant": "Sabir expands such functions itself",
    "onnx.reference.op_run.RefAttrName": "a private class of onnx's evaluator",
}
PARTLY = {
    "onnx.checker": "stricter: [rules.md](rules.md) has the sentences of the standard; the messages are Sabir's",
    "onnx.shape_inference": "stricter, and knows more dimensions; computed ones have expressions as names",
    "onnx.shape_inference.infer_shapes": "`data_prop` is always on",
    "onnx.version_converter": "converts down too; refuses what has no equivalent; other nodes that compute the same",
    "onnx.inliner.inline_local_functions": "`convert_version` is always on",
    "onnx.defs.OpSchema": "`doc` and descriptions are Sabir's; a body of an operator with attributes depends on "
    "the call; `type_constraints` are those that ports use",
    "onnx.defs.register_schema": "not for other versions of operators of the standard",
    "onnx.defs.deregister_schema": "not for operators of the standard",
    "onnx.parser": "a superset of the syntax; dimensions are normalised: `M+N`",
    "onnx.printer": "valid text, with other spaces and digits; small floats are decoded",
    "onnx.reference.ReferenceEvaluator": "shape annotations are compared in the main graph; its "
    "classes have no `op_schema`; without `retrieve_external_data`",
    "onnx.reference.op_run.OpRun": "without `implicit_inputs` and contexts: captured values are inputs",
    "onnx.reference.op_run.OpFunction": "made by the evaluator alone",
    "onnx.backend.test.case.collect_snippets": "of programs' own subclasses of `Base`",
    "onnx.backend.test.case.node.collect_testcases": "the examples of Sabir's operators, in every version; onnx's "
    "cases have other names and values, and expanded functions beside them",
    "onnx.backend.test.case.model.collect_testcases": "Sabir has no models of its own; programs add theirs by `expect`",
    "onnx.backend.test.loader.load_model_tests": "of a folder in the official layout, else the generated cases, "
    "also without `kind`",
    "onnx.backend.test.runner.Runner": "never fetches a model; shows a case as skipped where onnx passes it",
    "onnx.utils.Extractor": "`extract_model` alone; inputs of the part that it does not need are left out",
}


INTRODUCTION = """# The onnx API on Sabir

Programs that `import onnx` run on Sabir without a change, and without the package onnx. `sabir.compat.onnx` has the modules,
functions and message classes of onnx 1.23.2 over Sabir's own engines. This page says how to use it, what differs, and what each public name of
onnx does here.

## Use

| to | do |
|---|---|
| run a script | `python -m sabir.compat script.py ARGUMENTS` |
| run a module | `python -m sabir.compat -m module ARGUMENTS` |
| switch in a program | `sabir.compat.install()` before anything imports onnx; `sabir.compat.uninstall()` undoes it |
| use one module beside the real onnx | `from sabir.compat.onnx import helper` |
| satisfy `onnx>=1.16` of other packages | `python -m sabir.compat wheel DIR`, then `pip install DIR/onnx-1.23.2+sabir-py3-none-any.whl` |

`install()` puts a finder before all others: `import onnx` and its submodules are those of `sabir.compat.onnx`, and
`importlib.metadata.version("onnx")` is 1.23.2. It raises `CompatError` if the real onnx is already imported.

The wheel has one module, which calls Sabir, and requires the distribution sabir. Its version, 1.23.2+sabir, satisfies what other packages
require. It is made on your machine and not published: the name onnx on PyPI is that of onnx, and pip has no other way for one distribution to
satisfy a requirement on another. It ignores `Provides-Dist`, so a distribution of another name could only take the place of the module.

## What differs

- **Messages** are the classes that Sabir reads files with, of its own descriptor pool: `SerializeToString`, `CopyFrom`, `HasField`, text format,
  `copy.deepcopy` and `pickle` work. They are not instances of the classes of the real onnx; both can be in one process.
- **Errors** have the classes of onnx (`ValidationError`, `InferenceError`, `ConvertError`, `ParseError`, `SchemaError`), and the messages of
  Sabir, which name the object and say what to do. `ConvertError` is also a `RuntimeError`. A program that compares the text of messages needs a change.
- **The checker** reports all findings at once, and some that onnx overlooks: [rules.md](rules.md).
- **Inference** knows more: contents are always propagated, and a computed dimension has an expression as its name (`2*N`).
- **The version converter** goes down too. It refuses a model that has no equivalent, where onnx writes one that computes something else. It may write
  other nodes than onnx does.
- **`expand_out_dim`** inserts the dimension where its Unsqueeze does. For negative places onnx declares another shape than the model computes.
- **The evaluator** is Sabir's interpreter. Custom operators are subclasses of `OpRun`, as in onnx; private functions of single operators do not exist.
- **`onnx.backend.test`** has cases of Sabir's own: an example of an operator is a case, `test_relu_14_3`. `load_model_tests(folder)` reads
  onnx's `backend/test/data` too. `python -m sabir.compat -m onnx.backend.test.cmd_tools generate-data -o DIR` writes the cases in that layout.
  The pages that onnx's repository makes of its own cases (`report`, `stat_coverage`) are absent.
- **`onnx.hub`** is absent, as Sabir never uses the network; so is what onnx 1.23 removed. The error says what to use instead.

## What was tried

[compat-tests.md](compat-tests.md) has the results of onnx's own unit tests. The packages below ran in November 2026 on Python 3.11, in an environment
where Sabir's wheel was the distribution onnx, and in another one with onnx 1.23.2. onnxruntime 1.31 or 1.32 computed the results. `make clients`
repeats a part of it, which continuous integration runs too.

| package | what ran | outcome |
|---|---|---|
| torch 2.13 | the exporters of `dynamo=True` and of TorchScript: convolution, attention | the answers of torch; the messages of TorchScript equal those with onnx |
| onnxscript 0.7.2, onnx_ir 1.1 | functions with If and Loop, the optimizer, rewrite rules, external data | equal answers and messages |
| skl2onnx 1.20 | pipelines, 8 kinds of models | the predictions of scikit-learn; HistGradientBoosting fails with onnx 1.23.2 and works here |
| onnxmltools 1.16 | LightGBM 4.7, XGBoost 3.2: classifiers and regressors | their own predictions |
| hummingbird 0.4.11 | a forest to torch and to onnx | to torch: the predictions of scikit-learn. To onnx it fails in `torch.export` of torch 2.13, with onnx too; with `dynamo=False` both work and the messages are equal |
| tf2onnx 1.17, TensorFlow 2.21 | dense, convolutions, LSTM and GRU, attention, loops, MobileNetV3, Keras and TFLite models | the answers of TensorFlow; the numbers of nodes are those with onnx |
| onnxslim 0.1.98, onnxsim 0.8.1, onnxoptimizer 0.4.2 | convolution, normalization and product | equal answers, as many nodes as with onnx; the last two are C++ that read and return bytes |
| onnxconverter-common 1.16 | float16, the removal of transposes | answers within 1 %; an MLP of skl2onnx fails in onnxruntime alike with onnx |
| onnx2torch 1.5.15 | a convolution and attention, opset 13 | the answers of torch |
| onnxruntime.quantization | dynamic, static (QDQ, QOperator), blocks of 4 bits, preparation | the messages equal those with onnx |
| onnxruntime.transformers | BERT, fused and in float16 | equal messages and answers |
| onnxruntime.backend | `BackendTest`, `run_model` | equal answers; it refuses some types and old versions |
| onnxruntime-genai 0.18 | the builder, Llama in int4 and float32 | the files equal those with onnx |
| optimum-onnx 0.1, transformers 4.57 | export of BERT and GPT-2, generation, quantization, optimization | equal answers and messages; shapes that were unknown have names. With transformers 5 it does not import, with onnx neither |
| netron 9.3 | the server of a model in memory | equal bytes |
| paddle2onnx 2.1, Paddle 3.3 | a convolutional network | the message equals that with onnx 1.17. It requires onnx ≤ 1.17, so install it with `--no-deps` |
| keras2onnx 1.7 | its import | fails, with onnx too: it needs `onnx.mapping`, which onnx removed in 1.19 |

Of the tests of onnxscript 0.7.1 that build models (optimizer, rewriter, version converter, builder, control flow), 614 pass with onnx 1.23.2, and 607 of
them on Sabir. Six others read a text that gives a tensor fewer entries than its shape has: the parser refuses it, which onnx leaves to its
checker. One, and 4 of 160 subtests, have a main graph that refers to attributes: `onnx.proto` admits such references in functions alone, and the
checker says so (NODE006). Its tests of single functions take onnx's own cases by name, and onnxruntime has no kernel for several of
Sabir's, so they were not compared.

Of the tests of converters of onnx2torch 1.5.15, 89 were run, with models of IR version 10 and with tables in place of `onnx.mapping`, which onnx
removed: the same 65 pass, and the same 24 fail, with onnx 1.23.2 and on Sabir.
"""


class Row(NamedTuple):
    """One name: its module, itself, `whole`, `partly` or `not`, and what or why."""

    module: str
    name: str
    status: str
    note: str


def modules():
    """The public modules of onnx."""
    found = [m.name for m in pkgutil.walk_packages(onnx.__path__, "onnx.", onerror=lambda _: None)]
    public = [n for n in found if not n.startswith(LEFT_OUT) and not re.search(r"\._|_cpp2py_export\.", n)]
    return ["onnx", *sorted(public)]


def names(module):
    """The public names that a module of onnx defines, with their objects."""
    listed = set(getattr(module, "__all__", ()))
    for name, item in vars(module).items():
        if name.startswith("_") or inspect.ismodule(item):
            continue
        home = getattr(item, "__module__", None)
        own = home == module.__name__ or (name.isupper() and home is None and name not in IMPORTED)
        if name in listed or own:
            yield name, item


def row(module, name):
    full = f"{module}.{name}"
    note = PARTLY.get(full) or NOT.get(full)
    try:
        ours = importlib.import_module(HOME + module.removeprefix("onnx"))
        getattr(ours, name)
    except (ImportError, AttributeError):
        return Row(module, name, "not", note or NOT.get(module, ""))
    return Row(module, name, "partly" if note else "whole", note or "")


@functools.cache
def rows():
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in modules():
            module = importlib.import_module(name)
            found += [row(name, n) for n in sorted(dict(names(module)), key=str.lower)]
    return tuple(found)


def table():
    """Return the lines of the table: names that are whole together, the others one by one."""
    lines = []
    for module in dict.fromkeys(r.module for r in rows()):
        mine = [r for r in rows() if r.module == module]
        whole = [f"`{r.name}`" for r in mine if r.status == "whole"]
        lines += [f"### {module}", ""]
        if module in PARTLY:
            lines += [f"Partly: {PARTLY[module]}.", ""]
        if whole:
            lines += [f"Whole: {', '.join(whole)}.", ""]
        others = [r for r in mine if r.status != "whole"]
        if others:
            lines += ["| name | | what, or why |", "|---|---|---|"]
            lines += [f"| `{r.name}` | {r.status} | {r.note} |" for r in others] + [""]
    return lines


def page():
    """Return the page: the introduction, the counts, and the table."""
    counts = {s: sum(r.status == s for r in rows()) for s in ("whole", "partly", "not")}
    summary = (
        "A name is whole if it takes the parameters of onnx and does the same, but for what its module says. "
        f"Of the {len(rows())} public names of onnx {onnx.__version__}, {counts['whole']} are whole, "
        f"{counts['partly']} partly here, and {counts['not']} are not. `tools/write_compat.py` writes this list from both packages."
    )
    return "\n".join([INTRODUCTION.rstrip(), "", "## Names", "", summary, "", *table()]).rstrip() + "\n"
