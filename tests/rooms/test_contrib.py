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
    "SpmTokenizer": "tokenizers",
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


def sound(rate=8000, **attributes):
    memory = BytesIO()
    with wave.open(memory, "wb") as file:
        file.setparams((1, 2, rate, 2, "NONE", ""))
        file.writeframes(bytes(4))
    return called("AudioDecoder", "ai.onnx.contrib", np.frombuffer(memory.getvalue(), np.uint8), **attributes)


def test_sounds_keep_their_rate():
    assert sound(downsampling_rate=8000).shape == (1, 2)
    with pytest.raises(SabirError, match="must be at most the rate of the sound, 8000, and is 16000"):
        sound(downsampling_rate=16000)


@pytest.mark.parametrize("rate", [22050, 44100, 48000])
def test_sounds_at_a_lower_rate(rate):
    """Tones below half of the new rate stay as they are, in time; those above are gone."""
    times, later = np.arange(rate // 5) / rate, np.arange(3200) / 16000
    inside = slice(100, -100)
    for tone, kept in ((440, 1.0), (3000, 1.0), (7000, 1.0), (9000, 0.0), (10500, 0.0)):
        wave_ = np.stack([np.sin(2 * np.pi * tone * times), np.cos(2 * np.pi * tone * times)], axis=1)
        memory = BytesIO()
        with wave.open(memory, "wb") as file:
            file.setparams((2, 2, rate, len(times), "NONE", ""))
            file.writeframes((wave_ * 16000).round().astype("<i2").tobytes())
        data = np.frombuffer(memory.getvalue(), np.uint8)
        y = called("AudioDecoder", "ai.onnx.contrib", data, downsampling_rate=16000).reshape(-1, 2)
        assert y.shape == (3200, 2)
        expected = kept * np.stack(
            [np.sin(2 * np.pi * tone * later), np.cos(2 * np.pi * tone * later)], axis=1
        )
        np.testing.assert_allclose(y[inside] * 32768 / 16000, expected[inside], atol=2e-3)


def test_a_rate_that_needs_much_memory_is_refused():
    with pytest.raises(SabirError, match="samples around a sound"):
        sound(downsampling_rate=1, rate=2**31 - 1)


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


@pytest.mark.parametrize(
    ("vocab", "message"),
    [
        ("1 'a'", "`vocab` has the line"),
        ("x 'a' 1", "`vocab` has the line"),
        ("1 'ab' 1", "whose token has not 1 bytes"),
        ("1 [] 1", "whose token has not 1 bytes"),
        ("1 'b' 1", "`vocab` has no token for the byte b'a'"),
    ],
)
def test_vocabularies_of_bytes(vocab, message):
    with pytest.raises(SabirError, match=message):
        called("TrieTokenizer", "ai.onnx.contrib", np.array(["a"], object), vocab=vocab)


def test_numbers_without_a_token():
    with pytest.raises(SabirError, match="`vocab` has no token with the number 2"):
        called("TrieDetokenizer", "ai.onnx.contrib", np.array([[1, 2]]), vocab="1 'a' 1")


@pytest.mark.parametrize(
    ("vocab", "merges", "message"),
    [
        ({"<s>": 0, "a": 1}, "", "`vocab` lacks the token <unk>"),
        ({"<unk>": 0, "a": 1}, "", "`vocab` lacks the token <s>"),
        ({"<unk>": 0, "<s>": 1, "a": 2}, "a b", "`vocab` and `merges` do not fit each other"),
    ],
)
def test_pieces_that_make_no_tokenizer(vocab, merges, message):
    pytest.importorskip("tokenizers", reason="an extra, without which the operator refuses everything")
    text = np.array(["a"], object)
    with pytest.raises(SabirError, match=message):
        called("SpmTokenizer", "ai.onnx.contrib", text, vocab=json.dumps(vocab), merges=merges)
