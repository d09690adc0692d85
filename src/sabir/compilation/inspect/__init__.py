"""Looking at plans: explanations, listings at each level, profiles, the limits of the machine."""
