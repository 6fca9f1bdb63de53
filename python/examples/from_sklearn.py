"""From a scikit-learn model to prediction sets: handwritten digits.

    python examples/from_sklearn.py
"""

from __future__ import annotations

from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from conformax import WrapClassifier

X, y = load_digits(return_X_y=True)
X_fit, X_test, y_fit, y_test = train_test_split(X / 16, y, test_size=0.4, random_state=0)

# 40 % of the rows given to `fit` are kept from the model and calibrate the sets.
model = WrapClassifier(LogisticRegression(max_iter=1000), alpha=0.01).fit(X_fit, y_fit)

sets = model.predict_set(X_test)
found = model.evaluate(X_test, y_test)
low, high = found.coverage_interval

print(f"accuracy {model.score(X_test, y_test):.3f}")
print(f"coverage {found.coverage:.3f}, promised 0.99; chance explains {low:.3f} to {high:.3f}")
print(f"average size {found.average_size:.2f}, {found.singleton_ratio:.0%} of the sets are one digit")

unsure = max(range(len(sets)), key=lambda row: len(sets[row]))
print(f"row {unsure} could be any of {sets[unsure].tolist()}; it is {y_test[unsure]}")
