"""`python -m verirec`: the command, where its script is not on the path."""

from verirec_start import main

if __name__ == "__main__":
    main()
