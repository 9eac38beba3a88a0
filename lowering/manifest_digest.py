"""What ties a manifest to its code: the code carries a digest of the manifest that says how to call it.

A manifest with other shapes would make compiled code read and write beyond what it is given, so that the two must not part: of
what is edited, or put beside other code, by hand or by accident, :class:`relaxir.runtime.executable.Executable` makes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

__all__ = ["BYTES", "SYMBOL", "digest_of", "llvm_constant"]

#: The C symbol of the digest in object code and shared libraries.
SYMBOL = "relaxir_manifest_sha256"
BYTES = hashlib.sha256().digest_size

#: Fields that say nothing about the code: what the compiler tells users, and the digest of the code.
_NOT_COVERED = ("report", "code")


def digest_of(manifest: Mapping[str, Any]) -> bytes:
    """The sha256 of a manifest, a JSON object, however it is formatted; its report does not count."""
    covered = {key: value for key, value in manifest.items() if key not in _NOT_COVERED}
    return hashlib.sha256(json.dumps(covered, sort_keys=True, separators=(",", ":")).encode()).digest()


def llvm_constant(manifest: Mapping[str, Any]) -> str:
    """LLVM IR text that puts the digest into code; weak, so that a C program can link several such objects."""
    content = "".join(f"\\{byte:02X}" for byte in digest_of(manifest))
    return f'@{SYMBOL} = weak constant [{BYTES} x i8] c"{content}"\n'
