"""Joined and padded tensors: each part is written where it belongs in the end."""

from sabir.compilation.fusion.views import Copy, Located
from sabir.loops import Join, Pad
from support.middle import Middle


def located(middle, x):
    return middle.grouping.views.locate(x)


def test_parts_are_written_one_behind_the_other():
    text = """g (float[N,3] a, float[N,5] b) => (float[N,8] y) {
      r = Relu (a)
      e = Exp (b)
      y = Concat <axis = 1> (r, e)
    }"""
    middle = Middle(text, N=2)
    assert middle.groups() == ["nest: max copy", "nest: exp copy"]
    whole = middle["y"]
    assert isinstance(whole, Join)
    starts = [x.starts for g in middle.grouping.groups for x in g.members if isinstance(x, Copy)]
    assert starts == [(0, 0), (0, 3)]
    assert middle.grouping.writers[whole] == middle.grouping.groups
    assert middle["r"] not in middle.grouping.stored  # nothing else reads it


def test_a_joined_tensor_lies_inside_of_the_one_that_alone_reads_it():
    text = """g (float[N,3] a, float[N,5] b) => (float[N,11] y) {
      r = Relu (a)
      e = Exp (b)
      i = Concat <axis = 1> (r, e)
      y = Concat <axis = 1> (r, i)
    }"""
    middle = Middle(text, N=2)
    inner, outer = middle["i"], middle["y"]
    assert middle.grouping.whole == {outer: None, inner: outer}
    assert located(middle, inner) == Located(outer, 3, (11, 1))
    copies = [x for g in middle.grouping.groups for x in g.members if isinstance(x, Copy)]
    assert len(copies) == 3  # of `r` twice, of `e` once: nothing copies `i`


def test_a_joined_tensor_that_others_read_has_memory_of_its_own():
    text = """g (float[N,3] a, float[N,5] b) => (float[N,11] y, float[N,8] z) {
      i = Concat <axis = 1> (a, b)
      y = Concat <axis = 1> (a, i)
      z = Relu (i)
    }"""
    middle = Middle(text, N=2)
    assert located(middle, middle["i"]).base is middle["i"]


def test_padding_is_filled_beside_what_it_surrounds():
    text = (
        "g (float[N,4] x) => (float[N,7] y) <int64[4] pads = {0, 1, 0, 2}> { r = Relu (x) y = Pad (r, pads) }"
    )
    middle = Middle(text, N=2)
    assert isinstance(middle["y"], Pad)
    copies = [x for g in middle.grouping.groups for x in g.members if isinstance(x, Copy)]
    assert sorted((x.starts, x.shape[1]) for x in copies) == [((0, 0), 1), ((0, 1), 4), ((0, 5), 2)]


def test_a_part_is_written_in_the_shape_in_which_it_is_computed():
    text = """g (float[N,2,3] a, float[N,2] b) => (float[N,8] y) <int64[2] flat = {0, 6}> {
      e = Exp (a)
      r = Reshape (e, flat)
      y = Concat <axis = 1> (r, b)
    }"""
    middle = Middle(text, N=2)
    copy = next(x for x in middle.group("e").members if isinstance(x, Copy))
    assert copy.operand is middle["e"]
    assert located(middle, copy.into) == Located(middle["y"], 0, (8, 3, 1))
