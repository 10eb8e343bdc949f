"""Runs a day of many SOULs that sleep: what kills and cut connections lose or double, and what sleep costs.

Run: `python bench/fleet_day.py [--engine up|cluster] [--homes 20] [--asked 500] [--minutes 10] [--kills 9] [--cuts 9]`.
Exit code 1 if something was lost or doubled. Reads /proc, so it needs Linux.

People mention SOULs and write to them at random over a day that takes `--minutes`. It prints how many were never
answered and how many twice, the share asleep, the seconds from the watcher's look that saw something to the SOUL's own
first look (with a cluster also in parts), and at the end the memory for those that sleep, as the proportional set
size (Pss) of all processes that remain for them. `--asked 0 --kills 0 --cuts 0` is a day on which nobody writes.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.fleet_day import ENGINES, DayPlan, open_fleet_day


async def measure(given: argparse.Namespace) -> int:
    """Run the day, print, and return 1 if anything was lost or doubled, else 0."""
    plan = DayPlan(given.homes, given.asked, given.minutes * 60, given.kills, given.cuts, given.hours)
    with tempfile.TemporaryDirectory() as folder:
        async with open_fleet_day(plan, given.engine, Path(given.folder or folder), given.seed) as day:
            sys.stdout.write(f"{len(day.living())} awake at the start: {sum(day.kept_mib()):.0f} MiB\n")
            await day.live()
            kept, awake = day.kept_mib()
            asleep = given.homes - len(day.living())
            sys.stdout.write(
                f"{day}\n{asleep} asleep: {kept:.0f} MiB for all, {kept / max(1, asleep):.2f} MiB each;"
                f" {given.homes - asleep} awake: {awake:.0f} MiB\n"
            )
            for ask in (*day.lost, *day.doubled):
                sys.stdout.write(f"{ask.did}: {ask.count} answers to {ask.uri or ask.convo}\n")
            return int(bool(day.lost or day.doubled))


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=ENGINES, default="up")
    parser.add_argument("--homes", type=int, default=20)
    parser.add_argument("--asked", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--hours", type=float, default=24, help="how much is lived in these minutes")
    parser.add_argument("--kills", type=int, default=9)
    parser.add_argument("--cuts", type=int, default=9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", help="where homes and logs stay")
    return asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
