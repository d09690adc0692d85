"""The types that an optional may contain, and those that a later version of its operators adds."""

from __future__ import annotations

from sabir.schema import BFLOAT16, CLASSIC, FLOAT4, FLOAT6, FLOAT8, FLOAT8E8M0, INT2, INT4, sequences

_NEWER_ELEMENTS = BFLOAT16 | FLOAT8 | FLOAT8E8M0 | FLOAT6 | FLOAT4 | INT4 | INT2
CONTENT = CLASSIC | sequences(CLASSIC)
NEWER_CONTENT = _NEWER_ELEMENTS | sequences(_NEWER_ELEMENTS)
NO_OPTIONALS = "no operator before opset 15 has optional values"
"""Why an operator on optionals has no equivalent in older ones."""
