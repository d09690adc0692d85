"""The interface of engines, and the tests of an engine."""
