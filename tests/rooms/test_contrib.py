"""Operators of onnxruntime-extensions: what needs a library, and the other domain that has them."""

import json
import sys
import wave
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
    "HfJsonTokenizer": "tokenizers",
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


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"tokenizer_vocab": "{"}, "`tokenizer_vocab` is no tokenizer.json"),
        ({"tokenizer_config": "{"}, "`tokenizer_config` is no JSON"),
        ({"tokenizer_config": "[]"}, "`tokenizer_config` must be a JSON object"),
        (
            {"tokenizer_config": '{"add_bos_token": true, "bos_token": "<b>"}'},
            "adds `bos_token`, '<b>', which is no",
        ),
        ({"tokenizer_config": '{"add_eos_token": true}'}, "adds `eos_token`, None, which is no token"),
    ],
)
def test_files_that_are_no_tokenizer(attributes, message):
    pytest.importorskip("tokenizers", reason="an extra, without which the operator refuses everything")
    model = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}
    whole = {"tokenizer_vocab": json.dumps({"version": "1.0", "model": model}), **attributes}
    with pytest.raises(SabirError, match=message):
        called("HfJsonTokenizer", "ai.onnx.contrib", np.array(["a"], object), **whole)


def sound(**attributes):
    memory = BytesIO()
    with wave.open(memory, "wb") as file:
        file.setparams((1, 2, 8000, 2, "NONE", ""))
        file.writeframes(bytes(4))
    return called("AudioDecoder", "ai.onnx.contrib", np.frombuffer(memory.getvalue(), np.uint8), **attributes)


def test_sounds_keep_their_rate():
    assert sound(downsampling_rate=8000).shape == (1, 2)
    with pytest.raises(SabirError, match="does not change the rate of a sound, 8000, to 16000 a second"):
        sound(downsampling_rate=16000)


def test_data_that_is_no_sound():
    with pytest.raises(SabirError, match="AudioDecoder reads the format WAV alone"):
        called("AudioDecoder", "ai.onnx.contrib", np.zeros(60, np.uint8))


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((4, 2, 3), "`frame_size` must be `n_fft`, 4, and is 3"),
        ((0, 2, 0), "`n_fft` and `hop_length` must be 1 or more, and are 0 and 2"),
        ((4, 0, 4), "`n_fft` and `hop_length` must be 1 or more, and are 4 and 0"),
        ((5, 1, 5), "a signal of 0 samples has no frame of 5"),
    ],
)
def test_frames_of_sounds(sizes, message, engine):
    feeds = {"x": np.zeros((1, 0), np.float32), "w": np.ones(max(sizes[0], 1), np.float32)}
    feeds |= dict(zip(("n", "h", "s"), map(np.int64, sizes), strict=True))
    b = Builder(18, opsets={"ai.onnx.contrib": 1})
    x, w, n, hop, size = (b.input(name, array.dtype, array.shape) for name, array in feeds.items())
    b.output(b.op("StftNorm", x, n, hop, w, size, domain="ai.onnx.contrib"), "y")
    with pytest.raises(SabirError, match=message):
        Session(b.model(), engine=engine).run(feeds)
