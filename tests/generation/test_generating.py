"""What a generator produces, compared with the same model computed by numpy for one sequence."""

import numpy as np
import pytest

import sabir
from sabir.ir import tensor_type
from support.decoders import Grouped, Language, Letters, write_folder

LANGUAGE = Language()
PROMPTS = [[3, 1, 4, 1, 5], [2], [7, 7], [3, 1, 4, 9]]
KINDS = {
    "cache": {},
    "no cache": {"cached": False},
    "no positions": {"has_positions": False},
    "no mask": {"has_mask": False, "has_positions": False},
    "keys after values of other names": {"past": "cache_in_0_{}", "present": "cache_out_0_{}"},
}


@pytest.fixture(scope="module")
def generator():
    return sabir.TextGenerator(LANGUAGE.decoder())


@pytest.fixture
def runs(monkeypatch):
    """The shapes of the ids of all runs."""
    shapes, run = [], sabir.Session.run

    def counted(self, feeds, *words, **options):
        shapes.append(np.shape(feeds["input_ids"]))
        return run(self, feeds, *words, **options)

    monkeypatch.setattr(sabir.Session, "run", counted)
    return shapes


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
def test_greedy_tokens_are_those_of_the_model(options):
    model = LANGUAGE.decoder(**options)
    sabir.check(model)
    generator = sabir.TextGenerator(model, engine="reference")
    for prompt in PROMPTS:
        result = generator.generate(prompt, max_new_tokens=9)
        assert result.ids == LANGUAGE.greedy(prompt, 9)
        assert (result.finish_reason, result.prompt_tokens, result.text) == ("length", len(prompt), None)
    batch = generator.generate(PROMPTS, max_new_tokens=9)
    assert [r.ids for r in batch] == [LANGUAGE.greedy(p, 9) for p in PROMPTS]


def test_logits_are_those_of_the_model(generator):
    np.testing.assert_allclose(
        generator.logits(PROMPTS[0]), LANGUAGE.logits(PROMPTS[0]), rtol=1e-4, atol=1e-4
    )
    rows = generator.logits(PROMPTS)
    assert rows.shape == (4, 19)
    np.testing.assert_allclose(rows, [LANGUAGE.logits(p) for p in PROMPTS], rtol=1e-4, atol=1e-4)


def test_arrays_are_prompts(generator):
    one = generator.generate(np.array([3, 1]), max_new_tokens=3)
    two = generator.generate(np.array([[3, 1]]), max_new_tokens=3)
    assert [one.ids] == [r.ids for r in two]


def test_rows_of_a_batch_end_one_by_one(generator):
    expected = [LANGUAGE.greedy(p, 9, stop=(0, 8)) for p in PROMPTS]
    assert len({len(ids) for ids in expected}) > 1
    results = generator.generate(PROMPTS, max_new_tokens=9, stop=[0, 8])
    assert [r.ids for r in results] == expected
    assert {r.finish_reason for r in results} == {"stop", "length"}


# the cache


def test_a_step_computes_one_position(runs):
    sabir.TextGenerator(LANGUAGE.decoder(), engine="reference").generate([3, 1, 4], max_new_tokens=4)
    assert runs == [(1, 3), (1, 1), (1, 1), (1, 1)]


def test_a_prompt_is_computed_from_the_first_unknown_token_on(runs):
    generator = sabir.TextGenerator(LANGUAGE.decoder(), engine="reference")
    first = generator.generate([3, 1, 4], max_new_tokens=3)
    runs.clear()
    longer = [3, 1, 4, *first.ids, 8, 8]
    second = generator.generate(longer, max_new_tokens=1)
    assert second.ids == LANGUAGE.greedy(longer, 1)
    # the last token of the answer was never fed
    assert (second.reused_tokens, runs) == (5, [(1, 3)])
    runs.clear()
    third = generator.generate([3, 1, 9], max_new_tokens=1)
    assert third.ids == LANGUAGE.greedy([3, 1, 9], 1)
    assert (third.reused_tokens, runs) == (2, [(1, 1)])
    generator.reset()
    assert generator.generate([3, 1, 9], max_new_tokens=1).reused_tokens == 0


def test_the_rows_of_a_batch_go_on(generator):
    first = generator.generate(PROMPTS, max_new_tokens=3)
    longer = [[*p, *r.ids, 5] for p, r in zip(PROMPTS, first, strict=True)]
    second = generator.generate(longer, max_new_tokens=3)
    assert [r.reused_tokens for r in second] == [len(p) - 2 for p in longer]
    assert [r.ids for r in second] == [LANGUAGE.greedy(p, 3) for p in longer]


def test_a_common_beginning_is_computed_once(runs):
    generator = sabir.TextGenerator(LANGUAGE.decoder(), engine="reference")
    begin = [3, 1, 4, 1, 5]
    prompts = [[*begin, 2], [*begin, 6], [*begin, 5, 3]]
    results = generator.generate(prompts, max_new_tokens=1)
    assert runs == [(1, 5), (2, 1), (1, 2)]
    assert [r.ids for r in results] == [LANGUAGE.greedy(p, 1) for p in prompts]


def test_long_prompts_are_computed_in_parts(monkeypatch, runs):
    monkeypatch.setattr("sabir.generation._decoder.CHUNK", 4)
    generator = sabir.TextGenerator(LANGUAGE.decoder(), engine="reference")
    prompt = [3, 1, 4, 1, 5, 9, 2, 6, 5]
    assert generator.generate(prompt, max_new_tokens=1).ids == LANGUAGE.greedy(prompt, 1)
    assert runs == [(1, 4), (1, 4), (1, 1)]


def test_a_state_goes_on_but_never_back(runs):
    """A sum of all tokens so far: a state that each run replaces, which has no positions."""
    tokens = LANGUAGE.tokens
    b = sabir.Builder(21)
    ids = b.input("input_ids", "int64", ["batch", "sequence"])
    past = b.input("past_state", "float", ["batch", tokens.shape[1]])
    sums = b.CumSum(b.Gather(tokens, ids), np.int64(1)) + b.Unsqueeze(past, [1])
    b.output(b.MatMul(sums, np.ascontiguousarray(tokens.T)), "logits")
    b.output(b.Gather(sums, np.int64(-1), axis=1), "present_state")
    model = b.model()
    sabir.check(model)

    def greedy(prompt, count):
        found = list(prompt)
        for _ in range(count):
            found.append(int((tokens[found].sum(axis=0) @ tokens.T).argmax()))
        return found[len(prompt) :]

    generator = sabir.TextGenerator(model, cache={"past_state": "present_state"}, engine="reference")
    assert generator.generate([3, 1, 4], max_new_tokens=3).ids == greedy([3, 1, 4], 3)
    longer = [3, 1, 4, *greedy([3, 1, 4], 3), 5]
    again = generator.generate(longer, max_new_tokens=2)
    assert (again.ids, again.reused_tokens) == (greedy(longer, 2), 5)
    other = generator.generate([3, 1, 9], max_new_tokens=2)
    assert (other.ids, other.reused_tokens) == (greedy([3, 1, 9], 2), 0)
    runs.clear()
    batch = generator.generate([[3, 1, 9, 5], [3, 1, 9, 6]], max_new_tokens=2)
    assert [r.ids for r in batch] == [greedy([3, 1, 9, 5], 2), greedy([3, 1, 9, 6], 2)]
    assert [r.reused_tokens for r in batch] == [0, 0]
    assert runs == [(1, 3), (2, 1), (2, 1)]


def test_a_decoder_of_one_token_at_a_time(tmp_path, runs):
    later = LANGUAGE.decoder()
    later.graph.inputs[0].type = tensor_type("int64", ["batch", 1])
    models = {"decoder_model": LANGUAGE.decoder(takes_past=False), "decoder_with_past_model": later}
    generator = sabir.TextGenerator(write_folder(tmp_path, models), engine="reference")
    first = generator.generate([3, 1, 4], max_new_tokens=2)
    longer = [3, 1, 4, *first.ids, 8, 8]
    assert generator.generate(longer, max_new_tokens=2).ids == LANGUAGE.greedy(longer, 2)
    assert runs == [(1, 3), (1, 1), (1, 1), (1, 1), (1, 1), (1, 1)]


def test_what_inputs_are_fed(monkeypatch):
    b = sabir.Builder(21)
    ids = b.input("input_ids", "int32", ["batch", "sequence"])
    past = b.input("past", "float", ["batch", 1, "past", 1])
    names = {
        "attention_mask": ("float", ["batch", "total"]),
        "cache_position": ("int64", ["sequence"]),
        "use_cache_branch": ("bool", [1]),
        "past_sequence_length": ("int32", []),
        "total_sequence_length": ("int32", [1]),
        "num_logits_to_keep": ("int64", []),
    }
    for name, (element, shape) in names.items():
        b.input(name, element, shape)
    b.output(b.Gather(np.eye(4, dtype=np.float32), ids), "logits")
    new = b.Unsqueeze(b.Cast(ids, to="float"), [1, 3])
    b.output(b.Concat(past, new, axis=2), "present")
    fed, run = [], sabir.Session.run

    def kept(self, feeds, *words, **options):
        fed.append({name: feeds[name] for name in names})
        return run(self, feeds, *words, **options)

    monkeypatch.setattr(sabir.Session, "run", kept)
    sabir.TextGenerator(b.model(), engine="reference").generate([1, 2, 3], max_new_tokens=2)
    shown = [{name: (str(a.dtype), a.tolist()) for name, a in feeds.items()} for feeds in fed]
    assert shown == [
        {
            "attention_mask": ("float32", [[1.0] * 3]),
            "cache_position": ("int64", [0, 1, 2]),
            "use_cache_branch": ("bool", [False]),
            "past_sequence_length": ("int32", 0),
            "total_sequence_length": ("int32", [3]),
            "num_logits_to_keep": ("int64", 1),
        },
        {
            "attention_mask": ("float32", [[1.0] * 4]),
            "cache_position": ("int64", [3]),
            "use_cache_branch": ("bool", [True]),
            "past_sequence_length": ("int32", 3),
            "total_sequence_length": ("int32", [4]),
            "num_logits_to_keep": ("int64", 1),
        },
    ]


def test_names_of_the_cache_can_be_passed():
    names = {"past": "keys_{}_a", "present": "result_{}_b"}
    model = LANGUAGE.decoder(**names)
    cache = {f"keys_{kind}_a": f"result_{kind}_b" for kind in ("key", "value")}
    generator = sabir.TextGenerator(model, cache=cache, engine="reference")
    assert generator.generate([3, 1], max_new_tokens=5).ids == LANGUAGE.greedy([3, 1], 5)
    # and without them the shapes decide
    generator = sabir.TextGenerator(model, engine="reference")
    assert generator.generate([3, 1], max_new_tokens=5).ids == LANGUAGE.greedy([3, 1], 5)


def test_steps_write_into_buffers(monkeypatch):
    writes, run = [], sabir.Session.run

    def kept(self, feeds, outputs=None, *, out=None):
        found = run(self, feeds, outputs, out=out)
        past = feeds["past_key_values.0.key"]
        writes.append((past.shape, out["present.0.key"] is past, found["present.0.key"] is past))
        return found

    monkeypatch.setattr(sabir.Session, "run", kept)
    generator = sabir.TextGenerator(LANGUAGE.decoder())
    assert generator.generate(PROMPTS[0], max_new_tokens=9).ids == LANGUAGE.greedy(PROMPTS[0], 9)
    assert writes == [((1, 2, 64, 3), True, True)] * 9
    longer = [*PROMPTS[0], 7, 7]
    assert generator.generate(longer, max_new_tokens=9).ids == LANGUAGE.greedy(longer, 9)
    batch = generator.generate(PROMPTS, max_new_tokens=9)
    assert [r.ids for r in batch] == [LANGUAGE.greedy(p, 9) for p in PROMPTS]


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_rows_of_a_grouped_query_attention_are_padded_on_the_right(engine):
    grouped = Grouped()
    generator = sabir.TextGenerator(grouped.decoder(), engine=engine)
    batch = generator.generate(PROMPTS, max_new_tokens=6)
    assert [r.ids for r in batch] == [grouped.greedy(p, 6) for p in PROMPTS]
    assert generator.generate(PROMPTS[0], max_new_tokens=6).ids == grouped.greedy(PROMPTS[0], 6)


# stopping


def test_an_interrupt_keeps_what_was_generated():
    generator = sabir.TextGenerator(LANGUAGE.decoder(), tokenizer=Letters(), engine="reference")

    def interrupt(_, token):
        seen.append(token)
        if len(seen) == 3:
            raise KeyboardInterrupt

    seen = []
    result = generator.generate([3, 1], max_new_tokens=9, on_token=interrupt)
    assert result.ids == seen == LANGUAGE.greedy([3, 1], 3)
    assert result.finish_reason == "interrupted"
    assert result.text == Letters().decode(seen)
    again = generator.generate([3, 1, *seen], max_new_tokens=2)
    assert again.reused_tokens == 4
    assert again.ids == LANGUAGE.greedy([3, 1, *seen], 2)


def test_the_context_length_ends_a_generation():
    generator = sabir.TextGenerator(LANGUAGE.decoder(), context_length=6, engine="reference")
    result = generator.generate([3, 1, 4, 1], max_new_tokens=9)
    assert (len(result.ids), result.finish_reason) == (2, "context")
    full = generator.generate([3, 1, 4, 1, 5, 9], max_new_tokens=9)
    assert (full.ids, full.finish_reason) == ([], "context")
    with pytest.raises(sabir.FeedError, match="the prompt has 7 tokens, and the model's context length is 6"):
        generator.generate([3, 1, 4, 1, 5, 9, 2])


def test_nothing_is_generated_for_no_new_tokens(generator):
    result = generator.generate([3], max_new_tokens=0)
    assert (result.ids, result.finish_reason, result.tokens_per_second) == ([], "length", 0)


def test_stop_ids_and_strings():
    generator = sabir.TextGenerator(LANGUAGE.decoder(), tokenizer=Letters(), engine="reference")
    answer = LANGUAGE.greedy([3, 1, 4, 1, 5], 6)
    assert answer == [9, 3, 5, 9, 0, 0]
    by_id = generator.generate([3, 1, 4, 1, 5], stop=5)
    assert (by_id.ids, by_id.text, by_id.finish_reason) == (answer[:3], "jd", "stop")
    by_text = generator.generate("dbebf", stop=["jz", "fj"])
    assert (by_text.ids, by_text.text, by_text.finish_reason) == (answer[:4], "jd", "stop")
    from_start = sabir.TextGenerator(LANGUAGE.decoder(), stop_ids=[5], engine="reference")
    assert from_start.generate([3, 1, 4, 1, 5]).ids == answer[:3]


# streams


def test_a_stream_yields_tokens_as_they_come(runs):
    generator = sabir.TextGenerator(LANGUAGE.decoder(), tokenizer=Letters(), engine="reference")
    stream = generator.stream([3, 1, 4], max_new_tokens=4)
    assert runs == []
    assert next(stream) == LANGUAGE.greedy([3, 1, 4], 1)[0]
    assert runs == [(1, 3)]
    assert [*stream] == LANGUAGE.greedy([3, 1, 4], 4)[1:]
    pieces = generator.pieces(generator.stream("dbe", max_new_tokens=4))
    assert "".join(pieces) == Letters().decode(LANGUAGE.greedy([3, 1, 4], 4))


def test_a_stream_that_is_left_keeps_its_cache():
    generator = sabir.TextGenerator(LANGUAGE.decoder(), engine="reference")
    stream = generator.stream([3, 1, 4], max_new_tokens=9)
    tokens = [next(stream), next(stream)]
    stream.close()
    assert generator.generate([3, 1, 4, *tokens], max_new_tokens=1).reused_tokens == 4


def test_a_stream_is_of_one_prompt_without_beams(generator):
    with pytest.raises(sabir.FeedError, match="a stream continues one prompt"):
        generator.stream([[1], [2]])
    with pytest.raises(sabir.UnsupportedError, match="beam search has no tokens before its end"):
        generator.stream([1], num_beams=2)


# encoders

FOLDERS = {
    "split": lambda: {
        "decoder_model": LANGUAGE.decoder(has_encoder=True, takes_past=False),
        "decoder_with_past_model": LANGUAGE.decoder(has_encoder=True),
    },
    "merged": lambda: {"decoder_model_merged": LANGUAGE.merged(has_encoder=True)},
    "no cache": lambda: {"decoder_model": LANGUAGE.decoder(has_encoder=True, cached=False)},
}


@pytest.mark.parametrize("kind", FOLDERS)
def test_an_encoder_reads_the_prompt(kind, tmp_path):
    models = {"encoder_model": LANGUAGE.encoder_model(), **FOLDERS[kind]()}
    for model in models.values():
        sabir.check(model)
    folder = write_folder(tmp_path, models, config={"decoder_start_token_id": 0, "pad_token_id": 18})
    generator = sabir.TextGenerator(folder, engine="reference")
    results = generator.generate(PROMPTS, max_new_tokens=6)
    assert [r.ids for r in results] == [LANGUAGE.greedy([0], 6, source=p) for p in PROMPTS]
    assert [r.prompt_tokens for r in results] == [5, 1, 2, 4]
    one = generator.generate(PROMPTS[3], max_new_tokens=6)
    assert (one.ids, one.reused_tokens) == (results[3].ids, 0)
    beams = generator.generate(PROMPTS, max_new_tokens=4, num_beams=3)
    assert [r.ids for r in beams] == [
        generator.generate(p, max_new_tokens=4, num_beams=3).ids for p in PROMPTS
    ]


def test_an_encoder_of_features(tmp_path):
    b = sabir.Builder(21)
    features = b.input("input_features", "float", ["batch", 6, "frames"])
    b.output(b.Tanh(b.MatMul(b.Transpose(features, perm=[0, 2, 1]), LANGUAGE.encoder)), "last_hidden_state")
    models = {"encoder_model": b.model(), **FOLDERS["split"]()}
    folder = write_folder(
        tmp_path, models, generation_config={"decoder_start_token_id": 0, "forced_decoder_ids": [[1, 4]]}
    )
    generator = sabir.TextGenerator(folder, engine="reference")
    sources = [[3, 1, 4], [5, 9, 2]]
    features = np.stack([LANGUAGE.tokens[s].T for s in sources])
    results = generator.generate(features=features, max_new_tokens=5)
    assert [r.ids for r in results] == [LANGUAGE.greedy([0, 4], 5, source=s) for s in sources]
    (other,) = generator.generate([0, 7], features=features[:1], max_new_tokens=5)
    assert other.ids == LANGUAGE.greedy([0, 7], 5, source=sources[0])
    assert [*generator.stream(features=features[1:], max_new_tokens=5)] == results[1].ids
    with pytest.raises(sabir.FeedError, match="a stream continues one prompt"):
        generator.stream(features=features)
    with pytest.raises(sabir.FeedError, match="the encoder reads features, not tokens: pass `features=`"):
        generator.generate([1, 2])


def test_features_need_an_encoder_of_features(generator, tmp_path):
    with pytest.raises(sabir.FeedError, match="the model has no encoder, and reads no features"):
        generator.generate(features=np.zeros((1, 2, 3), np.float32))
    models = {"encoder_model": LANGUAGE.encoder_model(), **FOLDERS["no cache"]()}
    folder = write_folder(tmp_path, models, config={})
    text = sabir.TextGenerator(folder, engine="reference")
    with pytest.raises(sabir.FeedError, match="the encoder reads tokens, not features: pass a prompt"):
        text.generate(features=np.zeros((1, 2, 3), np.float32))
    with pytest.raises(sabir.UnsupportedError, match="the folder does not state `decoder_start_token_id`"):
        text.generate([1, 2])
