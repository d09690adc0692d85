"""Random edits keep both ends of every link in step."""

from hypothesis import given, settings
from hypothesis import strategies as st

import sabir
from sabir.ir import Graph, Node, Value, verify


def random_edit(data, graph, values):
    nodes = list(graph)
    edit = data.draw(
        st.sampled_from(["append", "prepend", "rewire", "replace", "erase", "output", "input", "delete"])
    )
    node = data.draw(st.sampled_from(nodes)) if nodes else None
    earlier = [v for v in values if v.source is graph]
    match edit:
        case "append":
            picked = data.draw(st.lists(st.sampled_from([*values, None]), max_size=3))
            made = graph.append(Node("Op", [v for v in picked if v is None or v.source is not None], 2))
            values += [v for v in made.outputs if v is not None]
        case "prepend":
            made = graph.prepend(Node("Op", data.draw(st.lists(st.sampled_from(earlier), max_size=2))))
            values.append(made.output)
        case "rewire" if node is not None and len(node.inputs):
            slot = data.draw(st.integers(0, len(node.inputs) - 1))
            node.inputs[slot] = data.draw(st.sampled_from(earlier))
        case "replace" if node is not None:
            for output in node.outputs:
                output.replace_with(data.draw(st.sampled_from(earlier)))
        case "erase" if node is not None and not any(v.uses for v in node.outputs):
            graph.erase(node)
            for output in node.outputs:
                values.remove(output)
        case "output":
            graph.outputs.append(data.draw(st.sampled_from(values)))
        case "input":
            values.append(graph.add_input("x"))
        case "delete" if len(graph.outputs):
            del graph.outputs[data.draw(st.integers(0, len(graph.outputs) - 1))]


@settings(max_examples=80)
@given(st.data())
def test_random_edits(data):
    x = Value("x")
    graph, values = Graph("g", [x]), [x]
    for _ in range(data.draw(st.integers(1, 25))):
        random_edit(data, graph, values)

    verify(graph)
    read = [(user, slot) for user in (*graph, graph) for slot in range(len(reads_of(user)))]
    told = {(use.user, use.slot): value for value in values for use in value.uses}
    assert told == {(u, s): reads_of(u)[s] for u, s in read if reads_of(u)[s] is not None}
    assert len(list(graph)) == len(graph)
    assert list(reversed(graph)) == list(graph)[::-1]
    again = sabir.loads(sabir.dumps(sabir.Model(graph, {"": 21})))
    assert [len(n.inputs) for n in again.graph] == [len(n.inputs) for n in graph]
    verify(again)


def reads_of(user):
    return user.inputs if isinstance(user, Node) else user.outputs
