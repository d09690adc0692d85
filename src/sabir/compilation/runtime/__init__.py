"""Runs of compiled plans: programs, the fast path, and loops in native code."""
