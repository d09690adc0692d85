"""What the fused operators of onnxruntime refuse, in inference and in a run."""

import numpy as np
import pytest

import sabir
from sabir import Builder
from sabir.base import SabirError, UnsupportedError
from sabir.inference import Inference

MS, BLOCKED = "com.microsoft", "com.microsoft.nchwc"


def ones(*shape):
    return np.ones(shape, np.float32)


def call(op, *inputs, domain=MS, **attributes):
    """The model of one call, and its feeds."""
    b = Builder(18, opsets={domain: 1}, check=False)
    feeds = {f"i{n}": x for n, x in enumerate(inputs)}
    values = [b.input(name, str(x.dtype).replace("float32", "float"), x.shape) for name, x in feeds.items()]
    b.output(b.op(op, *values, domain=domain, **attributes), "y")
    return b.model(), feeds


IMAGE, FILTERS = ones(1, 2, 3, 3), ones(4, 2, 1, 1)
REFUSED = {
    "transposed batches of matrices": (
        call("FusedMatMul", ones(2, 3), ones(3, 4), transBatchA=1),
        "A and B must have the same rank, 3 or more, and have ranks 2 and 2",
    ),
    "inner sizes": (call("TransposeMatMul", ones(2, 3), ones(2, 4)), "inner dimensions of a matrix product"),
    "a missing parameter": (
        call("FusedGemm", ones(2, 3), ones(3, 4), activation="LeakyRelu"),
        "activation_alpha is missing, which LeakyRelu needs",
    ),
    "too few parameters": (
        call("FusedConv", IMAGE, FILTERS, activation="Clip", activation_params=[1.0]),
        r"activation_params \[1.0\] of Clip must have 2 values: min, max",
    ),
    "a summand of another shape": (
        call("FusedConv", IMAGE, FILTERS, ones(4), ones(1, 4, 1, 1)),
        r"`Z` must have the shape \[1,4,3,3\], and has \[1,4,1,1\]",
    ),
    "a bias of another length": (
        call("GemmFastGelu", ones(2, 3), ones(3, 4), ones(3)),
        r"`bias` must have the shape \[4\], and has \[3\]",
    ),
    "channels last of two axes": (call("NhwcConv", ones(2, 3), FILTERS), "has no spatial axes"),
    "no kernel": (
        call("MaxpoolWithMask", ones(1, 1, 4), np.ones((1, 1, 4), np.int32)),
        "kernel_shape is missing, which has no default",
    ),
    "a mask of another size": (
        call("MaxpoolWithMask", ones(1, 1, 4), np.ones((1, 1, 3), np.int32), kernel_shape=[2]),
        "does not match the input",
    ),
    "negative pads": (
        call("ConvTransposeWithDynamicPads", ones(1, 1, 3), ones(1, 1, 2), np.array([0, -1])),
        r"Pads \[0, -1\] must not be negative",
    ),
    "channels of no block": (
        call("GlobalMaxPool", ones(1, 12, 2, 2), domain=BLOCKED),
        r"\[12\] channels cannot be stored in blocks of 8 or 16",
    ),
    "no channels": (
        call("ReorderOutput", ones(1, 8, 2, 2), domain=BLOCKED),
        "`channels` is 0, and must be 1 or more",
    ),
    "more channels than are stored": (
        call("ReorderOutput", ones(1, 8, 2, 2), domain=BLOCKED, channels=9),
        "8 for 9 channels cannot be stored in blocks",
    ),
    "scales of channels": (
        call("Upsample", ones(1, 8, 2, 2), domain=BLOCKED, scales=[1, 2, 2, 2]),
        r"`scales` are \[1, 2, 2, 2\], and must be 1, 1, and two factors of 1 or more",
    ),
    "the nearest of other coordinates": (
        call(
            "Upsample", ones(1, 8, 2, 2), domain=BLOCKED, scales=[1, 1, 2, 2],
            coordinate_transformation_mode="half_pixel",
        ),
        "the mode nearest admits asymmetric coordinates, not half_pixel",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_inference_and_runs_refuse(case, engine):
    (model, feeds), message = REFUSED[case]
    with pytest.raises(SabirError, match=message):
        sabir.Session(model, engine=engine).run(feeds)
    if case != "negative pads":  # which inference does not know
        inference = Inference(model)
        inference.run()
        assert [d.message for d in inference.diagnostics]


def test_activations_of_integers_are_refused(engine):
    integers = np.ones((2, 2), np.int32)
    model, feeds = call("FusedGemm", integers, integers, activation="Relu")
    with pytest.raises((UnsupportedError, SabirError), match="an activation of integers is not supported"):
        sabir.Session(model, engine=engine).run(feeds)


def test_one_call_decides_on_the_blocks_of_all(engine, monkeypatch):
    monkeypatch.delenv("SABIR_NCHWC_BLOCK", raising=False)
    b = Builder(18, opsets={BLOCKED: 1})
    x, z = b.input("x", "float", [1, 32, 2, 2]), b.input("z", "float", [1, 24, 2, 2])
    b.output(b.op("ReorderOutput", x, domain=BLOCKED, channels=32), "y")
    b.output(b.op("GlobalMaxPool", z, domain=BLOCKED), "greatest")
    stored = np.arange(128, dtype=np.float32).reshape(1, 32, 2, 2)

    got = sabir.Session(b.model(), engine=engine).run({"x": stored, "z": ones(1, 24, 2, 2)})

    blocks_of_eight = stored.reshape(4, 2, 2, 8).transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(got["y"][0], blocks_of_eight.reshape(32, 2, 2))
