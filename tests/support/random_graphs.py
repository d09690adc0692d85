"""Random acyclic graphs, as frames and nets of a layout and as graphs of a model."""

import numpy as np

from sabir.drawing._nets import Frame, Net
from sabir.ir import Graph, Node, Value


def frames_and_nets(seed, boxes):
    """Frames of random sizes, and nets that lead to later frames."""
    rng = np.random.default_rng(seed)
    nets, exits = [], [0] * boxes
    for source in range(boxes - 1):
        for _ in range(rng.integers(0, 3)):
            readers = rng.choice(
                np.arange(source + 1, boxes), min(boxes - 1 - source, 1 + rng.integers(3)), replace=False
            )
            nets.append(Net(source, exits[source], tuple(map(int, readers))))
            exits[source] += 1
    frames = [
        Frame(int(rng.integers(5, 30)), int(rng.integers(3, 6)), tuple(map(int, rng.integers(0, 12, count))))
        for count in exits
    ]
    return frames, nets


def graph(seed, count):
    """A graph of nodes that read one to three values each, of which all unread ones are outputs."""
    rng = np.random.default_rng(seed)
    made = Graph("random")
    values: list[Value | None] = [made.add_input(f"input{n}") for n in range(1 + int(rng.integers(3)))]
    for number in range(count):
        read = rng.choice(len(values), min(len(values), 1 + int(rng.integers(3))), replace=False)
        node = made.append(Node(f"Op{number}", [values[n] for n in read], 1 + int(rng.integers(2))))
        for place, value in enumerate(node.outputs):
            value.name = f"v{number}_{place}"
        values += node.outputs
    made.outputs = [value for value in values if not value.is_read]
    return made
