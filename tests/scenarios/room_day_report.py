"""The figures of a day in a room as a table for people."""

from __future__ import annotations

from collections import Counter

from tests.scenarios.room_day_figures import NAMES, Day


def table(day: Day) -> str:
    """Who said how much, what it took, and what the whole day came to."""
    thirds, calls, tokens = day.per_third(), day.calls(), day.tokens()
    said = Counter(one.name for one in day.by_agents)
    rows = [f"{'agent':<8} {'said':>5} {'morning/noon/evening':>21} {'thoughts':>9} {'verdicts':>9} {'tokens':>10}"]
    for name in sorted(NAMES):
        parts = "/".join(str(count) for count in thirds[name])
        thought = sum(count for purpose, count in calls[name].items() if purpose != "space-judgement")
        verdicts = calls[name]["space-judgement"]
        rows.append(f"{name:<8} {said[name]:>5} {parts:>21} {thought:>9} {verdicts:>9} {tokens[name]:>10,}")
    talk = [echo for conversation in day.echoes() for echo in conversation]
    since, openers, record = day.since_host(), day.openers(), day.record
    hosts = sum(one.by_host for one in day.said)
    outcomes = day.outcomes()
    met = sum(len(outcome.done) == 1 for outcome in outcomes)
    facts = {
        "host messages": hosts,
        "agent messages": len(day.by_agents),
        "conversations": len(day.conversations()),
        "talk after a host message, mean / most": f"{sum(since) / max(1, len(since)):.1f} / {max(since)}",
        "echoes of all talk / longest chain": f"{sum(map(bool, talk))} of {len(talk)} / {day.longest_chain()}",
        "near-verbatim repeats in a conversation": len(day.repeats()),
        "openers / least time between": f"{len(openers)} / {min(day.between_openers(), default='-')}",
        "requests / met and told once": f"{len(outcomes)} / {met}",
        "errors in journals": len(day.errors()),
        "model calls": sum(sum(counts.values()) for counts in calls.values()),
        "tokens per thought": round(sum(tokens.values()) / max(1, sum(sum(one.values()) for one in calls.values()))),
        "took, s (processor, s)": f"{record.took_s:.0f} ({record.cpu_s:.0f})",
    }
    return "\n".join(["", *rows, "", *(f"{what:<42} {figure}" for what, figure in facts.items())])
