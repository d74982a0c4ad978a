"""Nothing that was made of a site's data leaves it in the words of an error: secrets are planted and looked for."""

from __future__ import annotations

import errno
import gzip
import io
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dualopt.federation.settings as site_settings
from dualopt.arrays._files import InUseError
from dualopt.arrays.codec import CodecError
from dualopt.engine import Host, RefusedError, wire
from dualopt.engine import _protocol as protocol
from dualopt.federation import SiteSettings
from dualopt.federation.answering import Answering
from dualopt.federation.refusals import SENTENCES, refusal, said
from dualopt.federation.seal import KEY_FILE, MARK, Seal
from dualopt.federation.settings import site_objective
from dualopt.losses import SmoothedHinge
from dualopt.solvers import LBFGS
from tests.federation.problems import project_of
from tests.federation.test_in_memory import KEYS, memory

SECRET = "Alice-Miller-4711"
PROJECT = replace(project_of(features=3), feature_names=("age", "pressure", "weight"))
COLUMNS = "age,pressure,weight,y\n"
PLAIN = {  # each has the secret somewhere, and what the site is to say
    "a word in a row.svm": (f"1 1:0.5 2:{SECRET}\n", "data"),
    "a word in the place of a label.svm": (f"{SECRET} 1:0.5\n", "data"),
    "a word behind the row.svm": (f"1 1:0.5 # {SECRET}\n0 x:{SECRET}\n", "data"),
    "an index too large.svm": (f"1 9:4711 # {SECRET}\n", "data"),
    "a word in a row.csv": (f"{COLUMNS}1,2,3,0\n1,{SECRET},3,1\n", "data"),
    "a row too long.csv": (f"{COLUMNS}1,2,3,0\n1,2,3,1,{SECRET}\n", "data"),
    "a row too short.csv": (f"{COLUMNS}1,2,3,0\n{SECRET}\n", "data"),
    "a quote that is not closed.csv": (f'{COLUMNS}1,2,3,0\n1,"{SECRET},3,1\n', "data"),
    "a label.csv": (f"{COLUMNS}1,2,3,0\n1,2,3,{SECRET}\n", "labels"),
    "only labels of others.csv": (f"{COLUMNS}1,2,3,{SECRET}\n1,2,3,{SECRET}-II\n", "labels"),
    "a name of a column.csv": (f"age,{SECRET},weight,y\n1,2,3,0\n4,5,6,1\n", "columns"),
    "two columns of one name.csv": (f"{SECRET},{SECRET},weight,y\n1,2,3,0\n", "data"),
    "no column of labels.csv": (f"age,pressure,{SECRET}\n1,2,3\n", "data"),
    "a column more.csv": (f"age,pressure,weight,{SECRET},y\n1,2,3,4,0\n1,2,3,4,1\n", "columns"),
    "not a number.csv": (f"{COLUMNS}1,nan,3,0\n1,2,inf,{SECRET}\n", "data"),
    "a word in a row.tsv": (f"{COLUMNS}1,2,{SECRET},0\n".replace(",", "\t"), "data"),
    "nothing.csv": ("", "data"),
    "not utf-8.csv": (f"{COLUMNS}1,2,3,{SECRET}\udcff\n", "data"),
}


def archive(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


ROWS = np.arange(12.0).reshape(4, 3)
FILES = {name: (text.encode(errors="surrogateescape"), word) for name, (text, word) in PLAIN.items()}
FILES |= {
    "words.npz": (archive(X=np.array([[SECRET] * 3] * 4), y=np.arange(4) % 2), "data"),
    "objects.npz": (archive(X=np.array([[SECRET] * 3] * 4, dtype=object), y=np.arange(4) % 2), "data"),
    "labels.npz": (archive(X=ROWS, y=np.array(["0", "1", "0", SECRET])), "labels"),
    "another array.npz": (archive(**{SECRET: ROWS}), "data"),
    "too few labels.npz": (archive(X=ROWS, y=np.array([SECRET])), "data"),
    "columns.npz": (archive(X=ROWS[:, :2], y=np.arange(4) % 2), "columns"),
    "cut.npz": (archive(X=ROWS, y=np.array([SECRET] * 4))[:-30], "data"),
    "no archive.npz": (SECRET.encode(), "data"),
    "cut.csv.gz": (gzip.compress(f"{COLUMNS}1,2,3,{SECRET}\n".encode() * 50)[:-9], "data"),
}


class Site:
    """A site whose folder, too, has a name that is nobody else's business."""

    def __init__(self, folder: Path, name: str, content: bytes, project: Any = PROJECT) -> None:
        kit = folder / f"{SECRET}-kit"
        (kit / "local").mkdir(parents=True, exist_ok=True)
        (kit / "startup").mkdir(exist_ok=True)
        (kit / KEY_FILE).write_bytes(KEYS["lyon"])
        self.data = kit / name
        self.data.write_bytes(content)
        project.write(kit / "project.toml")
        table: dict[str, Any] = {"label": "y"} if ".csv" in name or ".tsv" in name else {}
        given = SiteSettings(project=str(kit / "project.toml"), data=str(self.data), state=str(kit / "state"), **table)
        given.write(kit)
        self.kit, self.project, self.answering = kit, project, Answering(kit, "lyon")

    @property
    def message(self) -> str:
        """What is said to those who may read the file."""
        label = SiteSettings.read(self.kit).label
        with pytest.raises(RefusedError) as raised:
            site_objective(self.project, "lyon", self.data, label=label)
        return str(raised.value)

    def asked(self, *requests: Any) -> bytes:
        """What leaves the site."""
        try:
            return self.answering(Seal(KEYS["lyon"]).request(wire.encode(requests or [protocol.Describe()])))
        finally:
            self.answering.close()


def word(data: bytes) -> str | None:
    """The word in place of an answer; None for an answer."""
    (found,) = wire.decode_answers(data[MARK:], [protocol.Describe()])
    return found.reason if isinstance(found, protocol.Failed) else None


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_cannot_be_read_is_not_quoted(name: str, tmp_path: Path, caplog: Any) -> None:
    content, expected = FILES[name]
    answer = (site := Site(tmp_path, name, content)).asked()
    assert SECRET.encode() not in answer
    assert word(answer) == expected
    assert f"refused ({expected})" in caplog.text
    assert site.message in caplog.text
    assert str(tmp_path) not in answer.decode(errors="replace")


def test_messages_for_the_site_do_quote_its_file(tmp_path: Path) -> None:
    """Were they not, the test above could not fail."""
    messages = [Site(tmp_path / str(n), *found).message for n, found in enumerate((k, v[0]) for k, v in FILES.items())]
    assert sum(SECRET in message.replace(f"{SECRET}-kit", "") for message in messages) >= 12, messages


@given(data=st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_file_that_was_damaged_anywhere_is_not_quoted(data: Any, tmp_path: Path, caplog: Any) -> None:
    """The secret stands in every row and column of a file that is sound before some of its bytes are changed."""
    caplog.clear()
    line = f"1,2,3,{SECRET}\n4,5,6,other\n"
    sound = {
        "d.csv": (COLUMNS + 6 * line).encode(),
        "d.svm": f"1 1:1 2:2 3:3 # {SECRET}\n0 1:2 2:1 # {SECRET}\n".encode() * 6,
        "d.npz": archive(X=np.arange(36.0).reshape(12, 3), y=np.array([SECRET, "other"] * 6)),
    }
    name = data.draw(st.sampled_from(sorted(sound)))
    content = bytearray(sound[name])
    for _ in range(data.draw(st.integers(0, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    classes = (SECRET, "other") if name != "d.svm" else (0, 1)
    project = replace(PROJECT, classes=classes, feature_names=())
    answer = (site := Site(tmp_path, name, bytes(content), project)).asked()
    reason = word(answer)
    if reason is not None:
        assert SECRET.encode() not in answer
        assert reason in SENTENCES
        assert f"refused ({reason})" in caplog.text
        assert site.message in caplog.text


class Speechless(Exception):
    def __str__(self) -> str:
        raise ValueError(SECRET)


def noted() -> Exception:
    error = ValueError(SECRET)
    error.add_note(SECRET)
    return error


def chained() -> Exception:
    error = ArithmeticError("sum")
    error.__cause__ = ValueError(SECRET)
    return error


ERRORS: dict[str, Callable[[], BaseException]] = {
    "ValueError": lambda: ValueError(f"row 7 is {SECRET}"),
    "TypeError": lambda: TypeError(SECRET),
    "KeyError": lambda: KeyError(SECRET),
    "ZeroDivisionError": lambda: ZeroDivisionError(SECRET),
    "AssertionError": lambda: AssertionError(np.array([SECRET])),
    "UnicodeDecodeError": lambda: UnicodeDecodeError("utf-8", SECRET.encode(), 0, 1, SECRET),
    "OSError": lambda: OSError(errno.EIO, SECRET, f"/home/{SECRET}"),
    "a full disk": lambda: OSError(errno.ENOSPC, SECRET, SECRET),
    "no number": lambda: OSError(SECRET),
    "PermissionError": lambda: PermissionError(errno.EACCES, SECRET, SECRET),
    "TimeoutError": lambda: TimeoutError(SECRET),
    "MemoryError": lambda: MemoryError(SECRET),
    "RecursionError": lambda: RecursionError(SECRET),
    "ModuleNotFoundError": lambda: ModuleNotFoundError(SECRET, name=SECRET, path=SECRET),
    "CodecError": lambda: CodecError(SECRET),
    "InUseError": lambda: InUseError(SECRET),
    "RefusedError": lambda: RefusedError(SECRET, code=SECRET),
    "a group": lambda: ExceptionGroup(SECRET, [ValueError(SECRET)]),
    "a note": noted,
    "a cause": chained,
    "a class": lambda: type(SECRET, (Exception,), {})(SECRET),
    "a warning": lambda: UserWarning(SECRET),
    "SystemExit": lambda: SystemExit(SECRET),
    "KeyboardInterrupt": lambda: KeyboardInterrupt(SECRET),
    "Speechless": Speechless,
}
STAGES: dict[str, tuple[Any, str]] = {
    "the cost is built": (site_settings, "objective_of"),
    "the host is made": (Host, "__init__"),
    "constants": (Host, "_describe"),
    "the first model": (Host, "_initial"),
    "the start": (Host, "_start"),
    "the loss": (SmoothedHinge, "value_and_gradient"),
    "the solver": (LBFGS, "__call__"),
    "a round": (Host, "_uploaded"),
    "its end": (Host, "_end"),
    "a certificate": (Host, "_evaluate"),
    "the file": (Host, "_save"),
}


@pytest.fixture
def leaving(monkeypatch: Any) -> list[bytes]:
    """All bytes that leave a site."""
    found: list[bytes] = []
    call = Answering.__call__

    def heard(self: Answering, *given: Any) -> bytes:
        found.append(answer := call(self, *given))
        return answer

    monkeypatch.setattr(Answering, "__call__", heard)
    return found


WHERE = ("the cost is built", "the loss", "a round")  # for every kind of error; a few kinds everywhere
PAIRS = [(kind, stage) for kind in ERRORS for stage in STAGES if stage in WHERE or kind in ("ValueError", "SystemExit")]


@pytest.mark.parametrize(("kind", "stage"), PAIRS)
def test_an_error_is_told_by_a_word(
    kind: str, stage: str, tmp_path: Path, monkeypatch: Any, caplog: Any, leaving: list[bytes]
) -> None:
    """Whatever is raised, and wherever: neither a message nor a file of the server has the secret."""

    def fail(*_: Any, **__: Any) -> Any:
        raise ERRORS[kind]()

    monkeypatch.setattr("dualopt.federation.engine.PAUSE", 0.0)
    project = project_of(rounds=2, loss="smoothed-hinge")
    with memory(tmp_path, project) as m:
        monkeypatch.setattr(*STAGES[stage], fail)
        refused = m.serve()["refused"]
    assert not any(SECRET.encode() in data for data in leaving)
    assert re.search(r"host \w+ .*its own log says more|host \w+ .*words that are not known", refused)
    for path in (*tmp_path.glob("server/*"), *tmp_path.glob("result/*")):
        assert SECRET.encode() not in path.read_bytes()
    assert "refused (" in caplog.text
    assert SECRET in caplog.text or kind == "Speechless"


def test_an_answer_that_cannot_be_sent_is_told_by_a_word(
    tmp_path: Path, monkeypatch: Any, caplog: Any, leaving: list[bytes]
) -> None:
    foreign = type(SECRET, (tuple,), {"__module__": SECRET})
    monkeypatch.setattr(Host, "_describe", lambda self, request: foreign())
    with memory(tmp_path, project_of()) as m:
        m.serve()
    assert SECRET in caplog.text
    assert not any(SECRET.encode() in data for data in leaving)


def test_words_of_a_site_that_are_not_in_the_table_are_not_shown() -> None:
    assert SECRET not in said(protocol.Failed(SECRET, True)).reason
    for code, sentence in SENTENCES.items():
        assert said(refusal(RefusedError(SECRET, code=code))).reason.startswith(sentence)


def test_every_reason_of_a_host_has_a_sentence() -> None:
    import dualopt.engine._host as host

    codes = set(re.findall(r'code="(\w+)"', Path(host.__file__).read_text()))
    assert {"project", "states", "order"} <= codes <= set(SENTENCES)
