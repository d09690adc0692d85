"""What two engines compute of one model, compared."""

import warnings

import numpy as np

import sabir


def outcome(session, feeds):
    """The outputs of a run, or the error that it raises."""
    try:
        return session.run(feeds)
    except sabir.SabirError as error:
        return error


def compare(name, ours, theirs, tolerance):
    """Assert that two arrays have one type, one shape, and values as near as rounding allows."""
    assert type(ours) is np.ndarray
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), name
    assert ours.flags.writeable
    if ours.dtype.kind != "f":
        np.testing.assert_array_equal(ours, theirs, err_msg=name)
    else:
        rtol = 4 * np.finfo(ours.dtype).eps
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=tolerance, err_msg=name)


def check(model, feeds, tolerances, threads=2):
    """Run a session of each engine with several feeds, and compare what they give or raise.

    `tolerances` has the absolute one of each output. A later run with the shapes of an earlier one is a fast one.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "no plan could be compiled", sabir.SabirWarning)
        ours = sabir.Session(model, engine="compiled", threads=threads)
        theirs = sabir.Session(model, engine="reference")
        for number, given in enumerate(feeds):
            before = {name: x.copy() for name, x in given.items()}
            found, expected = outcome(ours, given), outcome(theirs, given)
            if isinstance(expected, Exception):
                assert (type(found), str(found)) == (type(expected), str(expected))
                continue
            assert not isinstance(found, Exception), repr(found)
            assert list(found) == list(expected)
            for (name, y), tolerance in zip(expected.items(), tolerances, strict=True):
                compare(f"{name} of run {number}", found[name], y, tolerance)
                assert not any(np.may_share_memory(found[name], x) for x in given.values())
            for name, x in given.items():
                np.testing.assert_array_equal(x, before[name], err_msg=f"the feed {name} was written to")
