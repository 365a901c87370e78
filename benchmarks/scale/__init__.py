"""What sweeps on many workers cost: measured at some sizes, and a model of it."""
