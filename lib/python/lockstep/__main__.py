"""python -m lockstep: what there is on this machine, and whether it computes what it should."""
import lockstep


def main() -> None:
    print(f"lockstep {lockstep.__version__}, order {lockstep.order}, {lockstep.get_library()}")
    for backend in lockstep.backends():
        print(f"{backend.name}: {backend.description if backend.usable else backend.reason}")
    for device in lockstep.devices():
        print(f"{device.backend}:{device.device} {device.name}, {device.detail}")
        digest = lockstep.verify(f"{device.backend}:{device.device}" if device.backend != "cpu" else "cpu")
        print(f"  {digest.line}: {'as everywhere' if digest else 'NOT the expected ' + digest.expected}")


if __name__ == "__main__":
    main()
