"""python -m lockstep: what there is on this machine, and whether it computes what it should."""
import os
import sys

import lockstep


def main() -> None:
    print(f"lockstep {lockstep.__version__}, order {lockstep.order}, {lockstep.get_library()}")
    for backend in lockstep.backends():
        print(f"{backend.name}: {backend.description if backend.usable else backend.reason}")
    for device in lockstep.devices():
        print(f"{device.backend}:{device.device} {device.name}, {device.detail}")
        digest = lockstep.verify(f"{device.backend}:{device.device}" if device.backend != "cpu" else "cpu")
        print(f"  {digest.line}: {'as everywhere' if digest else 'NOT the expected ' + digest.expected}")


def program() -> None:
    """The program `lockstep` of a wheel that has it; otherwise what `python -m lockstep` says."""
    tool = os.path.join(os.path.dirname(__file__), "bin", "lockstep")
    if os.path.exists(tool):
        os.execv(tool, ["lockstep", *sys.argv[1:]])
    if len(sys.argv) > 1:
        sys.exit("lockstep: this package was built without the program; build it with Meson, or use the functions of the package in Python")
    main()


if __name__ == "__main__":
    main()
