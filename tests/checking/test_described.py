"""Several descriptions of one value in value_info: the same, compatible, contradictory."""

import numpy as np
import onnx  # ruff: ignore[banned-api]  its printer writes what the text reader must take
import pytest
from google.protobuf import text_format

import sabir
from sabir.checking import findings
from sabir.evaluation import Runner
from sabir.proto import ModelProto
from sabir.repairing import fix_in_place


def dims(*sizes):
    said = (
        f'dim {{ dim_param: "{d}" }}' if isinstance(d, str) else f"dim {{ dim_value: {d} }}" for d in sizes
    )
    return f"shape {{ {' '.join(said)} }}"


def info(name, shape=None, element=1):
    kind = "" if element is None else f"type {{ tensor_type {{ elem_type: {element} {shape or ''} }} }}"
    return f'value_info {{ name: "{name}" {kind} }}'


def model(*infos):
    """A model of two nodes, with entries in value_info for what is between them."""
    ports = 'name: "{}" type {{ tensor_type {{ elem_type: 1 shape {{ dim {{ dim_param: "N" }} }} }} }}'
    text = f"""ir_version: 8 opset_import {{ version: 17 }} graph {{ name: "g"
        node {{ op_type: "Neg" input: "x" output: "t" }} node {{ op_type: "Neg" input: "t" output: "y" }}
        input {{ {ports.format("x")} }} output {{ {ports.format("y")} }} {" ".join(infos)} }}"""
    return sabir.loads(text_format.Parse(text, ModelProto()).SerializeToString())


N, FOUR, OPEN, MATRIX = dims("N"), dims(4), "", dims("N", 1)
CASES = {
    "once": ((info("t", N),), []),
    "the same": ((info("t", N), info("t", N)), []),
    "the same three times": ((info("t", N),) * 3, []),
    "a name and a number": ((info("t", N), info("t", FOUR)), [("GRAPH019", "warning")]),
    "without a shape": ((info("t", N), info("t", OPEN)), [("GRAPH019", "warning")]),
    "without a type": ((info("t", N), info("t", element=None)), [("GRAPH019", "warning")]),
    "one of three differs": ((info("t", N), info("t", FOUR), info("t", N)), [("GRAPH019", "warning")]),
    "other ranks": ((info("t", N), info("t", MATRIX)), [("GRAPH010", "error")]),
    "other elements": ((info("t", N), info("t", N, element=7)), [("GRAPH010", "error")]),
    "other sizes": ((info("t", FOUR), info("t", dims(5))), [("GRAPH010", "error")]),
}


@pytest.mark.parametrize("case", CASES)
def test_descriptions_of_one_value(case):
    infos, expected = CASES[case]
    assert [(f.rule, f.severity) for f in findings(model(*infos), ignore=["TYPE009"])] == expected


@pytest.mark.parametrize("case", CASES)
def test_the_text_of_a_model_described_twice_is_read(case):
    made = model(*CASES[case][0])
    read = sabir.parse(onnx.printer.to_text(onnx.load_from_string(sabir.dumps(made))))
    assert [str(v) for v in read.graph.orphan_value_info] == [str(v) for v in made.graph.orphan_value_info]
    assert [f.rule for f in findings(read, ignore=["TYPE009"])] == [rule for rule, _ in CASES[case][1]]
    assert sabir.dumps(sabir.parse(sabir.text(made))) == sabir.dumps(made)


def test_two_descriptions_of_an_undefined_value():
    made = model(info("ghost", N), info("ghost", N))
    assert not list(findings(made))
    assert [f.rule for f in findings(made, select=["style"], ignore=["MODEL", "GRAPH014"])] == [
        "GRAPH011"
    ] * 2
    assert [r.rule for r in fix_in_place(made)] == ["GRAPH011"] * 2
    assert made.graph.orphan_value_info == ()


def test_compatible_descriptions_are_merged():
    made = model(info("t", dims("N", 4)), info("t", dims(3, "M")), info("t", dims("N", 4)))
    made.graph.orphan_value_info[0].doc, made.graph.orphan_value_info[0].metadata = "between", {"k": "v"}
    repairs = fix_in_place(made, select=["GRAPH019"])
    assert [r.message for r in repairs] == [
        "merged two descriptions of 't', float[N,4] and float[3,M]",
        "merged two descriptions of 't', float[3,4] and float[N,4]",
    ]
    value = next(iter(made.graph)).output
    assert (str(value.type), value.doc, value.metadata) == ("float[3,4]", "between", {"k": "v"})
    assert made.graph.orphan_value_info == ()


def test_of_contradictory_descriptions_the_first_stays():
    made = model(info("t", N), info("t", MATRIX))
    assert [r.rule for r in fix_in_place(made)] == ["GRAPH010"]
    assert str(next(iter(made.graph)).output.type) == "float[N]"
    assert not list(findings(made))
    assert Runner(made).run({"x": np.float32([1, 2])})["y"].tolist() == [1, 2]


def test_the_same_description_twice_is_no_reason_to_change_a_file():
    made = model(info("t", N), info("t", N))
    before = sabir.dumps(made)
    assert fix_in_place(made) == []
    assert sabir.dumps(made) == before
