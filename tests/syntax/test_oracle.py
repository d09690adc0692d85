# ruff: file-ignore[banned-api]  onnx is the oracle
"""Against `onnx.parser` and `onnx.printer`: every model at hand, and the grammar's corners."""

import warnings
from pathlib import Path

import numpy as np
import onnx
import onnx.backend.test.loader as official
import onnx.parser
import onnx.printer
import pytest

from sabir.base import ParseError
from sabir.elements import ELEMENTS
from sabir.ir import ArrayTensor, Graph, verify
from sabir.syntax import parse, parse_function, parse_graph
from sabir.syntax import text as text_of

ROOT = Path(onnx.__file__).parent
FILES = sorted(ROOT.glob("backend/test/data/**/*.onnx"))


@pytest.fixture(scope="module")
def official_models():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [case.model for case in official.load_node_model_tests()]


def assert_same_through_us(proto):
    theirs = onnx.printer.to_text(proto)
    model = parse(theirs)
    verify(model)
    ours = text_of(model)
    assert onnx.parser.parse_model(ours) == onnx.parser.parse_model(theirs)
    assert text_of(parse(ours)) == ours


def test_the_files_of_the_wheel():
    assert len(FILES) > 100
    for file in FILES:
        assert_same_through_us(onnx.load(file, load_external_data=False))


def test_the_official_node_models(official_models):
    assert len(official_models) > 1800
    for model in official_models[1::2]:  # test_lossless.py has the others
        assert_same_through_us(model)


ACCEPTED = [
    "g => () {}",
    "g () => () {}",
    '"a graph" (x) => (y) <> {y = Op(x)}',
    "g (float x) => () {}",
    "g (float[] x) => () {}",
    'g (float[N, ?, 3, "odd name", "a*b"] x) => () {}',
    "g (seq(map(int64, optional(sparse_tensor(float[2])))) x) => () {}",
    "g (opaque() a, opaque(n) b, opaque(a.b) c, opaque(a.b, n) d) => () {}",
    'g (float "float", int64 N, "two words") => () {}',
    "g (float[2] x = {1, 2.5}, int64 y = {3}) => () {}",
    'g () => () <float[2] x = {1, -2e-3}, int64[0] y = {}, float z, string[1] s = {"a"}> {}',
    'g () => () <float[2] x = ["location": "f", "offset": "16"]> {}',
    "g () => () {y = Op()}",
    "g () => () {= Op()}",
    'g () => () {y, "", , z = Op("", x, , y)}',
    "g () => () {y = Op(,) z = Op(x,)}",
    "g () => () {y = a.b_c.Op:over (x)}",
    'g () => () {[n] y = Op(x) [ "a node" ] z = Op(x) [] w = Op (x)}',
    "g () => () {y = Op<a = 1, b = 1.5, c = -2, d = 1e3, e = 1.>(x)}",
    'g () => () {y = Op<a : int = 1, b : float = 1, c : float = -0, d : string = "s">(x)}',
    "g () => () {y = Op<a = nan, b = -inf, c = Infinity, d = [inf, -nan, 1]>(x)}",
    "g () => () {y = Op<a = [1, 2], b : ints = [], c : floats = [1, 2], d : int = [1]>(x)}",
    'g () => () {y = Op<a = ["x", "y\\"\\\\z"], b : strings = [], c : graphs = []>(x)}',
    'g () => () {y = Op<a = @b, c : int = @"d e">(x)}',
    "g () => () {y = Op<a = float[2] {1, 2}, b : tensor = int64 {3}, c = float[1] name = {1}>(x)}",
    'g () => () {y = Op<a = float[2] = ["location": "f"], b = float[2], c = seq(float)>(x)}',
    "g (c) => () {y = If (c) <then_branch = g1 () => (float z) {z = Op(c)}, else_branch = g2 => () {}>}",
    "g (c) => () {y = Op <a = 1> (c) z = Op (c) <a = 2>}",
    "g () => () {y = Op(x) # a comment\n# another\n z = Op(x)}#",
    "g () => () <complex64[1] c = {1, -2.5}, bool[2] b = {0, 1}, uint64 u = {18446744073709551615}> {}",
    "g () => () <float16[1] a = {15360}, int4[3] b = {33, 3}, float6e2m3[2] c = {1, 63}> {}",
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_what_onnx_reads_we_read_alike(text):
    theirs = onnx.parser.parse_graph(text)
    ours = onnx.parser.parse_graph(text_of(parse_graph(text)))
    theirs_text, ours_text = str(theirs), str(ours)  # as text, NaN equals NaN
    assert ours_text == theirs_text


FUNCTIONS = [
    '<domain: "d", opset_import: ["" : 1]> f (x) => (y) {y = Op(x)}',
    '<domain: "d", overload: "o", doc_string: "says", opset_import: []> f <a, b: int = 1> (x, y) => () {}',
    '<opset_import: ["" : 1], domain: "d"> "f g" (float[N] x) => (float y) <int64 z> {z = Op(x) y = Op(z)}',
]


@pytest.mark.parametrize("text", FUNCTIONS)
def test_functions(text):
    ours = text_of(parse_function(text))
    theirs, again = onnx.parser.parse_function(text), onnx.parser.parse_function(ours)
    for proto in (theirs, again):
        infos = sorted(proto.value_info, key=lambda v: v.name)
        del proto.value_info[:]
        proto.value_info.extend(infos)
    assert again == theirs


REFUSED = [
    "",
    "g",
    "g () =",
    "g () = > () {}",
    "g () => () {",
    "g () => () {y = Op(x}",
    "g () => () {y = Op<a>(x)}",
    "g () => () {y = Op<a = >(x)}",
    "g () => () {y = Op<a = []>(x)}",
    "g () => () {y = Op<a : int = []>(x)}",
    "g () => () {y = Op<a : int = 1.5>(x)}",
    "g () => () {y = Op<a : nothing = 1>(x)}",
    "g () => () {y = Op<a = [1, 2.5]>(x)}",
    "g () => () {y = Op<a = 1e99>(x)}",
    "g () => () {y = Op<a = 99999999999999999999>(x)}",
    "g () => () {y = Op<a = - 1>(x)}",
    "g () => () {y = Op<a = +1>(x)}",
    "g () => () {y = Op<a = .5>(x)}",
    "g (float[N x) => () {}",
    "g (float[,] x) => () {}",
    "g (seq() x) => () {}",
    "g (map(seq(float), float) x) => () {}",
    "g (float[] x = {1}) => () {}",
    "g (float[N] x = {1}) => () {}",
    "g (x = {1}) => () {}",
    "g () => () <float[1] x = {1,}> {}",
    "g () => () <int64[1] x = {1.5}> {}",
    "g () => () <float16[1] x = {1.5}> {}",
    "g () => () <string[1] x = {1}> {}",
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_onnx_refuses_we_refuse(text):
    with pytest.raises((onnx.parser.ParseError, ValueError, RuntimeError, IndexError)):
        onnx.parser.parse_graph(text)
    with pytest.raises(ParseError):
        parse_graph(text)


@pytest.mark.parametrize("kind", ELEMENTS, ids=str)
def test_onnx_reads_the_same_elements(kind):
    graph = Graph("g")
    data = samples(kind)
    graph.add_initializer("w", ArrayTensor(data))
    text = text_of(graph)
    proto = onnx.parser.parse_graph(text).initializer[0]
    theirs = onnx.numpy_helper.to_array(proto)
    again = next(iter(parse_graph(text).initializers.values())).array()
    assert again.dtype == data.dtype
    if data.dtype == object:
        assert (
            theirs.tolist() == [[s.encode() for s in row] for row in data.tolist()]
            or theirs.tolist() == data.tolist()
        )
        assert again.tolist() == data.tolist()
        return
    assert theirs.tobytes() == data.tobytes()
    assert again.tobytes() == data.tobytes()


def samples(kind):
    """Return a matrix of values of a type: every bit pattern of the narrow ones."""
    if kind.name == "string":
        return np.array([["", 'a"b'], ["\\", "é\n"]], object)
    if kind.name == "bool":
        return np.array([[True, False, True]])
    if kind.bits <= 8:
        return np.arange(1 << kind.bits, dtype=np.uint8).view(kind.dtype).reshape(-1, 4)[:, :3].copy()
    if kind.is_complex:
        return np.array([[1 - 2j, 0.1 + 1e-3j]], kind.dtype)
    if kind.bits == 16:
        return np.arange(0, 1 << 16, 7, dtype=np.uint16).view(kind.dtype).reshape(1, -1)
    if kind.is_integer:
        info = np.iinfo(kind.dtype)
        return np.array([[info.min, info.max, 1]], kind.dtype)
    info = np.finfo(kind.dtype)
    return np.array(
        [[0.1, -0.0, np.nan, -np.nan, np.inf, info.max, info.tiny, info.smallest_subnormal]], kind.dtype
    )
