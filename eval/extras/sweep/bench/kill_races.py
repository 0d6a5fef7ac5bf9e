"""What do kills cost a race of settings? It is killed -9 at random moments, and resumed.

    python eval/extras/sweep/bench/kill_races.py             # 60 kills, some ten minutes
    python eval/extras/sweep/bench/kill_races.py --kills 1   # only to see that it runs

Ends with 1 when an answer that was on the disk is lost or asked for again.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[4] / "bench"))

import crash_replay
from crash_replay import CASES, SHORT_S, World, cases_of, environment
from measuring import say

FLAVOURS = ("sweet", "sour", "salt")
CONCURRENCY = 8


class Race:
    """A race of settings, killed -9 at random moments, resumed, and looked at when it is done."""

    def __init__(self, world: World, env: dict[str, str]) -> None:
        self._world, self._env, self._random = world, env, random.Random(5)
        self.kills = self.races = self.lost = self.paid_twice = self.calls = self.unwritten = 0
        profile = (world.folder / "bot.toml").read_text()
        asked = 'flavour = "{flavour}"\n[settings]\nflavour = "sweet"\n[response]'
        (world.folder / "race.toml").write_text(profile.replace("[response]", asked))
        (world.folder / "grid.toml").write_text(
            f"warm_up = 0\n[grid]\nflavour = {list(FLAVOURS)}\n"
        )

    def until(self, kills: int) -> None:
        """Begin races until there were so many kills."""
        while self.kills < kills:
            self.races += 1
            while not self._ended(f"race-{self.races}", kills):
                pass
            say(f"race {self.races}: {self.kills} of {kills} kills")

    def _ended(self, sweep_id: str, kills: int) -> bool:
        """Ask until the end, or until a kill; True at the end."""
        world = self._world
        stored, before = self._stored(sweep_id), world.asked()
        words = [
            sys.executable,
            str(HERE.parents[1] / "sweep_runs.py"),
            str(world.folder / "grid.toml"),
        ]
        words += ["--api-url", f"{world.url}/short", "--profile", str(world.folder / "race.toml")]
        words += ["--results-dir", str(world.folder / "races"), "--run-id", sweep_id, "--ask-all"]
        words += ["--set", f"concurrency={CONCURRENCY}", "-q", *world.data]
        words += ["--resume"] if stored else []
        process = subprocess.Popen(
            words, env=self._env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        calls = self._random.randint(1, len(CASES) * len(FLAVOURS) // 2)
        while process.poll() is None:
            if self.kills < kills and world.asked() - before >= calls:
                process.send_signal(signal.SIGKILL)
            time.sleep(0.005)
        _, told = process.communicate()
        if process.returncode not in (0, -signal.SIGKILL):
            raise SystemExit(f"sweep_runs.py ended with {process.returncode}: {told[-500:]!r}")
        time.sleep(5 * SHORT_S)  # for what was under way
        after = self._stored(sweep_id)
        asked = self._settings_since(before)
        self.calls += asked.total()
        self.lost += len(stored - after)
        self.paid_twice += sum(count for key, count in asked.items() if key in stored)
        ended = process.returncode == 0
        self.kills += not ended
        if ended:
            self.lost += len(FLAVOURS) * len(CASES) - len(after)
        else:
            self.unwritten = max(self.unwritten, len(set(asked) - after))
        return ended

    def _settings_since(self, before: int) -> Counter[tuple[str, str]]:
        """The cases that the bot was asked since, each with its setting."""
        lines = self._world.log.read_text().splitlines()[before:]
        return Counter((line.split()[1], line.split()[2]) for line in lines)

    def _stored(self, sweep_id: str) -> set[tuple[str, str]]:
        """Case and setting of the answers on the disk."""
        stored = set()
        for folder in (self._world.folder / "races").glob(f"{sweep_id}.*"):
            for path in (folder / "results.partial.jsonl", folder / "results.jsonl"):
                for line in path.read_bytes().splitlines(keepends=True) if path.exists() else ():
                    stored |= {(case, folder.name.rpartition("-")[2]) for case in cases_of(line)}
        return stored

    @property
    def sound(self) -> bool:
        return not self.lost and not self.paid_twice and self.unwritten <= 2 * CONCURRENCY + 1


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--tiny", action="store_true", help="one kill, to see that it runs")
    options = parser.parse_args()
    kills = 1 if options.tiny else options.kills
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        words = [sys.executable, crash_replay.__file__, "--serve", str(folder / "asked.log")]
        with subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as server:
            assert server.stdout is not None
            race = Race(World(folder, server.stdout.readline().strip()), environment())
            race.until(kills)
            server.communicate()
    print(
        f"{race.kills} kills of {race.races} races: {race.lost} answers lost, "
        f"{race.paid_twice} of {race.calls:,} calls for an answer on the disk; most that were "
        f"answered and not yet written: {race.unwritten} ({CONCURRENCY} calls at once)."
    )
    sys.exit(0 if race.sound else 1)


if __name__ == "__main__":
    main()
