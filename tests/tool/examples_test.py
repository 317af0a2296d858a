#!/usr/bin/env python3
"""examples_test.py LOCKSTEP LOCKSTEP.1 RESULTS - every line of the man page's examples runs, one after the other, in a
folder that has what they name: a photo, results of two machines, a folder of peers. What measures is kept short."""
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import numpy as np

tool, page, results = (os.path.abspath(path) for path in sys.argv[1:])
with open(page) as f:
    block = re.search(r"\.SH EXAMPLES\n\.nf\n(.*?)\.fi", f.read(), re.S)[1]
lines = [shlex.split(line.replace("\\-", "-")) for line in block.splitlines()]
short = {"--preset": ["--filter", "^(square_sum|stencil).*/(1024|65536)$", "--seconds", "0.001"], "--sample": ["--first", "39", "--seconds", "0.001"]}
environment = {k: v for k, v in os.environ.items() if not k.startswith("LOCKSTEP_") or k in ("LOCKSTEP_BACKEND_PATH", "LOCKSTEP_MUTANT")}
failed = []
with tempfile.TemporaryDirectory() as folder:
    pixels = np.random.default_rng(3).integers(0, 256, (48, 64, 3)).astype("u1")
    np.save(os.path.join(folder, "pixels.npy"), pixels)
    subprocess.run([tool, "export", "pixels.npy", "-o", "photo.png"], cwd=folder, check=True)
    for name, source in (("cpu.json", "readme-cascadelake-2-threads.json"), ("gpu.json", "readme-h200.json")):
        shutil.copy(os.path.join(results, source), os.path.join(folder, name))
    # A peer that has nothing to say about any case.
    peers = os.path.join(folder, "build/tools/peers")
    os.makedirs(peers)
    with open(os.path.join(peers, "peer_away"), "w") as f:
        f.write("#!/bin/sh\n")
    os.chmod(f.name, 0o755)
    for words in lines:
        assert words[0] == "lockstep", words
        more = next((short[word] for word in words if word in short), [])
        r = subprocess.run([tool, *words[1:], *more], cwd=folder, capture_output=True, text=True, timeout=240, env=environment)
        if r.returncode != 0:
            failed.append(f"{shlex.join(words + more)}: {r.returncode}, {r.stderr.strip()}")
            continue
        for option in ("-o", "--json", "--html"):
            if option in words and not os.path.getsize(os.path.join(folder, words[words.index(option) + 1])):
                failed.append(f"{shlex.join(words)}: {option} left nothing")
print("\n".join(failed + [f"{len(lines)} examples, {len(failed)} of them failed"]))
sys.exit(1 if failed or len(lines) < 6 else 0)
