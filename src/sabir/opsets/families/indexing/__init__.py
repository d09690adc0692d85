"""Elements by index: gathering, scattering, slicing, splitting, lookup tables."""
