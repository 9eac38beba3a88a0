"""Passes from Python modules that ``--load-pass-plugin`` names, beside those of installed packages."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from types import ModuleType
from typing import TypeGuard

from ..dialect.errors import RelaxError
from ..dialect.passes.base import Pass
from ..dialect.passes.pass_class import check_class
from ..dialect.passes.registry import is_registered, register, registered_pass

__all__ = ["load_plugins"]


def load_plugins(names: str) -> None:
    """Imports modules, or files of some, and makes the passes that they define known.

    Args:
        names: ``package.module`` or ``path/to/file.py``, several with commas.

    Raises:
        RelaxError: one cannot be imported, defines no pass, or one whose name is taken.
    """
    for name in filter(None, names.split(",")):
        module = _imported(name)
        found = [c for c in vars(module).values() if _is_pass(c) and c.__module__ == module.__name__]
        if not found:
            raise RelaxError(f"expected classes of passes in '{name}', got none")
        for pass_class in found:
            if not is_registered(pass_class.name) or registered_pass(pass_class.name) is not check_class(pass_class):
                _register(pass_class)


def _register(pass_class: type[Pass]) -> None:
    checked = check_class(pass_class)
    try:
        register(checked.name, functools.partial(_itself, checked))
    except RelaxError as error:
        raise RelaxError(f"{error}, of class {checked.__qualname__} of module {checked.__module__}") from None


def _itself(pass_class: type[Pass]) -> type[Pass]:
    return pass_class


def _is_pass(found: object) -> TypeGuard[type[Pass]]:
    return isinstance(found, type) and issubclass(found, Pass) and isinstance(getattr(found, "name", None), str)


@functools.cache
def _of_file(path: str) -> ModuleType:
    """The module of a file: once, so that its classes are the same however often it is named."""
    spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look for it there
    spec.loader.exec_module(module)
    return module


def _imported(name: str) -> ModuleType:
    """A module by its name, or of a file."""
    try:
        if not name.endswith(".py"):
            return importlib.import_module(name)
        return _of_file(os.path.realpath(os.path.expanduser(name)))
    except Exception as error:  # whatever the module's own code does
        reason = f"{type(error).__name__}: {error}"
        raise RelaxError(f"expected a Python module of passes as '{name}', got {reason}") from error
