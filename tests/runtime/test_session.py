import numpy as np
import pytest

import sabir
from sabir.base import FileError, SchemaError, UnsupportedError
from sabir.runtime import ENGINES


@pytest.fixture
def model():
    b = sabir.Builder(21)
    x = b.input("x", "float", ["N", 3])
    b.output(b.Relu(x), "y", "float", ["N", 3])
    return b.model()


def test_a_session_tells_its_inputs_and_outputs(model):
    session = sabir.Session(model)
    (x,), (y,) = session.inputs, session.outputs
    assert (x.name, str(x.type), x.optional) == ("x", "float[N,3]", False)
    assert [str(d) for d in x.shape] == ["N", "3"]
    assert (y.name, str(y.type)) == ("y", "float[N,3]")
    assert session.engine == "compiled"


def test_a_session_takes_models_paths_and_bytes(model, tmp_path):
    sabir.save(model, tmp_path / "m.onnx")
    x = np.array([[-1, 0, 1]], np.float32)
    for source in (model, tmp_path / "m.onnx", str(tmp_path / "m.onnx"), sabir.dumps(model)):
        assert sabir.Session(source).run({"x": x})["y"].tolist() == [[0, 0, 1]]


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_are_bounded(model, threads):
    session = sabir.Session(model, threads=threads)
    assert session.run({"x": np.ones((1, 3), np.float32)}, ["y"])["y"].tolist() == [[1, 1, 1]]


def test_bad_options_are_told(model):
    with pytest.raises(UnsupportedError, match="no engine 'gpu'; the engines are auto, compiled, reference"):
        sabir.Session(model, engine="gpu")
    with pytest.raises(
        UnsupportedError, match="no engine .'compiled'.; the engines are auto, compiled, reference"
    ):
        sabir.Session(model, engine=["compiled"])
    for threads in (0, "2", 1.5):
        with pytest.raises(UnsupportedError, match="threads must be a number, 1 or more, or None; got "):
            sabir.Session(model, threads=threads)
    with pytest.raises(UnsupportedError, match="a session runs on the CPU and has no `providers`"):
        sabir.Session(model, providers=["CPUExecutionProvider"])
    with pytest.raises(FileError, match="no such file"):
        sabir.Session("nowhere.onnx")
    for precision in ("high", None, ["fast"]):
        with pytest.raises(UnsupportedError, match="precision must be 'exact' or 'fast'; got "):
            sabir.Session(model, precision=precision)


def test_what_is_wrong_with_a_model_names_its_file(model, tmp_path):
    next(iter(model.graph)).op = "Rleu"
    sabir.save(model, tmp_path / "m.onnx")
    with pytest.raises(SchemaError, match=r"m\.onnx: Rleu .* is it 'Relu'"):
        sabir.Session(tmp_path / "m.onnx")
    with pytest.raises(SchemaError, match=r"^Rleu "):
        sabir.Session(model)


def test_a_session_runs_an_engine_of_the_table(model, monkeypatch):
    class Doubling:
        """An engine of which a session knows the protocol alone."""

        inputs, outputs = (), ()

        def __init__(self, loaded, options):
            self.loaded, self.options = loaded, options

        def run(self, feeds, outputs=None):
            return {name: 2 * value for name, value in feeds.items()} | {"outputs": outputs}

    monkeypatch.setitem(ENGINES, "doubling", Doubling)
    session = sabir.Session(model, engine="doubling", strict=True, limits=sabir.Limits(nodes=7))
    assert session.run({"x": 3}) == {"x": 6, "outputs": None}
    assert session.run({"x": 3}, "y") == {"x": 6, "outputs": ("y",)}
    assert repr(session).endswith("engine 'doubling'>")
    assert session._engine.loaded is model
    assert (session._engine.options.strict, session._engine.options.limits.nodes) == (True, 7)
    with pytest.raises(UnsupportedError, match="the engines are auto, compiled, reference, doubling"):
        sabir.Session(model, engine="gpu")
