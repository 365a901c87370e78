"""Where the `verirec` command starts, and `python -m verirec` where its script is not on the path."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command; an interruption ends in one line and the usual exit code, while it is imported too."""
    try:
        from verirec.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("verirec: stopped\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
