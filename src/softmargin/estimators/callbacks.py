"""The bridge to scikit-learn's callbacks (`sklearn.callback`, experimental in 1.9), where it has them."""

import threading
from collections.abc import Callable
from typing import Any

from softmargin.core.trace import Observer, Record

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks

    FRAMES_TO_CALLER = 3  # from `fit` to the user's line: the decorator adds a frame
except ImportError:  # scikit-learn < 1.9
    FRAMES_TO_CALLER = 2

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method: Callable) -> Callable:  # type: ignore[no-redef]
        return method


class CallbackBridge:
    """Turns the records of the loop into scikit-learn's task tree: fit -> class (if several) -> iteration."""

    def __init__(
        self, estimator: Any, X: Any, y: Any, metadata: dict[str, Any], n_tasks: int, max_iter: int | None
    ) -> None:
        self._estimator, self._n_tasks = estimator, n_tasks
        self._lock = threading.Lock()  # sub-problems run in several threads
        self._data: dict[str, Any] = {"X": X, "y": y}
        if given := {name: value for name, value in metadata.items() if value is not None}:
            self._data["metadata"] = given
        subtasks = n_tasks if n_tasks > 1 else max_iter
        self._root = estimator._init_callback_context(max_subtasks=subtasks)
        self._root.call_on_fit_task_begin(estimator=estimator, **self._data)
        self._parents = (
            [self._root.subcontext(task_name=f"class {k}", max_subtasks=max_iter) for k in range(n_tasks)]
            if n_tasks > 1
            else [self._root]
        )
        if n_tasks > 1:
            for parent in self._parents:
                parent.call_on_fit_task_begin(estimator=estimator, **self._data)
        self._candidates: list[Callable[[], Any] | None] = [None] * n_tasks

    @classmethod
    def of(cls, estimator: Any, *args: Any) -> "CallbackBridge | None":
        """A bridge if the estimator has callbacks, else None."""
        return cls(estimator, *args) if getattr(estimator, "_skl_callbacks", None) else None

    def observer(
        self, k: int, candidate: Callable[[Any], Any], attributes: Callable[[list[Any]], dict[str, Any]]
    ) -> Observer:
        """An observer of sub-problem k.

        Only if a callback asks, `candidate(state)` gives its solution, and `attributes` the fitted attributes for the
        solutions of all sub-problems (None where there is none yet).
        """
        first = True

        def observe(record: Record, state: Any) -> bool:
            nonlocal first
            if first:  # the state before the first iteration is not a task
                first = False
                return False
            with self._lock:
                self._candidates[k] = lambda: candidate(state)
                context = self._parents[k].subcontext(task_name="iteration")
                context.record = record  # for callbacks that know us: objective, bound and gap
                context.call_on_fit_task_begin(estimator=self._estimator, **self._data)
                return context.call_on_fit_task_end(
                    estimator=self._estimator,
                    reconstruction_attributes=lambda: attributes([found and found() for found in self._candidates]),
                    **self._data,
                )

        return observe

    def close(self, final: dict[str, Any]) -> None:
        """The end of all tasks, with the final model."""
        if self._n_tasks > 1:
            for parent in self._parents:
                parent.call_on_fit_task_end(estimator=self._estimator, **self._data)
        self._root.call_on_fit_task_end(estimator=self._estimator, reconstruction_attributes=final, **self._data)
