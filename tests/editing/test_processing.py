"""Steps before and after a model, against numpy and Pillow."""

import io

import numpy as np
import pytest

import sabir
from sabir.base import NotFoundError, UnsupportedError
from sabir.ir import verify

NETWORK = """<ir_version: 8, opset_import: ["" : 12]>
g (float m, float[N,3,8,8] image) => (float[N,3,8,8] y) { y = Mul (image, m) }"""
LOGITS = """<ir_version: 8, opset_import: ["" : 12]>
g (float[N,5] x) => (float[N,5] logits, float[N,5] features) { logits = Neg (x)  features = Relu (x) }"""
BOXES = """<ir_version: 8, opset_import: ["" : 12]>
g (float[N,B,4] b, float[N,C,B] s) => (float[N,B,4] boxes, float[N,C,B] scores) { boxes = Identity (b)  scores = Identity (s) }"""
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
PIXELS = np.random.default_rng(0).integers(0, 256, (2, 8, 8, 3)).astype(np.uint8)


def prepended(text=NETWORK, name="image", **options):
    model = sabir.parse(text)
    before = sabir.text(model)
    changed = sabir.prepend(model, name, **options)
    assert sabir.text(model) == before
    verify(changed)
    sabir.check(changed)
    return changed


def normalized(pixels):
    """The input of a network: [N,C,H,W]."""
    return (pixels.transpose(0, 3, 1, 2) / 255 - np.reshape(MEAN, (1, 3, 1, 1))) / np.reshape(
        STD, (1, 3, 1, 1)
    )


def test_pixels_are_normalized(engine):
    model = prepended(mean=MEAN, std=STD)
    assert [str(v) for v in model.graph.inputs] == ["<Value m: float>", "<Value image: uint8[N,8,8,3]>"]
    assert model.graph.name == "g"
    got = sabir.Session(model, engine=engine).run({"image": PIXELS, "m": np.float32(2)})["y"]
    np.testing.assert_allclose(got, 2 * normalized(PIXELS), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("layout", "pixels"),
    [
        ("NCHW", PIXELS.transpose(0, 3, 1, 2)),
        ("HWC", PIXELS[0]),
        ("CHW", PIXELS[0].transpose(2, 0, 1)),
    ],
)
def test_layouts_of_pixels(layout, pixels):
    model = prepended(mean=MEAN, std=STD, layout=layout)
    got = sabir.evaluate(model, {"image": pixels, "m": np.float32(1)})["y"]
    np.testing.assert_allclose(got, normalized(PIXELS)[: len(got)], rtol=1e-5, atol=1e-5)


def test_networks_of_other_layouts():
    text = NETWORK.replace("float[N,3,8,8]", "float16[8,8,3]").replace("float m", "float16 m")
    model = prepended(text, layout="HWC", network_layout="HWC")
    assert str(model.graph.inputs[1].type) == "uint8[8,8,3]"
    got = sabir.evaluate(model, {"image": PIXELS[0], "m": np.float16(1)})["y"]
    np.testing.assert_allclose(got, PIXELS[0] / 255, atol=1e-3)
    raw = prepended(scale=1.0)
    assert "Mul" not in [node.op for node in raw.graph][:-1]
    got = sabir.evaluate(raw, {"image": PIXELS, "m": np.float32(1)})["y"]
    np.testing.assert_array_equal(got, PIXELS.transpose(0, 3, 1, 2))


def test_images_of_any_size_are_resized():
    image = pytest.importorskip("PIL.Image")  # an extra, and the judge of this test
    large = np.kron(PIXELS[:1], np.ones((1, 3, 2, 1), np.uint8))
    model = prepended(size=(8, 8))
    assert str(model.graph.inputs[1].type) == "uint8[N,height,width,3]"
    assert model.opsets == {"": 18}
    got = sabir.evaluate(model, {"image": large, "m": np.float32(255)})["y"]
    expected = np.asarray(image.fromarray(large[0]).resize((8, 8), image.Resampling.BILINEAR))
    np.testing.assert_allclose(got[0], expected.transpose(2, 0, 1), atol=1)  # Pillow rounds twice


def test_files_are_decoded():
    image = pytest.importorskip("PIL.Image")  # an extra, and the judge of this test
    file = io.BytesIO()
    image.fromarray(PIXELS[0]).save(file, "PNG")
    model = prepended(mean=MEAN, std=STD, decode=True)
    assert str(model.graph.inputs[1].type) == "uint8[bytes]"
    feed = np.frombuffer(file.getvalue(), np.uint8)
    got = sabir.evaluate(model, {"image": feed, "m": np.float32(1)})["y"]
    np.testing.assert_allclose(got, normalized(PIXELS[:1]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("imag", {}, NotFoundError, "no input 'imag'; is it 'image'?"),
        ("m", {}, sabir.SchemaError, "the input is float, which is no image of layout NCHW"),
        ("image", {"mean": (1.0, 2.0)}, sabir.SchemaError, "`mean` has 2 numbers, and the image 3 channels"),
        ("image", {"std": (0.0,)}, UnsupportedError, "`std` has a 0"),
        ("image", {"size": (0, 2)}, UnsupportedError, "`size` is a height and a width of 1 or more"),
        ("image", {"layout": "NHCW"}, UnsupportedError, "`layout` is one of NHWC, NCHW, HWC, CHW"),
        ("image", {"size": (4, 8)}, sabir.SchemaError, "contradict each other: 4 and 8"),
    ],
)
def test_what_takes_no_images(name, options, error, message):
    with pytest.raises(error) as raised:
        sabir.prepend(sabir.parse(NETWORK), name, **options)
    assert message in str(raised.value)


def appended(text, step, *arguments, **options):
    model = sabir.parse(text)
    before = sabir.text(model)
    changed = sabir.append(model, step, *arguments, **options)
    assert sabir.text(model) == before
    verify(changed)
    sabir.check(changed)
    return changed


def test_classes_of_logits():
    x = np.random.default_rng(1).normal(size=(2, 5)).astype(np.float32)
    exponentials = np.exp(-x)
    expected = exponentials / exponentials.sum(1, keepdims=True)
    got = sabir.evaluate(appended(LOGITS, "softmax"), {"x": x})
    assert list(got) == ["features", "probabilities"]
    np.testing.assert_allclose(got["probabilities"], expected, rtol=1e-5)
    got = sabir.evaluate(appended(LOGITS, "argmax", "features"), {"x": x})
    np.testing.assert_array_equal(got["classes"], np.maximum(x, 0).argmax(1))
    got = sabir.evaluate(appended(LOGITS, "top_k", k=2, keep=True), {"x": x})
    assert list(got) == ["logits", "features", "scores", "classes"]
    np.testing.assert_array_equal(got["classes"], np.argsort(x, axis=1)[:, :2])
    np.testing.assert_array_equal(got["scores"], np.sort(-x, axis=1)[:, :-3:-1])


def test_boxes_are_selected():
    boxes = np.float32([[[0, 0, 1, 1], [0, 0, 1, 1.1], [2, 2, 3, 3]]])
    scores = np.float32([[[0.6, 0.9, 0.5]]])
    model = appended(BOXES, "nms", iou_threshold=0.5, score_threshold=0.1)
    got = sabir.evaluate(model, {"b": boxes, "s": scores})
    assert got["selected"].tolist() == [[0, 0, 1], [0, 0, 2]]
    np.testing.assert_array_equal(got["selected_boxes"], np.asarray(boxes)[0, 1:])
    np.testing.assert_array_equal(got["selected_scores"], np.float32([0.9, 0.5]))


@pytest.mark.parametrize(
    ("text", "arguments", "options", "error", "message"),
    [
        (LOGITS, ("softmac",), {}, NotFoundError, "no step 'softmac'; is it 'softmax'?"),
        (LOGITS, ("softmax", "logit"), {}, NotFoundError, "no output 'logit'; is it 'logits'?"),
        (LOGITS, ("softmax",), {"axes": 1}, sabir.SchemaError, "no option 'axes'; is it 'axis'?"),
        (LOGITS, ("softmax", ["logits", "features"]), {}, sabir.SchemaError, "reads 1 output, and gets"),
        (LOGITS, ("top_k",), {"k": 0}, UnsupportedError, "`k` is 1 or more, and not 0"),
        (BOXES, ("nms",), {"box_format": "c"}, UnsupportedError, "`box_format` is one of corners, center"),
        (LOGITS, ("nms",), {}, sabir.SchemaError, "NonMaxSuppression"),
    ],
)
def test_steps_that_do_not_fit(text, arguments, options, error, message):
    with pytest.raises(error) as raised:
        sabir.append(sabir.parse(text), *arguments, **options)
    assert message in str(raised.value)
