"""The command line finds commands, describes them, and reports mistakes with what to type instead."""

from pathlib import Path

import pytest

from fedcohort.command import line


def test_help_lists_every_command_and_how_options_are_typed(capsys: pytest.CaptureFixture[str]) -> None:
    assert line.main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"\n  {name} " in text for name in line.COMMANDS)
    assert "typed as name=value" in " ".join(text.split())


@pytest.mark.parametrize("name", sorted(set(line.COMMANDS) - {line.RUN_COMMAND}))
def test_each_command_is_described_by_its_module(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert line.main([name, "-h"]) == 0
    text = capsys.readouterr().out
    assert f"Usage: fedcohort {name} " in text
    module = Path(line.__file__).with_name(f"{line.to_module_name(name)}.py").read_text()
    last_line = module.split('"""')[1].strip().splitlines()[-1]
    assert last_line.strip() in text, "lines are kept as they are typed"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["stdy"], "there is no command 'stdy': did you mean study? fedcohort --help lists the commands\n"),
        (["xyzzy"], "there is no command 'xyzzy': fedcohort --help lists the commands\n"),
        (["--nope"], "No such option: --nope"),
        ([], "Usage: fedcohort"),
        (
            ["new", "selctor", "x"],
            "got 'selctor'; did you mean selector?",
        ),
    ],
)
def test_a_wrong_command_gets_a_suggestion(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert line.main(arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.out + captured.err


@pytest.mark.parametrize("arguments", [["data", "patients.csv"], ["methods", "selector"], ["profile"]])
def test_a_command_without_configs_names_the_folder_to_run_in(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert line.main(arguments) == 2
    assert capsys.readouterr().err == (
        f"fedcohort {arguments[0]} reads configs/, which is not in {tmp_path}: call it in the folder of train.py\n"
    )
