"""Helpers of rooms that compute with texts."""
