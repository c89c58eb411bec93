"""The wheel, built from this checkout and installed in virtual environments that take nothing from the network."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from collections.abc import Collection
from pathlib import Path

from tests.support.incidents import REPOSITORY


def build_wheel(folder: Path) -> Path:
    """Builds the wheel into a folder with the build backend that is installed here, and returns it."""
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(REPOSITORY)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


def install_wheel(wheel: Path, folder: Path, *, without: Collection[str] = ()) -> Path:
    """Installs a wheel in a fresh virtual environment and returns its `agentctl` command.

    Args:
        wheel: The wheel.
        folder: Where the environment is made.
        without: Packages of this environment that cannot be imported there; all others can.
    """
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps", "--no-index", str(wheel)]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (own,) = (folder / "lib").glob("python*/site-packages")
    (own / "dependencies.pth").write_text(str(_dependencies(folder / "dependencies", without)), encoding="utf-8")
    return folder / "bin" / "agentctl"


def _dependencies(folder: Path, without: Collection[str]) -> Path:
    """Makes a folder of links to what is installed here, but for some packages and for this project itself."""
    own = ("agentctl", "langgraph_agentctl", "_editable_impl_langgraph_agentctl")
    folder.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        name = path.name.partition(".")[0].partition("-")[0]
        if name not in {*without, *own} and path.suffix != ".pth":
            (folder / path.name).symlink_to(path)
    return folder
