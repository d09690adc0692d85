"""The gradients of recurrent layers with several units, sequences and steps, in every option."""

import numpy as np

import sabir
from support.cases import each_of
from support.gradients import check

TIME, BATCH, INPUT, HIDDEN = 3, 2, 1, 2
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
INPUTS = {"RNN": "x w r b lens h", "GRU": "x w r b lens h", "LSTM": "x w r b lens h c p"}
OUTPUTS = {"RNN": "y y_h", "GRU": "y y_h", "LSTM": "y y_h y_c"}
SMOOTH = ["Tanh", "Sigmoid", "Affine", "ScaledTanh", "Softsign", "Softplus"]
KINKED = ["Relu", "LeakyRelu", "ThresholdedRelu", "HardSigmoid", "Elu"]
CALLS = [  # operator, inputs beside x, w, r and the states, attributes, outputs
    ("RNN", "", "", "y"),
    ("RNN", "b lens", 'direction = "bidirectional"', "y y_h"),
    ("RNN", "lens", "clip = 0.4", "y"),
    ("GRU", "b", "", "y y_h"),
    ("GRU", "b lens", 'direction = "reverse", layout = 1', "y y_h"),
    ("GRU", "b lens", 'direction = "bidirectional", linear_before_reset = 1', "y y_h"),
    ("GRU", "", 'linear_before_reset = 1, activations = ["HardSigmoid", "Softsign"]', "y"),
    ("LSTM", "b", "", "y y_h y_c"),
    ("LSTM", "b lens p", 'direction = "bidirectional", layout = 1', "y y_h y_c"),
    ("LSTM", "lens", 'direction = "reverse", input_forget = 1', "y y_c"),
    ("LSTM", "p", "input_forget = 1, clip = 0.5", "y y_h"),
    ("LSTM", "p lens", 'activations = ["Elu", "Affine", "ScaledTanh"], activation_alpha = [0.5, 0.7, 2.0, 0.3]', "y"),
    *[("RNN", "b", f'activations = ["{name}"]', "y") for name in SMOOTH + KINKED],
]  # fmt: skip


def layer(op, more, attributes, outputs):
    """A model of the layer in double precision, and the shapes of its inputs."""
    directions = 2 if "bidirectional" in attributes else 1
    batch_first = "layout" in attributes
    state = (BATCH, directions, HIDDEN) if batch_first else (directions, BATCH, HIDDEN)
    rows = GATES[op] * HIDDEN
    shapes = {
        "x": (BATCH, TIME, INPUT) if batch_first else (TIME, BATCH, INPUT),
        "w": (directions, rows, INPUT), "r": (directions, rows, HIDDEN), "b": (directions, 2 * rows),
        "lens": (BATCH,), "h": state, "c": state, "p": (directions, 3 * HIDDEN),
    }  # fmt: skip
    order = INPUTS[op].split()
    given = [n for n in order if n in {"x", "w", "r", "h", "c", *more.split()}]
    declared = ", ".join(f"{'int32' if n == 'lens' else 'double'}{[*shapes[n]]} {n}" for n in given)
    called, named = (
        ", ".join(n if n in there else '""' for n in names)
        for names, there in ((order, given), (OUTPUTS[op].split(), outputs.split()))
    )
    options = f"<{attributes}>" if attributes else ""
    results = ", ".join(f"double[{'?,?,?,?' if n == 'y' else '?,?,?'}] {n}" for n in outputs.split())
    model = sabir.parse(
        f'<ir_version: 10, opset_import: ["": 21]> main ({declared}) => ({results})'
        f"{{ {named} = {op} {options} ({called}) }}"
    )
    return model, {n: shapes[n] for n in given}


@each_of("op, more, attributes, outputs", CALLS, group=lambda op, *_: op)
def test_a_layer(op, more, attributes, outputs):
    model, shapes = layer(op, more, attributes, outputs)
    random = np.random.default_rng(len(attributes) + len(more))
    feeds = {n: random.uniform(-1, 1, shape) for n, shape in shapes.items()}
    if "lens" in feeds:
        feeds["lens"] = np.array([TIME, 1], np.int32)
    for of in outputs.split():
        check(model, feeds, of, [n for n in feeds if n != "lens"])
