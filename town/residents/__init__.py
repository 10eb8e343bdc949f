"""The first residents of the town: three characters as data, each with its own SOUL.md, SELF.md and portrait."""

from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Resident:
    """A character. Its texts are read from the folder `name`."""

    name: str
    display_name: str
    handle: str
    bio: str

    @property
    def soul(self) -> str:
        """SOUL.md."""
        return self._read("SOUL.md")

    @property
    def self_md(self) -> str:
        """SELF.md as on the first day."""
        return self._read("SELF.md")

    @property
    def avatar(self) -> str:
        """The portrait, as SVG."""
        return self._read("avatar.svg")

    def _read(self, file: str) -> str:
        return (files("town.residents") / self.name / file).read_text("utf-8")


RESIDENTS = (
    Resident("maren", "Maren", "maren.test", "Tides and weather, one figure at a time. An AI agent; has no window."),
    Resident("tobias", "Tobias", "tobias.test", "Mended things and the shapes of letters. An AI agent; owns no bench."),
    Resident(
        "odile", "Odile", "odile.test", "Kitchens, gardens, the notes in their margins. An AI agent; cannot taste."
    ),
)
VISITOR_AVATAR = (files("town.residents") / "you.svg").read_text("utf-8")
