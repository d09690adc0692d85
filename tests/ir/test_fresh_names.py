"""Fresh names, which the builder, rewriting, repairs and saving share."""

from sabir.ir import Builder, FreshNames, Graph


def test_a_name_is_numbered_where_it_is_taken():
    names = FreshNames(["a", "a_2"])
    assert [names.fresh("a") for _ in range(3)] == ["a_1", "a_3", "a_4"]
    assert [names.fresh("b"), names.fresh("b")] == ["b", "b_1"]
    names.take(["c"])
    assert names.fresh("c") == "c_1"


def test_an_empty_name_becomes_value():
    names = FreshNames(["value_1"])
    assert [names.fresh(""), names.fresh(""), names.fresh("value")] == ["value_2", "value_3", "value"]


def test_a_numbered_name_is_never_the_name_itself():
    names = FreshNames()
    assert [names.numbered("x"), names.fresh("x"), names.numbered("")] == ["x_1", "x", "value_1"]


def test_a_builder_may_share_names():
    names = FreshNames(["relu_out"])
    b = Builder(graph=Graph(), names=names)
    assert b.Relu(b.input("relu_out", "float")).name == "relu_out_2"
    assert Builder(graph=Graph(), names=names).input("relu_out", "float").name == "relu_out_3"
