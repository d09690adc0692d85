"""A convolutional network, a transformer and a recurrent network, written in PyTorch and as a graph."""

from __future__ import annotations

import torch  # pyright: ignore[reportMissingImports]  a tool for those who have it
from torch.nn import functional  # pyright: ignore[reportMissingImports]  a tool for those who have it

from gradient_cases.case import case

_E = "epsilon = 0.0009765625"
EPSILON = 0.0009765625


def _cnn(x, w1, b1, s, b, w2, w3, b3, t):
    x = functional.max_pool2d(torch.relu(functional.conv2d(x, w1, b1, padding=1)), 2)
    mean, variance = x.mean((0, 2, 3), True), x.var((0, 2, 3), correction=0, keepdim=True)
    x = (x - mean) / torch.sqrt(variance + EPSILON) * s[:, None, None] + b[:, None, None]
    x = functional.adaptive_avg_pool2d(torch.relu(functional.conv2d(x, w2, stride=2, padding=1)), 1)
    return functional.cross_entropy(functional.linear(x.flatten(1), w3, b3), t)


_CNN = f"""
    a = Conv <pads = [1, 1, 1, 1]> (x, w1, b1)  c = Relu (a)
    d = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (c)
    m = Constant <value = double[3] {{0, 0, 0}}> ()  v = Constant <value = double[3] {{1, 1, 1}}> ()
    e, rm, rv = BatchNormalization <training_mode = 1, {_E}> (d, s, b, m, v)
    f = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (e, w2)  h = Relu (f)
    i = GlobalAveragePool (h)  j = Flatten (i)  k = Gemm <transB = 1> (j, w3, b3)
    y = SoftmaxCrossEntropyLoss (k, t)"""


def _block(x, s1, b1, wqkv, wo, s2, b2, w1, w2):
    h = functional.layer_norm(x, (4,), s1, b1, EPSILON)
    q, k, v = ((h @ wqkv).reshape(2, 3, 3, 2, 2).permute(2, 0, 3, 1, 4)).unbind(0)
    h = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    x = h.transpose(1, 2).reshape(2, 3, 4) @ wo + x
    h = functional.gelu(functional.layer_norm(x, (4,), s2, b2, EPSILON) @ w1)
    return x + h @ w2


def _transformer(table, places, ids, *weights):
    x = _block(functional.embedding(ids, table) + places, *weights)
    x = _block(x, *weights)
    return functional.cross_entropy((x @ table.T).flatten(0, 1)[:-1], ids.flatten()[1:])


_BLOCK = f"""
    {{p}}h = LayerNormalization <{_E}> ({{x}}, s1, b1)  {{p}}p = MatMul ({{p}}h, wqkv)
    {{p}}r = Reshape ({{p}}p, heads)  {{p}}t = Transpose <perm = [2, 0, 3, 1, 4]> ({{p}}r)
    {{p}}a, {{p}}b, {{p}}c = Split <axis = 0, num_outputs = 3> ({{p}}t)
    {{p}}q = Squeeze ({{p}}a, first)  {{p}}k = Squeeze ({{p}}b, first)  {{p}}v = Squeeze ({{p}}c, first)
    {{p}}o = Attention <is_causal = 1, softmax_precision = 11> ({{p}}q, {{p}}k, {{p}}v)
    {{p}}u = Transpose <perm = [0, 2, 1, 3]> ({{p}}o)  {{p}}w = Reshape ({{p}}u, merged)
    {{p}}d = MatMul ({{p}}w, wo)  {{p}}x = Add ({{x}}, {{p}}d)
    {{p}}e = LayerNormalization <{_E}> ({{p}}x, s2, b2)  {{p}}f = MatMul ({{p}}e, w1)
    {{p}}g = Gelu ({{p}}f)  {{p}}i = MatMul ({{p}}g, w2)  {{p}}y = Add ({{p}}x, {{p}}i)"""
_TRANSFORMER = f"""
    heads = Constant <value_ints = [2, 3, 3, 2, 2]> ()  merged = Constant <value_ints = [2, 3, 4]> ()
    first = Constant <value_ints = [0]> ()  flat = Constant <value_ints = [-1]> ()  rows = Constant <value_ints = [6, 5]> ()
    start = Constant <value_ints = [1]> ()  last = Constant <value_ints = [-1]> ()  end = Constant <value_ints = [6]> ()
    g0 = Gather (table, ids)  x0 = Add (g0, places) {_BLOCK.format(p="m", x="x0")} {_BLOCK.format(p="n", x="my")}
    tt = Transpose (table)  z = MatMul (ny, tt)  zz = Reshape (z, rows)  scores = Slice (zz, first, last, first)
    all = Reshape (ids, flat)  next = Slice (all, start, end, first)  y = SoftmaxCrossEntropyLoss (scores, next)"""


def _recurrent(x, w, r, b, wy, t):
    layer = torch.nn.LSTM(2, 2, dtype=torch.float64)
    order = [0, 1, 4, 5, 6, 7, 2, 3]  # ONNX's gates i o f c in PyTorch's order i f c o
    first, second = b[0].chunk(2)
    named = {
        "weight_ih_l0": w[0][order],
        "weight_hh_l0": r[0][order],
        "bias_ih_l0": first[order],
        "bias_hh_l0": second[order],
    }
    y, _ = torch.func.functional_call(layer, named, (x,))
    return functional.cross_entropy((y @ wy).flatten(0, 1), t)


_RECURRENT = """
    h = LSTM <hidden_size = 2> (x, w, r, b)  axis = Constant <value_ints = [1]> ()  s = Squeeze (h, axis)
    z = MatMul (s, wy)  rows = Constant <value_ints = [-1, 3]> ()  f = Reshape (z, rows)
    y = SoftmaxCrossEntropyLoss (f, t)"""

CASES = [
    case("CNN", _CNN, _cnn, x=(2, 1, 6, 6), w1=(3, 1, 3, 3), b1=(3,), s=(3,), b=(3,), w2=(2, 3, 3, 3), w3=(3, 2), b3=(3,),
         t=[2, 0]),
    case("transformer", _TRANSFORMER, _transformer, table=(5, 4), places=(3, 4), ids=[[0, 2, 2], [4, 1, 3]],
         s1=(4,), b1=(4,), wqkv=(4, 12), wo=(4, 4), s2=(4,), b2=(4,), w1=(4, 6), w2=(6, 4)),
    case("LSTM network", _RECURRENT, _recurrent, x=(4, 2, 2), w=(1, 8, 2), r=(1, 8, 2), b=(1, 16), wy=(2, 3),
         t=[0, 1, 2, 1, 0, 0, 2, 1]),
]  # fmt: skip
