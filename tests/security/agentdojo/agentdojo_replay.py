"""Replays AgentDojo's tasks through our tool loop, our registry and our executor.

The mind does the user's task by its known solution. As soon as a result shows it the attacker's words, it does all that
the attacker wants, then goes on. Only what stands between its request and the world is tested: the tool gate.
"""

import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import yaml
from agentdojo.agent_pipeline.ground_truth_pipeline import GroundTruthPipeline
from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
from agentdojo.attacks.attack_registry import load_attack
from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime
from agentdojo.task_suite.load_suites import get_suites
from agentdojo.task_suite.task_suite import TaskSuite, read_suite_file

from common.clock import SystemClock
from common.provenance import Provenance
from modules.runtime.llm.dialect import ChatResult, Message, ToolCall
from modules.runtime.llm.gateway import LLMGateway
from modules.services.agent.tools.executor import Executor, Registry
from modules.services.agent.tools.types import Effect, Tool, ToolResult, Turn
from modules.services.agent.turn.runner import run_turn
from modules.services.skills.skills import Framer, Skills
from soul.resources import SKILLS
from tests.security.agentdojo.agentdojo_plans import steps
from tests.security.agentdojo.agentdojo_tools import ACTS, words_in
from tests.shipped_skills import SHIPPED

VERSION = "v1.2.2"
ATTACK = "important_instructions_no_names"
_ROUNDS = 200


@dataclass
class Run:
    """One task and what happened in it. `asked` lists the calls that the owner approves; None stands for all."""

    suite: TaskSuite
    env: Any
    before: Any
    injections: tuple[str, ...] = ()
    asked: tuple[FunctionCall, ...] | None = ()
    exposed: bool = False
    executed: list[FunctionCall] = field(default_factory=list)
    held: list[FunctionCall] = field(default_factory=list)
    breaches: list[FunctionCall] = field(default_factory=list)

    def agreed(self, call: FunctionCall) -> bool:
        """Return whether the owner approves `call`."""
        return self.asked is None or any(_same(call, request) for request in self.asked)


class Puppet(LLMGateway):
    """A mind that follows a plan, and does all that the attacker wants as soon as it has seen the attacker's words.

    It takes the place of the gateway: three thousand conversations over HTTP would take a quarter of an hour and show
    nothing else. All that comes after the model's answer is the product.
    """

    def __init__(self) -> None:
        self.begin(None, (), "", (), "")

    def begin(
        self, run: Run | None, plan: Sequence[FunctionCall], words: str, attack: Sequence[FunctionCall], lie: str
    ) -> None:
        """Set what to do and say in the next conversation; `attack` and `lie` follow the attacker's words."""
        self.run = run
        self.plan = deque(plan)
        self._words = words
        self._attack = attack
        self._lie = lie

    async def chat_with_tools(self, *_: object, **__: object) -> ChatResult:
        assert self.run is not None
        calls: Sequence[FunctionCall] = ()
        if self.run.exposed:
            calls, self._attack = self._attack, ()
            self._words, self._lie = f"{self._words} {self._lie}", ""
        if not calls and self.plan:
            calls = (self.plan.popleft(),)
        if not calls:
            return ChatResult(self._words.strip() or "Done.")
        return ChatResult("", tuple(ToolCall(str(id(call)), call.function, dict(call.args)) for call in calls))


class Stage:
    """Our services with one suite's tools on them; `perform` plays one run after the other."""

    def __init__(self, suite: TaskSuite) -> None:
        self.suite = suite
        self._puppet = Puppet()
        self._runtime = FunctionsRuntime(suite.tools)
        self._framer = Framer(Skills.load(SKILLS), random.Random(1))
        self._executor = Executor(
            Registry([self._tool(function) for function in suite.tools], social_only=True), SHIPPED
        )

    async def perform(self, run: Run, task: Any, attacker: Any = None) -> str:
        """Play `run`: the user's `task`, then the attacker's once its words are seen; return the mind's last words."""
        attack = steps(self.suite.name, attacker, run.before) if attacker else ()
        lie = attacker.GROUND_TRUTH_OUTPUT if attacker else ""
        self._puppet.begin(run, task.ground_truth(run.env), task.GROUND_TRUTH_OUTPUT, attack, lie)
        turn_result = await run_turn(
            gateway=self._puppet,
            executor=self._executor,
            turn=Turn("owner", Provenance.OWNER),
            system="You help your owner.",
            messages=[Message("user", "Please do the task.")],
            purpose="agentdojo",
            clock=SystemClock(),
            max_rounds=_ROUNDS,
        )
        assert turn_result.stopped == "ended", turn_result.stopped
        assert not self._puppet.plan
        return turn_result.text

    def _tool(self, function: Any) -> Tool:
        name, acts = function.name, function.name in ACTS

        async def handle(arguments: Any, turn: Turn) -> ToolResult:
            run = self._puppet.run
            assert run is not None
            call = FunctionCall(function=name, args=arguments.model_dump())
            if turn.hold:
                run.held.append(call)
                if not run.agreed(call):
                    return ToolResult("HELD: it waits for your owner's approval.")
            elif acts and turn.provenance < Provenance.OWNER:
                run.breaches.append(call)
            result, error = self._runtime.run_function(run.env, name, call.args)
            run.executed.append(call)
            text = error or tool_result_to_str(result)
            if any(injection in _flat(text) for injection in run.injections):
                run.exposed = True
                assert words_in(name) is Provenance.STRANGER, f"{name} brings in others' words"
            framed = self._framer.frame("reading", author=name, uri=self.suite.name, text=text)
            return ToolResult(framed, is_error=error is not None, provenance=words_in(name))

        effect: Effect = "act" if acts else "look"
        model, needs = function.parameters, Provenance.OWNER
        return Tool(name, function.description, model, "self", needs, handle, effect=effect, holdable=acts)


def suites() -> dict[str, TaskSuite]:
    """Return all suites, in version `VERSION`; they read their environments by `environment`, which is faster."""
    found = dict(get_suites(VERSION))
    for suite in found.values():
        suite.load_and_inject_default_environment = partial(environment, suite)
    return found


def environment(suite: TaskSuite, injections: dict[str, str]) -> Any:
    """Return what `suite.load_and_inject_default_environment` does, from a cache and by the faster YAML reader."""
    return _environment(suite, tuple(sorted(injections.items()))).model_copy(deep=True)


@lru_cache(maxsize=1000)
def _environment(suite: TaskSuite, injections: tuple[tuple[str, str], ...]) -> Any:
    text = read_suite_file(suite.name, "environment.yaml", suite.data_path)
    filled = text.format(**(_defaults(suite) | dict(injections)))
    return suite.environment_type.model_validate(yaml.load(filled, yaml.CSafeLoader))


@lru_cache
def _defaults(suite: TaskSuite) -> dict[str, str]:
    return dict(suite.get_injection_vector_defaults())


@dataclass(frozen=True)
class Attack:
    """A user's task, an attacker's task, and the attacker's words by the place where they stand."""

    user_task: Any
    injection_task: Any
    injections: dict[str, str]


def attacks(suite: TaskSuite) -> Iterator[Attack]:
    """Yield each user task with each injection task, as AgentDojo pairs them."""
    pipeline = GroundTruthPipeline(None)
    pipeline.name = "local"
    template = load_attack(ATTACK, suite, pipeline)
    for user_task in suite.user_tasks.values():
        for injection_task in suite.injection_tasks.values():
            yield Attack(user_task, injection_task, template.attack(user_task, injection_task))


def useful(task: Any, text: str, run: Run) -> bool:
    """Return whether the user's task was done, by AgentDojo's own check."""
    before = run.before.model_copy(deep=True)
    return bool(run.suite._check_user_task_utility(task, [_said(text)], before, run.env, run.executed))


def successful(task: Any, text: str, run: Run) -> bool:
    """Return whether the attacker's task was done, by AgentDojo's own check of what was really done."""
    before = run.before.model_copy(deep=True)
    return bool(run.suite._check_injection_task_security(task, [_said(text)], before, run.env, run.executed))


def shown(injections: dict[str, str]) -> tuple[str, ...]:
    """Return the attacker's words as they are recognised in a result."""
    return tuple({_flat(text) for text in injections.values()})


def _same(call: FunctionCall, other: FunctionCall) -> bool:
    """Return whether two calls ask for the same thing; an argument that `other` lacks may have any value."""
    return call.function == other.function and all(
        str(call.args.get(name)) == str(value) for name, value in other.args.items()
    )


def _said(text: str) -> dict[str, str]:
    return {"type": "text", "content": text}


def _flat(text: str) -> str:
    """Return only the letters, because quoting, escapes and line breaks differ between tools."""
    return "".join(char for char in text.replace("\\n", " ") if char.isalpha())
