"""From a torch model to prediction sets: train with a sparse loss, calibrate on logits, save, and load again.

    python examples/from_torch.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

from conformax import SplitConformalClassifier
from conformax.torch import Entmax15Loss

torch.manual_seed(0)
classes, features = 20, 16
centres = torch.randn(classes, features)
labels = torch.randint(classes, (6000,))
inputs = centres[labels] + 1.2 * torch.randn(6000, features)

model = torch.nn.Sequential(torch.nn.Linear(features, 64), torch.nn.ReLU(), torch.nn.Linear(64, classes))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
loss = Entmax15Loss()
for _ in range(200):
    batch = torch.randint(3000, (256,))
    optimizer.zero_grad()
    loss(model(inputs[batch]), labels[batch]).backward()
    optimizer.step()

# Tensors go in as they are. The last 3,000 rows were not trained on: half calibrate, half test.
with torch.no_grad():
    logits = model(inputs[3000:])
cp = SplitConformalClassifier("entmax", gamma=1.5, alpha=0.1).calibrate(logits[:1500], labels[3000:4500])

found = cp.evaluate(logits[1500:], labels[4500:])
print(f"coverage {found.coverage:.3f}, average size {found.average_size:.2f}, temperature {cp.temperature_:.3f}")

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.json"
    cp.save(path)
    again = SplitConformalClassifier.load(path)
    assert again.predict_set(logits[1500:]) == cp.predict_set(logits[1500:])
    print(f"saved {path.stat().st_size // 1024} kB of JSON that Rust, Python and the shell read alike")

sets = cp.predict_set(logits[1500:1503])
for labels_of_row, share in zip(sets, cp.predict_proba(logits[1500:1503])):
    print({int(label): round(float(share[label]), 3) for label in labels_of_row})
