"""`aligned_results`: the values of two models that correspond."""

import sabir
from sabir.comparison import aligned_results


def names(old, new):
    header = '<ir_version: 10, opset_import: ["" : 21]> g (float[N] x) => (float[N] y)'
    models = [sabir.parse(f"{header} {{ {body} }}") for body in (old, new)]
    return [(here.name, there.name) for here, there in aligned_results(*models)]


def test_renamed_values_are_aligned_by_structure():
    assert names("a = Neg (x)  b = Exp (a)  y = Relu (b)", "v = Neg (x)  w = Exp (v)  y = Relu (w)") == [
        ("a", "v"),
        ("b", "w"),
        ("y", "y"),
    ]


def test_the_name_of_the_last_of_fused_nodes_counts():
    old = "a = Neg (x)  b = Exp (a)  c = Relu (b)  d = Tanh (c)  y = Sin (d)"
    assert names(old, "a = Neg (x)  c = Exp (a)  d = Tanh (c)  y = Sin (d)") == [
        ("a", "a"),
        ("c", "c"),
        ("d", "d"),
        ("y", "y"),
    ]


def test_names_that_are_numbers_of_another_export_say_nothing():
    old = "v1 = Neg (x)  v2 = Exp (v1)  v3 = Relu (v2)  y = Sin (v3)"
    assert names(old, "v0 = Neg (x)  v1 = Exp (v0)  v2 = Relu (v1)  y = Sin (v2)") == [
        ("v1", "v0"),
        ("v2", "v1"),
        ("v3", "v2"),
        ("y", "y"),
    ]


def test_values_without_a_partner_are_left_out():
    assert names("a = Neg (x)  y = Exp (a)", "a = Neg (x)  b = Relu (a)  y = Exp (b)") == [
        ("a", "a"),
        ("y", "y"),
    ]


def test_quantized_values_are_those_that_readers_get():
    scale = "s = Constant <value_float = 0.5> ()"
    pair = "{0}_q = QuantizeLinear ({0}, s)  {0}_d = DequantizeLinear ({0}_q, s)"
    old = "a = Neg (x)  b = Exp (a)  y = Relu (b)"
    new = f"{scale}  a = Neg (x) {pair.format('a')}  b = Exp (a_d) {pair.format('b')}  y = Relu (b_d)"
    assert names(old, new) == [("a", "a_d"), ("b", "b_d"), ("y", "y")]
    assert names(new, old) == [("a_d", "a"), ("b_d", "b"), ("y", "y")]
