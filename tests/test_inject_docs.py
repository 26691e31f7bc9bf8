"""The code of docs/injection.md runs and prints what the page says."""

from __future__ import annotations

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from recollect.app import Memory
from tests.embedders import installed

PAGE = Path(__file__).parent.parent / "docs" / "injection.md"
EXAMPLE = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", re.DOTALL)


@pytest.mark.parametrize("embedder", ["arctic", "static", "none"])
def test_the_examples_of_the_page_print_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embedder: str
) -> None:
    """The two walk-throughs of the specification are among them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RECOLLECT_EMBEDDER", embedder)
    monkeypatch.setenv("RECOLLECT_MODELS_FOLDER", str(installed()))
    names: dict[str, object] = {}
    examples = EXAMPLE.findall(PAGE.read_text())
    assert len(examples) == 4
    for code, said in examples:
        printed = StringIO()
        with redirect_stdout(printed):
            exec(compile(code, str(PAGE), "exec"), names)
        assert printed.getvalue() == said
    memory = names["memory"]
    assert isinstance(memory, Memory)
    memory.close()
