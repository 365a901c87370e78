"""The paper's studies: its tables and figures again, ours beside theirs. Nothing of the library imports them."""
