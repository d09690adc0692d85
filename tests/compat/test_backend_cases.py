"""The tests of engines: cases of the operators, folders in the official layout, and the runner."""

import io
import json
import unittest
from types import SimpleNamespace

import numpy as np
import pytest

import sabir
from sabir.compat import onnx
from sabir.compat.onnx.backend.base import Backend, BackendRep
from sabir.compat.onnx.backend.test import BackendTest, cmd_tools, loader, runner
from sabir.compat.onnx.backend.test.case import _examples, base, collect_snippets, model, node
from sabir.compat.onnx.backend.test.case.test_case import TestCase
from support.cases import each_of

OPERATORS = ("If", "Optional", "Relu", "SequenceAt", "StringConcat", "ZipMap")
h = onnx.helper


class Prepared(BackendRep):
    """A session of the interpreter, asked by position."""

    def __init__(self, model):
        self.session = sabir.Session(model.SerializeToString(), engine="reference")
        self.names = [value.name for value in model.graph.input]

    def run(self, inputs, **_):
        return list(self.session.run(dict(zip(self.names, inputs, strict=True))).values())


class OnSabir(Backend):
    """Sabir as an engine of the CPU."""

    @classmethod
    def prepare(cls, model, *_, **__):
        return Prepared(model)

    @classmethod
    def supports_device(cls, device):
        return device == "CPU"


class Doubling(OnSabir):
    """An engine whose results are wrong."""

    @classmethod
    def prepare(cls, model, *_, **__):
        right = Prepared(model)
        return SimpleNamespace(run=lambda inputs: [2 * value for value in right.run(inputs)])


@pytest.fixture
def relu(monkeypatch):
    """The runner has only cases of Relu."""
    use(monkeypatch, node.collect_testcases("Relu"))


def use(monkeypatch, cases):
    monkeypatch.setattr(runner, "load_model_tests", lambda kind: [c for c in cases if c.kind == kind])


def outcome(suite):
    """The numbers of tests that passed, failed, were skipped, and failed as expected."""
    result = unittest.TextTestRunner(stream=io.StringIO()).run(suite)
    broken = len(result.failures) + len(result.errors)
    others = len(result.skipped), len(result.expectedFailures)
    return result.testsRun - broken - sum(others), broken, *others


def in_class(tests):
    return unittest.defaultTestLoader.loadTestsFromTestCase(tests)


def test_each_example_with_expected_values_is_a_case():
    for operator in _examples._operators()[::12]:
        known = [e for e in operator.all_examples() if e.expect is not None and len(e.expect) == e.outputs]
        kept = [e for e in known if not operator.at(e.opset).removed]
        names = [case.name for case in _examples._cases_of(operator)]
        assert len(set(names)) == len(names) == len(kept)
        assert all(name.startswith("test_") for name in names)
    assert {"", "ai.onnx.ml"} <= {operator.domain for operator in _examples._operators()}
    assert not any(operator.random for operator in _examples._operators())


def test_an_engine_passes_the_cases_that_it_computes(monkeypatch):
    cases = [case for name in OPERATORS for case in node.collect_testcases(name)]
    use(monkeypatch, cases)

    assert outcome(BackendTest(OnSabir, __name__).test_suite) == (len(cases), 0, len(cases), 0)


@pytest.mark.usefixtures("relu")
def test_wrong_results_fail():
    passed, failed, _, _ = outcome(BackendTest(Doubling).exclude("_cuda$").test_suite)

    assert failed > passed  # doubled zeros are right


@pytest.mark.usefixtures("relu")
def test_patterns_choose_tests():
    tests = BackendTest(Doubling, __name__).include("relu_14_3").exclude("cuda").xfail("relu_14_3_cpu")

    assert outcome(tests.test_suite)[3] == 1
    assert outcome(in_class(tests.tests))[3] == 1
    assert list(tests.test_cases) == ["OnnxBackendNodeModelTest"]
    assert tests.tests.__module__ == __name__


@pytest.mark.usefixtures("relu")
def test_a_report_marks_the_tests_with_the_models(pytestconfig):
    pytestconfig.addinivalue_line(
        "markers", "onnx_coverage(model, category): as the plugin of onnx declares it"
    )
    tests = (
        BackendTest(OnSabir).enable_report().include("relu_14_3_cpu").test_cases["OnnxBackendNodeModelTest"]
    )
    (mark,) = tests.test_relu_14_3_cpu.pytestmark

    tests("test_relu_14_3_cpu").debug()

    assert mark.name == "onnx_coverage"
    assert mark.args[0][0].graph.node[0].op_type == "Relu"
    assert mark.args[1] == "NodeModel"


def test_an_engine_says_which_models_it_runs(monkeypatch):
    class Refusing(OnSabir):
        @classmethod
        def is_compatible(cls, model):
            return model.opset_import[0].version > 13

    cases = node.collect_testcases("Relu")
    use(monkeypatch, cases)

    passed, failed, skipped, _ = outcome(BackendTest(Refusing).test_suite)

    assert (failed, passed + skipped) == (0, 2 * len(cases))
    assert 0 < passed < len(cases)


def test_options_of_a_case(monkeypatch):
    use(monkeypatch, [case for case in node.collect_testcases("Relu") if case.name == "test_relu_14_3"])

    assert outcome(
        BackendTest(Doubling, test_kwargs={"test_relu_14_3": {"rtol": 9.0, "atol": 9.0}}).test_suite
    )[0]


def test_folders_in_the_official_layout(tmp_path, monkeypatch):
    monkeypatch.setattr(
        cmd_tools, "load_model_tests", lambda: [c for n in OPERATORS for c in node.collect_testcases(n)]
    )
    monkeypatch.setattr("sys.argv", ["backend-test-tools", "generate-data", "-o", str(tmp_path)])
    cmd_tools.main()
    (tmp_path / "node" / "test_relu_14_3" / "data.json").write_text('{"rtol": 0.5}')

    cases = loader.load_model_tests(str(tmp_path), "node")

    assert cases == loader.load_model_tests(str(tmp_path))
    assert {case.name: case.rtol for case in cases}["test_relu_14_3"] == pytest.approx(0.5)
    use(monkeypatch, cases)
    assert outcome(BackendTest(OnSabir).exclude("cuda").test_suite) == (len(cases), 0, len(cases), 0)
    with pytest.raises(ValueError, match="no cases of the kind 'real'; it has \\['node'\\]"):
        loader.load_model_tests(str(tmp_path), "real")


def test_a_light_model_with_dummy_inputs(tmp_path, monkeypatch):
    ports = [h.make_tensor_value_info(name, 1, ["N", 4]) for name in "xy"]
    graph = h.make_graph([h.make_node("Neg", ["x"], ["y"])], "g", ports[:1], ports[1:])
    folder = tmp_path / "real" / "test_small"
    folder.mkdir(parents=True)
    (tmp_path / "light").mkdir()
    onnx.save(h.make_model(graph), tmp_path / "light" / "light_small.onnx")
    url = "onnx/backend/test/data/light/light_small.onnx"
    (folder / "data.json").write_text(json.dumps({"url": url, "model_name": "small"}))
    cases = loader.load_model_tests(str(tmp_path), "real")
    use(monkeypatch, cases)

    # without recorded outputs those of the evaluator are expected
    assert outcome(BackendTest(OnSabir).test_suite) == (1, 0, 1, 0)
    tensor = onnx.numpy_helper.from_array(np.float32([[0, -0.25, -0.5, -0.7]]))
    onnx.save_tensor(tensor, tmp_path / "light" / "light_small_output_0.pb")
    assert outcome(BackendTest(OnSabir).test_suite) == (0, 1, 1, 0)


def test_models_at_an_address_are_not_fetched(tmp_path, monkeypatch):
    monkeypatch.setenv("ONNX_MODELS", str(tmp_path))
    case = TestCase("test_far", "far", "https://example.org/far.tar.gz", None, None, None, "real", 1e-3, 1e-7)
    use(monkeypatch, [case])

    with pytest.raises(
        FileNotFoundError, match="Sabir fetches nothing, so get https://example.org/far.tar.gz"
    ):
        BackendTest.prepare_model_data(case)

    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "model.onnx").write_bytes(b"")
    assert BackendTest.prepare_model_data(case) == str(tmp_path / "far")


def test_programs_add_cases(monkeypatch):
    monkeypatch.setattr(node, "_added", {})
    monkeypatch.setattr(base.Base, "snippets", {})
    x = np.array([[1, -2]], np.float32)

    class Absolute(base.Base):
        @staticmethod
        def export():
            node.expect(h.make_node("Abs", ["x"], ["y"]), [x], [abs(x)], "test_absolute")

        @staticmethod
        def export_items():
            items = h.make_node("SequenceAt", ["s", "i"], ["y"])
            node.expect(items, [[x, x[0]], np.int64(1)], [x[0]], "test_absolute_items")

    first, second = (node.collect_testcases(name)[-1] for name in ("Abs", "SequenceAt"))
    assert (first.name, second.name) == ("test_absolute", "test_absolute_items")
    use(monkeypatch, [first, second])
    assert outcome(BackendTest(OnSabir).test_suite) == (2, 0, 2, 0)
    (name, code), (other, _) = collect_snippets()["Absolute"]
    assert (name, other) == ("absolute", "items")
    assert code.startswith("node.expect(")
    with pytest.raises(ValueError, match="another case has the name 'test_absolute'"):
        Absolute.export()
    with pytest.raises(ValueError, match="the node has the values \\['x'\\], and 2 arrays are given"):
        node.expect(h.make_node("Abs", ["x"], ["y"]), [x, x], [x], "test_two")


def test_programs_add_models(monkeypatch):
    monkeypatch.setattr(model, "_added", {})
    ports = [h.make_tensor_value_info(name, 1, [2]) for name in "xy"]
    made = h.make_model(h.make_graph([h.make_node("Neg", ["x"], ["y"])], "negated", ports[:1], ports[1:]))

    model.expect(made, [np.float32([1, 2])], [np.float32([-1, -2])])

    assert [case.name for case in loader.load_model_tests(kind="simple")] == ["test_negated"]
    with pytest.raises(ValueError, match="another case has the name 'test_negated'"):
        model.expect(made, [], [])
    with pytest.raises(ValueError, match="there are no cases of the kind 'other'"):
        loader.load_model_tests(kind="other")


ONE = np.array([1, 2], np.float32)
NEAR = {"a": ([ONE], [ONE + 1e-5]), "strings": ([np.array(["a"])], [np.array(["a"], object)]), "nothing": ([None], [None]),
        "nested": ([[ONE, {"k": ONE}]], [[ONE, {"k": ONE}]])}  # fmt: skip
FAR = {
    "there are 0 outputs, expected are 1": ([ONE], []),
    "output 0 has the shape (1,), expected is (2,)": ([ONE], [ONE[:1]]),
    "output 0 has the type float64, expected is float32": ([ONE], [ONE.astype(float)]),
    "output 0 is list, and an array is expected": ([ONE], [[1.0, 2.0]]),
    "output 0 is float, and a list is expected": ([[ONE]], [1.0]),
    "output 0 has 1 items, expected are 2": ([[ONE, ONE]], [[ONE]]),
    "output 0 is list, and a dict is expected": ([{"k": ONE}], [[ONE]]),
    "output 0 has the keys ['l'], expected are ['k']": ([{"k": ONE}], [{"l": ONE}]),
    "output 0 is ndarray, and None is expected": ([None], [ONE]),
    "output 0 is ['b'], expected is ['a']": ([np.array(["a"], object)], [np.array(["b"], object)]),
    "output 0[0]['k']": ([[{"k": ONE}]], [[{"k": -ONE}]]),
}


@each_of("expected, got", [pytest.param(*pair, id=name) for name, pair in NEAR.items()])
def test_near_outputs_are_similar(expected, got):
    BackendTest.assert_similar_outputs(expected, got, 1e-3, 1e-7)


@each_of("message, pair", list(FAR.items()))
def test_other_outputs_are_not_similar(message, pair):
    with pytest.raises(AssertionError) as error:
        BackendTest.assert_similar_outputs(pair[0], pair[1], 1e-3, 1e-7)
    assert message in str(error.value)


def test_outputs_without_a_length():
    with pytest.raises(
        TypeError, match="the engine returned float for the model; return the list of outputs"
    ):
        BackendTest.assert_similar_outputs([ONE], 1.0, 1e-3, 1e-7)


def test_a_function_is_tried_again(monkeypatch):
    monkeypatch.setattr(runner, "time", SimpleNamespace(sleep=lambda _: None))
    calls = []

    @runner.retry_execute(3)
    def unreliable():
        calls.append(1)
        if len(calls) < 3:
            raise OSError("no answer")
        return "done"

    assert unreliable() == "done"
    with pytest.raises(ValueError, match="called at least once"):
        runner.retry_execute(0)


def test_names_of_tests_are_checked(monkeypatch):
    cases = node.collect_testcases("Relu")[:1]
    use(monkeypatch, [*cases, *cases])
    with pytest.raises(ValueError, match="two tests of NodeModel have the name"):
        BackendTest(OnSabir)
    cases[0].name = "relu"
    use(monkeypatch, cases)
    with pytest.raises(ValueError, match="begins with test_, and this one is 'relu'"):
        BackendTest(OnSabir)
