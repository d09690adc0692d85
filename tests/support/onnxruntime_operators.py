"""The operators that onnxruntime adds to the standard, and what Sabir has of each."""

import functools
import json
from pathlib import Path
from typing import NamedTuple

from sabir.opsets import STANDARD
from sabir.schema import Operator

RECORD = Path(__file__).parents[1] / "rooms" / "onnxruntime.json"
UNPUBLISHED = "Files call these in the domain of the standard, which never released them."
NO_KERNEL = "onnxruntime's CPU provider has no kernel of it"
# why Sabir has no room of an operator that onnxruntime's CPU provider computes
REASONS = {
    "GatherPacked": "Its packed formats are described by documents of onnxruntime's sources alone.",
}


class Row(NamedTuple):
    """An operator that onnxruntime has: `cpu` says whether its CPU provider computes it."""

    domain: str
    name: str
    cpu: bool
    operator: Operator | None

    @property
    def reason(self) -> str:
        """Why Sabir does not have it."""
        return REASONS.get(self.name, "") if self.cpu else NO_KERNEL


@functools.cache
def rows() -> list[Row]:
    """Return every operator of the record, by domain and name."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    cpu: dict[tuple[str, str], bool] = {}
    for key, facts in record["versions"].items():
        domain, name, _ = key.rsplit("/", 2)
        place = "" if domain == "ai.onnx" else domain, name
        cpu[place] = cpu.get(place, False) or bool(facts["cpu"])
    return [Row(d, n, has, _room(d, n)) for (d, n), has in sorted(cpu.items())]


def _room(domain: str, name: str) -> Operator | None:
    """Return the operator of a room that has the version that onnxruntime adds."""
    found = STANDARD.find(domain, name)
    if found is None or (not domain and not any(v.unpublished for v in found.versions)):
        return None
    return found


def page() -> str:
    """Write the page."""
    found = rows()
    have = [r for r in found if r.operator is not None]
    lines = [HEAD.format(have=len(have), all=len(found), cpu=sum(r.cpu for r in found),
                         both=sum(r.cpu for r in have))]  # fmt: skip
    for domain in sorted({r.domain for r in found}):
        lines += [f"## {domain or 'ai.onnx'}", ""]
        if not domain:
            lines += [UNPUBLISHED, ""]
        lines += ["| operator | Sabir | standard operators | kernels | gradient |", "|---|---|---|---|---|"]
        lines += [_line(r) for r in found if r.domain == domain] + [""]
    return "\n".join(lines)


def _line(row: Row) -> str:
    if row.operator is None:
        return f"| {row.name} | no: {row.reason} | | | |"
    version = next(v for v in row.operator.versions if not v.deprecated)
    whole = "partly: " + " ".join(row.operator.lacks) if row.operator.lacks else "whole"
    body = version.find("body") is not None
    cells = [
        "yes" if body else _absent(version.why_absent("body")),
        "yes" if version.find("lower") is not None or (body and not version.why_absent("lower")) else
        _absent(version.why_absent("lower")),
        "yes" if version.find("gradient") is not None or (body and not version.why_absent("gradient")) else
        _absent(version.why_absent("gradient")),
    ]  # fmt: skip
    return f"| {row.name} | {whole} | {' | '.join(cells)} |"


def _absent(reason: str | None) -> str:
    return f"no: {reason}" if reason else "no"


HEAD = """# Operators of onnxruntime

onnxruntime adds operators to those of the standard, in the domain `com.microsoft`, and its optimizer, its
quantizers and its exporters write them into files. Sabir has {have} of the {all} that it declares, and {both} of
the {cpu} that its CPU provider computes. They are operators like all others: checked, inferred, run by both engines.

*Standard operators*: whether `sabir inline --domain com.microsoft` and `sabir convert --standard-only` can write a
call in operators of the standard, which every runtime executes. *Kernels*: whether the compiled engine computes it
in native code; otherwise it is evaluated. *Gradient*: whether `sabir differentiate` passes it.

`tools/write_onnxruntime.py` writes this page.
"""
