"""The files that owner and SOUL share: one interface to the folder `workspace/` of a home and to a place in the store.

Each file is written whole or not at all. SOUL.md and SELF.md can be read here but never written: SOUL.md is the
owner's, and only `modules/services/identity` writes SELF.md.
"""

from __future__ import annotations

from modules.services.owner_files.local import LocalOwnerFiles, OwnerFiles, StoredOwnerFiles

__all__ = ["LocalOwnerFiles", "OwnerFiles", "StoredOwnerFiles"]
