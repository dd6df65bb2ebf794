"""`dormouse channels`: which way out is suspended, until when, and open it again."""

from typing import Annotated

import typer

from app import desk
from app.cli.output import print_json, print_line, print_table
from app.cli.remote import Call, Url, ask, piece

commands = typer.Typer()
group = typer.Typer(help="Look at the ways out; open a suspended one.", no_args_is_help=True)
commands.add_typer(group, name="channels")

COLUMNS = ("name", "suspended until", "reason", "updated at")
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]


@group.command("list")
def list_channels(*, url: Url = None, as_json: AsJson = False) -> None:
    """List the channels that were ever suspended. Exit code 0, also when there are none."""
    answer = ask(url, Call("GET", "/channels"), desk.channels)
    if as_json:
        print_json(answer)
        return
    rows = [tuple(channel[column.replace(" ", "_")] for column in COLUMNS) for channel in answer["channels"]]
    print_table(COLUMNS, rows, empty="No channel was ever suspended.")


@group.command()
def resume(
    name: Annotated[str, typer.Argument(help="The channel's name.")], *, url: Url = None, as_json: AsJson = False
) -> None:
    """Open a suspended channel at once. Exit code 5 when it is not suspended."""
    call = Call("POST", f"/channels/{piece(name)}/resume")
    answer = ask(url, call, lambda connection: desk.resume_channel(connection, name))
    if as_json:
        print_json(answer)
    else:
        print_line(f"channel {name} resumed")
