"""Branches and loops as rows of a plan, which choose the next row."""
