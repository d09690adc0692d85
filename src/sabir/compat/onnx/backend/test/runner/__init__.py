"""Runs all cases on an engine, as tests of unittest or pytest."""

from __future__ import annotations

import functools
import importlib
import logging
import re
import time
import unittest
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from sabir.compat.onnx.backend.test.loader import KINDS, load_model_tests
from sabir.compat.onnx.backend.test.runner import _comparing, _data
from sabir.compat.onnx.backend.test.runner.item import TestItem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Self

    from sabir.compat.onnx.backend.base import Backend
    from sabir.compat.onnx.backend.test.case.test_case import TestCase

_log = logging.getLogger(__name__)
_DEVICES = ("CPU", "CUDA")


class BackendIsNotSupposedToImplementIt(unittest.SkipTest):
    """An engine raises it to skip the case that it is given."""


def retry_execute(times: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that calls a function up to `times` times, until it raises no exception."""
    if times < 1:
        raise ValueError(f"a function is called at least once, and times is {times}")

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def repeated(*args: Any, **kwargs: Any) -> Any:
            for left in reversed(range(1, times)):
                try:
                    return function(*args, **kwargs)
                except Exception as error:  # ruff: ignore[blind-except]  whatever it is, it is tried again
                    _log.warning("%s; %d more attempts", error, left)
                    time.sleep(5 * (times - left))
            return function(*args, **kwargs)

        return repeated

    return decorate


class Runner:
    """Makes a test of each case and device: `test_NAME_cpu`, `test_NAME_cuda`.

    The engine prepares the model, runs it on each data set, and its outputs are compared. A test of a device
    that it does not support is skipped. `parent_module` is the module that the classes of tests say they
    belong to. `test_kwargs` has options of `Backend.prepare` by the name of a case, and `rtol` and `atol`.
    """

    def __init__(
        self,
        backend: type[Backend],
        parent_module: str | None = None,
        test_kwargs: dict[str, Any] | None = None,
    ) -> None:
        self.backend = backend
        self._parent_module = parent_module
        self._test_kwargs = test_kwargs or {}
        self._include_patterns: set[re.Pattern[str]] = set()
        self._exclude_patterns: set[re.Pattern[str]] = set()
        self._xfail_patterns: set[re.Pattern[str]] = set()
        self._test_items: defaultdict[str, dict[str, TestItem]] = defaultdict(dict)
        for kind in KINDS:
            category = "PyTorch".join(part.title() for part in f"-{kind}".split("-pytorch-"))
            for case in load_model_tests(kind=kind):
                self._add_model_test(case, category.removeprefix("-"))

    def include(self, pattern: str) -> Self:
        """Run only tests whose names match (`re.search`) one of the included patterns; return this runner."""
        self._include_patterns.add(re.compile(pattern))
        return self

    def exclude(self, pattern: str) -> Self:
        """Skip the tests whose names match (`re.search`) a pattern; return this runner."""
        self._exclude_patterns.add(re.compile(pattern))
        return self

    def xfail(self, pattern: str) -> Self:
        """Expect the tests whose names match (`re.search`) a pattern to fail; return this runner."""
        self._xfail_patterns.add(re.compile(pattern))
        return self

    def enable_report(self) -> Self:
        """Mark each test with `pytest.mark.onnx_coverage(model, category)`; return this runner."""
        pytest = importlib.import_module("pytest")  # only those who report need it
        for category, items in self._test_items.items():
            for item in items.values():
                item.func = pytest.mark.onnx_coverage(item.proto, category)(item.func)
        return self

    @property
    def test_cases(self) -> dict[str, type[unittest.TestCase]]:
        """The classes of tests by name, for `globals().update(runner.test_cases)`."""
        return {
            name: self._class(name, self._chosen(items))
            for category, items in self._test_items.items()
            for name in [f"OnnxBackend{category}Test"]
        }

    @property
    def test_suite(self) -> unittest.TestSuite:
        """All tests, for `unittest.TextTestRunner().run(runner.test_suite)`."""
        load = unittest.defaultTestLoader.loadTestsFromTestCase
        return unittest.TestSuite(load(made) for _, made in sorted(self.test_cases.items()))

    @property
    def tests(self) -> type[unittest.TestCase]:
        """One class with all tests."""
        everything = {
            name: func for items in self._test_items.values() for name, func in self._chosen(items).items()
        }
        return self._class("OnnxBackendTest", everything)

    @classmethod
    def assert_similar_outputs(
        cls,
        ref_outputs: Sequence[Any],
        outputs: Sequence[Any],
        rtol: float,
        atol: float,
        model_dir: str | None = None,
    ) -> None:
        """Raise AssertionError unless the outputs have the types, the shapes and nearly the numbers expected.

        Raises TypeError for outputs that are no sequence.
        """
        if not hasattr(outputs, "__len__"):
            raise TypeError(
                f"the engine returned {type(outputs).__name__} for {model_dir or 'the model'}; "
                "return the list of outputs"
            )
        if len(outputs) != len(ref_outputs):
            raise AssertionError(f"there are {len(outputs)} outputs, expected are {len(ref_outputs)}")
        for place, (expected, got) in enumerate(zip(ref_outputs, outputs, strict=True)):
            _comparing.compare(expected, got, rtol, atol, f"output {place}")

    @classmethod
    def prepare_model_data(cls, model_test: TestCase) -> str:
        """Return the folder of a model that a case names by its address; Sabir fetches nothing.

        Raises FileNotFoundError where it is neither in `$ONNX_MODELS` nor in `$ONNX_HOME/models`.
        """
        return _data.model_folder(model_test)

    @staticmethod
    def generate_dummy_data(x: Any, seed: int = 0, name: str = "", random: bool = False) -> Any:
        """Return an array for an input of float32: numbers from 0 to below 1 in order, or random ones.

        Unknown dimensions are 1. Raises NotImplementedError for other types.
        """
        return _data.dummy_input(x, seed, name, random=random)

    def _class(self, name: str, functions: dict[str, Callable[..., Any]]) -> type[unittest.TestCase]:
        made = type(name, (unittest.TestCase,), dict(sorted(functions.items())))
        if self._parent_module:
            made.__module__ = self._parent_module
        return made

    def _chosen(self, items: dict[str, TestItem]) -> dict[str, Callable[..., Any]]:
        """Return the functions of tests, with what the patterns say about them."""
        return {name: self._marked(name, item.func) for name, item in items.items()}

    def _marked(self, name: str, func: Callable[..., Any]) -> Callable[..., Any]:
        if self._include_patterns and not _matching(self._include_patterns, name):
            return unittest.skip("no pattern of those included matches")(func)
        excluded = _matching(self._exclude_patterns, name)
        if excluded is not None:
            return unittest.skip(f"the pattern {excluded!r} is excluded")(func)
        if _matching(self._xfail_patterns, name) is None:
            return func

        # the mark is of this function, as the next call may have other patterns
        @functools.wraps(func)
        def failing(*args: Any, **kwargs: Any) -> Any:
            return func(*args, **kwargs)

        return unittest.expectedFailure(failing)

    def _add_model_test(self, model_test: TestCase, kind: str) -> None:
        """Add the tests of a case to a category; subclasses leave out cases so."""
        marker: list[Any] = [None]

        def run(_: Any, device: str, **kwargs: Any) -> None:
            model, data_sets = _data.load_case(model_test)
            marker[0] = model
            self._run(model_test, model, data_sets, device, kwargs)

        options = self._test_kwargs.get(model_test.name, {})
        self._add_test(f"{kind}Model", model_test.name, run, marker, **options)

    def _run(
        self, case: TestCase, model: Any, data_sets: Iterable[Any], device: str, kwargs: dict[str, Any]
    ) -> None:
        compatible = getattr(self.backend, "is_compatible", None)
        if compatible is not None and not compatible(model):
            raise unittest.SkipTest(f"{self.backend.__name__} says that it is not compatible with the model")
        prepared = self.backend.prepare(model, device, **kwargs)
        if prepared is None:
            raise AssertionError(f"{self.backend.__name__}.prepare returned no model")
        rtol, atol = kwargs.get("rtol", case.rtol), kwargs.get("atol", case.atol)
        for inputs, expected in data_sets:
            self.assert_similar_outputs(
                expected, prepared.run(inputs), rtol, atol, case.model_dir or case.name
            )

    def _add_test(
        self,
        category: str,
        test_name: str,
        test_func: Callable[..., Any],
        report_item: list[Any],
        devices: Iterable[str] = _DEVICES,
        **kwargs: Any,
    ) -> None:
        """Add a test for each device, which calls a function with itself, the device and options."""
        if not test_name.startswith("test_"):
            raise ValueError(f"the name of a test begins with test_, and this one is {test_name!r}")
        for device in devices:
            name = f"{test_name}_{device.lower()}"
            if name in self._test_items[category]:
                raise ValueError(f"two tests of {category} have the name {name!r}; rename a case")
            func = _on_device(test_func, device, kwargs)
            if not self.backend.supports_device(device):
                func = unittest.skip(f"{self.backend.__name__} does not support {device}")(func)
            self._test_items[category][name] = TestItem(func, report_item)


def _on_device(test_func: Callable[..., Any], device: str, options: dict[str, Any]) -> Callable[..., Any]:
    @functools.wraps(test_func)
    def test(self: Any, **kwargs: Any) -> None:
        test_func(self, device, **options, **kwargs)

    return test


def _matching(patterns: set[re.Pattern[str]], name: str) -> str | None:
    return next((pattern.pattern for pattern in patterns if pattern.search(name)), None)


__all__ = ["BackendIsNotSupposedToImplementIt", "Runner", "retry_execute"]
