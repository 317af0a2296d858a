"""figures.py - the page of figures over time: of every results file of tests/results what its earlier versions said, as git has them."""
import json
import statistics
import subprocess

WORDS = {"en": ("date", "commit", "cases", "median of limit", "ahead", "level", "behind"),
         "zh": ("日期", "提交", "案例数", "极限的中位数", "领先", "持平", "落后")}


def versions(root, path):
    """(date, contents) of each committed version of a file, newest first; only today's where git has none."""
    try:
        log = subprocess.run(["git", "-C", root, "log", "--format=%H", "--", path], capture_output=True, text=True).stdout.split()
        texts = [subprocess.run(["git", "-C", root, "show", f"{commit}:{path}"], capture_output=True, text=True) for commit in log]
        found = [json.loads(text.stdout) for text in texts if text.returncode == 0 and text.stdout.strip()]
    except (OSError, ValueError):
        found = []
    return found or [json.loads((root / path).read_text())]


def row(data, one_limit):
    """What a version says: its date, commit, cases, median and verdicts; None where it has no row of lockstep's."""
    one_limit([r for r in data["benchmarks"] if "limit" in r and "gb_s" in r])
    ours = [r for r in data["benchmarks"] if r["source"] == "lockstep" and r.get("fraction")]
    if not ours:
        return None
    verdicts = [r["verdict"] for r in ours if "verdict" in r]
    meta = data["meta"]
    return [meta["date"][:10], f"`{meta['commit'][:12]}`", str(len(ours)), f"{statistics.median(r['fraction'] for r in ours):.2f}",
            *(str(verdicts.count(word)) if verdicts else "" for word in ("ahead", "level", "behind"))]


def table(root, language, performance):
    """Markdown: a section for each machine, its runs from the newest on."""
    out = []
    paths = [p for p in sorted((root / "tests/results").glob("readme-*.json")) if not p.stem.endswith("-cold")]
    for path in paths:
        rows, seen = [], set()
        for data in versions(root, str(path.relative_to(root))):
            made = row(data, performance.under_one_limit)
            if made and made[1] not in seen:
                seen.add(made[1])
                rows.append(made)
        device = json.loads(path.read_text())["meta"]["devices"]
        out += [f"## {', '.join(d['name'] for d in device.values())} (`{path.name}`)", "", "| " + " | ".join(WORDS[language]) + " |",
                "|---|---|--:|--:|--:|--:|--:|", *("| " + " | ".join(r) + " |" for r in rows), ""]
    return "\n".join(out)
