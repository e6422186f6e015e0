"""What becomes of a file that goes with a message: its text, or why not. Real PDFs, made and damaged here."""

from __future__ import annotations

import io
import os
import random
from pathlib import Path

import pytest
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject
from pytestqt.qtbot import QtBot

from slipstream_app.messages import Attachment
from slipstream_app.models import attached_file
from slipstream_app.models.attached_file import Refused, read
from slipstream_app.models.attaching import Attaching


def pdf(text: str, *, pages: int = 1, password: str | None = None) -> bytes:
    writer = PdfWriter()
    for number in range(pages):
        page = writer.add_blank_page(300, 300)
        names = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
        font = DictionaryObject({NameObject(key): NameObject(value) for key, value in names.items()})
        fonts = DictionaryObject({NameObject("/F1"): font})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        said = DecodedStreamObject()
        said.set_data(f"BT /F1 12 Tf 20 200 Td ({text} {number}) Tj ET".encode())
        page[NameObject("/Contents")] = said.flate_encode()
    if password is not None:
        writer.encrypt(password, owner_password="owner")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def refusal(path: Path) -> str:
    with pytest.raises(Refused) as caught:
        read(path)
    assert caught.value.name == path.name
    return caught.value.reason


def test_a_pdf_with_a_password_is_said_to_be_locked(tmp_path: Path) -> None:
    file = tmp_path / "a.pdf"
    file.write_bytes(pdf("secret", password="word"))
    assert refusal(file) == "locked"
    file.write_bytes(pdf("anyone may read this", password=""))  # it only forbids changes
    assert "anyone may read this" in read(file).text


def test_a_pdf_in_a_cipher_that_is_not_here_is_said_to_be_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pypdf import errors

    def cannot(*_: object) -> None:
        raise errors.DependencyError("cryptography>=3.1 is required for AES algorithm")

    file = tmp_path / "a.pdf"
    file.write_bytes(pdf("x"))
    monkeypatch.setattr("pypdf.PdfReader", cannot)
    assert refusal(file) == "locked"


def test_a_damaged_pdf_is_refused_whatever_is_wrong_with_it(tmp_path: Path) -> None:
    whole, chance, file = pdf("Hello", pages=2), random.Random(1), tmp_path / "a.pdf"
    refused = 0
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(chance.randint(1, 30)):
            damaged[chance.randrange(8, len(damaged))] = chance.randrange(256)
        file.write_bytes(damaged)
        try:
            read(file)
        except Refused as error:
            assert error.reason in ("unreadable", "pdf_empty", "locked")
            refused += 1
    assert refused > 50


def test_text_is_bounded_and_a_pdf_by_its_text_rather_than_its_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attached_file, "MAX_BYTES", 1000)
    file = tmp_path / "a.txt"
    file.write_text("x" * 1001)
    assert refusal(file) == "large"
    few = pdf("Hello", pages=4)
    assert len(few) > 1000
    file.write_bytes(few)
    assert "Hello" in read(file).text
    file.write_bytes(pdf("x" * 400, pages=3))
    assert refusal(file) == "large"
    monkeypatch.setattr(attached_file, "MAX_PDF_BYTES", 500)
    assert refusal(file) == "large_pdf"


@pytest.mark.parametrize("kind", ["folder", "pipe", "none", "shut"])
def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.txt"
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "shut":
            path.write_text("x")
            path.chmod(0)
            if os.access(path, os.R_OK):
                pytest.skip("this user may read everything")
        case _:
            pass
    assert refusal(path) == "unreadable"


def test_a_long_pdf_is_read_beside_the_window_and_can_be_given_up(qtbot: QtBot, tmp_path: Path) -> None:
    file = tmp_path / "long.pdf"
    file.write_bytes(pdf("Hello", pages=400))
    attaching, got, refused = Attaching(), list[Attachment](), list[Refused]()
    attaching.read.connect(got.append)
    attaching.refused.connect(refused.append)
    attaching.take([file])
    assert attaching.names == ("long.pdf",)
    attaching.give_up()
    assert attaching.names == ()
    (tmp_path / "a.png").write_bytes(b"x")
    attaching.take([tmp_path / "a.png", file])
    attaching.take([tmp_path / "none"])
    assert attaching.names == ("a.png", "long.pdf", "none")
    qtbot.waitUntil(lambda: not attaching.names, timeout=20_000)
    assert [one.name for one in got] == ["long.pdf"], "what was given up does not come"
    assert [one.reason for one in refused] == ["image", "unreadable"]
    assert got[0].text.count("Hello") == 400
