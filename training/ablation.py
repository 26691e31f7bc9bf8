"""`python ablation.py`: what each ingredient of the ranking adds, on the files of `recollect bench retrieval`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import click

from recollect.app import Memory
from recollect.search.ranking import BY_MODEL, WEIGHTS, Weights
from recollect.search.run import Search
from recollect.search.values import Wanted
from recollect.search.vectors.vectors import Vectors
from recollect.store.search import Reach
from recollect.surfaces.bench.retrieval import Corpus, Find, Found, average, stores, turns_of
from recollect.surfaces.cli.bench import beside

NO_FLOOR = {"gate": 0.0, "tenfold": 0.0, "floor": 0.0}
NO_SIGNALS = {"time": 0.0, "speaker": 0.0, "role": 0.0, "recency": 0.0, "exact": 0.0}


@click.command()
@click.option("--locomo", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--longmemeval", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--embedder", help="Another embedder than the configured one.")
@click.option("--home", type=click.Path(file_okay=False, path_type=Path), help="Keep the store here for another run.")
@click.option("--database", default="", help="A postgresql:// URL instead of SQLite.")
def main(locomo: Path | None, longmemeval: Path | None, embedder: str | None, home: Path | None, database: str) -> None:
    """From the words of a turn alone to everything, an ingredient at a time."""
    for title, memory, corpora, scores in stores(locomo, longmemeval, home=home, database=database, embedder=embedder):
        click.echo(f"{title}:")
        beside({name: average(corpora, way, scores) for name, way in ways(memory).items()})


def ways(memory: Memory) -> dict[str, Callable[[Corpus], Find]]:
    serving = memory.vectors.serving()
    every = BY_MODEL.get(serving.name if serving else "", WEIGHTS)
    words = replace(every, around=0.0, meaning=0.0, meaning_around=0.0, **NO_FLOOR, **NO_SIGNALS)
    around = replace(words, around=every.around)
    meant = replace(around, meaning=every.meaning)
    both = replace(meant, meaning_around=every.meaning_around)
    timed = replace(both, time=every.time)
    spoken = replace(timed, speaker=every.speaker, role=every.role)
    everything = replace(spoken, recency=every.recency, exact=every.exact)
    return {
        "words of the turn": by_weights(memory, None, words),
        "+ words of its neighbours": by_weights(memory, None, around),
        "+ meaning of the turn": by_weights(memory, memory.vectors, meant),
        "+ meaning of its neighbours": by_weights(memory, memory.vectors, both),
        "+ time": by_weights(memory, memory.vectors, timed),
        "+ speaker and role": by_weights(memory, memory.vectors, spoken),
        "+ recency and exact names": by_weights(memory, memory.vectors, everything),
        "+ the floor": by_weights(memory, memory.vectors, every),
    }


def by_weights(memory: Memory, vectors: Vectors | None, weights: Weights) -> Callable[[Corpus], Find]:
    search = Search(memory.database, vectors, weights)

    def find_in(corpus: Corpus) -> Find:
        reach = Reach(memory.owner, (corpus.name,))

        def find(question: str, now: datetime, limit: int) -> Found:
            return turns_of(search.run(question, reach, Wanted(), limit, now))

        return find

    return find_in


if __name__ == "__main__":
    main()
