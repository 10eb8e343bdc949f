"""A garden in the town's GitHub, and the coding work of a SOUL there; tests script the model."""

from dataclasses import dataclass
from random import Random

from common.redact import Redactor
from modules.lives.tasks.code import CodeWork
from modules.runtime.sandbox.runner import Sandbox
from modules.runtime.scheduler.scheduler import Attention
from modules.services.coding.agent import CodingAgent
from modules.services.coding.environment.installer import Installer
from modules.services.coding.environment.types import Indexes
from modules.services.coding.policy import CodingLimits
from modules.services.coding.trajectory import Trajectories
from modules.services.plans.types import Task
from tests.known_profiles import told_profile
from tests.modules.lives.tasks.workplace import SECRET, Workplace
from tests.modules.runtime.llm.scripted_model import Reply
from tests.modules.services.coding.coding_rig import does
from tests.shipped_skills import SHIPPED

TASK = Task(1, "Show the beds", status="claimed", assignee="ada", files=("beds.py",))
BRANCH = "task-1-show-the-beds"
CODE = (
    does("write_file", path="beds.py", content="BEDS = 3\n"),
    does("write_file", path="Makefile", content="test:\n\tpython3 -c 'import beds; assert beds.BEDS == 3'\n"),
    does("finish", summary="Three beds; closes #1, thanks @bea."),
)


class NothingHeld:
    """A budget without a limit."""

    async def hold(self, purpose: str, *, tokens: int, usd: float | None) -> None:
        """Set nothing aside."""

    async def let_go(self, purpose: str) -> None:
        """Give nothing back."""


@dataclass
class CodeRig:
    """The garden, and a SOUL that codes there."""

    workplace: Workplace

    def code(self) -> CodeWork:
        place = self.workplace
        agent = CodingAgent(
            gateway=place.gateway,
            skills=SHIPPED,
            sandbox=Sandbox(redactor=Redactor([SECRET]), private=[place.folder / "soul.db"]),
            store=Trajectories(place.database),
            budget=NothingHeld(),
            attention=Attention(),
            clock=place.clock,
            limits=CodingLimits(steps=12, tokens=50_000, usd=None, seconds=600),
            profile=told_profile,
        )
        return CodeWork(
            offering=place.offering,
            agent=agent,
            git=place.git,
            skills=SHIPPED,
            rng=Random(1),
            redactor=Redactor([SECRET]),
            root=place.folder,
            name="ada",
            may_run=True,
            installer=Installer(Indexes(), place.folder / ".packages", place.clock),
        )

    async def does(self, *replies: Reply) -> object:
        """Let the model give these replies, and return the result of the task."""
        self.workplace.model.plays(*replies)
        return await self.code().do(await self.workplace.held(TASK))
