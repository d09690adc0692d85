"""A budget of damage: the nodes that hurt most stay wide."""

import numpy as np
import pytest

import sabir
from sabir.quantization import quantize_and_report

RNG = np.random.default_rng(0)


def network():
    """Three products; the weights of `outlier` have one element that makes their scales useless."""
    b = sabir.Builder(21)
    x = b.input("x", "float", ["N", 32])
    for name in ("one", "outlier", "two"):
        w = RNG.standard_normal((32, 32)).astype(np.float32)
        if name == "outlier":
            w[0, :] = 1000.0
        x = b.MatMul(b.Tanh(x), b.initializer(f"{name}.w", w), name=name)
    b.output(x, "y")
    return b.model()


def feeds():
    data = RNG.standard_normal((4, 32)).astype(np.float32)
    return [{"x": data}]


@pytest.mark.parametrize("options", [{"to": "int4", "block": 0}, {"to": "int8"}])
def test_the_damage_is_below_the_budget(options):
    model, data = network(), feeds()
    whole = quantize_and_report(model, **options, calibration=data, budget=10.0)
    assert all(node.is_quantized for node in whole.nodes)

    found = quantize_and_report(model, **options, calibration=data, budget=whole.damage / 2)

    assert found.damage <= whole.damage / 2
    wanted, got = (sabir.Session(m).run(data[0])["y"] for m in (model, found.model))
    assert found.damage is not None
    assert np.isclose(
        np.sqrt(np.square(got - wanted).mean() / np.square(wanted).mean()), found.damage, rtol=0.01
    )
    damages = {node.name: node.damage for node in whole.nodes}
    kept = [node.name for node in found.nodes if not node.is_quantized]
    assert kept
    assert {node.reason for node in found.nodes if node.name in kept} == {"the budget excludes it"}
    assert min(damages[name] for name in kept) >= max(
        (d for n, d in damages.items() if n not in kept), default=0
    )


def test_what_is_refused():
    model = network()
    for options, message in (
        ({"budget": 0.1}, "needs calibration data"),
        ({"budget": -1, "calibration": feeds()}, "a budget is 0 or more"),
        ({"budget": 0.1, "calibration": iter(feeds())}, "iterated several times"),
    ):
        with pytest.raises(sabir.UnsupportedError, match=message):
            sabir.quantize(model, **options)
