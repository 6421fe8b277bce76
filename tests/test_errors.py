"""Do errors say what, where, found, wanted and remedy?"""

from birchbark.errors import BirchbarkError, InputError


def test_message_has_all_parts() -> None:
    """All five parts are in one line."""
    error = InputError("wrong number of fields", wanted="6", found="5", remedy="missing tag?")
    message = "run.txt:31: wrong number of fields: expected 6, found 5 (missing tag?)"
    assert str(error.at("run.txt:31")) == message


def test_first_location_is_kept() -> None:
    """A location that is already set is not overwritten."""
    assert str(InputError("bad").at("a:1").at("a")) == "a:1: bad"


def test_invalid_input_has_exit_code_2() -> None:
    """Other errors exit with code 1."""
    assert (BirchbarkError.exit_code, InputError.exit_code) == (1, 2)
