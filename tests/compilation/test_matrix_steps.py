"""Steps that update matrices: LinearAttention in kernels, beside steps computed in float64."""

import numpy as np

import sabir
from sabir.compilation import Compiled

# batch, steps, heads of queries, heads of keys, elements of a key, columns: one vector, several, ragged ones
SHAPES = [(2, 5, 4, 2, 3, 7), (1, 1, 1, 1, 16, 64), (3, 4, 2, 2, 8, 33), (1, 17, 6, 2, 5, 130)]
RULES = ["linear", "gated", "delta", "gated_delta"]


def exact(feeds, heads):
    """Return the outputs of all steps, and the last state, in float64."""
    parts = dict(zip("qkvdb", (heads[0], *[heads[1]] * 3, 1), strict=True))
    wide = {n: x.astype(np.float64) for n, x in feeds.items()}
    q, k, v, decay, beta = (
        wide[n].reshape(*wide[n].shape[:2], parts[n], -1) if n in wide else None for n in "qkvdb"
    )
    state, found = wide["s"], []
    for t in range(q.shape[1]):
        state = state if decay is None else state * np.exp(decay[:, t])[..., None]
        new = v[:, t]
        if beta is not None:
            new = (new - np.einsum("bhk,bhkv->bhv", k[:, t], state)) * beta[:, t].swapaxes(1, 2)
        state = k[:, t][..., None] * new[..., None, :] + state
        found.append(np.einsum("bhk,bhkv->bhv", q[:, t], state.repeat(heads[0] // heads[1], axis=1)))
    y = np.array(found).reshape(len(found), len(v), -1).swapaxes(0, 1)
    return y / np.sqrt(k.shape[-1]), state


def feeds_of(rule, shape, *, fine):
    """Return inputs of a rule; with `fine` decays are those of each element, and rates of each head."""
    batch, steps, queries, keys, size, columns = shape
    random = np.random.default_rng(4)
    widths = {"q": queries * size, "k": keys * size, "v": keys * columns}
    found = {n: random.normal(size=(batch, steps, w)).astype(np.float32) for n, w in widths.items()}
    found["k"] /= np.float32(np.sqrt(size))
    found["s"] = random.normal(size=(batch, keys, size, columns)).astype(np.float32)
    if "gated" in rule:
        found["d"] = -random.random((batch, steps, keys * size if fine else keys)).astype(np.float32)
    if "delta" in rule:
        found["b"] = random.random((batch, steps, keys if fine else 1)).astype(np.float32)
    return found


def model_of(rule, feeds, heads):
    b = sabir.Builder(27)
    names = {
        n: ["batch", *x.shape[1:]] if n == "s" else ["batch", "steps", x.shape[2]] for n, x in feeds.items()
    }
    ports = {n: b.input(n, "float", shape) for n, shape in names.items()}
    options = {"update_rule": rule, "q_num_heads": heads[0], "kv_num_heads": heads[1]}
    results = b.LinearAttention(*map(ports.get, "qkvsdb"), outputs=2, **options)
    for name, x in zip(("y", "last"), results, strict=True):
        b.output(x, name)
    return b.model()


def test_all_rules():
    for number, shape in enumerate(SHAPES):
        for rule in RULES:
            feeds, heads = feeds_of(rule, shape, fine=number % 2 == 0), shape[2:4]
            compiled = Compiled(model_of(rule, feeds, heads))
            found = compiled.run(feeds)
            assert compiled.explain().evaluated == ()
            y, state = exact(feeds, heads)
            np.testing.assert_allclose(found["y"], y, rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(found["last"], state, rtol=1e-4, atol=1e-4)


def test_a_state_has_its_bits_in_every_batch_on_any_number_of_threads():
    feeds = feeds_of("gated_delta", (4, 9, 3, 3, 8, 90), fine=True)
    model = model_of("gated_delta", feeds, (3, 3))
    whole = Compiled(model, threads=2).run(feeds)["y"]
    one = Compiled(model, threads=1).run({n: x[2:3] for n, x in feeds.items()})["y"]
    assert one.tobytes() == whole[2:3].tobytes()
