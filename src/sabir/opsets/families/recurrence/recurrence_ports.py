"""The inputs, outputs and attributes that all recurrent layers have."""

from sabir.opsets.families.recurrence.recurrence_shapes import DIRECTIONS, LAYOUTS
from sabir.schema import FLOATS, Attribute, Constraint, Input, Output, tensors

T = Constraint("T", FLOATS)
T1 = Constraint("T1", tensors("int32"))

X = Input("X", T, "Shape (time, batch, input).", differentiable=True)
SEQUENCE_LENS = Input(
    "sequence_lens", T1, "(batch): the number of steps of each sequence.", optional=True, differentiable=False
)
INITIAL_H = Input("initial_h", T, "Shape (directions, batch, hidden).", optional=True, differentiable=False)

Y = Output("Y", T, "(time, directions, batch, hidden): every h.", optional=True, differentiable=True)
Y_H = Output("Y_h", T, "(directions, batch, hidden): the last h.", optional=True, differentiable=True)

CLIP = Attribute(
    "clip", "float", "The inputs of the activation functions are limited to [-clip, clip]; 0: no limit."
)
ACTIVATION_ALPHA = Attribute(
    "activation_alpha",
    "floats",
    "The first parameters of those activation functions that have one, in order.",
)
ACTIVATION_BETA = Attribute(
    "activation_beta",
    "floats",
    "The second parameters of those activation functions that have two, in order.",
)
HIDDEN_SIZE = Attribute("hidden_size", "int", "The size of h, which the shape of R states too.")
DIRECTION = Attribute(
    "direction", "string", "forward, reverse or bidirectional.", default="forward", values=DIRECTIONS
)
OUTPUT_SEQUENCE = Attribute("output_sequence", "int", "0: Y may be omitted.", default=0)
FIRST_ATTRIBUTES = (CLIP, ACTIVATION_BETA, OUTPUT_SEQUENCE, ACTIVATION_ALPHA, HIDDEN_SIZE)
LAYOUT = Attribute(
    "layout",
    "int",
    "1: the batch is the first dimension of X, of the states and of the outputs.",
    default=0,
    values=LAYOUTS,
)
