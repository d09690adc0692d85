"""The removal of dead nodes takes time in proportion to the model."""

from collections import UserList

import sabir
from sabir.rewriting import remove_dead_nodes


class Counted(UserList):
    """A list that counts how many of its items were iterated over."""

    def __init__(self, items):
        super().__init__(items)
        self.visits = 0

    def __iter__(self):
        for item in self.data:
            self.visits += 1
            yield item


def visits(count):
    """Remove the dead nodes of a model of `count` functions; return how often a function was looked at."""
    functions = " ".join(
        f'<domain: "d", opset_import: ["" : 21]> F{i} (x) => (y) {{ y = Neg (x)  unread = Abs (x) }}'
        for i in range(count)
    )
    model = sabir.parse(
        '<ir_version: 10, opset_import: ["" : 21, "d" : 1]> g (float[N] x) => (y) { y = d.F0 (x) }'
        + functions
    )
    functions = model.functions = Counted(model.functions)
    assert remove_dead_nodes(model) == count
    return functions.visits


def test_each_function_is_looked_at_a_few_times_however_many_there_are():
    assert visits(60) == 6 * visits(10)
