"""The files that owner and SOUL share: one face for the folder `workspace/` of a home and for a place in the store.

Each file is written whole or not at all. SOUL.md and SELF.md can be read here and never written: the one is the
owner's, the other is written by `modules/services/identity` alone.
"""

from __future__ import annotations

from modules.services.owner_files.local import LocalOwnerFiles, OwnerFiles, StoredOwnerFiles

__all__ = ["LocalOwnerFiles", "OwnerFiles", "StoredOwnerFiles"]
