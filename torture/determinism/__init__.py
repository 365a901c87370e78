"""Determinism: the same bits whatever the threads, hash seeds, row order and workers; nearly so on other processors."""
