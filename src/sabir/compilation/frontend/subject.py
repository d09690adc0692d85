"""The subject of a session: a model that was loaded and bound, or a file that the cache describes.

A session whose plan is on the disk needs little of its model: the names and types of inputs and outputs, and
the byte ranges of the constants in the file. It reads the model only if it needs another plan.
"""

from __future__ import annotations

import functools
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sabir.base import FileError, SabirError, default_limits, run_with_limits, without_collector
from sabir.compilation.cache.descriptions import (
    Description,
    FileConstant,
    Ports,
    describe,
    described,
    identity_of_opened,
)
from sabir.compilation.cache.identities import identity_of_file, owner_of
from sabir.elements import element
from sabir.evaluation import Front
from sabir.files import MappedFile, untruncated
from sabir.ir import ExternalTensor, Tensor, all_tensors, drop_constants

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.files import OpenedFile
    from sabir.ir import Array, Model


class Subject:
    """The model of a session, a snapshot; several threads may read it.

    `name` is the text that a session shows for its model, `defaults` are the defaults of the inputs, and
    `front` checks feeds and results. `has_turns` is true if a call runs subgraphs whose constants are not
    counted yet.

    >>> from sabir.compilation.frontend.binding import bound_subject
    >>> from sabir.opsets import STANDARD
    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> bound_subject(model, STANDARD, None, None, newer_opsets=False).front.outputs[0].name
    'y'
    """

    def __init__(
        self, name: str, front: Front, defaults: Sequence[Array | None], file: OpenedFile | None,
        ports: Ports | None = None, *, has_turns: bool = False, newer_opsets: bool = False,
    ) -> None:  # fmt: skip
        """Create a subject; `file` is the file of the model, if the model is unchanged since it was loaded.

        `ports` are the inputs and outputs of a model that may be described in the cache.
        """
        self.name, self.front, self.defaults, self.has_turns = name, front, defaults, has_turns
        self._file, self._ports, self._newer_opsets = file, ports, newer_opsets
        self._model: Model | None = None

    @property
    def model(self) -> Model:
        """The model, read on first use; raises FileError if its file has changed since it was opened."""
        if self._model is None:
            self.take(self._read())
        return cast("Model", self._model)

    def take(self, model: Model) -> None:
        """Keep a model, and drop its constants together with the subject."""
        self._model = model
        weakref.finalize(self, _drop, model).atexit = False

    def _read(self) -> Model:
        # ruff: ignore[import-outside-top-level]  most sessions of a described file read no model
        from sabir.serial import load_opened

        file = cast("OpenedFile", self._file)
        mapped = file.data.obj
        if isinstance(mapped, MappedFile) and identity_of_file(mapped) != identity_of_opened(file):
            raise FileError(f"{file.path}: the file was changed since its session was made; make a new one")
        with without_collector():
            return run_with_limits(default_limits(), load_opened, file)

    @functools.cached_property
    def structure(self) -> str:
        """A text that identifies the model and its constants; raises SabirError if none is cheap."""
        # ruff: ignore[import-outside-top-level]  a description contains it
        from sabir.compilation.cache.structure import structure_of

        file = self._file
        is_mapped = file is not None and isinstance(file.data.obj, MappedFile)
        identity = identity_of_opened(file) if file and is_mapped and not self._has_external() else None
        return identity or structure_of(self.model)

    def _has_external(self) -> bool:
        return any(isinstance(tensor, ExternalTensor) for tensor, *_ in all_tensors(self.model))

    # ------------------------------------------------------------ constants

    def constant(self, name: str) -> Array:
        """Return an initializer by name, from its byte range in the file if that is known."""
        place = self.places.get(name)
        if place is None or self._file is None:
            return cast("Tensor", self._initializers[name]).array()
        data, count = untruncated(self._file.data), int(np.prod(place.shape))
        flat: Array = np.frombuffer(data, element(place.element).dtype, count, place.start)
        return flat.reshape(place.shape)

    def names_of_initializers(self) -> dict[int, str]:
        """Return the names of the initializers by the identity of their tensors."""
        return {id(tensor): name for name, tensor in self._initializers.items() if isinstance(tensor, Tensor)}

    @functools.cached_property
    def _initializers(self) -> dict[str, Any]:
        return {value.name: tensor for value, tensor in self.model.graph.initializers.items()}

    @functools.cached_property
    def places(self) -> dict[str, FileConstant]:
        """The initializers whose elements are in the file in row-major order, by name."""
        if self._file is None:
            return {}
        whole: Array = np.frombuffer(self._file.data, np.uint8)
        start, owner = int(whole.ctypes.data), owner_of(whole)
        found: dict[str, FileConstant] = {}
        for name, tensor in self._initializers.items():
            if isinstance(tensor, Tensor) and tensor.element.name != "string":
                array = tensor.array()
                if array.size and array.flags.c_contiguous and owner_of(array) is owner:
                    found[name] = FileConstant(
                        int(array.ctypes.data) - start, tensor.element.name, array.shape
                    )
        return found

    # ------------------------------------------------------------ the cache

    @classmethod
    def known(cls, file: OpenedFile, *, newer_opsets: bool) -> Subject | None:
        """Return the subject of a file that the cache describes; None if it does not.

        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from sabir.files import opened_file
        >>> with TemporaryDirectory() as folder:
        ...     size = Path(folder, 'new.onnx').write_bytes(b'no model')
        ...     print(Subject.known(opened_file(Path(folder, 'new.onnx')), newer_opsets=False))
        None
        """
        found = described(file, newer_opsets=newer_opsets)
        if found is None:
            return None
        front = Front(found.ports.inputs, found.ports.outputs, {}, numbers=found.numbers)
        subject = cls(found.name, front, [None] * len(found.ports.inputs), file)
        subject.structure, subject.places = found.structure, found.places
        return subject

    def keep(self) -> None:
        """Describe the model in the cache, if a description is enough for a session."""
        file, ports = self._file, self._ports
        if file is None or ports is None or self._has_external():
            return
        if any(default is not None for default in self.defaults):
            return
        with suppress(SabirError):  # a model that cannot be read is not described
            found = Description(self.name, self.structure, self.front.numbers, ports, self.places)
            describe(found, file, newer_opsets=self._newer_opsets)


def _drop(model: Model) -> None:
    for graph in model.graphs():
        drop_constants(graph)
