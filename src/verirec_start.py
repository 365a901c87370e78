"""Where the `verirec` command starts.

It is outside of the package because importing that takes a second, during which Ctrl-C should end in one line too.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command; an interruption ends in one line and the usual exit code, at any time."""
    try:
        from verirec.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("verirec: stopped\n")
        sys.exit(130)
