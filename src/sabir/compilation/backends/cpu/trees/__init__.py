"""The family of decision trees."""
