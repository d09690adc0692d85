"""Low-rank adapters beside numpy, stored alone, merged, and what cannot have them."""

import numpy as np
import onnx  # ruff: ignore[banned-api]  a judge of the models
import onnxruntime
import pytest
from safetensors.numpy import load_file

import sabir
from sabir import FeedError, UnsupportedError
from sabir.base import NotFoundError
from sabir.ir import ArrayTensor
from sabir.serial import load_safetensors, save_safetensors
from sabir.training import SGD, Adam, LoRA, adapters, load_adapters, merge_adapters, prepare, step_model

RNG = np.random.default_rng(2)
W, V, C = RNG.standard_normal((4, 5)), RNG.standard_normal((3, 5)), RNG.standard_normal(3)
X, Y = RNG.standard_normal((6, 4)), RNG.standard_normal((6, 3))


def network(dtype=np.float64):
    """A MatMul, and a Gemm with a factor whose weight is stored [out,in]."""
    b = sabir.Builder(21)
    x = b.input("x", "double" if dtype == np.float64 else "float", ["N", 4])
    h = b.MatMul(x, b.initializer("w", W.astype(dtype)))
    y = b.Gemm(
        h, b.initializer("v", V.astype(dtype)), b.initializer("c", C.astype(dtype)), transB=1, alpha=0.5
    )
    b.output(y, "y")
    return b.model()


def session(model=None, engine="reference", **options):
    options = {"optimizer": SGD(0.1), "lora": LoRA(2, alpha=3), **options}
    return sabir.TrainingSession(
        prepare(network() if model is None else model, "mse", **options), engine=engine
    )


DATA = {"x": X, "label": Y}


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_adapters_descend_as_numpy_says(engine):
    one, scale = session(engine=engine), 1.5
    assert set(one.state) == {
        "w.lora_a",
        "w.lora_b",
        "v.lora_a",
        "v.lora_b",
        "learning_rate",
        "training_step",
    }
    assert not one.state["w.lora_b"].any()
    assert abs(one.state["w.lora_a"]).max() <= 0.5
    a, b, p, q = (one.state[f"{name}.lora_{part}"].copy() for name in "wv" for part in "ab")
    for _ in range(3):
        h = X @ (W + scale * a @ b)
        error = 0.5 * h @ (V.T + scale * p @ q) + C - Y
        np.testing.assert_allclose(one.step(DATA)["loss"], (error**2).mean(), rtol=1e-12)
        slope = error / error.size  # twice one half
        of_h = slope @ (V.T + scale * p @ q).T
        changes = [
            scale * X.T @ of_h @ b.T, scale * a.T @ X.T @ of_h, scale * h.T @ slope @ q.T, scale * p.T @ h.T @ slope,
        ]  # fmt: skip
        a, b, p, q = (value - 0.1 * change for value, change in zip((a, b, p, q), changes, strict=True))
        found = [one.state[f"{name}.lora_{part}"] for name in "wv" for part in "ab"]
        for value, expected in zip(found, (a, b, p, q), strict=True):
            np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("ending", [".npz", ".safetensors"])
def test_adapters_are_stored_alone_merged_and_gone_on_with(tmp_path, ending):
    one, path = session(optimizer=Adam(0.05)), tmp_path / f"changes{ending}"
    np.testing.assert_allclose(one.run({"x": X})["y"], sabir.evaluate(network(), {"x": X})["y"], rtol=1e-14)
    one.fit(DATA, epochs=5, batch=3)
    found = adapters(one)
    assert list(found) == ["w", "v"]
    found.save(path)
    loaded = load_adapters(path)
    for name, adapter in found.items():
        for part, other in zip(adapter, loaded[name], strict=True):
            np.testing.assert_array_equal(part, other)
    if ending == ".safetensors":
        assert set(load_file(path)) == {f"{n}.lora_{part}" for n in "wv" for part in ("a", "b", "scale")}
    merged = merge_adapters(network(), loaded)
    expected = one.run({"x": X})["y"]
    np.testing.assert_allclose(sabir.evaluate(merged, {"x": X})["y"], expected, rtol=1e-12)
    assert [node.op for node in merged.graph] == ["MatMul", "Gemm"]
    further = session(lora=loaded)
    np.testing.assert_allclose(further.run({"x": X})["y"], expected, rtol=1e-12)
    loss = further.step(DATA)["loss"]
    np.testing.assert_allclose(loss, ((expected - Y) ** 2).mean(), rtol=1e-12)
    assert further.step(DATA)["loss"] < loss


def test_a_split_model_and_16_bits():
    for model, options in ((network(), {"split": True}), (network(np.float32), {"precision": "bfloat16"})):
        one = session(model, optimizer=Adam(0.05), **options)
        dtype = np.float64 if "split" in options else np.float32
        data = {name: array.astype(dtype) for name, array in DATA.items()}
        one.fit(data, epochs=2, batch=3)
        assert list(adapters(one)) == ["w", "v"]
        merged = merge_adapters(model, adapters(one))
        feeds = {"x": data["x"]}
        np.testing.assert_allclose(
            sabir.evaluate(merged, feeds)["y"], one.run(feeds)["y"], rtol=1e-4, atol=1e-6
        )


def test_the_checker_and_onnxruntime_accept_them():
    model = prepare(network(np.float32), "mse", lora=LoRA(1, dropout=0.25))
    onnx.checker.check_model(onnx.load_from_string(sabir.dumps(model)), full_check=True)
    assert [node.op for node in model.graph].count("Dropout") == 2
    data = sabir.dumps(step_model(prepare(network(np.float32), "mse", lora=1)))
    onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])


def test_elements_are_dropped_before_the_adapters_while_training():
    one = session(lora=LoRA(2, dropout=0.5), optimizer=SGD(0.0))
    one.state["w.lora_b"] = RNG.standard_normal((2, 5))
    inference = sabir.TrainingSession(one.model, engine="reference")
    inference.state.update(dict(one.state))
    losses = {float(one.step(DATA)["loss"]) for _ in range(4)}
    assert len(losses) == 4
    assert inference.step(DATA, 1)["loss"] == one.step(DATA, 1)["loss"]


def test_which_weights_have_adapters():
    text = (
        '<ir_version: 10, opset_import: ["" : 21]>\n'
        "g (float[N,2] x, int64[N] i) => (float[N,2] y, float[N,2] z) <float[2,2] turned = {1, 2, 3, 4}, float[2,2] both = {2, 1, 0, 3}, float[2,2] looked = {0, 1, 4, 2},"
        " float[2,2] left = {5, 1, 1, 2}, float[2,2] twice = {1, 0, 2, 7}, float[2] s = {1, 1}, float[2] c = {0, 0}, float[2] m = {0, 0}, float[2] v = {1, 1}> {"
        " t = Transpose <perm = [1, 0]> (turned)  a = MatMul (x, t)  u = Transpose (both)  b = MatMul (a, u)  d = MatMul (b, both)"
        " e = Gather (looked, i)  f = MatMul (e, looked)  g = Transpose (d)  h = MatMul (left, g)  k = Transpose (h)  n = BatchNormalization (k, s, c, m, v)"
        " o = MatMul (n, twice)  y = MatMul (o, twice)  z = Add (f, y) }"
    )
    model = prepare(sabir.parse(text), "mse", lora=1, optimizer=SGD(1e-5))
    one = sabir.TrainingSession(model, engine="reference")
    assert list(adapters(one)) == ["turned", "twice"]
    assert not {"m", "v"} & set(one.state)  # statistics stay as well
    feeds = {
        "x": np.float32([[1, -2], [0.5, 3]]),
        "i": np.array([1, 0]),
        "label": np.ones((2, 2), np.float32),
    }
    for _ in range(2):
        one.step(feeds)
    merged = merge_adapters(sabir.parse(text), adapters(one))
    del feeds["label"]
    for name, value in one.run(feeds).items():
        np.testing.assert_allclose(sabir.evaluate(merged, feeds)[name], value, rtol=1e-3)
    chosen = session(lora=LoRA(1, targets=("v*",)), trainable="c")
    assert set(chosen.state) == {"v.lora_a", "v.lora_b", "c", "learning_rate", "training_step"}


def test_what_is_refused(tmp_path):
    found = adapters(session())
    wide = network()
    wide.graph.set_initializer(wide.graph.value("w"), np.zeros((4, 7)))
    taken = network()
    taken.graph.add_initializer("w.lora_a", np.zeros(1))
    np.savez(tmp_path / "none.npz", w=W)
    np.savez(tmp_path / "half.npz", **{"w.lora_a": W, "w.lora_scale": 1.0})
    (tmp_path / "junk.safetensors").write_bytes(b"junk")
    cases = [
        (lambda: LoRA(0), UnsupportedError, "rank of LoRA is 1 or more; got 0"), (lambda: LoRA(1, alpha=-1), UnsupportedError, "the alpha of LoRA"),
        (lambda: LoRA(1, dropout=1.0), UnsupportedError, "dropout of LoRA"), (lambda: session(lora=LoRA(1, targets="q*")), NotFoundError, r"the target 'q\*' of LoRA; there are 'w', 'v'"),
        (lambda: adapters(network()), UnsupportedError, "has no adapters"), (lambda: merge_adapters(session().export(), found), UnsupportedError, "has adapters already"),
        (lambda: merge_adapters(wide, found), FeedError, r"'w' is for a weight \[4,5\], and that of the model is \[4,7\]"), (lambda: session(wide, lora=found), FeedError, "of the model is"),
        (lambda: merge_adapters(sabir.rename(network(), {"w": "ww"}), found), NotFoundError, "no weight 'w' .* is it 'ww'"),
        (lambda: session(taken), UnsupportedError, "'w.lora_a', the name of an adapter"), (lambda: found.save(tmp_path / "a.bin"), UnsupportedError, r"stored in \.npz and \.safetensors files"),
        (lambda: load_adapters(tmp_path / "none.npz"), FeedError, "none.npz: it has no adapters"), (lambda: load_adapters(tmp_path / "half.npz"), FeedError, "the adapter of 'w' needs"),
        (lambda: load_adapters(tmp_path / "junk.safetensors"), FeedError, "junk.safetensors"),
        (lambda: save_safetensors(tmp_path / "s.safetensors", {"s": ArrayTensor(np.array(["a"], object))}), UnsupportedError, "'s' has strings"),
    ]  # fmt: skip
    for call, error, message in cases:
        with pytest.raises(error, match=message):
            call()
    assert not (tmp_path / "s.safetensors").exists()


def test_safetensors_of_every_element_type(tmp_path):
    tensors = {
        str(kind): ArrayTensor(np.arange(5).astype(kind.dtype))
        for kind in sabir.elements.ELEMENTS
        if kind is not sabir.elements.STRING
    }
    save_safetensors(tmp_path / "all.safetensors", tensors)
    assert load_safetensors(tmp_path / "all.safetensors") == tensors
