"""Helpers of rooms that read and write files of images."""
