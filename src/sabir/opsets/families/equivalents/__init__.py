"""Operators expressed in operators that every opset has."""
