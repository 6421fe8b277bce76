"""Lets `python -m birchbark` stand for `birchbark`."""

from birchbark.cli import main

main()
