"""Loss curves of four models for every optimizer, beside those that PyTorch had from the same weights and batches."""

import json
from pathlib import Path

import numpy as np
import pytest

import sabir
from sabir.training import SGD, Adagrad, Adam, AdamW, prepare
from support import curves

RECORDED = json.loads((Path(__file__).parent / "curves.json").read_text())
DTYPES = {"float": (np.float32, 1e-4), "double": (np.float64, 1e-9)}
KINDS = {"adagrad": Adagrad, "adam": Adam, "adamw": AdamW}


def mlp(b, w, kind):
    h = b.Relu(b.Gemm(b.input("x", kind, ["N", curves.FEATURES]), w["w1"], w["b1"]))
    return b.Gemm(b.Relu(b.Gemm(h, w["w2"], w["b2"])), w["w3"], w["b3"])


def cnn(b, w, kind):
    h = b.input("x", kind, ["N", 1, curves.IMAGE, curves.IMAGE])
    for kernel, bias in (("k1", "c1"), ("k2", "c2")):
        h = b.Relu(b.Conv(h, w[kernel], w[bias], pads=[1, 1, 1, 1]))
        h = b.MaxPool(h, kernel_shape=[2, 2], strides=[2, 2])
    return b.Gemm(b.Flatten(h), w["w"], w["b"])


def normalized(b, x, scale, bias, kind):
    """LayerNormalization; its statistics are in single precision, so it is written out for double."""
    if kind == "float":
        return b.LayerNormalization(x, scale, bias)
    centred = b.Sub(x, b.ReduceMean(x, [-1]))
    variance = b.ReduceMean(b.Mul(centred, centred), [-1])
    return b.Add(b.Mul(b.Div(centred, b.Sqrt(b.Add(variance, 1e-5))), scale), bias)


def transformer(b, w, kind):
    length, width, heads = curves.LENGTH, curves.WIDTH, curves.HEADS
    dtype = DTYPES[kind][0]
    h = b.Add(b.Gather(w["words"], b.input("x", "int64", ["N", length])), w["places"])
    normal = normalized(b, h, w["g1"], w["n1"], kind)
    parts = b.Transpose(
        b.Reshape(b.MatMul(normal, w["qkv"]), [0, length, 3, heads, -1]), perm=[2, 0, 3, 1, 4]
    )
    q, k, v = (b.Gather(parts, np.int64(i)) for i in range(3))
    scores = b.Div(b.MatMul(q, b.Transpose(k, perm=[0, 1, 3, 2])), dtype(np.sqrt(width // heads)))
    mixed = b.MatMul(b.Softmax(b.Add(scores, np.triu(np.full((length, length), -1e9, dtype), 1)), axis=-1), v)
    h = b.Add(h, b.MatMul(b.Reshape(b.Transpose(mixed, perm=[0, 2, 1, 3]), [0, length, width]), w["out"]))
    normal = normalized(b, h, w["g2"], w["n2"], kind)
    h = b.Add(h, b.MatMul(b.Gelu(b.MatMul(normal, w["up"])), w["down"]))
    return b.Softmax(b.MatMul(h, w["head"]), axis=-1)


def lstm(b, w, kind):
    x = b.input("x", kind, [curves.LENGTH, "N", curves.FEATURES])
    last = b.LSTM(x, w["w"], w["r"], w["b"], hidden_size=curves.CELLS, outputs=2)[1]
    return b.MatMul(b.Squeeze(last, [0]), w["v"])


MODELS = {"mlp": mlp, "cnn": cnn, "transformer": transformer, "lstm": lstm}


def trained(model, optimizer, kind, engine):
    """Return the loss before every step."""
    dtype, _ = DTYPES[kind]
    b = sabir.Builder(21)
    first = {n: b.initializer(n, v.astype(dtype)) for n, v in curves.weights(model).items()}
    b.output(MODELS[model](b, first, kind), "scores")
    chosen = KINDS.get(optimizer, SGD)(**curves.OPTIMIZERS[optimizer])
    # the mask of the transformer is an initializer too, and no parameter
    prepared = prepare(b.model(), optimizer=chosen, trainable=list(curves.SHAPES[model]))
    session = sabir.TrainingSession(prepared, engine=engine)
    losses = []
    for x, y in curves.batches(model):
        given = x if x.dtype == np.int64 else x.astype(dtype)
        losses.append(float(session.step({"x": given, "label": y}, 0, outputs="loss")["loss"]))
    return losses


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize(("model", "optimizer"), curves.CASES)
def test_losses_are_those_of_pytorch(model, optimizer, kind):
    every, expected = RECORDED["every"], RECORDED["losses"][f"{model} {optimizer}"][kind]
    engine = "reference" if (model, kind) in {("mlp", "double"), ("lstm", "double")} else "auto"
    found = trained(model, optimizer, kind, engine)[every - 1 :: every]
    np.testing.assert_allclose(found, expected, rtol=DTYPES[kind][1], atol=DTYPES[kind][1])
