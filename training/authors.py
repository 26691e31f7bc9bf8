"""`python authors.py SESSIONS`: the weights of `recollect/authors.py`, from the labels and sets in `bench`.

Logistic regression with a ridge, twice: over the features of a paragraph, then over what stands around it. Fitted on
the labelled prompts of real sessions, on the two made-up sets that are for it, and, with less weight, on one-line
prompts, which are typed nearly always. What was pasted counts more than what was typed. The held set is only counted.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bench.keep import labelled_prompts

from recollect import authors
from recollect.types import Author

BENCH = Path(__file__).parent.parent / "bench"
PASTED = 2.5  # how much more a pasted paragraph counts
MADE = 0.15  # how much a made-up prompt on one line counts
LONGEST = 250  # characters of such a prompt


@dataclass(frozen=True)
class Told:
    """A message with what is known of each paragraph."""

    paragraphs: Sequence[authors.Paragraph]
    by: Sequence[str]  # typed | pasted | something else
    weight: float = 1.0


def main(sessions: Path) -> None:
    told = [*real(sessions), *made("fitted-1"), *made("fitted-2"), *one_liners()]
    for weights, rows in ((authors.WEIGHTS, alone), (authors.CONTEXT, around)):
        names, x, y, w = [], [], [], []
        for values, is_typed, weight in rows(told):
            names = list(values)
            x.append(list(values.values()))
            y.append(is_typed)
            w.append(weight)
        weights.clear()
        weights |= {name: round(float(each), 2) for name, each in zip(names, fitted(x, y, w), strict=True)}
        print(json.dumps(weights, indent=1))
    for name, counted in {"fitted on": told, "held": [*made("held")]}.items():
        print(name, dict(counts(counted)))


def real(sessions: Path) -> Iterator[Told]:
    for text, known in labelled_prompts(sessions):
        yield aligned(text, known)


def made(name: str) -> Iterator[Told]:
    for line in (BENCH / "data/authors" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        parts = json.loads(line)["parts"]
        at, known = 0, []
        for author, text in parts:
            known.append((at, author))
            at += len(text) + 2
        yield aligned("\n\n".join(text for _, text in parts), known)


def one_liners() -> Iterator[Told]:
    for path in sorted((BENCH / "data").glob("*.json")):
        for message in json.loads(path.read_text(encoding="utf-8"))["messages"]:
            text = message["text"].strip()
            if message["role"] == "user" and "\n" not in text and len(text) <= LONGEST:
                yield Told([*authors.paragraphs(text)], ["typed"] * len([*authors.paragraphs(text)]), MADE)


def aligned(text: str, known: Sequence[tuple[int, str]]) -> Told:
    """`known`: where a part begins, and by whom."""
    found, by, at = [*authors.paragraphs(text)], [], 0
    for each in found:
        own = text[at : at + each.length]
        begin = at + len(own) - len(own.lstrip())
        by.append(next((author for start, author in reversed(known) if start <= begin), ""))
        at += each.length
    return Told(found, by)


def alone(told: Sequence[Told]) -> Iterator[tuple[dict[str, float], bool, float]]:
    for each in told:
        for paragraph, by in zip(each.paragraphs, each.by, strict=True):
            if by in (Author.TYPED, Author.PASTED) and authors.may_be_typed(paragraph):
                weight = each.weight / len(each.by) ** 0.5
                yield authors.features(paragraph.text), by == Author.TYPED, weight


def around(told: Sequence[Told]) -> Iterator[tuple[dict[str, float], bool, float]]:
    for each in told:
        own = [*map(authors.alone, each.paragraphs)]
        context = authors.Around(each.paragraphs, own) if own else None
        for number, by in enumerate(each.by):
            if context and by in (Author.TYPED, Author.PASTED) and own[number]:
                weight = each.weight / len(each.by) ** 0.5 * (PASTED if by == Author.PASTED else 1.0)
                yield context.features(number), by == Author.TYPED, weight


def fitted(x: Sequence[Sequence[float]], y: Sequence[bool], w: Sequence[float]) -> np.ndarray:
    rows, wanted, weight = np.array(x), np.array(y, float), np.array(w)
    found = np.zeros(rows.shape[1])
    for _ in range(60):
        near = 1 / (1 + np.exp(-rows @ found))
        slope = rows.T @ (weight * (near - wanted)) + found
        bend = (rows * (weight * near * (1 - near))[:, None]).T @ rows + np.eye(len(found))
        found -= np.linalg.solve(bend, slope)
    return found


def counts(told: Sequence[Told]) -> Counter[tuple[str, str]]:
    """(by whom, taken for whom) → paragraphs."""
    return Counter(
        (by, str(author))
        for each in told
        for by, (author, _) in zip(each.by, authors.judged_paragraphs(each.paragraphs), strict=True)
        if by in (Author.TYPED, Author.PASTED)
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
