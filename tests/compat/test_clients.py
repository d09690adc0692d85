"""Packages that import onnx work unchanged on Sabir, and onnxruntime computes the same with what they write."""

import subprocess
import sys

SCRIPT = """
import warnings
warnings.simplefilter("ignore")
import numpy as np
import onnx
import onnxruntime
import onnxslim
from onnxruntime.quantization import QuantType, quantize_dynamic
from skl2onnx import to_onnx
from sklearn.ensemble import RandomForestClassifier

assert onnx.__spec__.name == "sabir.compat.onnx"


def run(model, feeds):
    data = model if isinstance(model, str) else model.SerializeToString()
    return onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, feeds)


x = np.random.default_rng(0).random((60, 5), np.float32)
forest = RandomForestClassifier(3, random_state=0).fit(x, x[:, 0] > 0.5)
model = to_onnx(forest, x[:1], options={"zipmap": False})
onnx.checker.check_model(model, full_check=True)
assert (run(model, {"X": x})[0] == forest.predict(x)).all()

h = onnx.helper
w = onnx.numpy_helper.from_array(np.random.default_rng(1).random((5, 40), np.float32), "w")
nodes = [h.make_node("Identity", ["x"], ["t"]), h.make_node("MatMul", ["t", "w"], ["u"]), h.make_node("Relu", ["u"], ["y"])]
ports = [h.make_tensor_value_info(name, 1, ["N", size]) for name, size in (("x", 5), ("y", 40))]
model = h.make_model(h.make_graph(nodes, "g", ports[:1], ports[1:], [w]), opset_imports=[h.make_opsetid("", 21)], ir_version=10)
expected = run(model, {"x": x})[0]
slim = onnxslim.slim(model)
assert len(slim.graph.node) < 3
np.testing.assert_allclose(run(slim, {"x": x})[0], expected, rtol=1e-5)
onnx.save(model, "model.onnx")
quantize_dynamic("model.onnx", "small.onnx", weight_type=QuantType.QUInt8)
np.testing.assert_allclose(run("small.onnx", {"x": x})[0], expected, atol=0.1)
print("the same")
"""


def test_packages_write_models_that_compute_the_same(tmp_path):
    (tmp_path / "clients.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-m", "sabir.compat", "clients.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.endswith("the same\n"), done.stderr
