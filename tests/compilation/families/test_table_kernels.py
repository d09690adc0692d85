"""Kernels of decision trees, of regions of images and of steps that update matrices, alone."""

import numpy as np
import pytest

from sabir.compilation.backends.cpu.matrix_steps.kernel import SIZES as MATRIX_SIZES
from sabir.compilation.backends.cpu.matrix_steps.kernel import MatrixRecurrence
from sabir.compilation.backends.cpu.regions.kernel import SIZES, Regions
from sabir.compilation.backends.cpu.trees.kernel import LANES, Descent
from sabir.compilation.plan.signature import scratch_memory
from support.kernels import aligned, run_kernel

RANDOM = np.random.default_rng(6)
BITS = 6  # of a feature in a link
LEAF = 0xFFFFFFFF


def floats(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


# ---------------------------------------------------------------- trees


def node(threshold, feature, place):
    """A node that leads to `place`, or the one behind it where the feature is above the threshold."""
    return threshold, place << BITS | feature * LANES


def leaf(place):
    """A leaf leads to itself."""
    return LEAF, place << BITS


# two trees: the first tests feature 0, then feature 1 where it is small; the second tests feature 1
NODES = np.array(
    [node(5, 0, 1), node(2, 1, 3), leaf(2), leaf(3), leaf(4), node(7, 1, 6), leaf(6), leaf(7)], np.uint32
)
ROOTS = np.array([0, 5, 0, 0, 0, 0, 0, 0], np.int32)  # as many as lanes may read
WEIGHTS = np.array([0, 0, 30, 1, 2, 0, 100, 200], np.float32)


def descended(rows, op="sum", **votes):
    """The results of rows of two features."""
    spec = Descent("uint32", "float", op, bool(votes), BITS)
    x, scores = np.array(rows, np.uint32), np.zeros((len(rows), votes.pop("targets", 1)))
    scratch = 4 * (2 * LANES + 1024)
    values = {
        "rows": len(rows), "targets": scores.shape[1], "trees": 2, "features": 2, "job_rows": 4 * LANES,
        "step_bytes": 4 * len(ROOTS), "x": x, "nodes": NODES, "roots": np.concatenate([ROOTS, 0 * ROOTS]),
        "weights": WEIGHTS, "scores": scores, "first": None, "voted": None, "scratch": scratch_memory(scratch),
    } | votes  # fmt: skip
    run_kernel(spec, values, scratch=scratch, shares=2)
    return scores


ROWS = [(6, 0), (5, 2), (5, 3), (9, 9)]
LEAVES = [(30, 100), (1, 100), (2, 100), (30, 200)]


@pytest.mark.parametrize("times", [1, 20])
def test_rows_descend_trees(times):
    """Few rows take steps down some trees together, many rows down one tree."""
    np.testing.assert_array_equal(descended(ROWS * times)[:, 0], [a + b for a, b in LEAVES] * times)
    np.testing.assert_array_equal(descended(ROWS * times, "max")[:, 0], [max(x) for x in LEAVES] * times)
    np.testing.assert_array_equal(descended(ROWS * times, "min")[:, 0], [min(x) for x in LEAVES] * times)


def test_a_leaf_votes_for_several_targets():
    first = np.array([0, 0, 0, 2, 3, 4, 4, 5, 6], np.int32)  # leaf 2 has two votes, the others one
    voted = np.array([0, 2, 1, 1, 2, 0], np.int32)
    weights = np.array([1, 2, 4, 8, 16, 32], np.float32)
    found = descended(ROWS, targets=3, first=first, voted=voted, weights=weights)
    np.testing.assert_array_equal(found, [[1, 0, 18], [0, 4, 16], [0, 8, 16], [33, 0, 2]])


# ---------------------------------------------------------------- regions


def pooled(op, images, counts, bins, places=None):
    """The bins of regions of images (n, height, width, channels)."""
    spec = Regions("float", 8, op, places is not None)
    results = aligned((len(counts), *bins, images.shape[-1]))
    values = dict(zip(SIZES, (len(counts), *bins, *images.shape[1:]), strict=True))
    tensors = dict(zip(spec.tensors, (results, images, counts, places), strict=False))
    return results, run_kernel(spec, values | tensors, shares=2)


@pytest.mark.parametrize("channels", [3, 8, 41])
def test_whole_pixels_of_regions(channels):
    images = floats(2, 5, 6, channels)
    counts = np.array([[1, 0, 2, 2, 5, 1, 4], [0, 3, 3, 0, 1, 0, 6]])  # image, rows of 2 bins, columns of one
    found, errors = pooled("max", images, counts, (2, 1))
    assert errors == 0
    np.testing.assert_array_equal(found[0, 0, 0], images[1, 0:2, 1:4].max((0, 1)))
    np.testing.assert_array_equal(found[0, 1, 0], images[1, 2:5, 1:4].max((0, 1)))
    np.testing.assert_array_equal(found[1, 0, 0], np.zeros(channels))  # no pixel
    np.testing.assert_array_equal(found[1, 1, 0], images[0, 0:1].max((0, 1)))


def test_samples_of_regions_are_interpolated():
    images = floats(1, 4, 4, 8)
    counts = np.array([[0, 1, 1]])  # image, samples down and across
    places = np.array(
        [[0.5, 1.0, 2.0, 1.0]], np.float32
    )  # where the row and the column of bins begin, their sizes
    found, _ = pooled("mean", images, counts, (1, 1), places)
    # the sample is in the middle of its bin: row 0.5 + 2 / 2, column 1 + 1 / 2
    np.testing.assert_allclose(found[0, 0, 0], images[0, 1:3, 1:3].mean((0, 1)), rtol=1e-5)


def test_a_region_of_no_image_is_an_error():
    assert pooled("max", floats(1, 2, 2, 8), np.array([[-1, 0, 1, 0, 1]]), (1, 1))[1] == 1


# ---------------------------------------------------------------- steps that update matrices


BATCH, HEADS, STEPS, QUERIES, KEYS = STEP_SIZES = (2, 3, 4, 2, 5)


def updated(spec, given):
    """What queries read of the matrices after each step, and the last matrices, in float64."""
    wide = {name: x.astype(np.float64) for name, x in given.items()}
    state, read = wide["first"].copy(), []
    for t in range(STEPS):
        k, new = wide["keys_read"][:, :, t], wide["values"][:, :, t]
        state *= wide["decay"][:, :, t, :, None] if spec.decays else 1
        if spec.corrects:
            new = (new - np.einsum("bhk,bhkc->bhc", k, state)) * wide["rate"][:, :, t, None]
        state += k[..., None] * new[..., None, :]
        read.append(np.einsum("bhqk,bhkc->bhqc", wide["queries_read"][:, :, t], state))
    return np.concatenate([*read, state], axis=2)


@pytest.mark.parametrize("columns", [8, 21])
@pytest.mark.parametrize("options", [False, True])
def test_steps_update_matrices(columns, options):
    spec = MatrixRecurrence("float", 8, 2, decays=options, corrects=options)
    given = {
        "queries_read": floats(*STEP_SIZES), "keys_read": floats(BATCH, HEADS, STEPS, KEYS),
        "values": floats(BATCH, HEADS, STEPS, columns), "first": floats(BATCH, HEADS, KEYS, columns),
        "decay": floats(BATCH, HEADS, STEPS, KEYS), "rate": floats(BATCH, HEADS, STEPS),
    }  # fmt: skip
    result, scratch = aligned((BATCH, HEADS, STEPS * QUERIES + KEYS, columns)), KEYS * 2 * 8 * 4
    values = dict(zip(MATRIX_SIZES, (*STEP_SIZES, columns), strict=True))
    values |= {"result": result, "scratch": scratch_memory(scratch)}
    for name, count in spec.operands.items():
        values[name] = {"tensor": given[name], "strides": given[name].strides[:count]}
    run_kernel(spec, values, scratch=scratch, shares=2)
    np.testing.assert_allclose(result, updated(spec, given), rtol=1e-3, atol=1e-4)


def test_the_operands_of_steps_follow_their_options():
    assert MatrixRecurrence("float", 8, 2, decays=False, corrects=False).operands.keys() == {
        "queries_read",
        "keys_read",
        "values",
        "first",
    }
    both = MatrixRecurrence("float", 8, 2, decays=True, corrects=True)
    assert both.operands["decay"] == 4
    assert both.operands["rate"] == 3
