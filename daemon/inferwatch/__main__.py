"""Run the command line as `python -m inferwatch`."""

from inferwatch.cli import main

if __name__ == "__main__":
    main()
