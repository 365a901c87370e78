"""Environments: the same commands under odd locales, homes, terminals, masks and streams."""
