"""A small transformer is trained by steps that have the same bits on CPU and GPU, for any number of threads.

Everything but the gated unit is PyTorch's own; lockstep.torch.deterministic() computes it: embedding, RMS norm, attention
with a mask, cross-entropy, clipping and AdamW, forward and backward. Products of matrices cost the most (matmul=True).
Leaves with 77 where there is no PyTorch.
"""
import importlib.util
import sys
import warnings

if importlib.util.find_spec("torch") is None:
    print("SKIP: no PyTorch")
    sys.exit(77)
warnings.simplefilter("ignore")  # PyTorch's own
import torch
import torch.nn.functional as F

import lockstep as ls
import lockstep.torch as lt

TEXT = "the same bits on every machine, for every number of threads, and for each row of a batch alone. " * 8
LETTERS = sorted(set(TEXT))
WIDTH, HEADS, LENGTH = 32, 4, 24


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = torch.nn.RMSNorm(WIDTH), torch.nn.RMSNorm(WIDTH)
        self.three, self.out = torch.nn.Linear(WIDTH, 3 * WIDTH, bias=False), torch.nn.Linear(WIDTH, WIDTH)
        self.gate, self.up, self.down = torch.nn.Linear(WIDTH, 64), torch.nn.Linear(WIDTH, 64), torch.nn.Linear(64, WIDTH)

    def forward(self, x):
        heads = self.three(self.before(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).flatten(-2))
        h = self.between(x)
        return x + self.down(lt.silu(self.gate(h), times=self.up(h)))  # rounded once


class Transformer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.letters, self.places = torch.nn.Embedding(len(LETTERS), WIDTH), torch.nn.Embedding(LENGTH, WIDTH)
        self.blocks = torch.nn.Sequential(Block(), Block())
        self.last, self.head = torch.nn.RMSNorm(WIDTH), torch.nn.Linear(WIDTH, len(LETTERS), bias=False)

    def forward(self, x):
        return self.head(self.last(self.blocks(self.letters(x) + self.places(torch.arange(x.shape[1], device=x.device)))))


def model_and_text(device="cpu"):
    """The model starts with whole numbers divided by 4,096: PyTorch's random floats differ from one CPU to another."""
    model, whole = Transformer(), torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.ndim == 2:
                p.copy_(torch.randint(-1000, 1001, p.shape, generator=whole) / 4096)
            elif name.endswith("bias"):
                p.zero_()
    model = model.to(device)
    letters = torch.tensor([LETTERS.index(c) for c in TEXT])
    return model, letters[:len(letters) // (LENGTH + 1) * (LENGTH + 1)].reshape(-1, LENGTH + 1).to(device)


def train(device="cpu", steps=3):
    """The losses, and the parameters afterwards."""
    model, text = model_and_text(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=False)
    losses = []
    with lt.deterministic(matmul=True):
        for _ in range(steps):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            losses.append(loss.item())
    return losses, [p.detach() for p in model.parameters()]


if __name__ == "__main__":
    usable = torch.cuda.is_available() and any(b.name == "cuda" and b.usable for b in ls.backends())
    for device in ("cpu", "cuda") if usable else ("cpu",):
        for threads in (1, 2):
            ls.set_num_threads(threads)
            torch.set_num_threads(threads)
            losses, parameters = train(device)
            print(device, threads, *(loss.hex() for loss in losses), ls.digest(torch.cat([p.flatten() for p in parameters]).cpu()))
