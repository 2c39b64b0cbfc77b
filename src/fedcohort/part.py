"""Former name of `fedcohort.component`. Importing a name from here raises an error that gives the new names."""


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)
    raise ImportError(
        "fedcohort.part is called fedcohort.component now. Want is called Requirement, Part is called Component. A "
        "component declares requirements (formerly wants), recommendations (prefers) and notices (remarks)"
    )
