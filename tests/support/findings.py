"""What the checker reports, and what the repairs do, for each invalid example of a rule: two texts to read."""

from collections.abc import Iterable, Iterator
from difflib import unified_diff
from pathlib import Path

from sabir import ir
from sabir.base import Finding, legible
from sabir.checking import RULES, Rule, findings
from sabir.checking._examples import _folder, build, build_sets
from sabir.checking._rule import Model, SetTexts, Wire
from sabir.repairing import REPAIRS, UNSAFE_REPAIRS, Repair, fix_in_place

TESTS = Path(__file__).parents[1]
FINDINGS = TESTS / "checking" / "findings.txt"
REPAIRED = TESTS / "repairing" / "repairs.txt"
REPAIRABLE = REPAIRS.keys() | UNSAFE_REPAIRS.keys()
"""The rules that have repairs, safe or not."""
NOT_REPAIRED = {
    ("FUNC004", 0): "an output listed twice: a caller takes both by position",
    ("GRAPH006", 1): "nodes that read one another in a cycle have no order",
}
"""The examples that no repair changes, by rule and index, with the reason."""


def source_of(example: Model) -> ir.Model | list[ir.OperatorSet] | bytes:
    """Return what the checker takes: the model or the operator sets of an example, or bytes that are neither."""
    if isinstance(example, SetTexts):
        return build_sets(example)
    return bytes(example) if isinstance(example, Wire) else build(example)


def findings_of(rule: Rule, example: Model) -> list[Finding]:
    """Return the findings of an example, by the rules that always apply and this one."""
    always = [r.id for r in RULES if not r.group]
    return list(findings(source_of(example), select=[*always, rule.id]))


def repairs_of(rule: Rule, example: Model) -> list[Repair]:
    """Return the repairs of the violations of one rule in an example."""
    return fix_in_place(build(example), select=[rule.id], unsafe={rule.id} & UNSAFE_REPAIRS.keys())


def findings_record() -> str:
    """Return the findings of all invalid examples, a block for each: location, severity, message, hint."""
    return _blocks(
        (rule.id, index, (_line(f) for f in findings_of(rule, example)))
        for rule in RULES
        for index, example in enumerate(rule.bad)
    )


def repairs_record() -> str:
    """Return the repairs of all invalid examples that have some, a block for each: location, message."""
    return _blocks(
        (rule.id, index, (f"{r.location}: {r.message}" for r in repairs_of(rule, example)))
        for rule in RULES
        if rule.id in REPAIRABLE
        for index, example in enumerate(rule.bad)
        if (rule.id, index) not in NOT_REPAIRED
    )


def differences(path: Path, record: str) -> str:
    """Return how a record differs from its file, and how to update the file; "" if it does not differ."""
    lines = unified_diff(
        path.read_text("utf-8").splitlines(), record.splitlines(), path.name, "this version", lineterm="", n=1
    )
    shown = "\n".join(lines)
    return shown and f"read the changes, then run tools/write_findings.py:\n{shown}"


def _line(finding: Finding) -> str:
    hint = f" ({finding.hint})" if finding.hint else ""
    line = legible(f"{finding.location}: {finding.severity}: {finding.message}{hint}")
    return line.replace(str(_folder().name), "FOLDER")  # of external data: another one in each run


def _blocks(blocks: Iterable[tuple[str, int, Iterator[str]]]) -> str:
    return "\n".join(
        "".join(f"{line}\n" for line in (f"{rule} example {index}", *(f"  {line}" for line in lines)))
        for rule, index, lines in blocks
    )
