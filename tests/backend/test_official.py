# ruff: file-ignore[banned-api]  the suite, its cases and its runner are onnx's
"""The official backend suite of the installed onnx, through its own runner and by its own rules."""

import warnings

import numpy as np
import pytest
from onnx.backend.base import Backend, BackendRep
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

import sabir
from support.engines import DEFAULT, ENGINES

KINDS = ("node", "real", "simple", "pytorch-converted", "pytorch-operator")
RANDOM = (
    "random numbers: the case holds those that one numpy generator drew; dtype and shape are tested below"
)
EQUAL_LOGITS = (
    "all 1000 logits are equal and near 9e9, where neighbouring floats are 1024 apart: Softmax shows the order in which "
    "the BLAS of numpy adds; tests/models/test_light.py compares the logits"
)
EXCLUDED = {
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
    "test_squeezenet": EQUAL_LOGITS,
}

# the answer was computed with every step of Softmax rounded to float16; rounded once, as here, the result is
# closer to the exact one and up to two float16 numbers away from it, of which the suite allows one
# zeros of the inverse DFT are 2e-7 in the answer, a rounding of single precision: here they are nearer to 0
TOLERANCES = {
    "test_attention_4d_causal_fp16_expanded": {"rtol": 2e-3},
    "test_dft_inverse_opset19": {"atol": 1e-6},
}


class Prepared(BackendRep):
    """A session, asked by position."""

    def __init__(self, model, engine):
        self.session = sabir.Session(model.SerializeToString(), engine=engine)
        constants = {t.name for t in model.graph.initializer}
        self.names = [v.name for v in model.graph.input if v.name not in constants]

    def run(self, inputs, **_):
        with warnings.catch_warnings():
            # the cases of SequenceMap declare items as float[N] of sizes that differ, against Spec/ir.txt
            warnings.filterwarnings("ignore", r"(in|out)put .*, item \d is declared", sabir.SabirWarning)
            results = list(self.session.run(dict(zip(self.names, inputs, strict=True))).values())
        for result in arrays_in(results):
            assert result.flags.writeable
            assert not any(np.may_share_memory(result, given) for given in arrays_in(inputs))
        return results


def arrays_in(values):
    """The arrays among some values and in their sequences and maps."""
    for value in values:
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, (list, dict)):
            yield from arrays_in(value if isinstance(value, list) else value.values())


def backend_on(engine):
    """Return the backend that runs models with an engine."""

    class OnSabir(Backend):
        @classmethod
        def prepare(cls, model, device="CPU", **_):
            assert device == "CPU"
            return Prepared(model, engine)

        @classmethod
        def supports_device(cls, device):
            return device == "CPU"

    return OnSabir


class Suite(Runner):
    """The official runner, for the CPU alone and without the cases that cannot run."""

    def __init__(self, engine):
        self.random = {}  # the cases that draw random numbers, by name
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the cases are computed here, divisions by zero among them
            super().__init__(backend_on(engine), __name__, TOLERANCES)

    def _add_model_test(self, model_test, kind):
        reason = EXCLUDED.get(model_test.name)
        if reason is RANDOM:
            self.random[model_test.name] = model_test
        elif reason is None:
            super()._add_model_test(model_test, kind)

    def _add_test(self, *args, **kwargs):
        super()._add_test(*args, devices=("CPU",), **kwargs)

    @classmethod
    def assert_similar_outputs(cls, ref_outputs, outputs, rtol, atol, model_dir=None):
        # the official comparison goes through the rows of a sequence's item, and a scalar has none
        if isinstance(outputs, np.ndarray):
            ref_outputs, outputs = [ref_outputs], [outputs]
        super().assert_similar_outputs(ref_outputs, outputs, rtol, atol, model_dir)


pytestmark = pytest.mark.usefixtures("home")
SUITES = {engine: Suite(engine) for engine in ENGINES}
for _engine, _suite in SUITES.items():
    globals().update({f"{name}_on_{_engine}": cases for name, cases in _suite.test_cases.items()})
SUITE = SUITES[DEFAULT]


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The runner writes the light models' inputs below ONNX_HOME."""
    monkeypatch.setenv("ONNX_HOME", str(tmp_path))
    monkeypatch.delenv("ONNX_MODELS", raising=False)


@pytest.mark.parametrize("name", sorted(SUITE.random))
def test_random_outputs_have_the_type_and_shape_asked_for(name, engine):
    case = SUITE.random[name]
    for inputs, expected in case.data_sets:
        for got, wanted in zip(Prepared(case.model, engine).run(inputs), expected, strict=True):
            assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)


def test_only_what_is_named_here_is_left_out():
    run = sum(len(cases) for cases in SUITE._test_items.values())
    every = [case for kind in KINDS for case in load_model_tests(kind=kind)]
    assert run + len(EXCLUDED) == len(every)
    assert len(every) > 2000
