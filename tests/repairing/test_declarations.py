"""Repairs are declared beside their functions, each once."""

import importlib
import pkgutil

import pytest

from sabir import repairing
from sabir.checking import RULES
from sabir.repairing import REPAIRS, UNSAFE_REPAIRS, _declaring
from sabir.repairing._declaring import declared_repairs, repair


def test_every_repair_is_of_a_rule_and_in_order():
    ids = [r.id for r in RULES]
    for table in (REPAIRS, UNSAFE_REPAIRS):
        assert set(table) <= set(ids)
        assert list(table) == sorted(table)
        assert all(text.endswith(".") for text in table.values())


def test_the_engine_imports_every_module_with_repairs():
    for module in pkgutil.iter_modules(repairing.__path__, "sabir.repairing."):
        importlib.import_module(module.name)
    declared = {**declared_repairs(safe=True), **declared_repairs(safe=False)}
    assert declared.keys() == REPAIRS.keys() | UNSAFE_REPAIRS.keys(), (
        "call the repair in repairing/_engine.py"
    )


def test_a_repair_is_declared_once():
    with pytest.raises(ValueError, match="the safe repair of GRAPH004 is declared twice"):
        repair("GRAPH004", "Again.")
    with pytest.raises(ValueError, match="the unsafe repair of GRAPH004 is declared twice"):
        repair("GRAPH004", "Again.", safe=False)
    assert declared_repairs(safe=True) == REPAIRS
    assert declared_repairs(safe=False) == UNSAFE_REPAIRS


def test_a_declaration_leaves_the_function_as_it_is(monkeypatch):
    monkeypatch.setattr(_declaring, "_SAFE", dict(_declaring._SAFE))

    def function():
        return 1

    table = dict(declared_repairs(safe=True))
    assert repair("NONE000", "A repair of no rule.")(function) is function
    assert declared_repairs(safe=True) == table | {"NONE000": "A repair of no rule."}
