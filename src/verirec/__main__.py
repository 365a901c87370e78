"""Where the `verirec` command starts, and `python -m verirec` where its script is not on the path."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command; an interruption ends in one line and the usual exit code, while it is imported too."""
    try:
        _stop_as_by_ctrl_c("SIGTERM", "SIGHUP")
        from verirec.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("verirec: stopped\n")
        sys.exit(130)


def _stop_as_by_ctrl_c(*signals: str) -> None:
    """Have what ends a process at once, such as a scheduler's signal, end it as Ctrl-C does: nothing stays behind.

    What is ignored, as a hang-up is under `nohup`, stays so.
    """
    import signal

    for name in signals:
        number = getattr(signal, name, None)  # Windows has no hang-up.
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


if __name__ == "__main__":
    main()
