"""`python -m fedcohort` is the command `fedcohort`, where that is not on the PATH."""

from fedcohort.command.line import console

if __name__ == "__main__":
    console()
