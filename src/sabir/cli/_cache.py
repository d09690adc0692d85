"""`sabir cache`: what the compiler keeps on disk."""

from __future__ import annotations

from collections import Counter

import typer

from sabir.cli._json import JsonOption, write_json
from sabir.cli._screen import Screen, bytes_text, plain
from sabir.cli._usage import FAULTY, refuse
from sabir.compilation.disk import cache as the_cache

EXAMPLES = ("sabir cache", "sabir cache show --json", "sabir cache verify", "sabir cache clear")
SHOW_EXAMPLES = ("sabir cache show", "sabir cache show --json")
VERIFY_EXAMPLES = ("sabir cache verify",)
CLEAR_EXAMPLES = ("sabir cache clear",)


def cache(context: typer.Context, *, as_json: JsonOption = False) -> None:
    """Show, verify or clear the cache of compiled models."""
    if context.invoked_subcommand is None:
        show(as_json=as_json)
    elif as_json:
        refuse(f"write --json after the command: sabir cache {context.invoked_subcommand} --json")


def show(*, as_json: JsonOption = False) -> None:
    """Show the folder, the entries and the limit.

    SABIR_CACHE names another folder, or turns the cache off; SABIR_CACHE_SIZE sets the limit.
    """
    found = the_cache()
    entries, sizes = Counter[str](), Counter[str]()
    for entry in found.entries():
        entries[entry.kind] += 1
        sizes[entry.kind] += entry.size
    kinds = {kind: {"entries": entries[kind], "bytes": sizes[kind]} for kind in sorted(entries)}
    if as_json:
        folder = None if found.folder is None else str(found.folder)
        write_json({"folder": folder, "limit": found.limit, "kinds": kinds})
        return
    screen = Screen()
    if found.folder is None:
        screen.line("the cache is off")
        return
    screen.line(
        f"{plain(found.folder)}: {_amount(entries.total(), sizes.total())}, of {bytes_text(found.limit)}"
    )
    screen.table(
        ((kind, str(entries[kind]), bytes_text(sizes[kind])) for kind in kinds), "", "right", "right"
    )


def verify(*, as_json: JsonOption = False) -> None:
    """Read all entries, and report damaged ones.

    The exit code is 1 if there are any. A damaged entry is never used: it is made again when it is needed.
    """
    problems = list(the_cache().problems())
    if as_json:
        write_json([{"kind": e.kind, "name": e.name, "problem": problem} for e, problem in problems])
    else:
        screen = Screen()
        screen.lines(f"{entry.kind}/{entry.name}: {plain(problem)}" for entry, problem in problems)
        screen.line(f"{_entries(len(problems))} damaged" if problems else "no entry is damaged")
    if problems:
        raise typer.Exit(FAULTY)


def clear(*, as_json: JsonOption = False) -> None:
    """Remove all entries.

    Other files in the folder of the cache stay.
    """
    removed = the_cache().clear()
    size = sum(entry.size for entry in removed)
    if as_json:
        write_json({"entries": len(removed), "bytes": size})
    else:
        Screen().line(f"removed {_amount(len(removed), size)}")


def _amount(entries: int, size: int) -> str:
    return f"{_entries(entries)}, {bytes_text(size)}"


def _entries(count: int) -> str:
    return f"{count:,} {'entry' if count == 1 else 'entries'}"
