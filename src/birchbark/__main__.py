"""What does `python -m birchbark` run? The same command line as `birchbark`."""

from birchbark.cli import main

main()
