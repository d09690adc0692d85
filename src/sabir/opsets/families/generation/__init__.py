"""Helpers of rooms that generate sequences of tokens with a decoder."""
