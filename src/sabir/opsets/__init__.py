"""The operators, one module each; `STANDARD` finds them by domain and name.

`with_internal` returns a registry that also has the operators that Sabir itself writes into models.
"""

from sabir.base import listing_public
from sabir.schema import INTERNAL, Registry, Rooms

_CONTRIB = Rooms("sabir.opsets.contrib")
_PACKAGES = {
    "": Rooms("sabir.opsets.onnx", "sabir.opsets.unpublished"),
    "ai.onnx.ml": Rooms("sabir.opsets.onnx_ml"),
    "ai.onnx.preview": Rooms("sabir.opsets.preview"),
    "ai.onnx.preview.training": Rooms("sabir.opsets.training"),
    "ai.onnx.contrib": _CONTRIB,
    "com.microsoft": Rooms("sabir.opsets.microsoft"),
    "com.microsoft.extensions": _CONTRIB,  # the same library registers its operators there too
    "com.microsoft.nchwc": Rooms("sabir.opsets.microsoft_nchwc"),
}
_NEWEST = {"ai.onnx.contrib": 1, "com.microsoft": 1, "com.microsoft.extensions": 1, "com.microsoft.nchwc": 1}
STANDARD = Registry(_PACKAGES, opsets=_NEWEST)
_INTERNAL = Registry({**_PACKAGES, INTERNAL: Rooms("sabir.opsets.internal")}, opsets=_NEWEST)


def with_internal(registry: Registry) -> Registry:
    """Return a registry that also has the operators of the domain `sabir.internal`."""
    if registry is STANDARD:
        return _INTERNAL
    return registry.with_operators(*_INTERNAL.of_domain(INTERNAL))


def is_standard(registry: Registry) -> bool:
    """Return whether the operators of a registry are those of Sabir alone."""
    return registry is STANDARD or registry is _INTERNAL


__dir__ = listing_public(__name__, ("families", "typing"))

__all__ = ["STANDARD", "is_standard", "with_internal"]
