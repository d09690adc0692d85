"""LSTM, GRU and RNN with initial states, in both directions, against PyTorch's layers and against its cells."""

from __future__ import annotations

import numpy as np
import torch  # pyright: ignore[reportMissingImports]  a tool for those who have it

from gradient_cases.case import case

STEPS, BATCH, INPUT, HIDDEN = 3, 2, 2, 2
# the order of ONNX's gates in PyTorch's
_ORDERS = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}
_STATES = {"LSTM": "h c", "GRU": "h", "RNN": "h"}


def _reordered(kind, weights):
    """Return the gates of one direction in PyTorch's order."""
    parts = weights.chunk(len(_ORDERS[kind]))
    return torch.cat([parts[i] for i in _ORDERS[kind]])


def _layer(kind, x, w, r, b, *states, nonlinearity="tanh"):
    """Return what the operator does from PyTorch's layer with the same weights."""
    directions = len(w)
    options = {"nonlinearity": nonlinearity} if kind == "RNN" else {}
    layer = getattr(torch.nn, kind)(
        INPUT, HIDDEN, bidirectional=directions == 2, dtype=torch.float64, **options
    )
    named = {}
    for d, suffix in enumerate(("", "_reverse")[:directions]):
        first, second = b[d].chunk(2)
        for name, part in (("weight_ih", w[d]), ("weight_hh", r[d]), ("bias_ih", first), ("bias_hh", second)):
            named[f"{name}_l0{suffix}"] = _reordered(kind, part)
    given = (states[0] if len(states) == 1 else states,) if states else ()
    y, last = torch.func.functional_call(layer, named, (x, *given))
    y = y.reshape(len(x), x.shape[1], directions, HIDDEN).transpose(1, 2)
    return (y, *(last if isinstance(last, tuple) else (last,)))


def _case(kind, directions=1, *, states=True, attributes="", extra="", **options):
    gates, outputs = len(_ORDERS[kind]), _STATES[kind]
    inputs = {
        "x": (STEPS, BATCH, INPUT), "w": (directions, gates * HIDDEN, INPUT), "r": (directions, gates * HIDDEN, HIDDEN),
        "b": (directions, 2 * gates * HIDDEN),
    }  # fmt: skip
    call = "x, w, r, b"
    if states:
        inputs |= {f"{s}0": (directions, BATCH, HIDDEN) for s in outputs.split()}
        call += ", , " + ", ".join(f"{s}0" for s in outputs.split())
    direction = ', direction = "bidirectional"' if directions == 2 else ""
    return case(
        f"{kind}{' bidirectional' * (directions == 2)}{' with states' * states}{extra}",
        f"y, {', '.join(outputs.split())} = {kind} <hidden_size = {HIDDEN}{direction}{attributes}> ({call})",
        lambda *given: _layer(kind, *given, **options), outputs=f"y {outputs}", **inputs,
    )  # fmt: skip


def _gru_cell(x, w, r, b, h):
    """Return the outputs of a GRU whose reset gate comes before the product with the state."""
    (wz, wr, wh), (rz, rr, rh) = w[0].chunk(3), r[0].chunk(3)
    wbz, wbr, wbh, rbz, rbr, rbh = b[0].chunk(6)
    h, found = h[0], []
    for v in x:
        z = torch.sigmoid(v @ wz.T + h @ rz.T + wbz + rbz)
        reset = torch.sigmoid(v @ wr.T + h @ rr.T + wbr + rbr)
        h = (1 - z) * torch.tanh(v @ wh.T + (reset * h) @ rh.T + wbh + rbh) + z * h
        found.append(h)
    return torch.stack(found)[:, None]


def _peephole_cell(x, w, r, b, n, h, c, p):
    """Return the outputs of an LSTM with peepholes, where each sequence has a length of its own."""
    pi, po, pf = p[0].chunk(3)
    bias, h, c, found = b[0].chunk(2)[0] + b[0].chunk(2)[1], h[0], c[0], []
    for step, v in enumerate(x):
        i, o, f, g = (v @ w[0].T + h @ r[0].T + bias).chunk(4, 1)
        i, f = torch.sigmoid(i + pi * c), torch.sigmoid(f + pf * c)
        new = f * c + i * torch.tanh(g)
        out = torch.sigmoid(o + po * new) * torch.tanh(new)
        alive = (step < n)[:, None]
        c, h = torch.where(alive, new, c), torch.where(alive, out, h)
        found.append(torch.where(alive, out, torch.zeros_like(out)))
    return torch.stack(found)[:, None], h[None], c[None]


CASES = [
    *(_case(kind, d, states=s) for kind in _ORDERS if kind != "GRU" for d, s in [(1, False), (1, True), (2, True)]),
    *(_case("GRU", d, states=s, attributes=", linear_before_reset = 1") for d, s in [(1, False), (1, True), (2, True)]),
    _case("RNN", attributes=', activations = ["Relu"]', extra=" of Relu", nonlinearity="relu"),
    case("GRU, reset first", f"y = GRU <hidden_size = {HIDDEN}> (x, w, r, b, , h)", _gru_cell,
         x=(3, 2, 2), w=(1, 6, 2), r=(1, 6, 2), b=(1, 12), h=(1, 2, 2)),
    case("LSTM with peepholes and lengths", f"y, yh, yc = LSTM <hidden_size = {HIDDEN}> (x, w, r, b, n, h, c, p)",
         _peephole_cell, outputs="y yh yc", x=(3, 2, 2), w=(1, 8, 2), r=(1, 8, 2), b=(1, 16), n=np.array([3, 2], np.int32),
         h=(1, 2, 2), c=(1, 2, 2), p=(1, 6)),
]  # fmt: skip
