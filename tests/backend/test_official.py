# ruff: file-ignore[banned-api]  the suite, its cases and its runner are onnx's
"""The official backend suite of the installed onnx, through its own runner and by its own rules."""

import warnings

import numpy as np
import onnx
import pytest
from onnx.backend.base import Backend, BackendRep
from onnx.backend.test.runner import Runner

import sabir
from sabir.opsets import STANDARD

# what the suite asks and nobody can answer
RANDOM = "random numbers; the case holds those of one numpy generator"
EXCLUDED = {
    "test_gradient_of_add": "Gradient takes the graph around it apart, and no function of its inputs is it",
    "test_gradient_of_add_and_mul": "as test_gradient_of_add",
    "test_bernoulli": RANDOM,
    "test_bernoulli_double": RANDOM,
    "test_bernoulli_double_expanded": RANDOM,
    "test_bernoulli_expanded": RANDOM,
    "test_bernoulli_seed": RANDOM,
    "test_bernoulli_seed_expanded": RANDOM,
    "test_training_dropout": RANDOM,
    "test_training_dropout_default": RANDOM,
    "test_training_dropout_default_mask": RANDOM,
    "test_training_dropout_mask": RANDOM,
}


class Prepared(BackendRep):
    """A session, asked by position."""

    def __init__(self, model):
        self.session = sabir.Session(model.SerializeToString())
        constants = {t.name for t in model.graph.initializer}
        self.names = [v.name for v in model.graph.input if v.name not in constants]

    def run(self, inputs, **_):
        return list(self.session.run(dict(zip(self.names, inputs, strict=True))).values())


class OnSabir(Backend):
    @classmethod
    def prepare(cls, model, device="CPU", **_):
        assert device == "CPU"
        return Prepared(model)

    @classmethod
    def supports_device(cls, device):
        return device == "CPU"


class Suite(Runner):
    """The official runner, with a reason for each case that it leaves out."""

    def __init__(self):
        self.left_out = {}  # by case name: the reason
        self.homeless = {}  # by case name: the operators without a room
        self.random = {}  # by case name: the case
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the cases are computed here, divisions by zero among them
            super().__init__(OnSabir, __name__)

    def _add_model_test(self, model_test, kind):
        model = model_test.model
        if model is None and model_test.model_dir is not None:
            model = onnx.load(f"{model_test.model_dir}/model.onnx")
        homeless = sorted(set(without_a_room(model))) if model is not None else []
        reason = EXCLUDED.get(model_test.name)
        if homeless:
            self.homeless[model_test.name] = homeless
            reason = f"no room yet: {', '.join(homeless)}"
        elif reason is RANDOM:
            self.random[model_test.name] = model_test
        if reason is None:
            super()._add_model_test(model_test, kind)
        else:
            self.left_out[model_test.name] = reason

    def _add_test(self, category, test_name, test_func, report_item, devices=(), **kwargs):
        super()._add_test(category, test_name, test_func, report_item, ("CPU",), **kwargs)

    @classmethod
    def assert_similar_outputs(cls, ref_outputs, outputs, rtol, atol, model_dir=None):
        # the official comparison goes through the rows of a sequence's item, and a scalar has none
        if isinstance(outputs, np.ndarray):
            ref_outputs, outputs = [ref_outputs], [outputs]
        super().assert_similar_outputs(ref_outputs, outputs, rtol, atol, model_dir)


def without_a_room(model):
    """The operators that a model calls and the registry does not have."""
    versions = {o.domain: o.version for o in model.opset_import}
    local = {(f.domain, f.name) for f in model.functions}
    for node in nodes_of(model.graph, *model.functions):
        version = STANDARD.find_version(node.domain, node.op_type, versions.get(node.domain))
        if version is None and (node.domain, node.op_type) not in local:
            yield ".".join(filter(None, (node.domain, node.op_type)))


def nodes_of(*graphs):
    for graph in graphs:
        for node in graph.node:
            yield node
            for attribute in node.attribute:
                yield from nodes_of(*attribute.graphs, *([attribute.g] if attribute.HasField("g") else ()))


SUITE = Suite()
globals().update(SUITE.test_cases)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """The runner writes the light models' inputs below ONNX_HOME."""
    monkeypatch.setenv("ONNX_HOME", str(tmp_path))


@pytest.mark.parametrize("name", sorted(SUITE.random))
def test_random_outputs_have_the_type_and_shape_asked_for(name):
    case = SUITE.random[name]
    for inputs, expected in case.data_sets:
        for got, wanted in zip(Prepared(case.model).run(inputs), expected, strict=True):
            assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)


def test_what_is_left_out():
    without_reason = {n for n in SUITE.left_out if n not in SUITE.homeless and n not in EXCLUDED}
    assert not without_reason
    assert sum(map(len, SUITE.homeless.values())) == 0, sorted({o for m in SUITE.homeless.values() for o in m})
