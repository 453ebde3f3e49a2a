"""Scripts of the checkout as modules, as they are in no package, and code in another process."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from tests.paths import ROOT
from tests.patience import PATIENCE


def load_script(path: Path) -> ModuleType:
    """Return the script at `path` as a new module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look
    spec.loader.exec_module(module)
    return module


def run_python(
    code: str, *arguments: str | Path, env: Mapping[str, str] = os.environ, cwd: Path | None = ROOT
) -> str:
    """Run code in an interpreter of its own, where it must not fail; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=env,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=5 * PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
