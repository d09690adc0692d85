import pytest

from sabir.base import FileError, NotFoundError, hinted, hints


@hints(colour=hinted("color"))
class Thing:
    __slots__ = ("color",)


def test_a_name_of_another_library_raises_with_the_name_here():
    thing = Thing()
    with pytest.raises(AttributeError, match="Thing has no 'colour': it is called 'color'"):
        _ = thing.colour
    with pytest.raises(AttributeError, match="it is called 'color'"):
        thing.colour = 1
    assert not hasattr(thing, "colour")


def test_dir_lists_no_hints():
    assert "color" in dir(Thing())
    assert "colour" not in dir(Thing())


def test_a_lookup_error_is_a_key_error_with_a_readable_message():
    error = NotFoundError("there is no 'x'\x1b")
    assert isinstance(error, KeyError)
    assert str(error) == r"there is no 'x'\x1b"
    assert str(FileError("a").located("b")) == "b: a"
