"""The inspection of plans: explanations, listings at each level, profiles, and the machine's roofline."""
