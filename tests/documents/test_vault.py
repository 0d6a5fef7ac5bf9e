"""Folders of documents: which files are read, which are refused, which are left out by name."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from documents.vault import read_vault
from records.errors import StorageError


def test_a_folder_is_read_in_order_without_hidden_files_mark_and_front_matter(
    tmp_path: Path,
) -> None:
    for name, data in {
        "b.md": b"\xef\xbb\xbf# B\r\n\r\ntext\r\n",
        "a/y.markdown": b"# Y\n",
        "a/z.MD": b"---\ntitle: Z\ntags: [x]\n---\n# Z\n",
        "a/rule.md": b"one\n\n---\n\ntwo\n",
        "a/open.md": b"---\nnever closed\n",
        "a/empty.md": b"",
        ".obsidian/hidden.md": b"# no\n",
        "a/.hidden.md": b"# no\n",
        "a/picture.png": b"\xff\xfe",
        "folder.md/c.md": b"# C\n",
    }.items():
        file = tmp_path / "notes" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    notes = read_vault(tmp_path / "notes").notes
    assert [(note.rel_path, note.text) for note in notes] == [
        ("a/empty.md", ""),
        ("a/open.md", "---\nnever closed\n"),
        ("a/rule.md", "one\n\n---\n\ntwo\n"),
        ("a/y.markdown", "# Y\n"),
        ("a/z.MD", "# Z\n"),
        ("b.md", "# B\n\ntext\n"),
        ("folder.md/c.md", "# C\n"),
    ]
    assert {note.vault for note in notes} == {"notes"}


def test_every_file_that_is_not_utf8_is_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text("# fine\n")
    (tmp_path / "bad.md").write_bytes(b"abc\xff")
    (tmp_path / "worse.md").write_bytes(b"\xc3")
    with pytest.raises(StorageError) as caught:
        read_vault(tmp_path)
    message = str(caught.value.message)
    assert "bad.md: name or text is not UTF-8: mend it" in message
    assert "worse.md: name or text is not UTF-8" in message
    assert "good.md" not in message
    assert caught.value.exit_code == 2


@pytest.mark.skipif(sys.platform == "win32", reason="needs pipes and /dev")
@pytest.mark.timeout(30)
def test_pipes_and_devices_in_a_folder_are_named_and_not_read(tmp_path: Path) -> None:
    """To open a pipe would wait for ever, and to read a device would fill the memory."""
    (tmp_path / "a.md").write_text("# A")
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "zero.md").symlink_to("/dev/zero")
    with pytest.raises(StorageError) as error:
        read_vault(tmp_path)
    expected = [str(tmp_path / "pipe.md"), str(tmp_path / "zero.md")]
    assert [problem.path for problem in error.value.problems] == expected
    assert str(error.value).count("is not a plain file") == 2


def test_a_folder_that_cannot_be_opened_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "a.md").write_text("# A\n")
    scan = os.scandir

    def refused(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(StorageError, match="closed: Permission denied: mend it or move it away"):
        read_vault(tmp_path)


def test_a_name_that_no_json_can_hold_is_refused(tmp_path: Path) -> None:
    name = os.path.join(os.fsencode(tmp_path), b"caf\xe9.md")
    try:
        with open(name, "w") as file:
            file.write("# Latin\n\ntext\n")
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    with pytest.raises(StorageError, match="caf\ufffd\\.md: name or text is not UTF-8"):
        read_vault(tmp_path)


def test_a_missing_folder_and_a_folder_without_documents_are_refused(tmp_path: Path) -> None:
    for folder in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(StorageError, match="not a folder with documents"):
            read_vault(folder)
