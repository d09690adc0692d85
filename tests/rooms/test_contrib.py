"""Operators of onnxruntime-extensions: what needs a library, and the other domain that has them."""

import sys
from io import BytesIO

import numpy as np
import pytest

from sabir import Builder, Session
from sabir.base import SabirError
from sabir.opsets import STANDARD
from support.rooms import examples_of

LIBRARIES = {
    "BertTokenizer": "tokenizers",
    "CLIPTokenizer": "tokenizers",
    "DecodeImage": "PIL",
    "EncodeImage": "PIL",
    "GPT2Tokenizer": "tokenizers",
    "RobertaTokenizer": "tokenizers",
    "SentencepieceDecoder": "sentencepiece",
    "SentencepieceTokenizer": "sentencepiece",
}


@pytest.mark.parametrize(("name", "library"), LIBRARIES.items())
def test_the_examples_run_where_their_library_is_installed(name, library):
    pytest.importorskip(library, reason="an extra, without which the room has no examples")
    assert examples_of(STANDARD.find("ai.onnx.contrib", name))


def called(name, domain, x, **attributes):
    b = Builder(18, opsets={domain: 1})
    b.output(b.op(name, b.input("x", x.dtype, x.shape), domain=domain, **attributes), "y")
    return next(iter(Session(b.model()).run({"x": x}).values()))


@pytest.mark.parametrize("domain", ["ai.onnx.contrib", "com.microsoft.extensions"])
def test_both_domains_have_the_operators(domain, engine):
    b = Builder(18, opsets={domain: 1})
    b.output(b.op("StringUpper", b.input("x", "string", [1]), domain=domain), "y")
    assert Session(b.model(), engine=engine).run({"x": np.array(["ab"], object)})["y"].tolist() == ["AB"]


@pytest.mark.parametrize("order", ["bgr", "rgb"])
def test_an_encoded_image_can_be_decoded(order):
    image = pytest.importorskip("PIL.Image", reason="an extra, which both operators need")
    pixels = (np.arange(24) * 9).astype(np.uint8).reshape(2, 4, 3)
    file = called("EncodeImage", "com.microsoft.extensions", pixels, format="png", color_space=order)
    rgb = np.asarray(image.open(BytesIO(file.tobytes())))
    assert (rgb == (pixels if order == "rgb" else pixels[..., ::-1])).all()
    assert (called("DecodeImage", "com.microsoft.extensions", file, color_space=order) == pixels).all()


def test_data_that_is_no_image():
    pytest.importorskip("PIL", reason="an extra, without which the operator refuses everything")
    with pytest.raises(SabirError, match="no image in the format PNG or JPEG"):
        called("DecodeImage", "ai.onnx.contrib", np.zeros(5, np.uint8))


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)  # its import raises ImportError
    with pytest.raises(SabirError, match=r"GPT2Tokenizer needs tokenizers: pip install sabir\[text\]"):
        called("GPT2Tokenizer", "ai.onnx.contrib", np.array(["a"], object), vocab='{"unique": 0}', merges="")


@pytest.mark.parametrize(
    ("name", "attributes", "told"),
    [
        ("StringToVector", {"map": "a\t1\nb\t1 2"}, "one size above 0"),
        ("StringToVector", {"map": "a\tx"}, "is no list of integers"),
        ("StringToVector", {"map": "a\t1", "unk": "1 2"}, "`unk` has 2 numbers, and the vectors have 1"),
    ],
)
def test_attributes_that_are_no_tables(name, attributes, told):
    with pytest.raises(SabirError, match=told):
        called(name, "ai.onnx.contrib", np.array(["a"], object), **attributes)
