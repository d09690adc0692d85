"""What the rooms of onnxruntime's operators refuse, with the reason."""

import numpy as np
import pytest

import sabir
from sabir.runtime import Session

IDS = np.array([[0, 1, 2]], np.int32)
F = np.float32


def refused(body, feeds, engine):
    """The message of the error that a call raises."""
    names = {"float32": "float", "int32": "int32", "int64": "int64", "int8": "int8"}
    inputs = ", ".join(f"{names[x.dtype.name]}[{','.join(map(str, x.shape))}] {n}" for n, x in feeds.items())
    model = sabir.parse(
        f'<ir_version: 8, opset_import: ["" : 18, "com.microsoft" : 1]>g ({inputs}) => (y) {{ {body} }}'
    )
    with pytest.raises(sabir.SabirError) as caught:
        Session(model, engine=engine).run(feeds)
    return str(caught.value)


def embedding(**others):
    return {
        "i": IDS, "s": IDS * 0, "w": np.ones((3, 2), F), "p": np.ones((3, 2), F), "t": np.ones((1, 2), F),
        "g": np.ones(2, F), **others,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"i": IDS - 1}, "`input_ids` must be from 0 to 2"),
        ({"i": IDS + 1}, "`input_ids` must be from 0 to 2"),
        ({"s": IDS}, "`segment_ids` must be from 0 to 0"),
        ({"p": np.ones((2, 2), F)}, "`position_embedding` has 2 positions, and a sequence 3"),
        ({"p": np.ones((3, 1), F)}, "hidden sizes"),
        ({"g": np.ones(3, F)}, "`gamma` must have the shape"),
    ],
)
def test_embeddings(others, message, engine):
    body = "y = com.microsoft.EmbedLayerNormalization (i, s, w, p, t, g, g)"
    assert message in refused(body, embedding(**others), engine)


def test_segments_without_a_table(engine):
    feeds = embedding()
    del feeds["t"]
    body = "y = com.microsoft.EmbedLayerNormalization (i, s, w, p, , g, g)"
    assert "`segment_ids` need the input `segment_embedding`" in refused(body, feeds, engine)


@pytest.mark.parametrize(
    ("skip", "message"),
    [
        ((2,), "`skip` must be 2-D or 3-D"),
        ((1, 2), "`skip` must have the shape"),
        ((1, 1, 2), "`skip` must have the shape"),
        ((2, 3, 2), "`skip` of the shape [2,3,2] does not broadcast to [1,3,2]"),
    ],
)
@pytest.mark.parametrize("name", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
def test_residuals_of_another_shape(name, skip, message, engine):
    feeds = {"x": np.ones((1, 3, 2), F), "s": np.ones(skip, F), "g": np.ones(2, F)}
    assert message in refused(f"y = com.microsoft.{name} (x, s, g)", feeds, engine)


@pytest.mark.parametrize(
    ("body", "feeds", "message"),
    [
        ("y = com.microsoft.BiasGelu (x, b)", {"x": np.ones((2, 3), F), "b": np.ones(1, F)},
         "`B` must have the shape [3], and has [1]"),
        ("y = com.microsoft.Inverse (x)", {"x": np.ones((2, 2), F)}, "a matrix is singular"),
        ("y = com.microsoft.Inverse (x)", {"x": np.ones((2, 3), F)}, "the sides of a matrix with an inverse"),
        ("y = com.microsoft.IsAllFinite <isinf_only = 1, isnan_only = 1> (x)", {"x": np.ones(2, F)},
         "`isinf_only` and `isnan_only` exclude each other"),
        ("y = com.microsoft.GatedRMSNorm (x, s, x)", {"x": np.ones(4, F), "s": np.ones(3, F)},
         "4 elements cannot be divided into groups of 3"),
        ("y = com.microsoft.GroupNorm <groups = 2, activation = 0> (x, s, s)",
         {"x": np.ones((1, 1, 1, 3), F), "s": np.ones(3, F)}, "3 channels cannot be divided into 2 groups"),
        ("y = com.microsoft.BiasSplitGelu (x, b)", {"x": np.ones((1, 1, 3), F), "b": np.ones(3, F)},
         "3 channels have no halves"),
    ],
)  # fmt: skip
def test_other_calls(body, feeds, message, engine):
    assert message in refused(body, feeds, engine)
