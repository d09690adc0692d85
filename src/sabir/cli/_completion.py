"""Completions for the shell: ids of rules, names of operators."""

from __future__ import annotations


def rule_ids(incomplete: str) -> list[tuple[str, str]]:
    """Return the ids and groups of rules that complete a word of a list, each with its explanation."""
    from sabir.checking import GROUPS, RULES  # ruff: ignore[import-outside-top-level]  only a completion needs it

    before, comma, word = incomplete.rpartition(",")
    known = [*GROUPS.items(), *((rule.id, rule.explanation) for rule in RULES)]
    matching = [(name, text) for name, text in known if name.lower().startswith(word.lower())]
    return [(f"{before}{comma}{name}", text) for name, text in matching]


def operator_names(incomplete: str) -> list[tuple[str, str]]:
    """Return the operators whose names, with the domain unless it is the default, complete a word."""
    from sabir.reference import domains_of  # ruff: ignore[import-outside-top-level]  only a completion needs it

    known = [
        (f"{domain}.{operator.name}" if domain else operator.name, operator.summary)
        for domain, operators in domains_of(None).items()
        for operator in operators
    ]
    return [(name, text) for name, text in known if name.lower().startswith(incomplete.lower())]


def consumer_names(incomplete: str) -> list[str]:
    """Return the known consumers that complete a word."""
    from sabir.consumers import CONSUMERS  # ruff: ignore[import-outside-top-level]  only a completion needs it

    return [name for name in CONSUMERS if name.startswith(incomplete)]


def release_names(incomplete: str) -> list[str]:
    """Return the releases of the standard that complete a word."""
    from sabir.ir import releases  # ruff: ignore[import-outside-top-level]  only a completion needs it

    return [release.name for release in releases() if release.name.startswith(incomplete)]
