"""The versions that a conversion is asked for, checked against those that are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import ConversionError, UnsupportedError
from sabir.ir import NEWEST_IR, canonical_domain, features_above, least_ir, unknown_ir
from sabir.rewriting import change_ir_version
from sabir.schema import newer_opset

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.ir import Model
    from sabir.schema import Registry

_MOST_FEATURES = 8


def targets_of(opset: int | None, opsets: Mapping[str, int] | None, registry: Registry) -> dict[str, int]:
    """Return the target version of each domain by its canonical name.

    Raises ConversionError for a domain without known operators, for a version below 1, and where `opset` and
    `opsets` contradict each other; UnsupportedError for a version that is not known yet.
    """
    found: dict[str, int] = {} if opset is None else {"": opset}
    for name, version in (opsets or {}).items():
        domain = canonical_domain(name)
        if found.get(domain, version) != version:
            raise ConversionError(f"two versions of ai.onnx are asked for: {found[domain]} and {version}")
        found[domain] = version
    for domain, version in found.items():
        shown = domain or "ai.onnx"
        if not registry.has_domain(domain):
            raise ConversionError(
                f"no operators of domain {shown!r} are known; known are those of {registry.listed_domains},"
                " and `registry=` adds your own"
            )
        if type(version) is not int:
            raise TypeError(f"the version of {shown} must be an int, such as 21, and is {version!r}")
        if version < 1:
            raise ConversionError(f"opset {version} of {shown} does not exist; the first version is 1")
        newest = registry.newest_opset(domain)
        if newest is not None and version > newest:
            raise UnsupportedError(newer_opset(domain, version, newest))
    return found


def choose_ir_version(model: Model, ir_version: int | None, registry: Registry) -> None:
    """Set the IR version of a converted model: the one asked for, or else one that its content needs.

    Raises ConversionError for one that does not have all that the model uses, and UnsupportedError for one
    that is not known yet.
    """
    if ir_version is None:
        change_ir_version(model, max(model.ir_version, least_ir(model)), registry)
        return
    if ir_version > NEWEST_IR:
        raise UnsupportedError(unknown_ir(ir_version))
    least = least_ir(model)
    if ir_version < least:
        features = list(dict.fromkeys(f"{f.name} (IR {f.since})" for f in features_above(model, ir_version)))
        more = f" and {len(features) - _MOST_FEATURES} more" if len(features) > _MOST_FEATURES else ""
        raise ConversionError(
            f"the model needs IR version {least} or newer, not {ir_version}, for"
            f" {', '.join(features[:_MOST_FEATURES])}{more}"
        )
    change_ir_version(model, ir_version, registry)
