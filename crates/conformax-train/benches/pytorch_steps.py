"""Steps per second of PyTorch for the two models that conformax-train runs on a GPU, on the same shapes.

    python3 pytorch_steps.py [cnn | bert | both]

Random inputs that stay on the device: what is compared is the step (forward, backward, clipping, AdamW) alone.
"""

import sys
import time

import torch
from torch import nn


def cnn() -> nn.Module:
    layers, before = [], 3
    for channels in (256, 512, 512):
        for _ in range(2):
            layers += [nn.Conv2d(before, channels, 5, padding=2), nn.BatchNorm2d(channels), nn.ReLU()]
            before = channels
        layers += [nn.MaxPool2d(2), nn.Dropout(0.2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(512 * 4 * 4, 1024), nn.ReLU(), nn.Linear(1024, 10))


def bert() -> nn.Module:
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536, num_labels=20
    )
    return BertForSequenceClassification(config)


def steps_per_second(model, inputs, labels, steps=60) -> float:
    model = model.cuda().train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)
    loss_of = nn.CrossEntropyLoss()

    def step():
        out = model(**inputs) if isinstance(inputs, dict) else model(inputs)
        loss = loss_of(out.logits if hasattr(out, "logits") else out, labels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()  # Ours comes to the host too, sixteen steps at a time.

    for _ in range(10):
        step()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return steps / (time.perf_counter() - start)


def main() -> None:
    wanted = sys.argv[1] if len(sys.argv) > 1 else "both"
    torch.manual_seed(0)
    for tf32 in (False, True):
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
        name = "tf32" if tf32 else "fp32"
        if wanted in ("cnn", "both"):
            images, labels = torch.randn(256, 3, 32, 32).cuda(), torch.randint(10, (256,)).cuda()
            print(f"cnn, batch 256, {name}: {steps_per_second(cnn(), images, labels):.1f} steps a second")
        if wanted in ("bert", "both"):
            ids = torch.randint(1000, 30000, (32, 128)).cuda()
            inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
            labels = torch.randint(20, (32,)).cuda()
            print(f"bert, batch 32 x 128, {name}: {steps_per_second(bert(), inputs, labels):.1f} steps a second")


if __name__ == "__main__":
    main()
