"""Parts of models."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sabir
from sabir.base import SabirError
from sabir.compat.onnx import checker, shape_inference
from sabir.compat.onnx.defs import _registering
from sabir.serial import from_proto, to_proto

if TYPE_CHECKING:
    import tarfile
    from collections.abc import Iterable

_PRODUCER = "onnx.utils.extract_model"


class Extractor:
    """Takes parts out of one model.

    `model` is the ModelProto, `graph` its graph.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.graph = model.graph

    def extract_model(self, input_names: list[str], output_names: list[str]) -> Any:
        """Return the ModelProto that computes `output_names` from `input_names`, in this order.

        Raises ValueError for names that the model does not have, and for inputs that the outputs need in
        addition.
        """
        try:
            part = to_proto(
                sabir.extract(
                    from_proto(self.model),
                    inputs=input_names,
                    outputs=output_names,
                    registry=_registering.current(),
                )
            )
        except SabirError as error:
            raise ValueError(str(error)) from error
        part.producer_name = _PRODUCER
        part.ClearField("opset_import")
        part.opset_import.extend(self.model.opset_import)
        part.ir_version = self.model.ir_version
        return part


def extract_model(
    input_path: str | os.PathLike[str],
    output_path: str | os.PathLike[str],
    input_names: list[str],
    output_names: list[str],
    check_model: bool = True,
    infer_shapes: bool = True,
) -> None:
    """Write the part of the model of a file that computes `output_names` from `input_names`.

    Raises ValueError for a missing file, without names of outputs, and as `Extractor.extract_model`; and
    ValidationError for an invalid model, unless `check_model` is False.
    """
    from sabir.compat import onnx  # ruff: ignore[import-outside-top-level]  the package imports this module

    if not Path(input_path).exists():
        raise ValueError(
            f"there is no file {os.fspath(input_path)!r}; pass the path of a model as input_path"
        )
    if not output_path:
        raise ValueError("output_path is empty; pass the path of the file to write")
    if not output_names:
        raise ValueError("output_names is empty; name one output at least")
    if check_model:
        checker.check_model(input_path)
    model = onnx.load(input_path)
    if infer_shapes:
        model = shape_inference.infer_shapes(model)
    onnx.save(Extractor(model).extract_model(input_names, output_names), output_path)
    if check_model:
        checker.check_model(output_path)


def _tar_members_filter(tar: tarfile.TarFile, base: str | os.PathLike[str]) -> list[tarfile.TarInfo]:  # pyright: ignore[reportUnusedFunction]  programs import it
    """Return the members of an archive; raises RuntimeError for one that would be written outside `base`."""
    root = Path(base).resolve()
    return list(_inside(tar, root))


def _inside(tar: tarfile.TarFile, root: Path) -> Iterable[tarfile.TarInfo]:
    for member in tar:
        if not (root / member.name).resolve().is_relative_to(root):
            raise RuntimeError(
                f"the member {member.name!r} of the archive would be written outside {root} (directory "
                "traversal); do not unpack this archive"
            )
        if member.issym() or member.islnk():
            raise RuntimeError(
                f"the member {member.name!r} of the archive is a link, which may lead anywhere; do not "
                "unpack this archive"
            )
        yield member


__all__ = ["Extractor", "extract_model"]
