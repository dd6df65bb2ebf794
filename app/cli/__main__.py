"""`python -m app.cli` is `dormouse`, for where the script is not on the path."""

from app.cli import main

main()
