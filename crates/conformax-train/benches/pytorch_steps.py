"""Steps per second of PyTorch for the models that conformax-train runs on a GPU, on the same shapes.

    python3 pytorch_steps.py [cnn | bert | vit | all] [--precision fp32 tf32 bf16] [--parts] [--device DEVICE] [--tiny]

Random inputs that stay on the device: what is compared is the step (forward, backward, clipping, AdamW) alone.
Precisions are fp32 (with tf32 in convolutions, which is PyTorch's default), tf32 in all products, and bf16 by autocast.
With --parts it also waits for the device after each part of a step and tells what they took, in milliseconds a step.
--tiny makes everything small, which tries the program out where there is no GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time

import torch
from torch import nn

# Sizes as config.json calls them; `rows` are those of a step. scripts/profile-train trains the same.
SHAPES = {
    "cnn": {"rows": 256, "classes": 10, "side": 32, "channels": [256, 512, 512], "hidden": 1024},
    "bert": {
        "rows": 32,
        "classes": 20,
        "tokens": 128,
        "config": {
            "vocab_size": 30522,
            "hidden_size": 384,
            "num_hidden_layers": 6,
            "num_attention_heads": 12,
            "intermediate_size": 1536,
            "max_position_embeddings": 512,
        },
    },
    "vit": {
        "rows": 128,
        "classes": 100,
        "config": {
            "hidden_size": 384,
            "num_hidden_layers": 12,
            "num_attention_heads": 6,
            "intermediate_size": 1536,
            "image_size": 224,
            "patch_size": 14,
        },
    },
}
SMALL = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
TINY = {
    "cnn": SHAPES["cnn"] | {"rows": 8, "channels": [4, 8, 8], "hidden": 16},
    "bert": SHAPES["bert"] | {"rows": 4, "tokens": 16, "config": SHAPES["bert"]["config"] | SMALL},
    "vit": SHAPES["vit"] | {"rows": 4, "config": SHAPES["vit"]["config"] | SMALL | {"image_size": 56}},
}

WARM_UP = 8
STEPS = 40
# The median of these is told.
REPEATS = 3


def cnn(shape: dict) -> nn.Module:
    layers, before = [], 3
    for channels in shape["channels"]:
        for _ in range(2):
            layers += [nn.Conv2d(before, channels, 5, padding=2, bias=False), nn.BatchNorm2d(channels), nn.ReLU()]
            before = channels
        layers += [nn.MaxPool2d(2), nn.Dropout(0.2)]
    left = before * (shape["side"] // 2 ** len(shape["channels"])) ** 2
    layers += [nn.Flatten(), nn.Linear(left, shape["hidden"]), nn.ReLU(), nn.Dropout(0.2)]
    return nn.Sequential(*layers, nn.Linear(shape["hidden"], shape["classes"]))


def bert(shape: dict) -> nn.Module:
    from transformers import BertConfig, BertForSequenceClassification

    return BertForSequenceClassification(BertConfig(num_labels=shape["classes"], **shape["config"]))


def vit(shape: dict) -> nn.Module:
    from transformers import ViTConfig, ViTForImageClassification

    return ViTForImageClassification(ViTConfig(num_labels=shape["classes"], **shape["config"]))


MODELS = {"cnn": cnn, "bert": bert, "vit": vit}


def inputs_of(name: str, shape: dict, device: torch.device) -> dict:
    rows = shape["rows"]
    if name == "cnn":
        return {"input": torch.randn(rows, 3, shape["side"], shape["side"], device=device)}
    if name == "vit":
        side = shape["config"]["image_size"]
        return {"pixel_values": torch.randn(rows, 3, side, side, device=device)}
    ids = torch.randint(1000, 30000, (rows, shape["tokens"]), device=device)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class Parts:
    """Seconds of each part of a step, with a wait for the device after each."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.seconds = device, {}
        self.since = time.perf_counter()

    def __call__(self, part: str) -> None:
        wait(self.device)
        now = time.perf_counter()
        self.seconds[part] = self.seconds.get(part, 0.0) + now - self.since
        self.since = now


class Training:
    """A model, and what is needed for a step of it."""

    def __init__(self, name: str, shape: dict, half: bool, device: torch.device) -> None:
        self.device, self.half = device, half
        self.inputs = inputs_of(name, shape, device)
        self.labels = torch.randint(shape["classes"], (shape["rows"],), device=device)
        self.model = MODELS[name](shape).to(device).train()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, weight_decay=0.01)
        self.loss_of = nn.CrossEntropyLoss()

    def step(self, done=lambda part: None) -> torch.Tensor:
        with torch.autocast(self.device.type, dtype=torch.bfloat16) if self.half else contextlib.nullcontext():
            out = self.model(**self.inputs)
        logits = (out.logits if hasattr(out, "logits") else out).float()
        loss = self.loss_of(logits, self.labels)
        done("forward pass and loss")
        self.optimizer.zero_grad()
        loss.backward()
        done("backward pass")
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        done("clipping and AdamW")
        return loss.detach()

    def steps_per_second(self) -> float:
        wait(self.device)
        start = time.perf_counter()
        for number in range(STEPS):
            loss = self.step()
            if number % 16 == 15:  # As often as ours comes to the host.
                loss.item()
        wait(self.device)
        return STEPS / (time.perf_counter() - start)

    def parts(self) -> dict[str, float]:
        """Milliseconds a step."""
        wait(self.device)
        parts = Parts(self.device)
        for _ in range(STEPS):
            self.step(parts)
        return {part: 1000.0 * seconds / STEPS for part, seconds in parts.seconds.items()}


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("model", nargs="?", default="all", choices=[*MODELS, "all"])
    words.add_argument("--precision", nargs="+", default=["fp32", "tf32", "bf16"], choices=["fp32", "tf32", "bf16"])
    words.add_argument("--parts", action="store_true")
    words.add_argument("--device", default="cuda", type=torch.device)
    words.add_argument("--tiny", action="store_true")
    chosen = words.parse_args()
    torch.manual_seed(0)
    for name, shape in (TINY if chosen.tiny else SHAPES).items():
        if chosen.model not in (name, "all"):
            continue
        for precision in chosen.precision:
            torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
            training = Training(name, shape, precision == "bf16", chosen.device)
            for _ in range(WARM_UP):
                training.step()
            speeds = sorted(training.steps_per_second() for _ in range(REPEATS))
            spread = f"{speeds[0]:.1f} to {speeds[-1]:.1f}"
            print(f"{name}, {precision}: {statistics.median(speeds):.1f} steps a second ({spread})", flush=True)
            if chosen.parts:
                for part, milliseconds in training.parts().items():
                    print(f"{name}, {precision}, {part}: {milliseconds:.3f} ms", flush=True)


if __name__ == "__main__":
    main()
