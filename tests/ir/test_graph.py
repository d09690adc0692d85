import pytest

from sabir.ir import Attribute, Builder, Graph, Node, Value, verify


def chain(*ops):
    x = Value("x")
    g = Graph("g", [x])
    v = x
    for op in ops:
        v = g.append(Node(op, [v])).output
    g.outputs.append(v)
    return g, x


def test_replacing_a_value_reaches_graph_outputs():
    g, _ = chain("Relu", "Identity")
    relu, identity = g

    identity.output.replace_with(relu.output)

    assert g.outputs[0] is relu.output
    assert identity.output.uses == ()
    assert {u.user for u in relu.output.uses} == {identity, g}
    verify(g)


def test_nodes_may_be_erased_while_iterating():
    g, _ = chain("Identity", "Identity", "Relu", "Identity", "Neg")

    for node in g:
        if node.op == "Identity":
            node.output.replace_with(node.inputs[0])
            g.erase(node)

    assert [n.op for n in g] == ["Relu", "Neg"]
    assert [n.op for n in reversed(g)] == ["Neg", "Relu"]
    assert len(g) == 2
    verify(g)


def test_the_next_node_may_be_erased_while_iterating():
    g, _ = chain("A", "B", "C", "D")
    seen = []
    for node in g:
        seen.append(node.op)
        if node.op == "A":
            b, c = list(g)[1:3]
            list(g)[3].inputs[0] = node.output
            c.inputs[0] = None
            g.erase(b)
            g.erase(c)
    assert seen == ["A", "D"]


def test_a_node_inserted_after_the_current_one_is_visited():
    g, _ = chain("A", "B")
    seen = []
    for node in g:
        seen.append(node.op)
        if node.op == "A":
            g.insert(Node("New", []), after=node)
    assert seen == ["A", "New", "B"]


def test_a_node_moved_to_another_graph_does_not_lead_the_iteration_there():
    g, _ = chain("A", "B", "C")
    other = Graph("other")
    other.append(Node("Z", []))
    seen = []
    for node in g:
        seen.append(node.op)
        if node.op == "B":
            list(g)[2].inputs[0] = None
            g.erase(node)
            other.append(node)
    assert seen == ["A", "B", "C"]


def test_inputs_can_be_edited_like_a_list():
    x, y = Value("x"), Value("y")
    n = Node("Sum", [x, y, x])

    del n.inputs[0]
    n.inputs.insert(0, y)
    assert list(n.inputs) == [y, y, x]
    assert sorted(u.slot for u in y.uses) == [0, 1]
    assert [u.slot for u in x.uses] == [2]

    n.inputs[1:] = [x, None, y]
    assert list(n.inputs) == [y, x, None, y]
    assert sorted(u.slot for u in y.uses) == [0, 3]
    n.inputs.clear()
    assert x.uses == y.uses == ()


def test_erasing_a_node_that_is_read_is_refused():
    g, _ = chain("Relu", "Neg")
    relu = next(iter(g))
    with pytest.raises(ValueError, match="still read by <Node Neg>"):
        g.erase(relu)
    assert len(g) == 2


def test_a_node_is_in_one_graph():
    g, _ = chain("Relu")
    with pytest.raises(ValueError, match="is already in a graph"):
        Graph("h").append(next(iter(g)))


def test_moving_a_node():
    g, _ = chain("A")
    b = g.append(Node("B", []))
    g.move(b, after=None)
    assert [n.op for n in g] == ["B", "A"]
    with pytest.raises(ValueError, match="cannot come after itself"):
        g.move(b, after=b)


def test_nodes_are_inserted_and_moved_before_another_one():
    g, _ = chain("A")
    a = g[0]
    c = g.insert(Node("C", []), before=None)
    b = g.insert(Node("B", []), before=c)
    first = g.insert(Node("First", []), before=a)
    assert [n.op for n in g] == ["First", "A", "B", "C"]
    g.move(c, before=a)
    g.move(first, before=None)
    g.move(b, before=first)  # where it is
    assert [n.op for n in g] == ["C", "A", "B", "First"]
    assert [n.op for n in reversed(g)] == ["First", "B", "A", "C"]


def test_a_place_is_one_neighbour_in_the_graph():
    g, _ = chain("A")
    for place in ({}, {"after": None, "before": None}):
        with pytest.raises(TypeError, match="pass either `after` or `before`"):
            g.insert(Node("B", []), **place)
    for place in ({"after": Node("X", [])}, {"before": Node("X", [])}):
        with pytest.raises(ValueError, match="is not in this graph"):
            g.insert(Node("B", []), **place)
        with pytest.raises(ValueError, match="is not in this graph"):
            g.move(g[0], **place)
    with pytest.raises(TypeError, match="a Node or None is expected, not the str 'A'"):
        g.insert(Node("B", []), before="A")
    with pytest.raises(ValueError, match="cannot come before itself"):
        g.move(g[0], before=g[0])
    assert [n.op for n in g] == ["A"]


def test_inputs_know_their_graph():
    g = Graph("g")
    x = g.add_input("x")
    assert x.source is g
    assert x.is_input
    del g.inputs[0]
    assert x.source is None
    y = g.add_input("y")
    g.set_initializer(y, g.initializers.setdefault(y, g.add_initializer("w", [1.0]).constant))
    del g.inputs[0]
    assert y.source is g  # it is still an initializer
    g.set_initializer(y, None)
    assert y.source is None


def test_subgraphs_know_their_node_and_what_they_capture():
    b = Builder(18)
    x = b.input("x", "float", ["N"])
    cond = b.input("cond", "bool", [])
    inner = Graph("then")
    inner.outputs.append(inner.append(Node("Relu", [x])).output)
    deeper = Graph("else")
    nested = deeper.append(Node("If", [cond]))
    nested.attributes["then_branch"] = Attribute.of("then_branch", inner_of(x))
    deeper.outputs.append(nested.output)
    y = b.If(cond, then_branch=inner, else_branch=deeper)
    b.output(y, "y")
    model = b.model()

    assert inner.parent is y.node
    assert inner.captures() == (x,)
    assert deeper.captures() == (cond, x)
    assert model.graph.captures() == ()
    assert next(model.graph.scopes()) is model.graph
    assert sorted(n.op for n in model.graph.all_nodes()) == ["If", "If", "Neg", "Relu"]
    verify(model)
    del y.node.attributes["then_branch"]
    assert inner.parent is None


def inner_of(x):
    g = Graph("innermost")
    g.outputs.append(g.append(Node("Neg", [x])).output)
    return g


def test_verify_finds_a_read_before_definition():
    g, _ = chain("Relu", "Neg")
    relu, neg = g
    relu.inputs[0] = neg.output
    with pytest.raises(ValueError, match="before anything defines it"):
        verify(g)


def test_verify_finds_broken_links():
    g, _ = chain("Relu")
    relu = next(iter(g))
    relu.output.source = None
    with pytest.raises(ValueError, match="its source is None"):
        verify(g)
    relu.output.source = relu
    relu.output._uses.clear()
    with pytest.raises(ValueError, match="does not list this use"):
        verify(g)
