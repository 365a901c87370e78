"""Readers under atheris: bytes that are changed by what of the readers' code they reach."""
