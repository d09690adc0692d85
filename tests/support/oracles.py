# ruff: file-ignore[banned-api]  the official cases are onnx's
"""What outside Sabir has computed an operator: expected numbers, onnxruntime, official backend cases."""

from __future__ import annotations

import functools
import pathlib
import warnings
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from sabir import dumps
from sabir.ir import SparseTensorType, TensorType
from sabir.opsets import STANDARD
from support.rooms import OPERATORS, examples_of, model_of, run

RUNTIME_IR, RUNTIME_OPSET = 13, 27  # the newest that onnxruntime loads
KINDS = ("node", "real", "simple", "pytorch-converted", "pytorch-operator")
NO_ORACLE = {
    "EncodeImage": "each encoder writes other bytes: tests/rooms/test_contrib.py decodes them",
    "Gradient": "it looks at the graph around its node: its value is no function of its inputs",
}
EMPTY = "an axis of no elements"
ABSENT = "an absent last zero point is read past the end"
CRASHES = {  # examples that take the whole process of onnxruntime with them, or get an answer by chance
    "Attention": (  # of com.microsoft
        lambda e: e.opset == 1 and (len(e.inputs) < 3 or e.inputs[2] is None),
        "an optional bias that is left out is dereferenced",
    ),
    "Mod": (lambda e: -1 in np.asarray(e.inputs[1]), "the smallest integer modulo -1 is a machine trap"),
    "MatMulInteger": (lambda e: 0 in np.shape(e.inputs[0]), f"{EMPTY} leaves its output unwritten"),
    "Scan": (lambda e: any(np.size(x) == 0 for x in e.inputs if x is not None), f"{EMPTY} divides by zero"),
    "RandomNormal": (lambda e: e.attributes.get("scale") == 0, "an assertion demands a scale above 0"),
    "RandomNormalLike": (lambda e: e.attributes.get("scale") == 0, "an assertion demands a scale above 0"),
    "Unique": (lambda e: np.size(e.inputs[0]) == 0 and "axis" in e.attributes, f"{EMPTY} ends in an abort"),
    "TfIdfVectorizer": (
        lambda e: e.attributes.get("max_skip_count", 0) > 1 << 30,
        "it tries every skip, however far beyond the input",
    ),
    "WordConvEmbedding": (
        lambda e: not np.asarray(e.inputs[0]).any(axis=-1).all(),
        "the vector of a word of padding alone is unwritten memory",
    ),
    "LayerNormalization": (
        lambda e: len(e.inputs) > 2 and e.inputs[-1] is None,
        "an explicit empty trailing input is dereferenced",
    ),
    "GroupQueryAttention": (
        lambda e: e.attributes.get("sliding_window_cache", 0) or len(e.inputs) > _WITHOUT_LENGTHS,
        "rows of a cache of the window after those of its positions, and of padding, are unwritten",
    ),
    "MatMulIntegerToFloat": (lambda e: 0 in np.shape(e.inputs[0]), f"{EMPTY} leaves its output unwritten"),
    "QLinearSoftmax": (lambda e: np.size(e.inputs[0]) == 0, f"{EMPTY} leaves its output without a tensor"),
    "QLinearLeakyRelu": (lambda e: len(e.inputs) < _WITH_ZERO_POINTS, ABSENT),
    "QLinearSigmoid": (lambda e: len(e.inputs) < _WITH_ZERO_POINTS, ABSENT),
}
_WITHOUT_LENGTHS = 16  # inputs of GroupQueryAttention before `query_seqlens`
_WITH_ZERO_POINTS = 5  # inputs of an elementwise function of a quantized tensor
ITS_PROCESSOR = "com.microsoft.nchwc"  # a domain whose tensors are stored as fits the processor that runs


# onnxruntime


def crashes(operator, example):
    """Why onnxruntime may not be asked: it ends or stops the whole process."""
    told = CRASHES.get(operator.name)
    return told[1] if told and told[0](example) else None


def by_onnxruntime(operator, example):
    """The outputs that onnxruntime computes, or None where the call is outside its reach."""
    import onnxruntime  # ruff: ignore[import-outside-top-level]  the cheap columns need none

    if (not operator.domain and example.opset > RUNTIME_OPSET) or crashes(operator, example):
        return None
    if operator.domain == ITS_PROCESSOR:  # tests/models compares whole models of this processor
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        model, feeds = model_of(operator, example)
        _declare_for_onnxruntime(model)
        session = onnxruntime.InferenceSession(dumps(model), options, providers=["CPUExecutionProvider"])
        if any(isinstance(value.type, SparseTensorType) for value in model.graph.inputs):
            return _run_with_sparse_tensors(session, model, feeds)
        return session.run(None, feeds)
    except Exception:  # ruff: ignore[blind-except]  its errors have no common base; all mean the same here
        return None


def _declare_for_onnxruntime(model):
    """Leave out what its loading would refuse: a newer IR version, shapes that it infers in its own way."""
    model.ir_version = min(model.ir_version, RUNTIME_IR)
    for value in model.graph.outputs:
        if isinstance(value.type, TensorType):  # its inference of shapes is not what is asked for
            value.type = TensorType(value.type.element)
    for value in model.graph.inputs:
        if isinstance(value.type, SparseTensorType):  # it infers the shape of what is not transposed
            value.type = SparseTensorType(value.type.element)


def _run_with_sparse_tensors(session, model, feeds):
    """What a session of onnxruntime computes of feeds, of which the sparse ones are dense arrays."""
    from onnxruntime import OrtDevice, OrtValue, SparseTensor  # ruff: ignore[import-outside-top-level]  as above

    values = {}
    for value in model.graph.inputs:
        x = feeds[value.name]
        if isinstance(value.type, SparseTensorType):
            sizes, places = np.array(x.shape, np.int64), np.argwhere(x).ravel()
            device = OrtDevice.make("cpu", 0)
            sparse = SparseTensor.sparse_coo_from_numpy(sizes, x[np.nonzero(x)], places, device)
            values[value.name] = OrtValue.ort_value_from_sparse_tensor(sparse)
        else:
            values[value.name] = OrtValue.ortvalue_from_numpy(np.ascontiguousarray(x))
    return [y.numpy() for y in session.run_with_ort_values(None, values)]


def difference(ours, theirs, example, operator):
    """How two runs of an example differ, or None; the numbers of a random operator are not compared."""
    told = (_differ(a, b, example.tolerance, operator.random) for a, b in zip(ours, theirs, strict=True))
    return next(filter(None, told), None)


def _differ(ours, theirs, tolerance, random):
    if type(theirs).__name__ == "SparseTensor" or (ours is None and theirs is None):
        return None  # a sparse output cannot be read back
    if isinstance(ours, dict) and isinstance(theirs, dict):
        if ours.keys() != theirs.keys():
            return f"keys {list(ours)}, not {list(theirs)}"
        pairs = [(np.asarray(v), np.asarray(theirs[k], np.asarray(v).dtype)) for k, v in ours.items()]
    elif isinstance(ours, list) and isinstance(theirs, list):
        if len(ours) != len(theirs):
            return f"{len(ours)} items, not {len(theirs)}"
        pairs = zip(ours, theirs, strict=True)
    else:
        return _arrays_differ(ours, np.asarray(theirs), tolerance, random)
    return next(filter(None, (_differ(a, b, tolerance, random) for a, b in pairs)), None)


def _arrays_differ(ours, theirs, tolerance, random):
    if ours is None or isinstance(ours, (list, dict)):
        return f"{ours}, not {theirs}"
    if theirs.dtype == np.uint8 and ours.dtype.name.startswith("float8"):
        theirs = theirs.view(ours.dtype)  # onnxruntime hands out the bits
    if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
        return f"{ours.dtype}{list(ours.shape)}, not {theirs.dtype}{list(theirs.shape)}"
    if random or _agree(ours, theirs, tolerance):
        return None
    return f"{ours.ravel()[:8].tolist()}, not {theirs.ravel()[:8].tolist()}"


def _agree(ours, theirs, tolerance):
    if ours.dtype.kind in "iubO":
        return ours.tolist() == theirs.tolist()
    least = {"float16": 2e-3, "bfloat16": 2**-6}.get(ours.dtype.name, 1e-5)
    tolerance = max(tolerance, least)
    wide = np.complex128 if ours.dtype.kind == "c" else np.float64
    return np.allclose(ours.astype(wide), theirs.astype(wide), rtol=tolerance, atol=tolerance, equal_nan=True)


# the official backend cases


@functools.cache
def official():
    """The names of the official cases that run each version, by (domain, name, since)."""
    from onnx.backend.test.loader import load_model_tests  # ruff: ignore[import-outside-top-level]  only where it is needed

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the cases are computed here, divisions by zero among them
        cases = [case for kind in KINDS for case in load_model_tests(kind=kind)]
    found = defaultdict(set)
    for case in cases:
        for version in set(versions_in(_model(case))):
            found[version].add(case.name.removeprefix("test_"))
    return found


def _model(case):
    import onnx  # ruff: ignore[import-outside-top-level]  only where it is needed

    if case.model is not None:
        return case.model
    if case.model_dir is not None:
        return onnx.load(pathlib.Path(case.model_dir) / "model.onnx", load_external_data=False)
    return onnx.load(pathlib.Path(onnx.__file__).parent.parent / case.url, load_external_data=False)


def versions_in(model):
    """Yield the version of every standard operator that a model calls, its functions and subgraphs too."""
    for part in (model.graph, *model.functions):
        imports = model.opset_import if part is model.graph else part.opset_import
        opsets = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in imports}
        for node in _nodes(part):
            domain = "" if node.domain == "ai.onnx" else node.domain
            version = STANDARD.find_version(domain, node.op_type, opsets.get(domain))
            if version is not None:
                yield domain, node.op_type, version.since


def _nodes(*graphs):
    for graph in graphs:
        for node in graph.node:
            yield node
            for attribute in node.attribute:
                yield from _nodes(*attribute.graphs, *([attribute.g] if attribute.HasField("g") else ()))


# the report


@dataclass
class Oracles:
    """What vouches for one version: examples by their number in the room, official cases by name.

    `agreed` holds the examples that onnxruntime computes alike, None where it was not asked.
    """

    domain: str
    name: str
    since: int
    deprecated: bool
    expected: list[int] = field(default_factory=list)
    agreed: list[int] | None = None
    cases: set[str] = field(default_factory=set)

    @property
    def key(self):
        """The version's domain, operator and number."""
        return self.domain, self.name, self.since


def report(*, runtime=False):
    """Return a row for every version of the standard registry."""
    rows = [
        Oracles(
            o.domain, o.name, v.since, v.deprecated, cases=official().get((o.domain, o.name, v.since), set())
        )
        for o in OPERATORS
        for v in o.versions
    ]
    by_key = {row.key: row for row in rows}
    for operator in OPERATORS:
        for number, example in enumerate(examples_of(operator)):
            row = by_key[operator.domain, operator.name, operator.at(example.opset).since]
            if example.expect:
                row.expected.append(number)
            if runtime:
                row.agreed = [*(row.agreed or ()), *([number] if agrees(operator, example) else ())]
    return rows


def agrees(operator, example):
    """Whether onnxruntime computes the example, and to the same."""
    theirs = by_onnxruntime(operator, example)
    if theirs is None:
        return False
    with np.errstate(all="ignore"):
        ours = run(*model_of(operator, example))
    return difference(ours, theirs, example, operator) is None


def page(rows):
    """Write rows as the document."""
    held = [r for r in rows if r.name not in NO_ORACLE and (r.expected or r.agreed or r.cases)]
    by_example = sum(bool(r.expected or r.agreed) for r in held)
    lines = [HEAD.format(held=len(held), versions=len(rows), by_example=by_example)]
    for domain in sorted({r.domain for r in rows}):
        lines += [f"## {domain or 'ai.onnx'}", "", *TABLE]
        lines += [_row(r) for r in rows if r.domain == domain] + [""]
    return "\n".join(lines)


def _row(row):
    vouchers = told(row)
    note = "" if any(vouchers) else "deprecated: nothing to compute" if row.deprecated else "**none**"
    note = NO_ORACLE.get(row.name, note)
    return f"| {row.name} | {row.since} | {' | '.join(vouchers)} | {note} |"


def told(row):
    """The cells of a row: examples worked out by hand, those that onnxruntime computes alike, official cases."""
    return spans(row.expected), spans(row.agreed or []), _names(row.cases)


def spans(examples):
    """How many, and which: `5: 0-3 7`."""
    if not examples:
        return ""
    found = [[examples[0]] * 2]
    for number in examples[1:]:
        if number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number] * 2)
    return f"{len(examples)}: " + " ".join(f"{a}-{b}" if a < b else f"{a}" for a, b in found)


def _names(cases):
    """How many, and the plainest: `14: abs, ...`."""
    if not cases:
        return ""
    plain = min(cases, key=lambda name: (len(name), name))
    return f"{len(cases)}: {plain}{', …' if len(cases) > 1 else ''}"


TABLE = ("| operator | version | worked out | onnxruntime | official | |", "|---|--:|---|---|---|---|")
HEAD = """# Oracles

What outside Sabir vouches for each version of each operator.

- *worked out*: examples of its room with the outputs written down there, which the room's own code did not make;
- *onnxruntime*: examples that onnxruntime computes to the same;
- *official*: cases of the official backend suite that call the version, here or in a function body.

An example goes by its number in the room, which is also the last part of the names of its tests: number 4 of Abs is
`Abs-13-4`. `tools/write_oracles.py` writes this page, and `tests/rooms` holds it to be current.

{held} of {versions} versions have an outside oracle, {by_example} of them an example.
"""


def cells(text):
    """Read the document back: the cells of each version."""
    found, domain = {}, ""
    for line in text.splitlines():
        if line.startswith("## "):
            domain = "" if line == "## ai.onnx" else line.removeprefix("## ")
        elif line.startswith("| ") and not line.startswith("| operator"):
            name, since, *vouchers = [c.strip() for c in line[2:].split("|")][:5]
            found[domain, name, int(since)] = tuple(vouchers)
    return found
