"""Steps per second of PyTorch for the models that conformax-train runs on a GPU, on the same shapes.

    python3 pytorch_steps.py [cnn | bert | vit | all]

Random inputs that stay on the device: what is compared is the step (forward, backward, clipping, AdamW) alone. Precisions are
fp32 (with tf32 in convolutions, which is PyTorch's default), tf32 in all products, and bf16 by autocast.
"""

import contextlib
import sys
import time

import torch
from torch import nn


def cnn() -> nn.Module:
    layers, before = [], 3
    for channels in (256, 512, 512):
        for _ in range(2):
            layers += [nn.Conv2d(before, channels, 5, padding=2, bias=False), nn.BatchNorm2d(channels), nn.ReLU()]
            before = channels
        layers += [nn.MaxPool2d(2), nn.Dropout(0.2)]
    layers += [nn.Flatten(), nn.Linear(512 * 4 * 4, 1024), nn.ReLU(), nn.Dropout(0.2), nn.Linear(1024, 10)]
    return nn.Sequential(*layers)


def bert() -> nn.Module:
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536, num_labels=20
    )
    return BertForSequenceClassification(config)


def vit() -> nn.Module:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=384, num_hidden_layers=12, num_attention_heads=6, intermediate_size=1536, patch_size=14, num_labels=100
    )
    return ViTForImageClassification(config)


def tokens(rows: int, length: int) -> dict:
    ids = torch.randint(1000, 30000, (rows, length)).cuda()
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


# Model, inputs and classes.
CASES = {
    "cnn": (cnn, lambda: {"input": torch.randn(256, 3, 32, 32).cuda()}, 10),
    "bert": (bert, lambda: tokens(32, 128), 20),
    "vit": (vit, lambda: {"pixel_values": torch.randn(128, 3, 224, 224).cuda()}, 100),
}


def steps_per_second(model, inputs, labels, half: bool, steps=40) -> float:
    model = model.cuda().train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)
    loss_of = nn.CrossEntropyLoss()

    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16) if half else contextlib.nullcontext():
            out = model(**inputs)
        logits = (out.logits if hasattr(out, "logits") else out).float()
        loss = loss_of(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    for _ in range(8):
        step()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for number in range(steps):
        loss = step()
        if number % 16 == 15:  # As often as ours comes to the host.
            loss.item()
    torch.cuda.synchronize()
    return steps / (time.perf_counter() - start)


def main() -> None:
    wanted = sys.argv[1] if len(sys.argv) > 1 else "all"
    torch.manual_seed(0)
    for name, (model, inputs, classes) in CASES.items():
        if wanted not in (name, "all"):
            continue
        values = inputs()
        labels = torch.randint(classes, (len(next(iter(values.values()))),)).cuda()
        for precision in "fp32", "tf32", "bf16":
            torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
            speed = steps_per_second(model(), values, labels, half=precision == "bf16")
            print(f"{name}, {precision}: {speed:.1f} steps a second", flush=True)


if __name__ == "__main__":
    main()
