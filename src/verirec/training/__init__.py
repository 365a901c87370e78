"""Training: the only loop, what it feeds methods with, and what it stops on."""
