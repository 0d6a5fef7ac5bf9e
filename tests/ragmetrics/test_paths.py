"""Paths of a bot beside those of labels: what is seen, and by which cut more."""

from __future__ import annotations

from tests.rows import each_row

from ragmetrics.paths import PathCut, examine_paths, shared_folder

LABELS = ("advanced/timeouts.md", "quickstart.md", "advanced/ssl.md", "api/x y.md")


@each_row(
    ("bot", "seen", "words"),
    [
        (LABELS, 4, "as written"),
        ([f"{path}#top" for path in LABELS], 0, "without what follows #"),
        ([f"{path}?v=2" for path in LABELS], 0, "without what follows ?"),
        ([f"kb://{path}" for path in LABELS], 0, "without the scheme"),
        ([f"kb://h{n}/{path}" for n, path in enumerate(LABELS)], 0, "without scheme and host"),
        ([f"/srv/docs/{path}" for path in LABELS], 0, "without the folder /srv/docs"),
        ([path.replace(" ", "%20") for path in LABELS], 3, "with %20 and the like decoded"),
        ([path.upper() for path in LABELS], 0, "without upper and lower case"),
        ([path.replace(".md", ".html") for path in LABELS], 0, "without the file type"),
        # quickstart.md has no folder: the one that matches as it is
        ([path.rpartition("/")[2] for path in LABELS], 1, "by their last part"),
        (["other.md", "more.md"], 0, "as written"),
        ([], 0, "as written"),
    ],
)
def test_the_weakest_cut_that_makes_most_match(bot: list[str], seen: int, words: str) -> None:
    bot = [*bot]
    asked = [([label], [path]) for label, path in zip(LABELS, bot, strict=False)]
    verdict = examine_paths(asked, LABELS)
    assert (verdict.seen, verdict.cut.words()) == (seen, words)
    if words != "as written":
        assert verdict.seen_cut == 4
        assert f"gold files seen {seen} of 4; 4 of 4 {words}: the labels say" in verdict.sentence()


def test_a_key_that_two_files_share_matches_nothing() -> None:
    """Two labels end in index.md, and so do two files of the bot: neither can be told."""
    assert examine_paths([(["a/index.md"], ["index.md"])], ["a/index.md", "b/index.md"]).cut == (
        PathCut()
    )
    asked = [(["x/index.md"], ["p/index.md"]), (["y/q.md"], ["r/index.md"])]
    assert examine_paths(asked).seen_cut == 0


def test_another_folder_of_the_labels_own_is_another_file() -> None:
    """The bot knows api/index.md by its folder, so its docs/index.md is not the label's."""
    asked = [(["api/a.md"], ["api/a.md"]), (["docs/index.md"], ["old/index.md"])]
    assert examine_paths(asked).seen_cut == 1


def test_two_name_spaces_need_enough_paths_and_nothing_in_common() -> None:
    """At least 5 distinct paths of the bot and 3 gold files; anchors make no other file."""
    labels = ["a.md", "b.md", "c.md"]

    def two(bot: list[str], gold: list[str] = labels) -> bool:
        return examine_paths([(gold, bot)]).two_name_spaces

    assert two(["p1", "p2", "p3", "p4", "p5"])
    assert not two(["p1", "p2", "p3", "p4"])
    assert not two(["p1#1", "p1#2", "p1#3", "p1#4", "p1#5"])
    assert not two(["p1", "p2", "p3", "p4", "p5"], labels[:2])
    assert not two(["p1", "p2", "p3", "p4", "docs/a.md"])
    same = examine_paths([(["a.md"], ["b.md", "x1", "x2", "x3", "x4"])], labels)
    assert same.sentence() == "gold files seen 0 of 1 (same name space)."


@each_row(
    ("paths", "steps", "root", "first"),
    [
        (["/srv/docs/a.md", "/srv/docs/b/c.md", "/srv/docs/d.md"], (), "/srv/docs", "a.md"),
        (
            ["file:///srv/docs/a.md", "file:///srv/docs/b.md", "file:///srv/docs/c.md"],
            ("scheme",),
            "srv/docs",
            "a.md",
        ),
        (["C:\\kb\\a.md", "C:\\kb\\b.md", "C:\\kb\\c.md"], (), "C:/kb", "a.md"),
        (["/srv/a.md", "/srv/b.md"], (), "", "/srv/a.md"),  # two files say nothing
        (["/srv/a.md", "/opt/b.md", "/var/c.md"], (), "", "/srv/a.md"),
        (["docs/a.md", "docs/b.md", "docs/c.md"], (), "", "docs/a.md"),
    ],
)
def test_absolute_paths_lose_the_folder_they_share(
    paths: list[str], steps: tuple[str, ...], root: str, first: str
) -> None:
    cut = shared_folder(paths)
    assert (cut.steps, cut.root) == (steps, root)
    assert cut.applied(paths[0]) == first
