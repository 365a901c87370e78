"""What the documentation site is built with: formulas, notebooks and pictures; nothing of the library imports it."""
