"""Images, trees and tables that are not what they say."""

from __future__ import annotations

import struct
import zlib

from hostile.small import HUGE, text


def png(width: int, height: int, data: bytes) -> bytes:
    """A grey PNG that says it is this large."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def gif(width: int, height: int) -> bytes:
    """The head of a GIF that says it is this large."""
    return (
        b"GIF89a"
        + struct.pack("<HH", width, height)
        + b"\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0"
        + struct.pack("<HH", width, height)
        + b"\0\x02\x02D\x01\0;"
    )


def bmp(width: int, height: int) -> bytes:
    """The head of a BMP that says it is this large."""
    return (
        b"BM"
        + struct.pack("<IHHI", 54, 0, 0, 54)
        + struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, 0, 0, 0, 0, 0)
    )


IMAGES = {
    "a PNG of 2^40 pixels": png(2**20, 2**20, zlib.compress(b"\0" * 1000)),
    "a PNG of 20000 by 20000": png(20_000, 20_000, zlib.compress(b"\0" * (20_001 * 20_000 // 8))),
    "a PNG cut short": png(10, 10, b"")[:40],
    "a PNG of no pixels": png(0, 0, zlib.compress(b"")),
    "a GIF of 65535 by 65535": gif(65_535, 65_535),
    "a BMP of 2^31": bmp(2**31 - 1, 2**31 - 1),
    "a BMP of -2^31": bmp(-(2**31), -(2**31)),
    "no image": b"abc",
    "nothing": b"",
}


for name, data in IMAGES.items():
    values = ",".join(map(str, data[:100_000]))
    text(
        f"d = Constant<value = uint8[{len(data[:100_000])}] {{{values}}}>() y = ImageDecoder (d)",
        outputs="uint8[] y",
        name=f"ImageDecoder of {name}",
    )


TREE = (
    'y = ai.onnx.ml.TreeEnsembleRegressor <n_targets = 1, nodes_treeids = [0,0,0], nodes_nodeids = [{ids}], nodes_featureids = [{features},0,0], '
    'nodes_values = [0.5,0.0,0.0], nodes_modes = ["BRANCH_LEQ","{mode}","LEAF"], nodes_truenodeids = [{true},{back},0], nodes_falsenodeids = [2,0,0], '
    "target_treeids = [0,0], target_nodeids = [1,2], target_ids = [{target},0], target_weights = [1.0,2.0]> (x)"
)  # fmt: skip
for name, given in {
    "a circle": {"mode": "BRANCH_LEQ"}, "a node that is none": {"true": HUGE}, "one node twice": {"ids": "0,1,1"},
    "feature 2^62": {"features": HUGE}, "feature -1": {"features": -1}, "target 2^40": {"target": 2**40}, "no mode": {"mode": "LEAVE"},
}.items():  # fmt: skip
    held = {"ids": "0,1,2", "features": 0, "mode": "LEAF", "true": 1, "back": 0, "target": 0, **given}
    text(TREE.format(**held), inputs="float[1,2] x", name=f"a tree of {name}")
text(
    f"y = ai.onnx.ml.TreeEnsembleRegressor <n_targets = {2**40}> (x)",
    inputs="float[1,2] x",
    name="trees of 2^40 targets",
)
text(
    "y = ai.onnx.ml.OneHotEncoder <cats_int64s = [1], zeros = 4611686018427387904> (x)",
    inputs="int64[2] x",
    name="OneHotEncoder of odd zeros",
)
text(
    "y = ai.onnx.ml.LabelEncoder <keys_int64s = [1,2,3], values_int64s = [1]> (x)",
    inputs="int64[2] x",
    outputs="int64[] y",
    name="LabelEncoder of odd lengths",
)
text(
    "y = ai.onnx.ml.SVMRegressor <n_supports = 4611686018427387904, coefficients = [1.0], support_vectors = [1.0]> (x)",
    inputs="float[1,2] x",
    name="SVMRegressor of 2^62",
)
text(
    'y = ai.onnx.ml.CastMap <max_map = 4611686018427387904, map_form = "SPARSE"> (x)',
    inputs="map(int64,float) x",
    name="CastMap of 2^62",
)
text(
    "y = ai.onnx.ml.FeatureVectorizer <inputdimensions = [4611686018427387904]> (x)",
    inputs="float[1,2] x",
    name="FeatureVectorizer of 2^62",
)
text(
    "y = ai.onnx.ml.Scaler <offset = [1.0,2.0,3.0], scale = [0.0]> (x)",
    inputs="float[1,2] x",
    name="Scaler of odd lengths",
)
text('y = ai.onnx.ml.Normalizer <norm = "L7"> (x)', inputs="float[1,2] x", name="Normalizer L7")
