"""Comparison with documents of operator sets: an operator has its own version, and not that of the import."""

import pytest

import sabir
from sabir.ir import OperatorEntry, OperatorSet
from sabir.opsets import STANDARD

DOCUMENTS = STANDARD.with_operator_sets(
    OperatorSet("com.b", 1, [OperatorEntry("Q", 1), OperatorEntry("P", 1)]),
    OperatorSet("com.b", 2, [OperatorEntry("Q", 1), OperatorEntry("P", 2)]),
)


def model(version, op):
    return sabir.parse(
        f'<ir_version: 10, opset_import: ["" : 21, "com.b" : {version}]>'
        f" g (float[N] x) => (float[N] y) {{ y = com.b.{op} (x) }}"
    )


def test_an_operator_that_did_not_change_is_the_same():
    old, new = model(1, "Q"), model(2, "Q")
    assert sabir.accepts(old, new, registry=DOCUMENTS)
    assert [c.kind for c in sabir.compare(old, new, registry=DOCUMENTS).changes] == ["import-changed"]


def test_an_operator_that_changed_is_another_one():
    old, new = model(1, "P"), model(2, "P")
    assert list(sabir.accepts(old, new, registry=DOCUMENTS).reasons) == [
        "opset_import: com.b.P:2 is called; the imports of the old model have com.b.P:1"
    ]
    assert sabir.compare(old, new, registry=DOCUMENTS).required is not None


@pytest.mark.parametrize("op", ["P", "Q"])
def test_without_documents_the_import_decides(op):
    assert not sabir.accepts(model(1, op), model(2, op))
