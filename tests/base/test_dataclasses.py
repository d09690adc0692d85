"""The decorator `dataclass`: its classes behave as those of the standard library."""

import copy
import dataclasses
import inspect
from dataclasses import FrozenInstanceError, field, fields, replace

import pytest

from sabir.base import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """A class of each kind of field."""

    x: int
    y: int = 2
    names: list[str] = field(default_factory=list[str])
    note: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Solid(Point):
    """A class with a base."""

    z: int = 3


_OPTIONS = (
    {}, {"slots": True}, {"frozen": True}, {"frozen": True, "slots": True}, {"eq": False},
    {"frozen": True, "eq": False, "slots": True}, {"repr": False}, {"slots": True, "weakref_slot": True},
)  # fmt: skip


def _class(decorator, options):
    class Made:
        """A class."""

        a: int
        b: tuple[int, ...] = ()
        c: list[int] = field(default_factory=list)
        d: int = field(default=4, compare=False, repr=False)
        e: int = field(init=False, default_factory=lambda: 5)

    return decorator(**options)(Made)


def test_a_class_is_as_of_the_standard_library():
    for options in _OPTIONS:
        ours, other = _class(dataclass, options), _class(dataclasses.dataclass, options)
        for arguments in ((1,), (1, (2,), [3]), (1, (), [], 7)):
            x, y = ours(*arguments), other(*arguments)
            assert (x == ours(1)) == (y == other(1))
            values = [[getattr(z, f.name) for f in fields(z)] for z in (x, y)]
            assert values[0] == values[1]
            assert (x == ours(*arguments)) == (y == other(*arguments)), options
            assert (x == ours(2)) == (y == other(2))
            if options.get("repr", True):
                assert repr(x) == repr(y)
        assert (ours.__hash__ is None) == (other.__hash__ is None)
        assert hasattr(ours(1), "__dict__") == hasattr(other(1), "__dict__")
        assert hasattr(ours, "__weakref__") == hasattr(other, "__weakref__")
        assert ours.__match_args__ == other.__match_args__
        assert list(inspect.signature(ours).parameters) == list(inspect.signature(other).parameters)
        assert ours.__init__.__annotations__ == other.__init__.__annotations__


def test_a_frozen_class_refuses_changes():
    x = Point(1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        x.x = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del x.x
    assert x == Point(1)


def test_hashes_are_those_of_the_compared_fields():
    @dataclass(frozen=True)
    class Pair:
        a: int
        b: str = field(compare=False)

    assert {Pair(1, "x"), Pair(1, "y"), Pair(2, "x")} == {Pair(1, ""), Pair(2, "")}
    with pytest.raises(TypeError, match="unhashable"):
        hash(Point(1))  # of a list


def test_defaults_of_a_factory_are_not_shared():
    assert Point(1).names is not Point(1).names


def test_a_class_with_a_base_has_the_fields_of_both():
    assert Solid(1, z=9) == Solid(1, 2, [], "", 9)
    assert Solid(1) != Point(1)
    assert repr(Solid(1)) == "Solid(x=1, y=2, names=[], z=3)"


def test_objects_are_copied_and_replaced():
    x = Solid(1, 5, ["a"], "note", 7)
    for made in (copy.copy(x), copy.deepcopy(x), replace(x, y=5)):
        assert (made, made.note) == (x, "note")
    assert replace(x, z=1) == Solid(1, 5, ["a"], "", 1)


def test_methods_of_the_class_stay():
    @dataclass(frozen=True)
    class Own:
        a: int

        def __init__(self):
            object.__setattr__(self, "a", 3)

        def __repr__(self):
            return "own"

        def __hash__(self):
            return 11

    assert (Own().a, repr(Own()), hash(Own())) == (3, "own", 11)


def test_what_a_class_does_after_its_fields_are_set():
    @dataclass(frozen=True)
    class Half:
        a: int
        b: int = field(init=False)

        def __post_init__(self):
            object.__setattr__(self, "b", self.a // 2)

    assert Half(8).b == 4


def test_a_call_with_wrong_arguments_names_the_class():
    with pytest.raises(TypeError, match=r"Point\.__init__\(\) missing 1 required positional argument: 'x'"):
        Point()


def test_an_object_that_contains_itself_is_shown():
    x = Point(1)
    x.names.append(x)
    assert repr(x) == "Point(x=1, y=2, names=[...])"
