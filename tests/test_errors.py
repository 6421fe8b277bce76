"""Do errors say what, where, found, wanted, remedy?"""

from birchbark.errors import BirchbarkError, InputError


def test_message_in_full() -> None:
    """All five parts in one line."""
    error = InputError("wrong number of fields", wanted="6", found="5", remedy="missing tag?")
    message = "run.txt:31: wrong number of fields: expected 6, found 5 (missing tag?)"
    assert str(error.at("run.txt:31")) == message


def test_the_first_place_stays() -> None:
    """An outer room does not overwrite what an inner one knew better."""
    assert str(InputError("bad").at("a:1").at("a")) == "a:1: bad"


def test_wrong_input_has_exit_code_2() -> None:
    """As the command line promises."""
    assert (BirchbarkError.exit_code, InputError.exit_code) == (1, 2)
