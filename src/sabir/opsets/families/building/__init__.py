"""Helpers of rooms that build graphs."""
