"""Export a network of timm by torch's default exporter; needs timm, torch and onnxscript.

    python benchmarks/timm_network.py NAME OUTPUT

The weights are random. The statistics of BatchNorm are those of noise, so that activations have the ranges of
a trained network.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

timm: Any = importlib.import_module("timm")  # no requirement of the benchmarks
torch: Any = importlib.import_module("torch")
SEED, BATCH, BATCHES = 0, 16, 4


def main() -> None:
    """Write the network that the arguments name."""
    name, output = sys.argv[1], Path(sys.argv[2])
    torch.manual_seed(SEED)
    network = timm.create_model(name, exportable=True)
    calibrate(network)
    image = torch.randn(1, *network.default_cfg["input_size"])
    torch.onnx.export(network.eval(), (image,), output, input_names=["image"], external_data=False)


def calibrate(network: Any) -> None:
    """Set the means and variances of each BatchNorm to those of noise, averaged over all batches."""
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.reset_running_stats()
            module.momentum = None
    network.train()
    with torch.no_grad():
        for _ in range(BATCHES):
            network(torch.randn(BATCH, *network.default_cfg["input_size"]))


if __name__ == "__main__":
    main()
