"""The command `plan`: a training run in one line, its verdict, and the question that it keeps."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import crossopt
from crossopt.instances.catalogue.registry import device
from crossopt.instances.codesign.short import Group, Run, question_text
from crossopt.instances.errors import RefusedError
from crossopt.instances.question import read, read_given
from crossopt.reports.cli import main
from crossopt.reports.commands.plan import Tried, _tried, _usable, beyond_runs
from crossopt.reports.sheets.codesign.design import lead_text
from crossopt.tests.every import every
from crossopt.tests.paths import INSTANCES
from tests.commands import exit_code

SMALL = ["plan", "gpt3-125m", "--gpus", "8xa100-80g"]
Captured = pytest.CaptureFixture[str]


def test_a_verdict_has_a_plan_a_proof_doubts_and_what_to_do_next(capsys: Captured, tmp_path: Path) -> None:
    saved, result = tmp_path / "run.yaml", tmp_path / "run.json"
    options = ["--tokens", "300B", "--deadline", "60d", "--rent", "1.5", "--save", str(saved), "--out", str(result)]
    assert main([*SMALL, *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split()[0] for line in lines if line.startswith("  ") and line[2:3].strip()]
    assert rows[:6] == ["plan", "step", "speed", "run", "deadline", "memory"]
    assert rows[-1] == "next"
    assert "proof" in rows
    assert len(lines) <= 15
    asked = read(saved)
    assert (asked.goal.tokens, asked.cluster.devices) == (300e9, 8)
    assert main(["check", str(result)]) == 0
    capsys.readouterr()
    assert main(["solve", str(saved), "--engine", "boxes"]) == 0
    assert lines[0].split("   ")[1].split(" on ")[0] in capsys.readouterr().out, "solve says the same days"


def test_a_deadline_that_is_missed_is_said_with_the_devices_that_it_takes(capsys: Captured) -> None:
    assert main([*SMALL, "--tokens", "300B", "--deadline", "1d"]) == 20
    out = " ".join(capsys.readouterr().out.split())
    assert "times the deadline, proved; at least about" in out
    assert " deadline 1 day" not in out, "the first line says it"


@pytest.mark.parametrize(
    ("days", "settled", "said"),
    [
        (10.0, True, "8 days on 16 h100, 100 USD"),
        (10.0, False, "8 days on 16 h100, 100 USD, not proved"),
        (8.5, False, "8 days on 16 h100, 100 USD, not proved: in time, but likely up to 9 days, past the deadline"),
        (
            4.0,
            True,
            "8 days on 16 h100, 100 USD: 2 times the deadline, proved; at least about 32 devices are needed, at the same speed of each",
        ),
        (4.0, False, "8 days on 16 h100, 100 USD: 2 times the deadline, not proved; a better plan may exist"),
    ],
)
def test_the_first_line_says_what_is_not_proved_and_counts_no_devices_by_it(days: float, settled: bool, said: str) -> None:
    goal = SimpleNamespace(seconds=lambda step: step * 86400.0, money=lambda _: 100.0, wanted=days * 86400.0)
    evaluation = SimpleNamespace(step_time=8.0, likely=(7.0, 9.0))
    assert lead_text(goal, evaluation, 16, "h100", settled) == said  # type: ignore[arg-type]


def test_a_saved_result_says_its_deadline_and_whether_it_is_met(capsys: Captured, tmp_path: Path) -> None:
    """On the terminal's long answer, on the page, and above the settings that launch it; the deadline stays no limit of the result."""
    result = tmp_path / "run.json"
    assert main([*SMALL, "--tokens", "300B", "--deadline", "1d", "--out", str(result)]) == 20
    assert main(["check", str(result)]) == 0
    assert main(["report", str(result), "--out", str(tmp_path / "page.html")]) == 0
    assert "1 day: MISSED, the run takes" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert main(["export", str(result), "--as", "megatron"]) == 0
    assert "# THE DEADLINE of 1 day IS MISSED: the run takes" in capsys.readouterr().out


def test_a_plan_that_is_nearly_full_names_a_safer_one_that_the_model_cannot_tell_apart(capsys: Captured, tmp_path: Path) -> None:
    """Its memory, its time and the setting that asks for it agree with the answer under that setting; a plan with room names none."""
    saved = tmp_path / "run.yaml"
    assert main([*SMALL, "--save", str(saved)]) == 0
    full = rows_of(capsys.readouterr().out)
    assert "(98.8%): fits if 4 GiB of reserve is enough" in full["memory"]
    size, step, setting = re.fullmatch(r"(\S+) GiB, (\S+ s) \(\+1.2%\): `--set (\S+)`", full["safer"]).groups()  # type: ignore[union-attr]
    assert float(size) <= 0.8 * 79.1
    assert main(["solve", str(saved), "--set", setting]) == 0
    spared = rows_of(capsys.readouterr().out)
    assert spared["step time"].startswith(f"{step},")
    assert "safer" not in spared


def test_a_nearly_full_device_of_which_no_run_is_known_has_a_safer_plan_within_the_likely_range(capsys: Captured) -> None:
    """MI300X has no mean error on measured runs."""
    assert main(["plan", "llama3-8b", "--gpus", "8xmi300x"]) == 0
    rows = rows_of(capsys.readouterr().out)
    assert int(re.search(r"\(([0-9]+)%\)", rows["memory"]).group(1)) > 90  # type: ignore[union-attr]
    size, step, more = re.match(r"(\S+) GiB, (\S+) s \(\+(\S+)%\): `--set ", rows["safer"]).groups()  # type: ignore[union-attr]
    most = float(re.search(r"to ([0-9.]+) s", rows["step time"]).group(1))  # type: ignore[union-attr]
    assert float(size) <= 0.8 * 192
    assert float(step) <= most
    assert float(more) > 0.0


def rows_of(text: str) -> dict[str, str]:
    """The rows of a short answer by their labels, each on one line; of a label's rows the first."""
    found: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith("  ") and line[2:3].strip():
            label, _, rest = line.strip().partition("  ")
            found.append((label, rest.strip()))
        elif line.startswith("      ") and found:
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}")
    return dict(reversed(found))


def table_of(text: str) -> dict[str, dict[str, str]]:
    """The cells of the table of devices by their row and head, whether it stands beside or below each other."""
    found: dict[str, dict[str, str]] = {}
    lines = text.partition("Devices compared\n")[2].splitlines()
    while lines:
        heads = [lines.pop(0)]
        while lines and not re.match(r" +[0-9,]+ [a-z]", lines[0]):
            heads.append(lines.pop(0))
        rows = []
        while lines and re.match(r" +[0-9,]+ [a-z]", lines[0]):
            rows.append(lines.pop(0))
        if not rows:
            break
        block = [line.ljust(120) for line in (*heads, *rows)]
        blank = [all(line[place] == " " for line in block) for place in range(120)]
        starts = [place for place in range(1, 119) if not blank[place] and blank[place - 1] and (place < 2 or blank[place - 2])]
        for line in rows:
            cells = [line[start:end].strip() for start, end in zip(starts, [*starts[1:], 120], strict=True)]
            names = [
                " ".join(part for head in heads if (part := head[start:end].strip()))
                for start, end in zip(starts, [*starts[1:], 120], strict=True)
            ]
            found.setdefault(cells[0], {}).update(zip(names, cells, strict=True))
    return found


def test_a_saved_result_names_what_it_was_compared_with(capsys: Captured, tmp_path: Path) -> None:
    result, page = tmp_path / "run.json", tmp_path / "page.html"
    assert main(["plan", "gpt3-125m", "--gpus", "8xa100-80g,8xh100", "--tokens", "10B", "--rent", "2", "--out", str(result)]) == 0
    hours = 24.0 * float(table_of(capsys.readouterr().out)["8 a100-80g"]["days"])
    assert main(["check", str(result)]) == 0
    assert main(["report", str(result), "--out", str(page)]) == 0
    said = re.search(r"compared by `plan`: 8 a100-80g ([0-9.]+) hours, likely [0-9.]+ to [0-9.]+ hours, ", page.read_text(encoding="utf-8"))
    assert said is not None
    assert float(said[1]) == pytest.approx(hours, rel=1e-3)


def test_programs_get_what_was_compared_as_figures(capsys: Captured, tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    asked = ["plan", "gpt3-125m", "--gpus", "8xa100-80g,8xh100", "--tokens", "10B", "--rent", "2", "--deadline", "1h", "--batch", "3"]
    assert main([*asked, "--json", "--out", str(out)]) == 20
    told = json.loads(capsys.readouterr().out)
    best, other = told["compared"]
    assert (best["device"], other["device"], best["devices"]) == ("h100-sxm", "a100-80g", 8)
    assert best["step_seconds"] == told["result"]["value"] < other["step_seconds"]
    assert best["run_seconds"] == pytest.approx(best["step_seconds"] * -(-10e9 // (3 * 2048)))
    assert best["run_usd"] == pytest.approx(best["run_seconds"] / 3600.0 * 2.0 * 8)
    assert (best["deadline_seconds"], best["in_time"], best["proved"]) == (3600.0, False, True)
    assert told["caveats"][1].startswith("the batch of 3 samples is smaller than the 8 devices")
    assert told["result"]["answer"] == json.loads(out.read_text(encoding="utf-8"))["answer"]
    assert main(["list", "workloads", "--json"]) == 0
    assert {"gpt3-125m", "llama3-8b"} <= {row["name"] for row in json.loads(capsys.readouterr().out)}


def test_fewer_devices_are_compared_where_they_are_asked_for(capsys: Captured) -> None:
    asked = ["plan", "gpt3-125m", "--gpus", "16xa100-80g", "--tokens", "10B"]
    assert main([*asked, "--cheapest", "--rent", "1"]) == 0
    cheap = capsys.readouterr().out
    assert "Devices compared" in cheap
    costs = [int(row["USD"].replace(",", "")) for row in table_of(cheap).values()]
    assert len(costs) == 2
    assert f"{min(costs):,} USD" in cheap.splitlines()[0]


def test_the_fewest_devices_may_be_any_whole_nodes_and_what_was_tried_is_said(capsys: Captured) -> None:
    """64 devices are three times as fast as is needed, and 32 are not fast enough in proportion."""
    fast = crossopt.plan("gpt3-125m", "64xa100-80g", tokens="300B")
    days = fast.value * -(-300e9 // fast.details.evaluation.tokens) / 86400.0
    asked = ["plan", "gpt3-125m", "--gpus", "64xa100-80g", "--tokens", "300B", "--deadline", f"{days * 1.7:.6f} d"]
    assert main([*asked, "--fewest"]) == 0
    out = capsys.readouterr().out
    assert "on 40 a100-80g" in out.splitlines()[0]
    said = {int(devices.split()[0]): row["in time"] for devices, row in table_of(out).items()}
    met = {count: text in ("yes", "likely") for count, text in said.items()}
    sure = min(count for count, text in said.items() if text == "yes")
    assert (min(count for count, early in met.items() if early), said[40]) == (40, "likely") and 40 < sure < 64
    assert f"surely {sure} a100-80g: " in " ".join(out.split())
    assert main(["plan", "gpt3-125m", "--gpus", "2xa100-80g", "--tokens", "1B", "--fewest"]) == 0
    assert "deadline none is named (--deadline 60d)" in " ".join(capsys.readouterr().out.split())
    assert {32, 24, 16} <= met.keys()
    assert "another one below the answer may keep the deadline too" in " ".join(out.split())


@every("late", [1, 2, 3, 5, 8, 9, 40, 41, 63, 64])
def test_the_search_for_the_fewest_finds_the_first_in_time_of_a_falling_time(late: int) -> None:
    """Devices from `late` on are in time; among whole nodes of eight and divisors of eight, at most so many are solved."""
    counts = [1, 2, 4, *range(8, 513, 8)]
    tried = _tried(Group(512, "a100-80g"), "fewest", made_up(lambda count: 1.0 * late / count))
    assert min(one.group.count for one in tried if one.in_time) == min(count for count in counts if count >= late)
    assert len(tried) <= 14


def test_the_search_for_the_fewest_looks_below_a_number_that_shares_the_work_badly() -> None:
    tried = _tried(Group(512, "a100-80g"), "fewest", made_up(lambda count: 3.0 if count == 96 else 88.0 / count))
    assert min(one.group.count for one in tried if one.in_time) == 88


def test_the_search_for_the_fewest_looks_upwards_where_those_that_are_named_are_late() -> None:
    """At 2.5 times the deadline of 16 devices 32 would be late at the same speed, and are sought only as neighbours of 40."""
    tried = _tried(Group(16, "a100-80g"), "fewest", made_up(lambda count: 40.0 / count))
    assert min(one.group.count for one in tried if one.in_time) == 40
    assert max(one.group.count for one in tried) == 64
    never = [one.group.count for one in _tried(Group(16, "a100-80g"), "fewest", made_up(lambda _: 2.0))]
    assert never == [16 * 2**power for power in range(7, -1, -1)]


def test_the_search_for_the_cheapest_tries_halves_and_the_fewest_in_time() -> None:
    tried = _tried(Group(64, "a100-80g"), "cheapest", made_up(lambda count: 20.0 / count))
    assert {count: count in [one.group.count for one in tried] for count in (64, 32, 24, 16)} == dict.fromkeys((64, 32, 24, 16), True)
    late = _tried(Group(16, "a100-80g"), "cheapest", made_up(lambda count: 40.0 / count))
    assert min(one.group.count for one in late if one.in_time) == 40
    never = [one.group.count for one in _tried(Group(16, "a100-80g"), "cheapest", made_up(lambda _: 2.0))]
    assert never == [16 * 2**power for power in range(7, -1, -1)]


def test_more_devices_than_any_measured_run_has_are_named() -> None:
    for count, said in ((2048, []), (4096, ["4,096 devices: the largest measured run of megatron-core on h100-sxm has 2,048"])):
        run, group = Run("llama3-405b"), Group(count, "h100-sxm")
        question = read_given(question_text(run, group), "codesign")
        assert beyond_runs(Tried(run, group, question, SimpleNamespace(value=None, details=None))) == said  # type: ignore[arg-type]


def made_up(times: Callable[[int], float]) -> Callable[[Group], Tried]:
    """Devices whose run takes so many times its deadline."""
    question = read(INSTANCES / "tiny.yaml", ("goal={tokens: 64e9, deadline: 1 d}",))

    def solved(group: Group) -> Tried:
        one = Tried(Run("gpt3-125m"), group, question, SimpleNamespace(value=None, details=None))  # type: ignore[arg-type]
        step = times(group.count) * one.question.goal.deadline / one.question.goal.steps
        return replace(one, result=SimpleNamespace(value=step, details=None))  # type: ignore[arg-type]

    return solved


def test_with_a_batch_only_numbers_are_tried_that_may_share_it() -> None:
    """Of 1,024 samples 8 x 13 devices share 8: 13 is left, which divides neither the layers nor the heads of GPT-3 125M."""
    question = read(INSTANCES / "tiny.yaml")
    free, given = (
        _usable(Tried(Run("gpt3-125m", batch=batch), Group(256, "a100-80g"), question, None))  # type: ignore[arg-type]
        for batch in (None, 1024)
    )
    assert free == [1, 2, 4, *range(8, 257, 8)]
    assert set(free) - set(given) >= {8 * 5, 8 * 7, 8 * 11, 8 * 13}
    assert {1, 2, 4, 8, 24, 64, 96, 256} <= set(given)


def test_rents_are_said_for_all_devices_or_for_each_kind(capsys: Captured) -> None:
    asked = ["plan", "gpt3-125m", "--gpus", "8xa100-80g,8xh100", "--tokens", "10T"]
    costs = {}
    for rent in ((), ("--rent", "2"), ("--rent", "h100=3"), ("--rent", "a100-80g=1,h100=3")):
        assert main([*asked, *rent]) == 0
        costs[rent] = [int(row["USD"].replace(",", "")) for row in table_of(capsys.readouterr().out).values()]
    listed, same, one, both = costs.values()
    prices = [device(name).rent.price for name in ("a100-80g", "h100-sxm")]  # type: ignore[union-attr]
    for found, rents in ((same, (2.0, 2.0)), (one, (prices[0], 3.0)), (both, (1.0, 3.0))):
        assert found == pytest.approx([cost * rent / price for cost, rent, price in zip(listed, rents, prices, strict=True)], abs=1.0)
    python = crossopt.plan("gpt3-125m", "8xa100-80g", tokens="10B", rent={"a100-80g": 1.0})
    assert " USD at 1 USD/h" in str(python)


@pytest.mark.thorough
def test_where_nothing_fits_the_limit_is_named(capsys: Captured) -> None:
    assert main(["plan", "llama3-405b", "--gpus", "1xa100-80g"]) == 20
    out = " ".join(capsys.readouterr().out.split())
    assert "no plan fits on 1 a100-80g, proved" in out
    assert "memory: every plan needs at least" in out
    assert "fits on 128 a100-80g, " in out
    assert "--gpus 128xa100-80g, or another precision or stack" in out


def test_more_devices_are_sought_where_the_fewest_are_asked_for_and_the_named_ones_are_late(capsys: Captured) -> None:
    assert main([*SMALL, "--tokens", "300B", "--deadline", "1d", "--fewest"]) == 0
    out = capsys.readouterr().out
    assert "on 32 a100-80g" in out.splitlines()[0]
    assert "Each number has its own batch" in out


@every(
    ("arguments", "caveats"),
    [
        (["--batch", "3"], ["a step has 6,144 tokens: runs of large models have about"]),
        (["--batch", "128M"], ["a step has 134,217,728 tokens"]),
        (["--context", "16k", "--batch", "1M"], ["the context of 16,384 tokens is 8 times the 2,048 of the model's pre-training"]),
        ([], []),
    ],
)
def test_an_unusual_batch_or_context_is_a_caveat(arguments: list[str], caveats: list[str], capsys: Captured) -> None:
    main([*SMALL, *arguments])
    out = " ".join(capsys.readouterr().out.split())
    assert all(f"caveat {caveat}" in out for caveat in caveats)
    assert ("a step has" in out, "pre-training" in out) == tuple(
        any(word in caveat for caveat in caveats) for word in ("a step has", "pre-training")
    )


@every(
    ("arguments", "message"),
    [
        (["--deadline", "9d"], "--deadline: the length of the run is needed with it"),
        (["--tokens", "1T", "--deadline", "30"], "--deadline: 30 has no unit (write 30d for days)"),
        (["--tokens", "many"], "--tokens: 'many' is no count"),
        (["--cheapest"], "--cheapest: the length of the run is needed with it"),
        (["--tokens", "1T", "--cheapest", "--gpus", "8xtrainium2"], "--cheapest: no list price of trainium2 is known (say for example"),
        (["--tokens", "1T", "--rent", "b200=2"], "--rent: b200 is not among the devices of --gpus (a100-80g)"),
        (["--tokens", "1T", "--rent", "x9=2"], "--rent: 'x9' is no device that is known"),
        (["--tokens", "1T", "--rent", "a100-80g=much"], "--rent: 'much"),
        (["--tokens", "1T", "--deadline", "soon"], "--deadline: 'soon'"),
        (
            ["--tokens", "1T", "--deadline", "3 months"],
            "--deadline: '3 months' is no time with a unit that is known here (write it in days",
        ),
        (["--tokens", "1T", "--deadline", "2 Weeks"], "(write it in days: '14 d')"),
        (["--tokens", "1T", "--rent", "cheap"], "--rent: 'cheap"),
        (["--context", "0"], "--context: '0' is no count (write for example 8k)"),
        (["--batch", "x"], "--batch: 'x' is no count"),
        (["--precision", "fp3"], "crossopt: --precision: 'fp3' is unknown (did you mean 'fp32'?)"),
        (["--stack", "nemo"], "crossopt: --stack: 'nemo' is unknown"),
    ],
)
def test_what_is_wrong_is_said_with_its_option(arguments: list[str], message: str, capsys: Captured) -> None:
    code = exit_code([*SMALL, *arguments])
    assert code in {2, 3}
    assert message in capsys.readouterr().err


def test_python_gives_the_plan_with_its_verdict() -> None:
    answer = crossopt.plan("gpt3-125m", "8xa100-80g", tokens=10e9, batch=64)
    assert (answer.proved, answer.answer.design.plan.data) == (True, 8)
    assert str(answer).startswith("gpt3-125m-8xa100-80g   ")
    assert str(answer).count("\n") < 26
    with pytest.raises(ValueError, match=r"^tokens: 'some' is no count"):
        crossopt.plan("gpt3-125m", "8xa100-80g", tokens="some")


def test_a_data_frame_needs_a_package_that_makes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = crossopt.solve("tiny")
    seen = {}
    monkeypatch.setattr("crossopt.reports.results.find_spec", lambda name: name == "polars" or None)
    monkeypatch.setattr(
        "crossopt.reports.results.import_module", lambda name: SimpleNamespace(DataFrame=lambda rows: seen.setdefault(name, rows))
    )
    assert answer.to_frame() == answer.table()
    assert list(seen) == ["polars"]
    monkeypatch.setattr("crossopt.reports.results.find_spec", lambda name: None)
    with pytest.raises(RefusedError, match="needs pandas or polars"):
        answer.to_frame()


def test_only_whole_nodes_are_tried_and_a_likely_delay_is_said(capsys: Captured) -> None:
    """24 devices are three nodes: half of them would be one and a half."""
    asked = ["plan", "gpt3-125m", "--gpus", "24xa100-80g", "--batch", "48", "--tokens", "1B"]
    assert main([*asked, "--cheapest"]) == 0
    assert "on 24 a100-80g" in capsys.readouterr().out.splitlines()[0]
    assert main([*asked, "--deadline", "9d", "--fewest"]) == 0
    assert "on 1 a100-80g" in capsys.readouterr().out.splitlines()[0]
    answer = crossopt.plan("gpt3-125m", "8xa100-80g", tokens="10B")
    days = answer.value * -(-10e9 // (2048 * 2048)) / 86400.0
    assert main([*SMALL, "--tokens", "10B", "--deadline", f"{days * 1.001:.9f} d"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert re.search(r" deadline [0-9.]+ hours: met, may be missed, [0-9.]+ (minutes|s) to spare; likely up to [0-9.]+ hours", out)
    assert re.search(r" in time, but likely up to [0-9.]+ hours, past the deadline plan ", out)
    assert main([*SMALL, "--tokens", "10B", "--deadline", f"{days * 0.999:.9f} d"]) == 20
    assert re.search(
        r" MISSED, the run takes 1 times as long; may be met: likely from [0-9.]+ hours", " ".join(capsys.readouterr().out.split())
    )


def test_devices_that_the_model_cannot_tell_apart_tie_and_show_their_likely_ranges(capsys: Captured) -> None:
    """At rents that make both runs cost the same they tie in money; at ten times the rent of one of them they do not."""
    asked = ["plan", "gpt3-125m", "--gpus", "8xa100-80g,8xmi300x", "--tokens", "300B", "--cheapest", "--json"]
    assert main([*asked, "--rent", "1"]) == 0
    usd = {row["device"]: row["run_usd"] for row in json.loads(capsys.readouterr().out)["compared"] if row["devices"] == 8}
    even = usd["a100-80g"] / usd["mi300x"]
    for times, tied in ((1.05, True), (10.0, False)):
        rent = ["--rent", f"a100-80g=1,mi300x={even * times:.6f}", "--deadline", "300d"]
        assert main([*asked[:-1], *rent]) == 0
        out = capsys.readouterr().out
        assert ("8 mi300x" in rows_of(out).get("ties", "")) is tied
        row = table_of(out)["8 mi300x"]
        low, middle, high = (float(row[head].replace(",", "")) for head in ("USD from", "USD", "USD to"))
        assert low < middle < high
        assert float(row["days from"]) < float(row["days"]) < float(row["days to"])
        assert row["constants"] == "guessed"
    assert main([*asked, "--rent", "1", "--deadline", "300d"]) == 0
    best = json.loads(capsys.readouterr().out)["compared"][0]
    low, high = best["run_usd_likely"]
    assert low < best["run_usd"] < high
    assert (best["punctual"], best["constants"]) == ("yes", "measured" if best["device"] == "a100-80g" else "guessed")


def test_a_deadline_inside_the_likely_range_is_likely_or_unlikely_to_be_kept() -> None:
    question = read(INSTANCES / "tiny.yaml", ("goal={tokens: 64e9, deadline: 1 d}",))
    goal = question.goal
    for low, step, high, said in ((0.8, 0.9, 0.95, "yes"), (0.8, 0.9, 1.1, "likely"), (0.9, 1.1, 1.2, "unlikely"), (1.05, 1.1, 1.2, "no")):
        scale = goal.deadline / goal.steps
        evaluation = SimpleNamespace(likely=(low * scale, high * scale))
        result = SimpleNamespace(value=step * scale, details=SimpleNamespace(evaluation=evaluation))
        assert Tried(Run("gpt3-125m"), Group(8, "a100-80g"), question, result).punctual == said  # type: ignore[arg-type]


def test_the_next_command_leads_somewhere_where_the_deadline_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*SMALL, "--tokens", "300B", "--deadline", "1d", "--save", "run.yaml"]) == 20
    [command] = re.findall(r"`crossopt (solve run.yaml .*?)`", " ".join(capsys.readouterr().out.split()))
    assert main(command.split()) == 0
    assert main(["export", "run.json", "--as", "megatron"]) == 0


def test_so_few_tokens_that_a_letter_is_missing_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([*SMALL, "--tokens", "15"])
    assert "15 is less than a step trains on (write for example 15B or 15T)" in capsys.readouterr().err
