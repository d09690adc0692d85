"""Small language models, as exporters write them, and the same computed by numpy for one sequence.

One layer of attention with learned positions, and a rectifier. The weights of a seed are random.
"""

from __future__ import annotations

import json

import numpy as np

import sabir

HEADS, HEAD, WIDTH, LONGEST = 2, 3, 6, 64


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


class Language:
    """The weights of a model, and what it computes."""

    def __init__(self, vocabulary=19, seed=6, spread=1.5):
        self.vocabulary = vocabulary
        rng = np.random.default_rng(seed)

        def weight(*shape):
            return (rng.standard_normal(shape) * spread).astype(np.float32)

        self.tokens, self.places = weight(vocabulary, WIDTH), weight(LONGEST, WIDTH)
        self.tokens *= 3 / np.linalg.norm(
            self.tokens, axis=1, keepdims=True
        )  # else the longest one always wins
        self.query, self.key, self.value, self.out = (weight(WIDTH, WIDTH) / 2 for _ in range(4))
        self.cross = [weight(WIDTH, WIDTH) / 2 for _ in range(4)]
        self.up, self.down = weight(WIDTH, 2 * WIDTH), weight(2 * WIDTH, WIDTH)
        self.encoder = weight(WIDTH, WIDTH)

    # computed by numpy

    def logits(self, ids, source=None):
        """The logits after the last of the ids, and for a model with an encoder after the source."""
        x = self.tokens[ids] + self.places[: len(ids)]
        causal = np.tril(np.ones((len(ids), len(ids)), bool))
        x += self._attention(x, x, (self.query, self.key, self.value, self.out), causal)
        if source is not None:
            states = np.tanh(self.tokens[source] @ self.encoder)
            x += self._attention(x, states, self.cross, np.ones((len(ids), len(source)), bool))
        x += np.maximum(x @ self.up, 0) @ self.down
        return (x @ self.tokens.T)[-1]

    def _attention(self, x, states, weights, allowed):
        query, key, value, out = weights
        q, k, v = (
            (a @ w).reshape(len(a), HEADS, HEAD).transpose(1, 0, 2)
            for a, w in ((x, query), (states, key), (states, value))
        )
        scores = np.where(allowed, q @ k.transpose(0, 2, 1) / np.sqrt(HEAD), -1e4)
        return (softmax(scores) @ v).transpose(1, 0, 2).reshape(len(x), WIDTH) @ out

    def greedy(self, prompt, count, source=None, stop=()):
        """The most probable continuation."""
        ids = list(prompt)
        for _ in range(count):
            ids.append(int(self.logits(ids, source).argmax()))
            if ids[-1] in stop:
                break
        return ids[len(prompt) :]

    # as models

    def decoder(self, **options):
        """A model with the inputs and outputs that the options of `Parts` say."""
        return Parts(self, **options).model()

    def merged(self, *, has_encoder=False):
        """A model with both ways of running in the branches of an If, as Optimum writes it."""
        parts = Parts(self, cached=True, has_encoder=has_encoder, states_are_read=True)
        b = parts.builder
        flag = b.input("use_cache_branch", "bool", [1])
        past = parts.past
        names = ["logits", *parts.presents]
        outputs = b.If(
            flag,
            then_branch=lambda g: parts.outputs(g, past, cached_cross=True),
            else_branch=lambda g: parts.outputs(g, None, cached_cross=False),
            outputs=len(names),
        )
        for value, name in zip(outputs, names, strict=True):
            b.output(value, name)
        return b.model()

    def encoder_model(self):
        """The encoder: the hyperbolic tangent of a linear map of each token."""
        b = sabir.Builder(21)
        ids = b.input("input_ids", "int64", ["batch", "source"])
        b.input("attention_mask", "int64", ["batch", "source"])
        states = b.Tanh(b.MatMul(b.Gather(b.initializer("tokens", self.tokens), ids), self.encoder))
        b.output(states, "last_hidden_state")
        return b.model()


class Parts:
    """The inputs of a decoder and the functions that build its outputs."""

    def __init__(
        self,
        language,
        *,
        cached=True,
        has_mask=True,
        has_positions=True,
        has_encoder=False,
        states_are_read=None,
        takes_past=None,
        past="past_key_values.0.{}",
        present="present.0.{}",
    ):
        self.language, self.has_encoder = language, has_encoder
        self.takes_past = cached if takes_past is None else takes_past
        b = self.builder = sabir.Builder(21)
        self.ids = b.input("input_ids", "int64", ["batch", "sequence"])
        total = "past + sequence" if self.takes_past else "sequence"
        self.mask = b.input("attention_mask", "int64", ["batch", total]) if has_mask else None
        self.positions = b.input("position_ids", "int64", ["batch", "sequence"]) if has_positions else None
        own = ("decoder.key", "decoder.value") if has_encoder else ("key", "value")
        kinds = [*own, *(("encoder.key", "encoder.value") if has_encoder else ())]
        self.presents = [present.format(kind) for kind in kinds] if cached else []
        self.past = None
        if self.takes_past:
            axes = ["past", "past", "source", "source"]
            self.past = [
                b.input(past.format(kind), "float", ["batch", HEADS, axis, HEAD])
                for kind, axis in zip(kinds, axes, strict=False)
            ]
        self.states = self.states_mask = None
        if has_encoder:
            self.states_mask = b.input("encoder_attention_mask", "int64", ["batch", "source"])
            if states_are_read if states_are_read is not None else not self.takes_past:
                self.states = b.input("encoder_hidden_states", "float", ["batch", "source", WIDTH])

    def model(self):
        """The model whose outputs are the logits and what the cache gets."""
        outputs = self.outputs(self.builder, self.past, cached_cross=self.takes_past)
        kept = outputs if not (self.has_encoder and self.takes_past) else outputs[:3]
        for value, name in zip(kept, ["logits", *self.presents], strict=False):
            self.builder.output(value, name)
        return self.builder.model()

    def outputs(self, b, past, *, cached_cross):
        """The logits, then the keys and values."""
        w = self.language
        positions = self.positions
        before = b.Shape(past[0], start=2, end=3) if past is not None else np.int64([0])
        count = b.Shape(self.ids, start=1, end=2)
        new = b.Range(b.Squeeze(before), b.Squeeze(b.Add(before, count)), np.int64(1))
        if positions is None:
            positions = new
        x = b.Add(b.Gather(w.tokens, self.ids), b.Gather(w.places, positions))
        k, v = self._heads(b, x, w.key), self._heads(b, x, w.value)
        if past is not None:
            k, v = b.Concat(past[0], k, axis=2), b.Concat(past[1], v, axis=2)
        keys = b.Range(np.int64(0), b.Squeeze(b.Shape(k, start=2, end=3)), np.int64(1))
        allowed = b.LessOrEqual(b.Unsqueeze(keys, [0]), b.Unsqueeze(new, [1]))
        if self.mask is not None:
            allowed = b.And(allowed, b.Cast(b.Unsqueeze(self.mask, [1, 2]), to="bool"))
        x = b.Add(x, self._attention(b, x, k, v, w.query, w.out, allowed))
        results = [k, v]
        if self.has_encoder:
            query, key, value, out = w.cross
            if cached_cross:
                k, v = past[2], past[3]
            else:
                k, v = self._heads(b, self.states, key), self._heads(b, self.states, value)
            allowed = b.Cast(b.Unsqueeze(self.states_mask, [1, 2]), to="bool")
            x = b.Add(x, self._attention(b, x, k, v, query, out, allowed))
            results += [b.Identity(k), b.Identity(v)]
        x = b.Add(x, b.MatMul(b.Relu(b.MatMul(x, w.up)), w.down))
        return [b.MatMul(x, np.ascontiguousarray(w.tokens.T)), *results]

    def _heads(self, b, x, weight):
        split = b.Reshape(b.MatMul(x, weight), np.int64([0, 0, HEADS, HEAD]))
        return b.Transpose(split, perm=[0, 2, 1, 3])

    def _attention(self, b, x, k, v, query, out, allowed):
        scores = b.MatMul(self._heads(b, x, query), b.Transpose(k, perm=[0, 1, 3, 2]))
        scores = b.Mul(scores, np.float32(1 / np.sqrt(HEAD)))
        weights = b.Softmax(b.Where(allowed, scores, np.float32(-1e4)), axis=-1)
        joined = b.Transpose(b.MatMul(weights, v), perm=[0, 2, 1, 3])
        return b.MatMul(b.Reshape(joined, np.int64([0, 0, WIDTH])), out)


class Grouped:
    """A layer of onnxruntime's GroupQueryAttention, whose rows have their positions from the front."""

    def __init__(self, vocabulary=19, seed=3, size=8):
        rng = np.random.default_rng(seed)
        self.size = size
        self.tokens = rng.standard_normal((vocabulary, size)).astype(np.float32) * 2
        self.weights = [rng.standard_normal((size, size)).astype(np.float32) for _ in range(3)]

    def decoder(self):
        """The model, whose cache is the past of the attention."""
        b = sabir.Builder(21, opsets={"com.microsoft": 1})
        ids = b.input("input_ids", "int64", ["batch", "sequence"])
        mask = b.input("attention_mask", "int64", ["batch", "total"])
        kinds = ("key", "value")
        past = [b.input(f"past_key_values.0.{k}", "float", ["batch", 1, "past", self.size]) for k in kinds]
        x = b.Gather(self.tokens, ids)
        lengths = b.Cast(b.ReduceSum(mask, np.int64([1]), keepdims=0) - 1, to="int32")
        total = b.Cast(b.Squeeze(b.Shape(mask, start=1, end=2)), to="int32")
        packed = (b.MatMul(x, w) for w in self.weights)
        y, *presents = b.domain("com.microsoft").GroupQueryAttention(
            *packed, *past, lengths, total, num_heads=1, kv_num_heads=1, outputs=3
        )
        logits = b.MatMul(x + y, np.ascontiguousarray(self.tokens.T))
        b.output(logits, "logits", "float", ["batch", "sequence", len(self.tokens)])
        for kind, present in zip(kinds, presents, strict=True):
            b.output(present, f"present.0.{kind}", "float", ["batch", 1, "total", self.size])
        return b.model()

    def greedy(self, prompt, count):
        """The most probable continuation."""
        found = list(prompt)
        for _ in range(count):
            x = self.tokens[found]
            q, k, v = (x @ w for w in self.weights)
            scores = np.where(np.tri(len(found), dtype=bool), q @ k.T / np.sqrt(self.size), -np.inf)
            found.append(int(((x + softmax(scores) @ v) @ self.tokens.T)[-1].argmax()))
        return found[len(prompt) :]


class Letters:
    """A tokenizer of single letters: `a` is the token 0."""

    def encode(self, text):
        return [ord(letter) - ord("a") for letter in text]

    def decode(self, ids):
        return "".join(chr(ord("a") + i) for i in ids)


def write_folder(folder, models, **files):
    """Save models and JSON files, named without suffix, in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in models.items():
        sabir.save(model, folder / f"{name}.onnx")
    for name, values in files.items():
        (folder / f"{name}.json").write_text(json.dumps(values), encoding="utf-8")
    return folder


def write_tokenizer(folder, words, config):
    """Write a tokenizer.json of whole words; the first words are special tokens if they begin with `<`."""
    import tokenizers  # ruff: ignore[import-outside-top-level]  few tests need it

    library = tokenizers
    tokenizer = library.Tokenizer(
        library.models.WordLevel({word: i for i, word in enumerate(words)}, unk_token=words[0])
    )
    tokenizer.pre_tokenizer = library.pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens([word for word in words if word.startswith("<")])
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
