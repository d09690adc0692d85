"""Examples of every room in other opsets: the same values, the same errors of the checker, or a reason.

`tools/conversions.py` converts all examples to all opsets.
"""

import zlib

import numpy as np
import pytest

import sabir
from support.conversions import Case, Proof, errors_of, example_cases, room_cases, targets
from support.rooms import OPERATORS

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # examples divide by zero on purpose

ROOMS = [pytest.param(o, id=f"{o.domain}.{o.name}".removeprefix(".")) for o in OPERATORS]


def sampled(operator, *, each=1):
    """The variants of an example or more of each version of an operator, always the same."""
    cases = {}
    for case in room_cases(operator):
        cases.setdefault((operator.at(case.opset), case.name.partition(" ")[0]), []).append(case)
    order = sorted(cases, key=lambda key: zlib.crc32(key[1].encode()))
    for version in operator.versions:
        for key in [k for k in order if k[0] is version][:each]:
            yield version, cases[key]


def around(version, case):
    """The opsets on the other sides of the boundaries of a version, and the oldest and the newest."""
    operator, every = version.operator, targets(case.domain, case.opset)
    following = next((v.since for v in operator.versions if v.since > version.since), 0)
    return [t for t in every if t in {version.since - 1, following, every[0], every[-1]}]


@pytest.mark.parametrize("operator", ROOMS)
def test_examples_compute_the_same_around_each_boundary(operator):
    for version, cases in sampled(operator):
        for case in cases:
            proof = Proof(case)
            for target in around(version, case):
                proof.to(target)


@pytest.mark.parametrize("operator", ROOMS)
def test_examples_come_back_from_older_opsets(operator):
    for version, cases in sampled(operator):
        case = cases[-1]  # of constants, where it has any
        proof, errors = Proof(case), errors_of(case.model)
        for target in {version.since - 1, 13} & set(range(1, case.opset)):
            there = proof.to(target)
            if isinstance(there, sabir.Model):
                back = Proof(case._replace(model=there)).to(case.opset)
                assert isinstance(back, sabir.Model), back
                assert errors_of(back) <= errors


def test_only_random_operators_and_domains_of_one_version_have_no_cases():
    without = [o for o in OPERATORS if any(example_cases(o)) and not any(room_cases(o))]
    several = [o for o in without if not o.domain or len(o.versions) > 1]
    assert all(o.random for o in several)
    assert len(several) < 20


@pytest.mark.parametrize(
    ("shape", "axis", "operators"),
    [
        ([2, 3, 1, 1], 1, ["Softmax"]),
        ([2, 1, 3, 1], 1, ["Softmax"]),
        ([2, 1, 1, 1], 1, ["Softmax"]),
        ([2, 3, 2, 1], 1, ["Flatten", "Softmax", "Reshape"]),
        (["N", 3, "H", 1], -3, ["Flatten", "Softmax", "Reshape"]),
        (["N", 3, 1, 1], -3, ["Softmax"]),
        (["N", 3, "H", 1], 2, ["Softmax"]),
    ],
)
def test_a_softmax_of_rows_is_one_of_an_axis_where_the_columns_are_one_dimension(shape, axis, operators):
    b = sabir.Builder(12)
    b.output(b.Softmax(b.input("x", "float", shape), axis=axis), "y")
    model = b.model()
    x = np.arange(np.prod(sizes := [2 if isinstance(d, str) else d for d in shape])) / 7
    proof = Proof(Case("rows", model, {"x": x.reshape(sizes).astype(np.float32)}, "", 1e-6))

    there = proof.to(13)

    assert [n.op for n in there.graph if n.op != "Shape"] == operators
    if len(operators) == 1:
        assert [n.op for n in Proof(proof.case._replace(model=there)).to(12).graph] == ["Softmax"]
