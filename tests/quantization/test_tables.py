"""Tables of Gather: what becomes integers of 8 bits with a scale for each row, and what stays."""

import numpy as np
import onnxruntime
import pytest

import sabir
from sabir.quantization import quantize_and_report
from support.cases import each_of

RNG = np.random.default_rng(0)
ROWS, COLUMNS = 30, 16
TABLE = (RNG.standard_normal((ROWS, COLUMNS)) * np.logspace(-3, 3, ROWS)[:, None]).astype(np.float32)
INDICES = np.array([[0, 7, -1], [29, 7, 3]])
FORMS = {
    "int4": {"to": "int4"},
    "int8 weights": {"weights_only": True},
    "dynamic": {},
    "static": {"calibration": [{"i": INDICES}]},
}


def embedding(table=TABLE, opset=21, *, shared=False, **options):
    """A lookup of rows, twice from one table if it is `shared`, and a product."""
    b = sabir.Builder(opset)
    i = b.input("i", "int64", ["N", 3])
    w = b.initializer("table", table)
    x = b.Gather(w, i, name="lookup", **options)
    if shared:
        x = b.Add(x, b.Gather(w, b.Abs(i), name="again"))
    b.output(x, "rows")
    width = 3 if options else table.shape[-1]
    b.output(b.MatMul(x, np.eye(width, dtype=np.float32), name="product"), "y")
    return b.model()


def report(model, **options):
    found = quantize_and_report(model, **options)
    return {node.name: node.to or node.reason for node in found.nodes}


@each_of("form", FORMS)
def test_rows_have_scales_of_their_own_in_each_form_of_integers(form):
    model = embedding(opset=17 if form == "dynamic" else 21)
    found = quantize_and_report(model, **FORMS[form])
    sabir.check(found.model)
    assert {n.name: n.to for n in found.nodes}["lookup"] == "int8"
    assert [n.name for n in found.nodes] == ["lookup", "product"]
    rows = sabir.Session(found.model).run({"i": INDICES})["rows"]
    step = np.abs(TABLE).max(axis=1)[INDICES] / 127
    assert (np.abs(rows - TABLE[INDICES]) <= step[..., None] * 0.501).all()
    session = onnxruntime.InferenceSession(sabir.dumps(found.model), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(["rows"], {"i": INDICES})[0], rows)


def test_the_table_is_a_quarter_of_what_it_was():
    table = np.ones((1000, 64), np.float32)
    small = sabir.quantize(embedding(table))
    assert "table" not in {v.name for v in small.graph.initializers}
    assert len(sabir.dumps(small)) < table.nbytes * 0.3


def test_lookups_in_one_table_share_its_integers():
    small = sabir.quantize(embedding(shared=True))
    assert sorted(v.name for v in small.graph.initializers if v.name.startswith("table")) == [
        "table_quantized",
        "table_scale",
    ]


def test_half_precision_stays_in_what_is_read():
    table = TABLE[5:25].astype(np.float16)
    b = sabir.Builder(21)
    i = b.input("i", "int64", ["N"])
    b.output(b.Gather(b.initializer("table", table), i), "rows")
    rows = sabir.Session(sabir.quantize(b.model())).run({"i": [3]})["rows"]
    assert rows.dtype == np.float16
    np.testing.assert_allclose(rows[0], table[3], atol=float(np.abs(table[3]).max()) / 200)


def test_tables_that_stay_say_why():
    b = sabir.Builder(21)
    i = b.input("i", "int64", ["N"])
    w = b.initializer("table", TABLE)
    b.output(b.Gather(w, i, name="lookup"), "rows")
    b.output(b.MatMul(b.input("x", "float", ["M", COLUMNS]), b.Transpose(w), name="head"), "y")
    assert report(b.model(), to="int4")["lookup"] == "something else reads table too, and needs it wide"
    assert report(embedding(), exclude=["lookup"])["lookup"] == "it is excluded"
    infinite = TABLE.copy()
    infinite[3, 3] = np.inf
    assert report(embedding(infinite))["lookup"] == "some of its weights are infinite or no number"


@pytest.mark.parametrize(
    ("table", "options"),
    [(TABLE[:, :7], {}), (TABLE[:1], {}), (TABLE, {"axis": 1}), (TABLE.reshape(2, 15, 16), {})],
    ids=["short rows", "one row", "columns", "three axes"],
)
def test_other_gathers_are_not_reported(table, options):
    assert "lookup" not in report(embedding(table, **options))
