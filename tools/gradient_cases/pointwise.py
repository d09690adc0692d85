"""Functions of single elements, at smooth points, kinks and ties, with broadcasting."""

from __future__ import annotations

import torch  # pyright: ignore[reportMissingImports]  a tool for those who have it
from torch.nn import functional  # pyright: ignore[reportMissingImports]  a tool for those who have it

from gradient_cases.case import between, case

ALPHA, GAMMA = 1.67326319217681884765625, 1.05070102214813232421875  # what ONNX makes of PyTorch's for Selu
POINTS = [-3.5, -3.0, -2.0, -1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0, 2.0, 3.0, 3.5]
INSIDE = between(-0.95, 0.95, 6)
ABOVE_0, ABOVE_1 = between(0.1, 3, 6), between(1.1, 4, 6)

_ANYWHERE = {
    "Abs": torch.abs, "Atan": torch.atan, "Ceil": torch.ceil, "Cos": torch.cos, "Cosh": torch.cosh,
    "Erf": torch.erf, "Exp": torch.exp, "Floor": torch.floor, "Mish": functional.mish, "Neg": torch.neg,
    "Relu": torch.relu, "Round": torch.round, "Sigmoid": torch.sigmoid,
    "Sign": torch.sign, "Sin": torch.sin, "Sinh": torch.sinh, "Softplus": functional.softplus,
    "Softsign": functional.softsign, "Tan": torch.tan, "Tanh": torch.tanh, "Asinh": torch.asinh,
    "HardSwish": functional.hardswish, "Swish": functional.silu, "Gelu": functional.gelu,
    "Elu": functional.elu, "Celu": functional.celu, "Identity": lambda x: 1 * x,
}  # fmt: skip
_SOMEWHERE = {
    "Acos": (torch.acos, INSIDE), "Asin": (torch.asin, INSIDE), "Atanh": (torch.atanh, INSIDE),
    "Acosh": (torch.acosh, ABOVE_1), "Log": (torch.log, ABOVE_0), "Sqrt": (torch.sqrt, ABOVE_0),
    "Reciprocal": (torch.reciprocal, ABOVE_0),
}  # fmt: skip
_WITH_ATTRIBUTES = [
    ("Celu <alpha = 0.5> (x)", lambda x: functional.celu(x, 0.5)),
    ("Elu <alpha = 0.5> (x)", lambda x: functional.elu(x, 0.5)),
    ('Gelu <approximate = "tanh"> (x)', lambda x: functional.gelu(x, approximate="tanh")),
    ("HardSigmoid <alpha = 0.125, beta = 0.5> (x)", lambda x: functional.hardtanh(x / 8 + 0.5, 0, 1)),
    ("LeakyRelu <alpha = 0.25> (x)", lambda x: functional.leaky_relu(x, 0.25)),
    ("Shrink <bias = 0.5, lambd = 0.5> (x)", lambda x: functional.softshrink(x, 0.5)),
    ("Shrink <lambd = 0.5> (x)", lambda x: functional.hardshrink(x, 0.5)),
    ("Swish <alpha = 1.5> (x)", lambda x: x * torch.sigmoid(1.5 * x)),
    ("ThresholdedRelu <alpha = 0.5> (x)", lambda x: functional.threshold(x, 0.5, 0)),
    ("Selu (x)", lambda x: GAMMA * torch.where(x > 0, x, ALPHA * torch.expm1(x))),
    ("Cast <to = 11> (x)", lambda x: 1 * x),
    ("CastLike (x, x)", lambda x: 1 * x),
]
_BINARY = [
    ("Add", torch.add), ("Sub", torch.sub), ("Mul", torch.mul), ("Max", torch.maximum), ("Min", torch.minimum),
]  # fmt: skip
_SHAPES = [((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (3,)), ((), (2,)), ((1, 2), (3, 1, 1))]
_TIED = [1.0, 2.0, 0.0, -1.0]

CASES = [
    *(case(f"{op}", f"y = {op} (x)", f, x=POINTS) for op, f in _ANYWHERE.items()),
    *(case(f"{op}", f"y = {op} (x)", f, x=x) for op, (f, x) in _SOMEWHERE.items()),
    *(case(f"{call}", f"y = {call}", f, x=POINTS) for call, f in _WITH_ATTRIBUTES),
    *(
        case(f"{op} {a} {b}", f"y = {op} (a, b)", f, a=a, b=b)
        for op, f in _BINARY
        for a, b in _SHAPES
    ),
    case("Sqrt at 0", "y = Sqrt (x)", torch.sqrt, x=[0.0, 1.0]),
    case("Log at 0", "y = Log (x)", torch.log, x=[0.0, 1.0]),
    case("Div", "y = Div (a, b)", torch.div, a=(2, 3), b=between(0.5, 2, 3)),
    case("Div by one", "y = Div (a, b)", torch.div, a=(2, 3), b=1.5),
    case("Pow", "y = Pow (a, b)", torch.pow, a=between(0.3, 2, 2, 3), b=(3,)),
    case("Pow of 0", "y = Pow (a, b)", torch.pow, a=[0.0, 0.0, 0.0, 2.0], b=[0.0, 1.0, 2.0, 0.0]),
    case("Pow of negative", "y = Pow (a, b)", lambda a, b: torch.pow(a, b), a=[-2.0, -1.5, 0.0], b=[2, 3, 0]),
    case("Max ties", "y = Max (a, b)", torch.maximum, a=_TIED, b=[1.0, 1.0, 0.0, 0.0]),
    case("Min ties", "y = Min (a, b)", torch.minimum, a=_TIED, b=[1.0, 1.0, 0.0, 0.0]),
    case("Max of three", "y = Max (a, b, c)", lambda a, b, c: torch.maximum(torch.maximum(a, b), c),
         a=(2, 3), b=(3,), c=(2, 1)),
    case("Mean of three", "y = Mean (a, b, c)", lambda a, b, c: (a + b + c) / 3, a=(2, 3), b=(3,), c=(2, 1)),
    case("Sum of three", "y = Sum (a, b, c)", lambda a, b, c: a + b + c, a=(2, 3), b=(3,), c=(2, 1)),
    case("Mod fmod", "y = Mod <fmod = 1> (a, b)", torch.fmod, a=[5.5, -5.5, 2.0, 1.25], b=[2.0, 3.0, -1.5, 0.5]),
    case("PRelu", "y = PRelu (x, slope)", lambda x, s: torch.where(x > 0, x, s * x), x=POINTS, slope=0.25),
    case("PRelu by channel", "y = PRelu (x, slope)", lambda x, s: functional.prelu(x, s.flatten()),
         x=(2, 3, 2), slope=(3, 1)),
    case("Clip at its bounds", "y = Clip (x, low, high)", lambda x, low, high: torch.clamp(x, low, high),
         x=POINTS, low=-1.0, high=2.0),
    case("Clip below", "y = Clip (x, low)", lambda x, low: torch.clamp(x, min=low), x=POINTS, low=-1.0),
    case("Clip above", "y = Clip (x, , high)", lambda x, high: torch.clamp(x, max=high), x=POINTS, high=0.5),
    case("Where", "y = Where (c, a, b)", torch.where, c=[True, False], a=(3, 2), b=(3, 1)),
    case("Dropout in inference", "y = Dropout (x)", lambda x: functional.dropout(x, training=False), x=(2, 3)),
    case("SwiGLU", "y = SwiGLU (a, b)", lambda a, b: functional.silu(a) * b, a=(2, 3), b=(2, 3)),
]  # fmt: skip
