"""Runs of compiled plans: programs, the fast path, loops in native code."""
