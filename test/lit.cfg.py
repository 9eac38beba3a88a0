"""lit configuration: every ``.mlir`` file under test/, run as test/support/lit_inprocess.py says."""

# ruff: noqa: F821  lit defines `config` and `lit_config`

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from support.lit_inprocess import InProcess  # noqa: E402

config.name = "relaxir"
config.test_format = InProcess(real_processes=bool(lit_config.params.get("shell")))
config.suffixes = [".mlir"]
config.excludes = ["Inputs", "golden"]
config.test_source_root = str(HERE)
config.test_exec_root = str(HERE.parent / "build" / "test")
os.makedirs(config.test_exec_root, exist_ok=True)
# The environment that lit itself runs in has relax-opt and filecheck: no activation, no site configuration.
config.environment["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
config.environment["RELAXIR_CACHE_DIR"] = "off"
