"""The rules as Markdown: the page of one rule, and the document of all rules and sentences."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from sabir.checking._laws import laws
from sabir.checking._rule import GROUPS, RULES, Rule, SetTexts, Textproto, Wire

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sabir.checking._rule import Model

_WIDTH, _MOST_LINES = 100, 16
_WORDS = re.compile(r'(?:"(?:\\.|[^"\\])*"|[^\s"])+')  # a blank inside quotes does not end a word
_SOURCES = {
    "ir.txt": "ir.txt",
    "ir-with-training.txt": "ir-with-training.txt",
    "versioning.txt": "versioning.txt",
    "onnx.proto": "the comments of onnx.proto, in our words",
    "functions": "what the standard says about model-local functions, in our words",
    "practice": "what every reader of models relies on",
}


class Repairable(NamedTuple):
    """The descriptions of safe and unsafe repairs, by the rule whose violations they repair.

    >>> Repairable({'GRAPH006': 'The nodes are sorted.'}, {}).safe
    {'GRAPH006': 'The nodes are sorted.'}
    """

    safe: Mapping[str, str]
    unsafe: Mapping[str, str]


def rule_page(rule: Rule, repairs: Repairable, level: int = 1) -> str:
    """Return the page of a rule: law, explanation, repairs and examples, under a heading of `level`.

    >>> from sabir.repairing import REPAIRS, UNSAFE_REPAIRS
    >>> rule_page(RULES.find('NODE001'), Repairable(REPAIRS, UNSAFE_REPAIRS)).splitlines()[0]
    '# NODE001'
    """
    return "\n".join(_lines(rule, repairs, level)) + "\n"


def rules_document(repairs: Repairable) -> str:
    """Return all binding sentences with the rules that enforce them, and the page of every rule.

    >>> rules_document(Repairable({}, {})).splitlines()[0]
    '# Rules'
    """
    return "\n".join([*_introduction(repairs), *_sentences(), "## The rules", *_pages(repairs)])


def severity_of(rule: Rule) -> str:
    """Return the severity and, for a rule that must be selected, its group.

    >>> severity_of(RULES.find('NAME001'))
    'warning, style'
    """
    return f"{rule.severity}, {rule.group}" if rule.group else rule.severity


def _lines(rule: Rule, repairs: Repairable, level: int) -> Iterator[str]:
    yield f"{'#' * level} {rule.id}\n"
    yield f"> {rule.law}\n"
    yield f"- Source: {_SOURCES[rule.source]}"
    yield f"- Severity: {severity_of(rule)}{f' ({rule.note})' if rule.note else ''}"
    yield f"- IR versions: {_versions(rule)}\n"
    yield rule.explanation
    safe, unsafe = repairs.safe.get(rule.id), repairs.unsafe.get(rule.id)
    if safe is not None:
        yield f"\n`sabir check --fix` repairs it. {safe}"
    if unsafe is not None:
        more = "more violations" if safe else "it"
        yield f"\nOnly `sabir check --fix-unsafe {rule.id}` repairs {more}. {unsafe}"
    for title, examples in (("Bad", rule.bad), ("Good", rule.good)):
        yield f"\n{title}:"
        for example in examples:
            yield f"\n```{'textproto' if isinstance(example, (Textproto, SetTexts)) else 'text'}"
            yield from _shown(example)
            yield "```"


def _versions(rule: Rule) -> str:
    first, last = max(rule.since, 1), rule.until
    if last is None:
        return "all" if rule.since == 0 else f"{first} and later"
    return f"up to {last}" if rule.since == 0 else f"{first} to {last}"


def _shown(example: Model) -> Iterator[str]:
    """Yield the lines of an example, folded between words; of a long one, the first lines."""
    if isinstance(example, Wire):
        yield f"the bytes {example.hex(' ')}"
        return
    lines = list(folded(example))
    yield from lines[:_MOST_LINES]
    if len(lines) > _MOST_LINES:
        yield f"... and {len(lines) - _MOST_LINES} lines more"


def folded(text: str) -> Iterator[str]:
    """Yield the lines of a text; long lines are folded at blanks outside quotes."""
    for line in text.splitlines():
        shown = ""
        for word in _WORDS.findall(line):
            if shown and len(shown) + 1 + len(word) > _WIDTH:
                yield shown
                shown = f"    {word}"
            else:
                shown = f"{shown} {word}" if shown else word
        yield shown


def _introduction(repairs: Repairable) -> Iterator[str]:
    selected = sum(bool(r.group) for r in RULES)
    yield "# Rules\n"
    yield (
        f"The {len(RULES)} rules of `sabir check`. {selected} of them apply only with `--strict`, or when"
        f" their id or group is selected. `sabir check --fix` repairs violations of {len(repairs.safe)}"
        " rules; no computed value and no name that others rely on changes. `--fix-unsafe ID` repairs"
        f" violations of {len(repairs.unsafe)} rules where such a change is necessary, each by its id."
        " `tools/write_rules.py` writes this page from the rules; `sabir rule ID` shows the page of one.\n"
    )
    for group, what in GROUPS.items():
        members = ", ".join(f"[{r.id}](#{r.id.lower()})" for r in RULES if r.group == group)
        yield f"- Group `{group}`, {what}: {members}."
    yield ""


def _sentences() -> Iterator[str]:
    yield "## The sentences\n"
    yield (
        "Every binding sentence, in capitals or not, of the specification's ir.txt, ir-with-training.txt"
        " and versioning.txt, with the rules that enforce it, or the reason why no model can violate it.\n"
    )
    yield "| sentence | where | rules |\n|---|---|---|"
    for law in laws():
        links = ", ".join(f"[{r}](#{r.lower()})" for r in law.rules)
        reason = law.reason if links or not law.reason else f"none: {law.reason}"
        enforced = "; ".join(filter(None, (links, reason)))
        yield f"| {_cell(law.sentence)} | {', '.join(law.sources)} | {_cell(enforced)} |"
    yield ""


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").replace("<", "\\<").split())


def _pages(repairs: Repairable) -> Iterator[str]:
    for rule in RULES:
        yield f"\n{rule_page(rule, repairs, 3)}".rstrip("\n")
    yield ""
