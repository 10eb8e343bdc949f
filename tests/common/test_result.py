"""Tests of an `Err` that is not handled: it is raised, and a function that returns results returns it as it was."""

import pytest

from common.errors import SoulError, Transient
from common.result import ApiResult, Err, ErrKind, Ok, Unable, Undone, answering


@pytest.mark.parametrize(
    ("kind", "raised"),
    [("transient", Unable), ("unknown_outcome", Unable), ("auth", Undone), ("not_found", Undone), ("invalid", Undone)],
)
def test_only_what_may_work_later_lets_the_work_wait(kind: ErrKind, raised: type[SoulError]) -> None:
    with pytest.raises(raised, match="no answer") as told:
        Err("no answer", kind, retry_after=7.0).or_raise()
    assert isinstance(told.value, Transient) == (raised is Unable)
    assert getattr(told.value, "retry_after", 7.0) == 7.0


async def test_a_function_that_answers_returns_the_very_err_on_which_it_stopped() -> None:
    async def read(found: ApiResult[int]) -> ApiResult[int]:
        return found

    @answering
    async def doubled(found: ApiResult[int]) -> ApiResult[int]:
        return Ok(2 * (await read(found)).or_raise())

    gone = Err("gone", "not_found", 404)
    assert await doubled(Ok(4)) == Ok(8)
    assert await doubled(gone) is gone
