"""Models in the text syntax with one thing changed."""

import pytest

import sabir


def model(inputs, outputs, body, *, opset=21, ir=10, version=0, more=""):
    """Return a model of a graph with these inputs, outputs and nodes."""
    header = f'<ir_version: {ir}, opset_import: ["" : {opset}{more}], model_version: {version}>'
    return sabir.parse(f"{header} g ({inputs}) => ({outputs}) {body}")


@pytest.fixture
def changed():
    """Compare two models that differ in what is passed as a pair; returns the kinds with their bumps."""

    def run(inputs="float[2] x", outputs="float[2] y", body="{ y = Relu (x) }"):
        pairs = [p if isinstance(p, tuple) else (p, p) for p in (inputs, outputs, body)]
        comparison = sabir.compare(*(model(*[p[i] for p in pairs]) for i in (0, 1)))
        return [(change.kind, change.bump) for change in comparison.changes]

    return run
