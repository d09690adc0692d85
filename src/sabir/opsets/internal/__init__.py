"""Operators that Sabir writes into models before it runs them: no file has them."""
