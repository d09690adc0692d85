"""`sabir generate`: what it prints, its options, and what it refuses."""

import io
import json
import sys

import pytest

import sabir
from support.decoders import Language, write_folder, write_tokenizer

LANGUAGE = Language()
WORDS = ["<unk>", "<s>", "</s>", "<user>", "<assistant>", "<system>", *(f"word{i}" for i in range(13))]
TEMPLATE = "{% for m in messages %}<{{ m.role }}> {{ m.content }} {% endfor %}<assistant>"
PROMPT, IDS = "word0 word3", [6, 9]
FEW = ("--max-new-tokens", 4, "--engine", "reference")


def words_of(ids):
    return " ".join(WORDS[i] for i in ids if i > 5)


@pytest.fixture
def bare(tmp_path):
    """A folder without a tokenizer."""
    return write_folder(
        tmp_path / "bare", {"model": LANGUAGE.decoder()}, config={"max_position_embeddings": 60}
    )


@pytest.fixture
def talking(bare):
    """A folder with a tokenizer and a chat template."""
    write_tokenizer(bare, WORDS, {"chat_template": TEMPLATE})
    return bare


@pytest.fixture
def says(monkeypatch):
    """Make a text the standard input."""
    return lambda text: monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_the_text_is_printed(cli, talking):
    found = cli("generate", talking, "--prompt", PROMPT, *FEW)
    assert found == (0, words_of(LANGUAGE.greedy(IDS, 4)) + "\n", "")


def test_statistics_go_to_standard_error(cli, talking):
    found = cli("generate", talking, "--prompt", PROMPT, *FEW, "--stats")
    assert found.out == words_of(LANGUAGE.greedy(IDS, 4)) + "\n"
    prompt, answer = found.err.splitlines()
    assert prompt.startswith("prompt: 2 tokens; first token after ")
    assert answer.startswith("answer: 4 tokens (length); then ")
    assert answer.endswith(" tokens/s")


def test_ids_need_no_tokenizer(cli, fails, bare):
    found = cli("generate", bare, "--ids", "6,9", *FEW)
    assert found == (0, ",".join(map(str, LANGUAGE.greedy(IDS, 4))) + "\n", "")
    assert "there is no tokenizer, so prompts and results are token ids" in fails(
        "generate", bare, "--prompt", "a"
    )


def test_a_report_as_json(cli, bare):
    found = cli("generate", bare, "--ids", "6,9", *FEW, "--beams", 2, "--json")
    report = json.loads(found.out)
    expected = sabir.TextGenerator(bare, engine="reference").generate(IDS, max_new_tokens=4, num_beams=2)
    assert report["ids"] == expected.ids
    assert report["score"] == pytest.approx(expected.score)
    assert (report["text"], report["finish_reason"], report["prompt_tokens"]) == (None, "length", 2)
    assert report["tokens_per_second"] >= 0


def test_sampling_options(cli, bare):
    bounds = ("--top-k", 9, "--top-p", 0.9, "--min-p", 0.01, "--repetition-penalty", 1.2)
    words = ("--ids", "6,9", *FEW, "--temperature", 20, *bounds)
    first, again, other = (cli("generate", bare, *words, "--seed", seed).out for seed in (1, 1, 2))
    assert first == again != other
    expected = sabir.TextGenerator(bare, engine="reference").generate(
        IDS,
        max_new_tokens=4,
        temperature=20.0,
        top_k=9,
        top_p=0.9,
        min_p=0.01,
        repetition_penalty=1.2,
        seed=1,
    )
    assert first == ",".join(map(str, expected.ids)) + "\n"


def test_a_prompt_from_standard_input_and_a_stop_text(cli, talking, says):
    says(PROMPT)
    ids = LANGUAGE.greedy(IDS, 4)
    assert [i > 5 for i in ids] == [True, True, True, False]
    found = cli("generate", talking, "--prompt", "-", *FEW, "--stop", WORDS[ids[1]])
    assert found.out == f"{WORDS[ids[0]]} \n"


def test_a_chat(cli, talking):
    found = cli("generate", talking, "--chat", "--prompt", PROMPT, "--system", "word1", *FEW)
    prompt = [5, 7, 3, *IDS, 4]
    assert found == (0, words_of(LANGUAGE.greedy(prompt, 4)) + "\n", "")


def test_a_conversation(cli, talking, says):
    says(f"{PROMPT}\nword5\n\nnever read\n")
    found = cli("generate", talking, "--interactive", *FEW, "--stats")
    first = words_of(LANGUAGE.greedy([3, *IDS, 4], 4))
    generator = sabir.TextGenerator(talking, engine="reference")
    messages = [
        {"role": "user", "content": PROMPT},
        {"role": "assistant", "content": first},
        {"role": "user", "content": "word5"},
    ]
    second = generator.chat(messages, max_new_tokens=4).text
    assert found.out == f"{first}\n{second}\n"
    assert " of them known" in found.err.splitlines()[2]


def test_an_interrupt_prints_what_there_is(cli, bare, monkeypatch):
    runs, run = [], sabir.Session.run

    def interrupted(self, *words, **options):
        runs.append(1)
        if len(runs) == 3:
            raise KeyboardInterrupt
        return run(self, *words, **options)

    monkeypatch.setattr(sabir.Session, "run", interrupted)
    found = cli("generate", bare, "--ids", "6,9", *FEW)
    assert (found.code, found.out) == (130, ",".join(map(str, LANGUAGE.greedy(IDS, 2))) + "\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "pass one of --prompt, --ids and --interactive; there is none"),
        (("--prompt", "a", "--ids", "1"), "not --prompt and --ids together"),
        (("--ids", "1,x"), "--ids '1,x': write token ids separated by commas"),
        (("--ids", "1,99"), "99 is no token id; the model knows the ids 0 to 18"),
        (("--ids", "1", "--top-p", "2"), "top_p must be a probability above 0; got 2.0"),
        (("--ids", "1", "--beams", "0"), "'--beams'"),
        (("--prompt", "a", "--chat"), "there is no chat template"),
        (("--ids", "1", "--temprature", "1"), "no such option: --temprature; is it '--temperature'?"),
    ],
)
def test_wrong_usage(fails, bare, words, message):
    assert message in fails("generate", bare, *words)


def test_a_folder_without_a_model(fails, tmp_path):
    assert fails("generate", tmp_path / "none", "--ids", 1) == f"{tmp_path}/none: there is no such folder"
    assert fails("generate", tmp_path, "--ids", 1).startswith(f"{tmp_path}: there is no model: none of ")
