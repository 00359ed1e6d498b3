"""
Learn and unlearn rows
======================

``SVR`` and ``SVC`` learn rows when they come and unlearn them when they must go, exactly: each time the model is that
of a fit on the rows that are there. Here one day is learned after the other, and the oldest forgotten.
"""

import matplotlib.pyplot as plt
import numpy as np

from softmargin import SVR

rng = np.random.default_rng(0)
days = np.arange(200.0)[:, None]
sales = 20 + 5 * np.sin(days[:, 0] / 15) + rng.standard_normal(200)

model = SVR(C=10, epsilon=0.5, gamma=0.005).partial_fit(days[:100], sales[:100])
forecast = []
for k in range(100, 200):
    forecast.append(model.predict(days[k : k + 1])[0])  # before the day is known
    model.partial_fit(days[k : k + 1], sales[k : k + 1])
    model.forget(model.row_ids_[0])

window = SVR(C=10, epsilon=0.5, gamma=0.005, solver="active_set").fit(days[100:], sales[100:])
print(f"days {model.row_ids_[0]} to {model.row_ids_[-1]}: {model.status_.name}")
print(f"kept up to date:   primal {model.certificate_.primal:.6f}")
print(f"fit on the window: primal {window.certificate_.primal:.6f}")

# %%
# What the model said of each day before it was known, and what the last model says of the days that it knows.

figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
axes.plot(days, sales, ".", color="0.6", label="sales")
axes.plot(days[100:], forecast, label="forecast for the next day")
axes.plot(days[100:], model.predict(days[100:]), label="the last model")
axes.axvspan(0, 100, color="0.5", alpha=0.1)
axes.annotate("forgotten by now", (50, sales.min()), ha="center")
axes.set(xlabel="day", ylabel="sales")
axes.legend(fontsize="small")
