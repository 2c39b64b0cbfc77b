"""A sealed text is known by its digest; one of an older version has none."""

import json
from pathlib import Path

from fedcohort.record import digest


def test_any_changed_byte_is_detected() -> None:
    text = digest.append_digest('{"a": 1, "b": [2, 3]}')
    assert json.loads(text).keys() == {"a", "b", "digest"}
    assert digest.check_digest(text)[1] is True
    position = text.index("2")
    assert digest.check_digest(text[:position] + "6" + text[position + 1 :])[1] is False


def test_a_chained_line_depends_on_the_line_before() -> None:
    first = digest.check_digest('{"a": 1}')[0]
    second = digest.append_digest('{"a": 2}', first)
    assert digest.check_digest(second, first)[1] is True
    assert digest.check_digest(second, digest.digest_of_bytes(b"another"))[1] is False


def test_a_text_of_an_older_version_has_no_digest() -> None:
    expected, sound = digest.check_digest('{"a": 1}\n')
    assert sound is None
    assert f'"digest": "{expected}"' in digest.append_digest('{"a": 1}\n')


def test_a_file_has_the_digest_of_its_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"ab")
    assert digest.digest_of_file(tmp_path / "a") == digest.digest_of_bytes(b"a", b"b")
