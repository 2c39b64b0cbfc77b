"""The messages and rejections of `fedcohort prepare`; its tables are tested in tests/dataset/raw."""

from pathlib import Path

import pytest

from fedcohort.command import line
from raw_dataset_files import save_image
from raw_dataset_files import write_leaf as raw_leaf


def prepare(*arguments: str) -> int:
    return line.main(["prepare", *arguments])


def test_prepare_reports_the_written_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for i in range(4):
        save_image(tmp_path / "raw" / ("a" if i % 2 else "b") / f"{i}.png", i)
    for _ in range(2):
        assert prepare("imagefolder", str(tmp_path / "raw"), str(tmp_path / "made"), "size=5") == 0
        assert capsys.readouterr().out == f"{tmp_path / 'made'}: 4 rows in train.parquet\n"
    assert (tmp_path / "made" / "train.parquet").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["imagefolder", "{raw}"], "type fedcohort prepare KIND SRC DST, where KIND is one of imagefolder, leaf"),
        (["cifar", "{raw}", "{made}"], "the kind must be one of imagefolder, leaf, celeba"),
        (["leaf", "{raw}/nowhere", "{made}"], "there is no such file or folder"),
        (["imagefolder", "{raw}", "{raw}/made"], "whose files are read: choose another folder"),
        (["imagefolder", "{raw}", "{made}", "size=big"], "size must be an integer in [1, 4096], got 'big'"),
        (["imagefolder", "{raw}", "{made}", "sizes=3"], "there is no option 'sizes'"),
        (["imagefolder", "{raw}", "{made}"], "has no folders of images"),
    ],
)
def test_errors_of_the_prepare_command_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    (tmp_path / "raw").mkdir()
    assert prepare(*(argument.format(raw=tmp_path / "raw", made=tmp_path / "made") for argument in arguments)) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "made").exists()


def test_leaf_rejects_a_user_in_two_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.json", "b.json"):
        raw_leaf(tmp_path / "raw", name, mac=(["abc"], ["d"]))
    assert prepare("leaf", str(tmp_path / "raw"), str(tmp_path / "made")) == 2
    assert "client 'mac' has samples in two files of the source" in capsys.readouterr().err
