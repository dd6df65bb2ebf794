"""The program `dormouse`: what a person or a script calls.

    main -> serve                         straight to the server: a cold start pays for no command line
         -> program -> one file a command -> app.tick, app.jobs, app.bookings, app.migrate

Results go to standard output (tables, or JSON with --json), messages to standard error. How a run ends is
told by the exit codes of `app.cli.exits`; an expected error is one sentence, never a traceback.
"""

import sys


def main() -> None:
    """Run the command that the arguments name.

    The folder it is run from comes last on the path: HANDLER_MODULES finds the user's modules there, and nothing there
    can stand in for a module of ours or of a library.
    """
    sys.path.append("")
    if sys.argv[1:] == ["serve"]:
        from app.cli.exits import exit_with  # noqa: PLC0415 - `dormouse serve` must not pay for typer and rich
        from app.heap import wait_for_start_up  # noqa: PLC0415 - the same

        wait_for_start_up()
        from app.cli.serving import serve  # noqa: PLC0415 - the same

        sys.exit(exit_with(serve))
    from app.cli.program import run  # noqa: PLC0415 - the same

    sys.exit(run())
