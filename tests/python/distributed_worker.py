"""What test_distributed.py runs: lockstep.distributed between processes by gloo, beside one call on all ranks' tensors. Arguments: numbers of ranks.
Prints "passed" after each."""
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import lockstep as ls
import lockstep.distributed as ld

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64)
WIDE = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}


def tensor_of(rank, shape, dtype, seed=0):
    """The tensor of a rank: any process can make it."""
    g = torch.Generator().manual_seed(1000 * seed + rank)
    if dtype.is_complex:
        return torch.randn(shape, dtype=dtype, generator=g)
    if dtype.is_floating_point:  # magnitudes that another order would round otherwise
        x = torch.randn(shape, dtype=torch.float64, generator=g) * torch.pow(10.0, torch.randint(-3, 4, shape, generator=g).double())
        return x.to(dtype)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=g).bool()
    info = torch.iinfo(WIDE.get(dtype, dtype))
    return torch.randint(info.min, info.max, shape, dtype=torch.int64, generator=g).to(WIDE.get(dtype, dtype)).view(dtype)


def want_of(op, xs):
    """The definition, in one process."""
    x = torch.stack(xs)
    if x.dtype.is_complex:
        return torch.view_as_complex(want_of(op, list(torch.view_as_real(x))))
    if op in ("max", "min"):
        return getattr(ls, op)(x, axis=0)
    if x.dtype.is_floating_point:
        return getattr(ls, op)(x, axis=0, dtype=x.dtype)
    signed = WIDE.get(x.dtype, x.dtype)
    total = x[0].view(signed).clone()
    for row in x[1:]:
        total = total + row.view(signed) if op == "sum" else total * row.view(signed)
    return total.view(x.dtype)


def same(got, want, *what):
    assert got.dtype == want.dtype and got.shape == want.shape, (what, got.dtype, want.dtype, got.shape, want.shape)
    a, b = (t.contiguous().view(-1).view(torch.uint8) if t.numel() else t for t in (got, want))
    assert torch.equal(a, b), (what, got, want)


def fails(call, error, text):
    try:
        call()
    except error as e:
        assert text in str(e), str(e)
    else:
        raise AssertionError(f"no {error.__name__}: {text}")


def every_type(rank, p, shapes):
    for shape in shapes:
        for ops, dtypes in ((("sum", "mean", "max", "min", "prod"), FLOATS), (("sum", "max", "min", "prod"), INTEGERS), (("max", "min"), (torch.bool,)),
                            (("sum", "mean"), (torch.complex64, torch.complex128))):
            for op in ops:
                for dtype in dtypes:
                    xs = [tensor_of(k, shape, dtype) for k in range(p)]
                    x = xs[rank].clone()
                    assert ld.all_reduce(x, op) is None
                    same(x, want_of(op, xs), op, dtype, shape)


def special(rank, p):
    """Zeros, infinities and what is no number, as lockstep.sum has them."""
    table = torch.tensor([[-0.0, 0.0, float("inf"), float("nan"), 1e-45, 3e38, -0.0], [-0.0, -0.0, float("-inf"), 1.0, -1e-45, 3e38, 0.0]])
    xs = [table[k % 2].repeat(5) for k in range(p)]
    for op in ("sum", "mean", "max", "min", "prod"):
        x = xs[rank].clone()
        ld.all_reduce(x, op)
        same(x, want_of(op, xs), op, "special")


def scattered(rank, p):
    for dtype in (*FLOATS, torch.int32, torch.complex64):
        for m in (0, 1, 33, 1000):
            xs = [tensor_of(k, (p * m,), dtype) for k in range(p)]
            want = want_of("sum", xs)[rank * m:(rank + 1) * m]
            out = torch.empty(m, dtype=dtype)
            ld.reduce_scatter_tensor(out, xs[rank], dist.ReduceOp.SUM)
            same(out, want, dtype, m)
            out = torch.empty(m, dtype=dtype)
            ld.reduce_scatter_tensor(out, xs[rank], async_op=True).wait()
            same(out, want, dtype, m, "async")
        lengths = [(7 * k + 3) % 11 * (k != 1) for k in range(p)]  # one of none
        lists = [[tensor_of(k, (n, 3), dtype, j) for j, n in enumerate(lengths)] for k in range(p)]
        for op in ("sum", "max") if not dtype.is_complex else ("mean",):
            out = torch.empty(lengths[rank], 3, dtype=dtype)
            ld.reduce_scatter(out, lists[rank], op)
            same(out, want_of(op, [lists[k][rank] for k in range(p)]), dtype, op, "uneven")


def layouts_and_groups(rank, p):
    xs = [tensor_of(k, (6, 10, 4), torch.float32) for k in range(p)]
    x = xs[rank].transpose(0, 2).clone(memory_format=torch.contiguous_format).transpose(0, 2)
    assert not x.is_contiguous()
    ld.all_reduce(x)
    same(x, want_of("sum", xs), "strides")
    leaf = xs[rank].clone().requires_grad_()
    ld.all_reduce(leaf, dist.ReduceOp.AVG)
    same(leaf.detach(), want_of("mean", xs), "a leaf")
    if p > 2:  # groups, one whose order is not that of the ranks; calls of both go on at once
        members = [p - 1, 0]
        group = dist.new_group(members)
        if rank in members:
            order = dist.get_process_group_ranks(group)
            y = xs[rank].clone()
            first = ld.all_reduce(y, group=group, async_op=True)
            first.wait()
            same(y, want_of("sum", [xs[k] for k in order]), "group")
        else:
            fails(lambda: ld.all_reduce(x, group=group), ls.InvalidArgument, "not in group")


def asynchronous(rank, p):
    """Several calls at once, torch's own collectives in between, waits in another order."""
    many = [[tensor_of(k, (n,), torch.float32, n) for k in range(p)] for n in (10, 5000, 70000, 3)]
    mine = [xs[rank].clone() for xs in many]
    works = [ld.all_reduce(x, async_op=True) for x in mine]
    count = torch.ones(1)
    dist.all_reduce(count)
    assert count.item() == p
    for k in (3, 1, 0, 2):
        assert works[k].wait() is True and works[k].is_completed()
        same(mine[k], want_of("sum", many[k]), "async", k)
    x = many[1][rank].clone()
    same(ld.all_reduce(x, async_op=True).get_future().wait(), want_of("sum", many[1]), "future")


def trained(rank, p):
    """Gradients of DistributedDataParallel, in buckets of two sizes."""
    def gradients(megabytes):
        torch.manual_seed(3)
        model = torch.nn.Sequential(torch.nn.Linear(40, 300), torch.nn.Tanh(), torch.nn.Linear(300, 7))
        twin = [torch.nn.Sequential(torch.nn.Linear(40, 300), torch.nn.Tanh(), torch.nn.Linear(300, 7)) for _ in range(p)]
        for one in twin:
            one.load_state_dict(model.state_dict())
        parallel = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=megabytes)
        parallel.register_comm_hook(None, ld.ddp_hook)
        for step in range(2):  # buckets are made anew after the first
            parallel.zero_grad()
            parallel(tensor_of(rank, (16, 40), torch.float32, step)).square().sum().backward()
        for k, one in enumerate(twin):
            one(tensor_of(k, (16, 40), torch.float32, 1)).square().sum().backward()
        for k, g in enumerate(model.parameters()):
            same(g.grad, want_of("mean", [list(one.parameters())[k].grad for one in twin]), "ddp", megabytes, k)
    gradients(25)
    gradients(0.001)


def distributed_tensors(rank, p):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
    mesh = init_device_mesh("cpu", (p,))
    for shape in ((7, 5), (p, 3), (1, 9)):
        xs = [tensor_of(k, shape, torch.float32) for k in range(p)]
        for theirs, op in (("sum", "sum"), ("avg", "mean"), ("max", "max")):
            want, x = want_of(op, xs), DTensor.from_local(xs[rank].clone(), mesh, [Partial(theirs)])
            for placement in (Replicate(), Shard(0), Shard(1), Shard(-1)):
                got = ld.redistribute(x, [placement])
                assert got.shape == x.shape and got.placements[0].is_replicate() == placement.is_replicate()
                plain = DTensor.from_local(xs[rank].clone(), mesh, [Partial(theirs)]).redistribute(placements=got.placements)
                assert got.to_local().shape == plain.to_local().shape, placement
                same(got.full_tensor(), want, theirs, placement, shape)
            same(x.to_local(), xs[rank], "x keeps its values")
    x = DTensor.from_local(xs[rank], mesh, [Shard(0)], run_check=False)
    fails(lambda: ld.redistribute(x, [Replicate()]), ls.InvalidArgument, "placements[0] is Replicate()")
    fails(lambda: ld.redistribute(x, []), ls.InvalidArgument, "placements has 0 entries")
    fails(lambda: ld.redistribute(xs[0], [Replicate()]), ls.InvalidArgument, "give a DTensor")
    fails(lambda: ld.all_reduce(x), ls.InvalidArgument, "call redistribute")
    if p == 2:
        both = init_device_mesh("cpu", (2, 1))
        x = DTensor.from_local(xs[rank].clone(), both, [Partial(), Partial()])
        same(ld.redistribute(x, [Shard(0), Replicate()]).full_tensor(), want_of("sum", xs), "two axes")
        x = DTensor.from_local(xs[rank].clone(), both, [Partial(), Shard(0)], run_check=False)
        fails(lambda: ld.redistribute(x, [Shard(0), Shard(0)]), ls.Unsupported, "after it")


def errors(rank, p):
    x = torch.ones(3)
    fails(lambda: ld.all_reduce(x, "average"), ls.InvalidArgument, "op is 'average'; give sum, mean")
    fails(lambda: ld.all_reduce(x, dist.ReduceOp.BAND), ls.InvalidArgument, "give sum, mean")
    fails(lambda: ld.all_reduce([1.0]), ls.InvalidArgument, "tensor is a builtins.list")
    fails(lambda: ld.all_reduce(torch.ones(3, dtype=torch.int32), "mean"), ls.UnsupportedDtype, "mean takes float16")
    fails(lambda: ld.all_reduce(torch.ones(3, dtype=torch.complex64), "max"), ls.UnsupportedDtype, "holds torch.complex64")
    fails(lambda: ld.all_reduce(torch.eye(3).to_sparse()), ls.Unsupported, "to_dense")
    fails(lambda: ld.all_reduce(torch.ones(3, device="meta")), ls.Unsupported, "is on meta")
    fails(lambda: ld.reduce_scatter_tensor(x, torch.ones(3 * p + 1)), ls.InvalidArgument, f"input has {3 * p + 1} elements and output 3")
    fails(lambda: ld.reduce_scatter_tensor(x, torch.ones(3 * p, dtype=torch.float64)), ls.InvalidArgument, "input holds torch.float64")
    fails(lambda: ld.reduce_scatter_tensor(torch.ones(4, 2)[:, 0], torch.ones(4 * p)), ls.InvalidArgument, "output has the strides (2,)")
    fails(lambda: ld.reduce_scatter(x, [x] * (p + 1)), ls.InvalidArgument, f"input_list has {p + 1} tensors")
    fails(lambda: ld.reduce_scatter(x, [torch.ones(2)] * p), ls.InvalidArgument, f"input_list[{rank}] has 2 elements")


def work(rank, p, meeting):
    torch.set_num_threads(1)
    fails(lambda: ld.all_reduce(torch.ones(3)), ls.InvalidArgument, "init_process_group")
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=p)
    every_type(rank, p, ((0,), (3, 5), (2077,)))
    special(rank, p)
    scattered(rank, p)
    layouts_and_groups(rank, p)
    asynchronous(rank, p)
    # The same by shares, in one piece and in several: the way must change no bit.
    for pieces in (1 << 24, 4096):
        ld._MORE["cpu"], ld._PIECE["cpu"] = -1, pieces
        every_type(rank, p, ((3, 5), (p * 128,), (9001,)))
        special(rank, p)
        scattered(rank, p)
        layouts_and_groups(rank, p)
        asynchronous(rank, p)
    trained(rank, p)
    distributed_tensors(rank, p)
    errors(rank, p)
    dist.barrier()
    dist.destroy_process_group()
    dist.init_process_group("gloo", init_method=f"file://{meeting}-again", rank=rank, world_size=p)
    asynchronous(rank, p)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    for ranks in map(int, sys.argv[1:]):
        with tempfile.TemporaryDirectory() as folder:
            mp.start_processes(work, (ranks, os.path.join(folder, "meeting")), ranks, start_method="fork")
        print(f"{ranks} passed", flush=True)
