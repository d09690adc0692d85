"""Mathematics that several rooms share; it never goes from room to room."""
