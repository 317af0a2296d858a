"""What lockstep.ranks asks of mpi4py, between threads of this process: for tests where no MPI is."""
import ctypes
import sys
import threading
import types

ERR_TRUNCATE = 15


class Exception_(Exception):
    def __init__(self, kind):
        super().__init__(f"error {kind}")
        self.kind = kind

    def Get_error_class(self):
        return self.kind


class Status:
    bytes = 0

    def Get_count(self, _):
        return self.bytes


class World:
    """What the threads share: for each pair, the messages on their way and the requests that wait for them, both in order."""

    def __init__(self, size):
        self.size, self.lock, self.barrier, self.told = size, threading.Lock(), threading.Barrier(size), [None] * size
        self.made, self.next = [0] * size, []  # duplicates: how many by each thread
        self.messages = {(a, b): [] for a in range(size) for b in range(size)}
        self.wanted = {pair: [] for pair in self.messages}


class Request:
    def __init__(self, world=None, pair=None, memory=None, room=0):
        self.world, self.pair, self.memory, self.room, self.got = world, pair, memory, room, None
        if world:
            with world.lock:
                world.wanted[pair].append(self)

    def Test(self, status=None):
        if self.world:
            with self.world.lock:
                messages, wanted = self.world.messages[self.pair], self.world.wanted[self.pair]
                while messages and wanted:
                    wanted.pop(0).got = messages.pop(0)
            if self.got is None:
                return False
            if len(self.got) > self.room:
                raise Exception_(ERR_TRUNCATE)
            self.memory[:len(self.got)] = self.got
            status.bytes = len(self.got)
        return True


class All:
    """Done when every thread has made that many duplicates."""

    def __init__(self, world, number):
        self.world, self.number = world, number

    def Test(self):
        with self.world.lock:
            return min(self.world.made) > self.number


class Comm:
    def __init__(self, world, rank):
        self.world, self.rank = world, rank

    def Get_size(self):
        return self.world.size

    def Get_rank(self):
        return self.rank

    def Idup(self):
        """Of a world of its own, so that two communicators share no messages; it is there when all have come."""
        with self.world.lock:
            number = self.world.made[self.rank]
            self.world.made[self.rank] += 1
            while len(self.world.next) <= number:
                self.world.next.append(World(self.world.size))
        return Comm(self.world.next[number], self.rank), All(self.world, number)

    def Set_errhandler(self, _):
        pass

    def Isend(self, message, peer, _):
        memory, size, _ = message
        with self.world.lock:
            self.world.messages[self.rank, peer].append(bytes(memory[:size]))
        return Request()

    def Irecv(self, message, peer, _):
        return Request(self.world, (peer, self.rank), *message[:2])

    def Iprobe(self, peer, _, status):
        with self.world.lock:
            messages = self.world.messages[peer, self.rank]
            status.bytes = len(messages[0]) if messages else 0
            return bool(messages)

    def allgather(self, text):
        self.world.told[self.rank] = text
        self.world.barrier.wait()
        told = list(self.world.told)
        self.world.barrier.wait()
        return told

    def Free(self):
        pass


def memory_at(address, size):
    return memoryview((ctypes.c_char * size).from_address(address)).cast("B") if size else memoryview(bytearray())


MPI = types.SimpleNamespace(Intracomm=Comm, Query_thread=lambda: 3, THREAD_SERIALIZED=2, Is_thread_main=lambda: True, ERRORS_RETURN=None, BYTE=None, ERR_TRUNCATE=ERR_TRUNCATE, Exception=Exception_, Status=Status,
                            buffer=types.SimpleNamespace(fromaddress=memory_at), Get_library_version=lambda: "threads", Is_finalized=lambda: False)


def on_ranks(size, work):
    """work(communicator) by a thread for each rank; raises what the first that failed raised. Stands in for mpi4py meanwhile."""
    module, before = types.ModuleType("mpi4py"), sys.modules.get("mpi4py")
    module.MPI = MPI
    sys.modules["mpi4py"] = module
    world, failures = World(size), []

    def run(rank):
        try:
            work(Comm(world, rank))
        except BaseException as e:
            failures.append(e)
            world.barrier.abort()

    try:
        threads = [threading.Thread(target=run, args=(k,)) for k in range(size)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        if before is None:
            del sys.modules["mpi4py"]
        else:
            sys.modules["mpi4py"] = before
    if failures:
        raise failures[0]
