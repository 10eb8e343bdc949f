"""The tools of the coding agent, with real files, real Git and a real sandbox."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from common.redact import MASK
from common.text.github_text import read_source
from modules.runtime.llm.dialect import ToolAnswer, ToolCall
from modules.runtime.sandbox.policy import MIB, Limits
from modules.services.coding.hands import FINISH, Hands, TreeFiles
from tests.adapters.results import ok
from tests.modules.services.coding.coding_rig import CodingRig, does, git, needs_sandbox, open_coding
from tests.shipped_skills import SHIPPED

UMLAUTS = "/* Grüße für die Gärtnerei */\n#define BEDS 2\n"
HANZI = "/* 花园里的床 问候 你好世界 */\n#define BEDS 2\n"


async def call(rig: CodingRig, tool: str, limits: Limits = Limits(), /, **words: object) -> ToolAnswer:  # noqa: B008 - frozen
    """Call a tool, and return its answer."""
    hands = Hands(rig.room, rig.agent.sandbox, network=False, skills=SHIPPED, limits=limits)
    return await hands.carry_out(ToolCall("c", tool, dict(words)))


async def said(rig: CodingRig, tool: str, **words: object) -> str:
    """Call a tool that must succeed, and return the content of its answer."""
    answer = await call(rig, tool, Limits(), **words)
    assert not answer.is_error, answer.content
    return answer.content


@pytest.mark.parametrize(
    ("text", "encoding", "mark"),
    [
        (UMLAUTS, "latin-1", b""),
        ("// a “quote” — yes\n#define BEDS 2\n", "cp1252", b""),
        (HANZI, "gb18030", b""),
        ("// 안녕하세요 정원\n#define BEDS 2\n", "euc_kr", b""),
        ("// こんにちは世界 庭\n#define BEDS 2\n", "shift_jis", b""),
        ("// Привет мир, сад и грядки\n#define BEDS 2\n", "cp1251", b""),
        (UMLAUTS, "utf-16-le", b"\xff\xfe"),
        (UMLAUTS, "utf-8", b"\xef\xbb\xbf"),
    ],
)
async def test_a_file_in_another_encoding_is_read_searched_and_changed_in_it(
    tmp_path: Path, text: str, encoding: str, mark: bytes
) -> None:
    data = mark + text.encode(encoding)
    comment = text.partition("\n")[0]
    async with open_coding(tmp_path) as rig:
        (rig.tree / "beds.c").write_bytes(data)
        assert comment in await said(rig, "read_file", path="beds.c")
        assert "beds.c:2" in await said(rig, "search", text="BEDS")
        assert "beds.c:1" in await said(rig, "search", text=comment)
        await said(rig, "edit_file", path="beds.c", old="BEDS 2", new="BEDS 3")
        assert (rig.tree / "beds.c").read_bytes() == mark + text.replace("2\n", "3\n").encode(encoding)
        await said(rig, "write_file", path="beds.c", content=comment)
        assert (rig.tree / "beds.c").read_bytes() == mark + comment.encode(encoding)


async def test_nothing_is_written_that_the_encoding_of_a_file_cannot_hold_or_over_what_is_no_text(
    tmp_path: Path,
) -> None:
    data, binary = UMLAUTS.encode("latin-1"), bytes(range(256))
    async with open_coding(tmp_path) as rig:
        (rig.tree / "beds.c").write_bytes(data)
        (rig.tree / "seed.bin").write_bytes(binary)
        assert (await call(rig, "edit_file", path="beds.c", old="BEDS 2", new="BEDS 花")).is_error
        assert (await call(rig, "write_file", path="seed.bin", content="text")).is_error
        assert (rig.tree / "beds.c").read_bytes() == data
        assert (rig.tree / "seed.bin").read_bytes() == binary


async def test_the_mask_of_a_secret_is_not_written_over_it_and_elsewhere_is_a_word_like_any(tmp_path: Path) -> None:
    kept = "HOST=old\nURL=postgres://soul:hunter2!@db.example/soul\n"
    async with open_coding(tmp_path) as rig:
        (rig.tree / ".env").write_text(kept)
        shown = kept.replace("soul:hunter2!", MASK)
        assert (await call(rig, "write_file", path=".env", content=shown)).is_error
        assert (await call(rig, "edit_file", path=".env", old="HOST=old", new=f"HOST={MASK}")).is_error
        seen = await call(rig, "edit_file", path=".env", old=shown, new="")
        assert "leave its line as it is" in seen.content
        assert (rig.tree / ".env").read_text() == kept
        await said(rig, "edit_file", path=".env", old="HOST=old", new="HOST=new")
        await said(rig, "write_file", path="mask.py", content=f"MASK = '{MASK}'\n")
        await said(rig, "write_file", path="mask.py", content=f"MASK = MASKED = '{MASK}'  # {MASK}\n")


def test_text_that_is_read_is_written_back_byte_by_byte() -> None:
    for data in (b"", b"a\x85b\xe9\n", b"\xff\xfe", "Привет, мир\n".encode("cp1251"), "é".encode("latin-1"), b"\xc3\n"):
        source = read_source(data)
        assert source
        assert source.encoded(source.text) == data


async def test_lines_are_those_of_git_and_a_long_file_says_where_it_goes_on(tmp_path: Path) -> None:
    async with open_coding(tmp_path) as rig:
        rig.holds(beds__py="".join(f"x{number} = {number}\f\x85\u2028\n" for number in range(1, 813)))
        told = await said(rig, "read_file", path="beds.py", from_line=300, to_line=301)
        assert told.startswith("beds.py: lines 300-301 of 812\n300\tx300")
        assert "beds.py:812:" in await said(rig, "search", text="x812")
        (rig.tree / "long.txt").write_text("word " * 20 + "\n" + ("word " * 20 + "\n") * 799)
        told = await said(rig, "read_file", path="long.txt")
        first, *lines = told.split("\n")
        assert f"lines 1-{len(lines)} of 800; go on with from_line {len(lines) + 1}" in first


async def test_search_takes_patterns_globs_and_case_and_counts_what_it_leaves_out(tmp_path: Path) -> None:
    async with open_coding(tmp_path) as rig:
        (rig.tree / "src").mkdir()
        (rig.tree / "src" / "beds.py").write_text("def Bed_1(): ...\n" * 100)
        (rig.tree / "beds.js").write_text("function bed_2() {}\n" + "a" * 40 + "!\n")
        (rig.tree / "[id]").mkdir()
        (rig.tree / "[id]" / "page.js").write_text("roof\n")
        assert await said(rig, "search", text="roof", glob="[id]/*.js") == "[id]/page.js:1: roof"
        assert await said(rig, "search", text=r"\bbed_\d\b", regex=True) == "beds.js:1: function bed_2() {}"
        told = await said(rig, "search", text="BED_", ignore_case=True)
        assert "41 more" in told
        assert await said(rig, "search", text="bed_", glob="src/**/*.py") == await said(rig, "search", text="none")
        assert "beds.py:1:" in await said(rig, "search", text="Bed_", glob="*.py", path="src")
        assert (await call(rig, "search", text="(", regex=True)).is_error
        assert await said(rig, "search", text="Bed_", glob="*.ts") != await said(rig, "search", text="none")
        for tool in ("search", "list_files"):
            assert (await call(rig, tool, text="Bed_", path="sources")).is_error
        (rig.tree / "long.txt").write_text("bed\n" * 300_000)
        assert "1 files are too long" in await said(rig, "search", text="none")


async def test_a_path_as_programs_see_it_is_one_of_the_tree(tmp_path: Path) -> None:
    async with open_coding(tmp_path) as rig:
        written = ToolCall("c", "write_file", {"path": "/work/beds.py", "content": "BEDS = 3\n"})
        hands = Hands(rig.room, rig.agent.sandbox, network=False, skills=SHIPPED)
        answer = await hands.carry_out(written)
        assert (rig.tree / "beds.py").exists()
        assert await hands.unseen([(written, answer)], ()) == ""
        assert "+BEDS = 3" in await said(rig, "diff", path="/work/beds.py")
        assert await said(rig, "list_files", path="/work") == "beds.py"


def test_files_beyond_the_most_that_are_looked_at_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    (tmp_path / "b.txt").touch()
    assert TreeFiles(tmp_path, most_walked=2).list_files({}) == "a.txt\nb.txt"
    assert TreeFiles(tmp_path, most_walked=1).list_files({}).startswith("a.txt\nOnly 1")


def test_a_pattern_that_never_ends_is_stopped(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a" * 5_000 + "!\n")
    told = TreeFiles(tmp_path, search_s=0.05).search({"text": r"^(a|aa|aaa)+(a|aa|aaa)+$", "regex": True})
    assert "1 files were not searched" in told


async def test_an_edit_that_fits_nowhere_shows_the_nearest_place_and_one_that_fits_often_its_lines(
    tmp_path: Path,
) -> None:
    async with open_coding(tmp_path) as rig:
        (rig.tree / "beds.py").write_text("import a\n\n\ndef dry(beds):\n    return beds - 1\n\n\nx = 1\ny = 1\n")
        near = await call(rig, "edit_file", path="beds.py", old="def dry(bed):\n    return beds + 1", new="")
        assert near.is_error
        assert "4\tdef dry(beds):\n5\t    return beds - 1" in near.content
        often = await call(rig, "edit_file", path="beds.py", old=" = 1", new=" = 2")
        assert often.is_error
        assert "8, 9" in often.content
        await said(rig, "edit_file", path="beds.py", old=" = 1", new=" = 2", all=True)
        assert (rig.tree / "beds.py").read_text().endswith("x = 2\ny = 2\n")


async def test_changes_are_shown_and_put_back_to_where_the_task_began(tmp_path: Path) -> None:
    async with open_coding(tmp_path) as rig:
        rig.holds(beds__py="BEDS = 2\n", more__py="MORE = 1\n", gone__py="GONE = 1\n")
        (rig.tree / "beds.py").write_text("BEDS = 3\n")
        (rig.tree / "gone.py").unlink()
        (rig.tree / "new").mkdir()
        (rig.tree / "new" / "left.py").write_text("LEFT = 1\n" * 4_000)
        whole = await said(rig, "diff")
        assert "+BEDS = 3" in whole
        assert "more.py" not in whole
        assert "more characters" in whole
        assert "left.py" not in await said(rig, "diff", path="beds.py")
        await said(rig, "restore", path="new")
        await said(rig, "restore", path="gone.py")
        assert not (rig.tree / "new").exists()
        assert (rig.tree / "gone.py").read_text() == "GONE = 1\n"
        await said(rig, "restore", path=".")
        assert (rig.tree / "beds.py").read_text() == "BEDS = 2\n"
        for path in ("../beds.py", "/etc/passwd", "none.py"):
            assert (await call(rig, "restore", path=path)).is_error


async def test_a_folder_that_became_a_link_is_put_back_without_following_it(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "beds.py").write_text("mine\n")
    async with open_coding(tmp_path) as rig:
        (rig.tree / "src").mkdir()
        (rig.tree / "src" / "beds.py").write_text("BEDS = 2\n")
        rig.holds(a="a")
        (rig.tree / "src" / "beds.py").unlink()
        (rig.tree / "src").rmdir()
        (rig.tree / "src").symlink_to(outside)
        await said(rig, "restore", path="src")
        assert (rig.tree / "src" / "beds.py").read_text() == "BEDS = 2\n"
        assert (outside / "beds.py").read_text() == "mine\n"


async def test_history_tells_commits_of_a_file_and_of_its_lines(tmp_path: Path) -> None:
    async with open_coding(tmp_path) as rig:
        rig.holds(beds__py="BEDS = 2\nDRY = 1\n")
        (rig.tree / "beds.py").write_text("BEDS = 2\nDRY = 9\n")
        git(rig.room.worktree, "commit", "--quiet", "--all", "--message=Dry beds")
        rig.holds(beds__py="BEDS = 2\nDRY = 9\nWET = 1\n")
        told = await said(rig, "history", path="beds.py")
        assert [line.rpartition(": ")[2] for line in told.splitlines()] == ["Begin", "Dry beds", "Begin"]
        assert "DRY = 9" in await said(rig, "history", path="beds.py", from_line=2)


@needs_sandbox
async def test_tmp_lasts_as_long_as_the_task_and_never_reaches_the_repository(tmp_path: Path) -> None:
    async with open_coding(tmp_path) as rig:
        await said(rig, "run", command="echo 41 > /tmp/count; mkdir -p /var/tmp/more; chmod 500 /var/tmp/more")
        assert "41" in await said(rig, "run", command="cat /tmp/count; ls $HOME")
        assert "count" not in await said(rig, "diff")


@needs_sandbox
@pytest.mark.slow
async def test_a_tmp_that_grows_too_much_is_emptied(tmp_path: Path) -> None:
    small = Limits(disk_bytes=4 * MIB)
    async with open_coding(tmp_path) as rig:
        full = await call(rig, "run", small, command="head -c 8000000 /dev/zero > /tmp/big; sleep 20")
        assert full.is_error
        assert "disk" in full.content
        assert await said(rig, "run", command="ls /tmp | wc -l")
        assert not list(rig.room.scratch.iterdir())


@needs_sandbox
@pytest.mark.slow
async def test_a_program_runs_as_long_as_is_asked_for_up_to_the_limit_of_tests_and_says_when_it_was_stopped(
    tmp_path: Path,
) -> None:
    async with open_coding(tmp_path) as rig:
        stopped = await call(rig, "run", Limits(wall_s=600), command="echo begun; sleep 60", seconds=1)
        assert stopped.is_error
        assert "begun" in stopped.content
        assert "after 1 seconds" in stopped.content
        most = await call(rig, "run", Limits(wall_s=1), command="sleep 60", seconds=900)
        assert "after 1 seconds" in most.content
        run = next(
            one
            for one in Hands(rig.room, rig.agent.sandbox, network=False, skills=SHIPPED).specs()
            if one.name == "run"
        )
        assert "600" in run.description


@needs_sandbox
@pytest.mark.slow
async def test_what_only_a_program_made_is_shown_before_the_end_and_a_change_that_was_looked_at_is_not(
    tmp_path: Path,
) -> None:
    made = does("run", command="echo left > left.txt")
    async with open_coding(tmp_path) as rig:
        assert (
            await rig.work(made, does("finish", summary="Done."), does("finish", summary="Done."))
        ).code == "finished"
        assert "+left" in (await rig.answers())[1]
    (tmp_path / "other").mkdir()
    async with open_coding(tmp_path / "other") as rig:
        written = does("write_file", path="beds.py", content="BEDS = 3\n")
        rig.holds(README__md="Beds.\n")
        changed = does("run", command="echo >> README.md")
        end = await rig.work(changed, does("diff"), written, does("finish", summary="Done."))
        assert end.code == "finished"


async def test_of_two_new_files_of_programs_the_long_one_hides_no_other_and_both_are_shown_before_the_end(
    tmp_path: Path,
) -> None:
    async with open_coding(tmp_path) as rig:
        for name, text in (("a.bak", "x\n" * 30_000), ("b.bak", "y\n")):
            (rig.tree / name).write_text(text)
        hands = Hands(rig.room, rig.agent.sandbox, network=False, skills=SHIPPED)
        told = await hands.carry_out(seen := ToolCall("c", "diff", {}))
        assert "+y" in told.content
        assert "b.bak" in await hands.unseen([(seen, told)], ["beds.py"])
        shown = await hands.unseen([(seen, told)], ["./*.bak"])
        assert "a.bak" in shown
        assert "b.bak" not in shown
        after = [(seen, told), (ToolCall("d", FINISH, {}), ToolAnswer("d", FINISH, shown))]
        assert await hands.unseen(after, ["./*.bak"]) == ""


async def test_a_round_is_held_against_the_base_and_only_what_programs_do_in_it_is_unseen(tmp_path: Path) -> None:
    async with open_coding(tmp_path) as rig:
        (rig.tree / "beds.py").write_text("BEDS = 3\n")
        author = {"name": "ada", "email": "ada@users.noreply.github.com"}
        assert ok(await rig.room.worktree.commit("Beds", **author, at=datetime(2026, 1, 1, tzinfo=UTC)))
        room = replace(rig.room, start=ok(await rig.room.worktree.head()))
        hands = Hands(room, rig.agent.sandbox, network=False, skills=SHIPPED)
        assert "+BEDS = 3" in (await hands.carry_out(ToolCall("c", "diff", {}))).content
        assert await hands.unseen([], ()) == ""
        (rig.tree / "beds.py.bak").touch()
        assert "beds.py.bak" in await hands.unseen([], ())
        assert (await hands.carry_out(ToolCall("c", "restore", {"path": "none.py"}))).is_error


async def test_a_file_that_the_model_removed_by_name_is_not_asked_about_and_one_that_a_program_removed_is(
    tmp_path: Path,
) -> None:
    async with open_coding(tmp_path) as rig:
        for name in ("a.py", "b.py"):
            (rig.tree / name).write_text("BEDS = 3\n")
        at, tree = datetime(2026, 11, 28, tzinfo=UTC), rig.room.worktree
        ok(await tree.commit("Begin", name="kit", email="kit@kit.test", at=at))
        room = replace(rig.room, base=ok(await tree.head()))
        for name in ("a.py", "b.py"):
            (rig.tree / name).unlink()
        hands = Hands(room, rig.agent.sandbox, network=False, skills=SHIPPED)

        async def unseen(*commands: str) -> str:
            calls = [ToolCall(f"c{at}", "run", {"command": one}) for at, one in enumerate(commands)]
            return await hands.unseen([(one, ToolAnswer(one.id, "run", "")) for one in calls], ())

        assert "a.py (deleted)" in await unseen("cat a.py", "mv c.py .", "python3 clean.py")
        left = await unseen("test -f a.py && rm -f './a.py'")
        assert "a.py (deleted)" not in left
        assert "b.py (deleted)" in left
        assert await unseen("rm a.py b.py") == ""
