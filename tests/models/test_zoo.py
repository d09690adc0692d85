"""Real architectures agree with onnxruntime.

Their structures lie outside this repository: `SABIR_ZOO` names the folder, and `../shared/zoo` beside the
checkout is looked at too.
"""

import importlib.util
import os
import pathlib

import numpy as np
import onnxruntime
import pytest

import sabir

PLACES = (os.environ.get("SABIR_ZOO", ""), pathlib.Path(__file__).parents[2].parent / "shared" / "zoo")
ZOO = next((pathlib.Path(p) for p in PLACES if p and (pathlib.Path(p) / "materialize.py").exists()), None)
NAMES = ("bert_base", "bilstm", "convnext_tiny", "gpt2", "mobilenetv2", "resnet50", "vit_small")
SIZES = {"batch": 2, "seq": 7}

pytestmark = pytest.mark.skipif(ZOO is None, reason="the zoo's structures are not beside this checkout")


@pytest.fixture(params=NAMES)
def path(request, tmp_path):
    spec = importlib.util.spec_from_file_location("materialize", ZOO / "materialize.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    target = tmp_path / f"{request.param}.onnx"
    module.materialize(ZOO / f"{request.param}.structure.gz", target)
    yield target
    target.unlink()  # a model takes up to 435 MB


def random_feeds(session):
    rng = np.random.default_rng(7)
    feeds = {}
    for port in session.inputs:
        shape = [d if isinstance(d, int) else SIZES[str(d)] for d in port.shape]
        if port.name == "attention_mask":
            feeds[port.name] = np.tril(np.ones(shape, np.int64))
        elif port.type.element.is_integer:
            feeds[port.name] = rng.integers(0, 1000, shape)
        else:
            feeds[port.name] = rng.standard_normal(shape, np.float32)
    return feeds


def test_models_agree_with_onnxruntime(path, engine):
    model = sabir.load(path)
    sabir.check(model)
    session = sabir.Session(model, engine=engine)
    feeds = random_feeds(session)

    got = session.run(feeds)

    expected = onnxruntime.InferenceSession(path).run(None, feeds)
    for value, wanted in zip(got.values(), expected, strict=True):
        assert value.dtype == wanted.dtype
        assert value.shape == wanted.shape
        assert np.abs(value - wanted).max() <= 1e-4 * np.ptp(np.asarray(wanted))

    model = sabir.infer(model, strict=True)
    values = [v for n in model.graph for v in n.outputs if v is not None]
    assert not [v for v in values if v.type is None or v.type.shape is None or None in v.type.shape]
