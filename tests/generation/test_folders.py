"""What a folder states: model files, configuration, tokenizer, chat template; and what is refused."""

import json
import sys

import numpy as np
import pytest

import sabir
from sabir.generation import TextPieces
from sabir.generation._configuration import Json, _cache_of_genai, find_files
from sabir.generation._decoder import _numbered
from sabir.generation._rewriting import with_all_positions
from sabir.ir import tensor_type
from support.decoders import HEAD, HEADS, Language, Letters, write_folder, write_tokenizer

LANGUAGE = Language()
WORDS = ["<unk>", "<s>", "</s>", "<user>", "<assistant>", *(f"word{i}" for i in range(14))]
TEMPLATE = (
    "{% for m in messages %}{% if m.role not in ['user', 'assistant', 'system'] %}"
    "{{ raise_exception('no role ' + m.role) }}{% endif %}<{{ m.role }}> {{ m.content }} {% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def folder_of(path, **files):
    return write_folder(path, {"model": LANGUAGE.decoder()}, **files)


def generator_of(folder, **options):
    return sabir.TextGenerator(folder, engine="reference", **options)


@pytest.fixture
def talking(tmp_path):
    """A folder with a tokenizer of words."""
    folder = folder_of(
        tmp_path / "talking", config={"eos_token_id": 2, "max_position_embeddings": 60, "vocab_size": 19}
    )
    write_tokenizer(folder, WORDS, {"bos_token": "<s>", "chat_template": TEMPLATE})
    return folder


# configurations


def test_a_configuration_of_transformers(tmp_path):
    folder = folder_of(
        tmp_path,
        config={"eos_token_id": 2, "max_position_embeddings": 60, "vocab_size": 19, "bos_token_id": 0},
        generation_config={
            "eos_token_id": [5, 0],
            "do_sample": True,
            "temperature": 0.6,
            "top_k": 5,
            "max_new_tokens": 3,
        },
    )
    generator = generator_of(folder)
    assert (generator.context_length, generator.vocabulary_size, generator.tokenizer) == (60, 19, None)
    defaults = generator.defaults
    assert (defaults.sample, defaults.temperature, defaults.top_k, defaults.max_new_tokens) == (
        True,
        0.6,
        5,
        3,
    )
    assert defaults.stop_ids == {5, 0}
    greedy = generator.generate([3, 1, 4, 1, 5], temperature=0, max_new_tokens=9)
    assert greedy.ids == LANGUAGE.greedy([3, 1, 4, 1, 5], 9, stop=(5, 0))
    assert generator.generate([], temperature=0).ids == LANGUAGE.greedy([0], 3, stop=(5, 0))


def test_without_sampling_its_bounds_do_not_count(tmp_path):
    folder = folder_of(
        tmp_path,
        generation_config={"temperature": 0.6, "top_k": 5, "repetition_penalty": 1.5, "num_beams": 2},
    )
    defaults = generator_of(folder).defaults
    assert (defaults.sample, defaults.temperature, defaults.top_k) == (False, 1.0, 0)
    assert (defaults.repetition_penalty, defaults.num_beams) == (1.5, 2)


def test_a_configuration_of_onnxruntime_genai(tmp_path):
    model = LANGUAGE.decoder(past="past_{}_0", present="present_{}_0")
    genai = {
        "model": {
            "context_length": 50,
            "vocab_size": 19,
            "eos_token_id": [5, 0],
            "decoder": {
                "filename": "weights.onnx",
                "head_size": HEAD,
                "num_key_value_heads": HEADS,
                "inputs": {
                    "input_ids": "input_ids",
                    "past_key_names": "past_key_%d",
                    "past_value_names": "past_value_%d",
                },
                "outputs": {
                    "logits": "logits",
                    "present_key_names": "present_key_%d",
                    "present_value_names": "present_value_%d",
                },
            },
        },
        "search": {"do_sample": False, "top_k": 50, "temperature": 0.5},
    }
    folder = write_folder(tmp_path, {"weights": model}, genai_config=genai)
    generator = generator_of(folder)
    assert (generator.context_length, generator.defaults.stop_ids) == (50, {5, 0})
    result = generator.generate([3, 1, 4, 1, 5])
    assert result.ids == LANGUAGE.greedy([3, 1, 4, 1, 5], 9, stop=(5, 0))
    assert generator.generate([3, 1, 4, 1, 5, 9], max_new_tokens=1).reused_tokens == 5


def test_layers_of_genai_may_have_caches_of_different_kinds():
    decoder = Json(
        "",
        {
            "past_key_names": "past.%d.key",
            "past_conv_names": "conv.%d",
            "past_other": "x",
            "input_ids": "ids",
        },
    )
    outputs = Json(
        "", {"present_key_names": "present.%d.key", "present_conv_names": "conv_out.%d", "logits": "logits"}
    )
    patterns = _cache_of_genai(decoder, outputs)
    assert patterns == {"past.%d.key": "present.%d.key", "conv.%d": "conv_out.%d"}
    names = ["ids", "past.1.key", "past.12.key", "conv.0", "conv.x"]
    assert _numbered(patterns, dict.fromkeys(names)) == {
        "past.1.key": "present.1.key",
        "past.12.key": "present.12.key",
        "conv.0": "conv_out.0",
    }
    assert _cache_of_genai(Json("", {}), Json("", {})) is None


def test_sizes_that_the_model_does_not_declare_are_those_of_the_configuration(tmp_path):
    free = LANGUAGE.decoder()
    for name in ("past_key_values.0.key", "past_key_values.0.value"):
        free.graph.value(name).type = tensor_type("float", ["batch", HEADS, "past", "head"])
    with pytest.raises(
        sabir.UnsupportedError, match=r"the size of axis 3 of 'past_key_values.0.key', .* is not known"
    ):
        sabir.TextGenerator(free)
    config = {"hidden_size": HEAD * HEADS, "num_attention_heads": HEADS}
    folder = write_folder(tmp_path, {"model": free}, config=config)
    assert generator_of(folder).generate([3, 1], max_new_tokens=4).ids == LANGUAGE.greedy([3, 1], 4)


def test_layers_with_a_window_keep_all_positions(tmp_path):
    model = LANGUAGE.decoder()
    b = sabir.Builder(graph=model.graph, opsets={**model.opsets, "com.microsoft": 1})
    x = b.domain("com.microsoft").QuickGelu(model.graph.outputs[0])
    x.node.attributes["sliding_window_cache"] = 1
    sabir.save(model, tmp_path / "model.onnx")
    assert not any(
        "sliding_window_cache" in n.attributes for n in with_all_positions(tmp_path / "model.onnx").graph
    )
    windows = {"model": {"decoder": {"filename": "model.onnx", "sliding_window": {"window_size": 8}}}}
    assert find_files(write_folder(tmp_path, {}, genai_config=windows)).has_windows


def test_a_file_of_a_model_needs_no_folder(tmp_path):
    folder = folder_of(tmp_path)
    generator = generator_of(folder / "model.onnx")
    assert generator.generate([3, 1], max_new_tokens=4).ids == LANGUAGE.greedy([3, 1], 4)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"config": [1]}, "config.json: this must be a JSON object"),
        ({"config": {"vocab_size": "many"}}, "config.json: 'vocab_size' must be an integer; it is 'many'"),
        ({"generation_config": {"eos_token_id": "end"}}, "'eos_token_id' must be an integer or a list of integers"),
        ({"generation_config": {"do_sample": 1}}, "'do_sample' must be true or false; it is '1'"),
        ({"generation_config": {"num_beams": 0}}, "the configuration is invalid: num_beams must be"),
        ({"genai_config": {"model": {"decoder": {"filename": "../model.onnx"}}}}, "the file '../model.onnx' must be in the same folder"),
        ({"genai_config": {"model": 3}}, "genai_config.json: 'model' must be an object; it is '3'"),
    ],
)  # fmt: skip
def test_invalid_configurations_are_refused(tmp_path, files, message):
    with pytest.raises(sabir.FileError) as raised:
        generator_of(folder_of(tmp_path, **files))
    assert message in str(raised.value)


def test_text_that_is_no_json_is_refused(tmp_path):
    folder = folder_of(tmp_path)
    (folder / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(sabir.FileError, match=r"config\.json: this is no JSON"):
        generator_of(folder)


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(sabir.FileError, match="none: there is no such folder"):
        generator_of(tmp_path / "none")
    with pytest.raises(
        sabir.FileError, match=r"there is no model: none of decoder_model\.onnx, .*, and no single"
    ):
        generator_of(tmp_path)
    folder_of(tmp_path)
    (tmp_path / "model.onnx").rename(tmp_path / "other.onnx")
    assert generator_of(tmp_path).generate([1], max_new_tokens=1).ids == LANGUAGE.greedy([1], 1)


# models that are refused


def test_inputs_that_are_not_understood_are_named():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
        g (int64[B,S] input_ids, float[B,4] mood) => (float[B,S] logits) { logits = Cast <to = 1> (input_ids) }""")
    with pytest.raises(
        sabir.UnsupportedError, match="whose meaning is not known: 'mood'; the known names are input_ids"
    ):
        sabir.TextGenerator(model)


def test_a_lone_matrix_of_integers_is_the_ids():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
        g (int32[B,S] words) => (float[B,S,3] y) <int64[1] axes = {2}, float[3] up = {0, 1, 2}> {
            x = Cast <to = 1> (words)  e = Unsqueeze (x, axes)  y = Add (e, up) }""")
    assert sabir.TextGenerator(model, engine="reference").generate([1], max_new_tokens=2).ids == [2, 2]


def test_a_model_needs_ids_and_logits():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] attention_mask) => (float[N] y) { y = Relu (attention_mask) }""")
    with pytest.raises(
        sabir.UnsupportedError, match="the decoder has no input of token ids; its inputs are 'attention_mask'"
    ):
        sabir.TextGenerator(model)
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
        g (int64[B,S] input_ids) => (int64[B,S] y) { y = Neg (input_ids) }""")
    with pytest.raises(sabir.UnsupportedError, match="the decoder has no output with logits"):
        sabir.TextGenerator(model)


def test_a_cache_of_wrong_names_is_refused():
    with pytest.raises(
        sabir.UnsupportedError, match="the cache names 'past', 'next', and the model has no such"
    ):
        sabir.TextGenerator(LANGUAGE.decoder(), cache={"past": "next"})


def test_an_encoder_needs_a_decoder_that_reads_it(tmp_path):
    folder = write_folder(
        tmp_path, {"encoder_model": LANGUAGE.encoder_model(), "decoder_model": LANGUAGE.decoder()}
    )
    with pytest.raises(
        sabir.UnsupportedError, match="there is an encoder, and no input of the decoder for its results"
    ):
        generator_of(folder)


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ([3, 99], "99 is no token id; the model knows the ids 0 to 18"),
        ([-1], "-1 is no token id"),
        ([], "the prompt has no token"),
        ([1.5, 2], "a prompt is a text, or a sequence of token ids; got \\[1.5, 2\\]"),
        (np.zeros((1, 1, 1), int), "a prompt is a text, or a sequence of token ids"),
        (None, "there is no prompt"),
    ],
)
def test_invalid_prompts_are_refused(prompt, message):
    generator = sabir.TextGenerator(LANGUAGE.decoder(), engine="reference")
    with pytest.raises(sabir.FeedError, match=message):
        generator.generate(prompt)


# tokenizers


def test_a_text_is_a_prompt(talking):
    generator = generator_of(talking)
    assert generator.encode("word0 word3") == [5, 8]
    assert generator.decode([5, 2, 8]) == "word0 word3"
    result = generator.generate("word0 word3", max_new_tokens=4)
    expected = LANGUAGE.greedy([5, 8], 4, stop=(2,))
    assert (result.ids, result.text) == (expected, generator.decode(expected))
    batch = generator.generate(["word0 word3", "word1"], max_new_tokens=4)
    assert [r.ids for r in batch] == [expected, LANGUAGE.greedy([6], 4, stop=(2,))]


def test_a_text_needs_a_tokenizer():
    generator = sabir.TextGenerator(LANGUAGE.decoder(), engine="reference")
    for call in (
        lambda: generator.generate("text"),
        lambda: generator.decode([1]),
        lambda: [*generator.pieces([1])],
    ):
        with pytest.raises(
            sabir.UnsupportedError, match="there is no tokenizer, so prompts and results are token ids"
        ):
            call()


def test_an_invalid_tokenizer_is_refused(talking):
    (talking / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(sabir.FileError, match=r"tokenizer\.json: this is no tokenizer"):
        generator_of(talking)


@pytest.mark.parametrize(
    ("module", "name"), [("tokenizers", "tokenizer.json"), ("sentencepiece", "tokenizer.model")]
)
def test_missing_packages_are_named(tmp_path, monkeypatch, module, name):
    folder = folder_of(tmp_path)
    (folder / name).write_text("{}", encoding="utf-8")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        sabir.UnsupportedError,
        match=rf"is read with the package {module}; install it with `pip install 'sabir\[text\]'`",
    ):
        generator_of(folder)


def test_a_tokenizer_of_sentencepiece(tmp_path):
    import sentencepiece  # ruff: ignore[import-outside-top-level]  one test needs it

    folder = folder_of(tmp_path, tokenizer_config={"add_eos_token": True})
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the cat sat on the mat", "a cat and a hat"] * 20),
        model_prefix=str(folder / "tokenizer"),
        vocab_size=19,
        hard_vocab_limit=False,
        minloglevel=9,
    )
    generator = generator_of(folder)
    ids = generator.encode("the cat")
    assert (ids[0], ids[-1]) == (1, 2)
    assert generator.decode([*ids, 500]) == "the cat"
    (folder / "tokenizer.model").write_bytes(b"no model")
    with pytest.raises(sabir.FileError, match=r"tokenizer\.model: this is no model of SentencePiece"):
        generator_of(folder)


class Bytes:
    """A tokenizer of the bytes of UTF-8."""

    def encode(self, text):
        return [*text.encode()]

    def decode(self, ids):
        return bytes(ids).decode(errors="replace")


def test_pieces_never_end_within_a_character():
    text = "aé√😀b"
    pieces = TextPieces(Bytes())
    assert [pieces.push(byte) for byte in text.encode()] == ["a", "", "é", "", "", "√", "", "", "", "😀", "b"]
    assert not pieces.rest()
    cut = TextPieces(Bytes())
    assert [cut.push(byte) for byte in "é".encode()[:1]] == [""]
    assert cut.rest() == "\N{REPLACEMENT CHARACTER}"


def test_what_a_stop_string_may_begin_with_is_kept_back():
    pieces = TextPieces(Letters(), ["xyz", "q"])
    written = [pieces.push(ord(c) - ord("a")) for c in "axyxyza"]
    assert (written, pieces.is_stopped, pieces.rest()) == (["a", "", "", "xy", "", "", ""], True, "")
    open_ended = TextPieces(Letters(), ["xyz"])
    assert [open_ended.push(ord(c) - ord("a")) for c in "axy"] == ["a", "", ""]
    assert (open_ended.rest(), open_ended.is_stopped) == ("xy", False)


# chats

MESSAGES = [{"role": "system", "content": "word1"}, {"role": "user", "content": "word2 word3"}]


def test_a_chat_uses_the_template(talking):
    generator = generator_of(talking)
    ids = generator.chat_ids(MESSAGES)
    assert ids == [0, 6, 3, 7, 8, 4]  # <system> is no word of the tokenizer
    result = generator.chat(MESSAGES, max_new_tokens=3)
    assert result.ids == LANGUAGE.greedy(ids, 3, stop=(2,))
    with pytest.raises(sabir.FeedError, match="the chat template refuses these messages: no role judge"):
        generator.chat([{"role": "judge", "content": ""}])


def test_a_template_can_be_a_file_or_one_of_several(talking):
    config = talking / "tokenizer_config.json"
    named = [
        {"name": "tools", "template": "no"},
        {"name": "default", "template": "{{ bos_token }} {{ messages[0].content | tojson }}"},
    ]
    config.write_text(json.dumps({"chat_template": named, "bos_token": {"content": "<s>"}}), encoding="utf-8")
    assert generator_of(talking).chat_ids([{"content": "word1"}]) == [1, 0]
    (talking / "chat_template.jinja").write_text("{{ messages[0].content }} word2", encoding="utf-8")
    assert generator_of(talking).chat_ids([{"content": "word1"}]) == [6, 7]


@pytest.mark.parametrize(
    "template",
    ["{{ 1 / 0 }}", "{% for %}", "{{ messages.nothing.more }}", "{{ messages[0].__class__.__mro__[5] }}"],
)
def test_a_template_that_fails_is_reported(talking, template):
    (talking / "chat_template.jinja").write_text(template, encoding="utf-8")
    with pytest.raises(sabir.FeedError, match="the chat template refuses these messages"):
        generator_of(talking).chat(MESSAGES)


def test_a_chat_needs_a_template_and_jinja2(talking, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(
        sabir.UnsupportedError, match=r"chat templates need the package jinja2; install it with"
    ):
        generator_of(talking).chat(MESSAGES)
    (talking / "tokenizer_config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(
        sabir.UnsupportedError, match=r"there is no chat template: the folder needs a chat_template\.jinja"
    ):
        generator_of(talking).chat(MESSAGES)
