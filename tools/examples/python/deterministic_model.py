"""One line makes a model give each text the same bits whatever else is in its batch, as a server needs it; PyTorch alone does not.

The switch is lockstep.torch.deterministic(...).patch(model), for any model of PyTorch's; calls stay as they are. Greedy text of
a small transformer, one letter at a time, alone and in batches. Leaves with 77 where there is no PyTorch.
"""
import importlib.util
import sys
import warnings

if importlib.util.find_spec("torch") is None:
    print("SKIP: no PyTorch")
    sys.exit(77)
warnings.simplefilter("ignore")  # PyTorch's own
import small_transformer as small
import torch

import lockstep as ls
import lockstep.torch as lt


def answer(model, prompts, letters=4):
    """The texts that follow, and the logits of their last letters."""
    texts = prompts
    with torch.inference_mode():
        for _ in range(letters):
            logits = model(texts)[:, -1]
            texts = torch.cat([texts, logits.argmax(-1, keepdim=True)], 1)
    return texts, logits


def batches_agree(model, prompts):
    """Whether each prompt has the bits alone that it has beside the others."""
    texts, logits = answer(model, prompts)
    alone = [answer(model, prompts[i:i + 1]) for i in range(len(prompts))]
    return all(torch.equal(t[0], texts[i]) and torch.equal(x[0], logits[i]) for i, (t, x) in enumerate(alone))


if __name__ == "__main__":
    usable = torch.cuda.is_available() and any(b.name == "cuda" and b.usable for b in ls.backends())
    for device in ("cpu", "cuda") if usable else ("cpu",):
        model, text = small.model_and_text(device)
        prompts = text[:5, :8]
        print(device, "PyTorch's own bits are those of each alone:", batches_agree(model, prompts))

        lt.deterministic(matmul=True).patch(model)  # the switch

        assert batches_agree(model, prompts)
        texts, logits = answer(model, prompts)
        for threads in (1, 2):
            ls.set_num_threads(threads)
            torch.set_num_threads(threads)
            assert torch.equal(answer(model, prompts)[1], logits)
        print(device, "patched:", "".join(small.LETTERS[k] for k in texts[0].tolist()), ls.digest(logits.cpu()))
