"""An operator set over its life: three versions published, and a model that follows them.

    python examples/operator_set/life.py [FOLDER]

writes the documents of the three versions and the converted models to FOLDER, by default a temporary one.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from pathlib import Path

import numpy as np
from acme import DOMAIN, NEWEST, registry

import sabir
from sabir.checking import set_changes


def main(folder: Path) -> None:
    """Publish three versions, then take a model of the first to the last, back, and out of the set."""
    publish(folder)

    b = sabir.Builder(17, opsets={DOMAIN: 1}, registry=registry(1))
    image = b.input("image", "float", ["H", "W"])
    clean = b.op("Denoise", image, strength=0.25, domain=DOMAIN)
    b.output(b.op("Brighten", clean, by=0.5, domain=DOMAIN), "result", "float", ["H", "W"])
    model = b.model(domain=DOMAIN)
    sabir.check(model, registry=registry(1))
    sabir.save(model, folder / "model1.onnx")
    feeds = {"image": np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)}
    expected = sabir.evaluate(model, feeds, registry=registry(1))["result"]

    third = sabir.convert(model, opset=21, opsets={DOMAIN: 3}, registry=NEWEST)
    report("the model in com.acme:3", third)
    same("com.acme:3", sabir.Session(third, registry=NEWEST).run(feeds)["result"], expected)
    sabir.save(third, folder / "model3.onnx")

    back = sabir.convert(third, opset=17, opsets={DOMAIN: 1}, registry=NEWEST)
    report("and back in com.acme:1", back)
    same("com.acme:1", sabir.Session(back, registry=NEWEST).run(feeds)["result"], expected)

    framed(feeds)


def publish(folder: Path) -> None:
    """Write the document of each version, and say what changed."""
    documents = [registry(version).operator_set(DOMAIN, version) for version in (1, 2, 3)]
    for document in documents:
        path = folder / f"acme{document.version}.textproto"
        document.save(path)
        entries = ", ".join(f"{DOMAIN}.{entry.name}:{entry.since}" for entry in document.operators)
        print(f"{path.name}: {entries}")
    sabir.check(documents)  # each version differs from the one before only as the standard allows
    for old, new in itertools.pairwise(documents):
        print(f"{DOMAIN}:{old.version} to {DOMAIN}:{new.version}")
        for change in set_changes(old, new).changes:
            versions = [f"{e.name}:{e.since}" for e in (change.old, change.new) if e is not None]
            print(f"  {change.kind}: {' to '.join(versions)}")


def framed(feeds: dict[str, np.ndarray]) -> None:
    """Convert a model with an operator that older versions lack: its body takes its place."""
    b = sabir.Builder(21, opsets={DOMAIN: 3}, registry=NEWEST)
    image = b.input("image", "float", ["H", "W"])
    b.output(b.op("Vignette", image, domain=DOMAIN), "result", "float", ["H", "W"])
    model = b.model()
    older = sabir.convert(model, opsets={DOMAIN: 2}, registry=NEWEST)
    report("Vignette in com.acme:2", older)
    same(
        "its body",
        sabir.evaluate(older, feeds)["result"],
        sabir.evaluate(model, feeds, registry=NEWEST)["result"],
    )


def report(title: str, model: sabir.Model) -> None:
    """Print the operators that a model calls."""
    calls = ", ".join(".".join(filter(None, (node.domain, node.op))) for node in model.graph)
    print(f"{title}: {calls}")


def same(what: str, got: np.ndarray, expected: np.ndarray) -> None:
    """Compare results; ends the program if they differ."""
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
    print(f"  {what} computes the same")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
