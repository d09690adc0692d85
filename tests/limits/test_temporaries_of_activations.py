"""What activations and normalisations of onnxruntime need while they work is a small multiple of their tensors."""

import tracemalloc

import numpy as np
import pytest

import sabir
from sabir import Builder
from sabir.runtime import Session

pytestmark = pytest.mark.usefixtures("untrusted_files")

MOST = 6.5  # bytes for each byte of inputs and outputs
F, H, INT = np.float32, np.float16, np.int32


def o(*shape, kind=F):
    """Ones, which every operator takes."""
    return np.ones(shape, kind)


IMAGES = {"groups": 4, "activation": 1}
CASES = {
    "BiasGelu": ([o(500, 512), o(512)], {}),
    "BiasGelu of halves": ([o(500, 512, kind=H), o(512, kind=H)], {}),
    "FastGelu": ([o(500, 512), o(512)], {}),
    "BiasSplitGelu": ([o(1, 500, 512), o(512)], {}),
    "BiasSoftmax": ([o(8, 200, 200), o(200)], {"axis": 2, "is_inner_broadcast": 1}),
    "BiasAdd": ([o(1, 500, 512), o(512), o(1, 500, 512)], {}),
    "SkipLayerNormalization": ([*[o(1, 500, 512)] * 2, o(512), o(512), o(512)], {"outputs": 4}),
    "SkipLayerNormalization of halves": ([*[o(1, 500, 512, kind=H)] * 2, o(512, kind=H)], {"outputs": 1}),
    "SkipSimplifiedLayerNormalization": ([*[o(1, 500, 512)] * 2, o(512)], {"outputs": 4}),
    "EmbedLayerNormalization": (
        [o(4, 128, kind=INT), o(4, 128, kind=INT), o(2, 512), o(128, 512), o(2, 512), o(512), o(512)],
        {"outputs": 3},
    ),
    "GroupNorm": ([o(1, 100, 100, 32), o(32), o(32)], IMAGES),
    "SkipGroupNorm": ([o(1, 100, 100, 32), o(32), o(32), o(1, 32)], IMAGES),
    "GatedRMSNorm": ([o(500, 512), o(128), o(500, 512)], {}),
    "ScaledSiLU": ([o(500, 512)], {}),
    "GatedAdd": ([o(500, 512), o(500, 512), o(500, 1)], {}),
    "BitmaskDropout": ([o(500, 512)], {"outputs": 2}),
    "Inverse": ([np.eye(400, dtype=F)], {}),
    "IsAllFinite": ([o(500, 512)], {}),
    "ReduceSumInteger": ([o(1000, 1000, kind=np.int8)], {"axes": [0], "keepdims": 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_temporaries_are_a_small_multiple(name):
    inputs, attributes = CASES[name]
    b = Builder(21, opsets={"com.microsoft": 1})
    read = [b.initializer(f"i{k}", x) for k, x in enumerate(inputs)]
    options = {"outputs": 1} | attributes
    made = b.op(name.partition(" ")[0], *read, domain="com.microsoft", **options)
    for value in made if isinstance(made, tuple) else (made,):
        b.output(value)
    session = Session(sabir.Model(b.graph, b.opsets, 10), engine="reference")
    tracemalloc.start()
    try:
        found = session.run({}).values()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    given = sum(x.nbytes for x in inputs)
    gives = sum(y.nbytes for y in found)
    assert given + gives > 1 << 18, "too little to be measured"
    assert peak - gives <= MOST * (given + gives), f"{(peak - gives) / (given + gives):.1f}"
