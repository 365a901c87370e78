"""Fuzzing: calls of every public entry, odd and broken, and what became of each."""
