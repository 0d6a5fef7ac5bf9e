"""What a list of cases lets its user choose: filter, order, columns, what success is."""

from __future__ import annotations

from collections.abc import Callable, Collection

from terminal.windows import Prompt
from views.browser.list_screen import ListScreen
from views.browser.query import Query, QueryError, parse, unknown
from views.browser.success import Success
from views.browser.table import SETS, Table

EXAMPLES = "failing category=x tag=x recall@5=0 latency>500 -tag=x words"


class Choosing(ListScreen, inherit_bindings=False):
    """Prompts at the bottom of the screen; a filter and an order work while they are typed."""

    success: Success

    def __init__(self, *, ascii_only: bool) -> None:
        super().__init__(ascii_only=ascii_only)
        self.filter: Query | None = None
        self.sort, self.reverse = "order", False
        self.metrics: list[str] | None = None
        self.hint = ""
        """What may be written into the prompt that is open."""

    @property
    def table(self) -> Table:
        """The cases."""
        raise NotImplementedError

    def known_metrics(self) -> Collection[str]:
        """Names of metrics that may be asked for."""
        return self.table.metrics

    def update(self) -> None:
        """Work out the list again."""
        raise NotImplementedError

    def want_columns(self) -> None:
        """Ask for the columns that are shown."""
        raise NotImplementedError

    def want(self, names: Collection[str]) -> None:
        """Ask for columns of metrics."""
        raise NotImplementedError

    def _ask(self, label: str, hint: str, value: str, act: Callable[[str], str]) -> None:
        """Ask for a line; `act` is done with each version of it, and undone by Esc.

        The label is short, since what `act` says stands behind it; the hint is shown above.
        """

        def live(text: str) -> str:
            try:
                return act(text)
            except QueryError as error:
                return f"! {error}"

        def closed(text: str | None) -> None:
            try:
                said, style = act(value if text is None else text), "row"
            except QueryError as error:
                said, style = f"as before: {error}", "warn"
                act(value)
            self.hint = ""
            self.show()
            self.say(said, style)

        self.hint = hint
        self.show()
        self.app.push_screen(Prompt(label, value, live), closed)

    # -- filter ---------------------------------------------------------------------------------

    def set_filter(self, text: str) -> str:
        """Filter by `text`; says how many cases are left. Raises QueryError."""
        query = parse(text, self.known_metrics())
        self.want(query.needs)
        self.filter = query if query.terms else None
        self.update()
        self.show()
        if self.filter is None:
            return ""
        if self.table.missing(query.needs):
            return f"reading {', '.join(self.table.missing(query.needs))} …"
        hint = "" if self.rows.count else query.hint(self.table)
        return f"{self.rows.count} of {self.table.count} cases" + (f"; {hint}" if hint else "")

    def do_filter(self) -> None:
        text = self.filter.text if self.filter else ""
        self._ask("Filter:", f"such as {EXAMPLES}", text, self.set_filter)

    def do_failing(self) -> None:
        words = self.filter.text.split() if self.filter else []
        if "failing" in words:
            words = [word for word in words if word not in ("failing", "only")]
        else:
            words.insert(0, "failing")
        self.say(self.set_filter(" ".join(words)))

    # -- order ----------------------------------------------------------------------------------

    def sort_names(self) -> dict[str, str]:
        """What can be sorted by, by its name in small letters; `state` stands for why."""
        table = self.table
        names = ["order", "id", "question", *table.words, *table.known_numbers()]
        return {name.casefold(): name for name in names} | {"state": "why", "case": "id"}

    def set_sort(self, text: str) -> str:
        """Sort by a column, `-` before it for the largest first. Raises QueryError."""
        text = text.strip()
        name = text.removeprefix("-").casefold() or "order"
        known = self.sort_names()
        if name in SETS:
            raise QueryError(f"{name}: a case has several; filter by it instead")
        if name not in known:
            raise QueryError(unknown(name, list(known)))
        self.sort, self.reverse = known[name], text.startswith("-")
        self.want([self.sort])
        self.update()
        self.show()
        return f"sorted by {text or 'the order of the set'}"

    def do_sort(self) -> None:
        hint = "order, id, state, latency, category, a metric; - before it: largest first"
        before = "" if self.sort == "order" else ("-" if self.reverse else "") + self.sort
        self._ask("Sort by:", hint, before.replace("why", "state"), self.set_sort)

    def sort_by(self, name: str) -> None:
        """A heading was clicked: sort by it, or the other way round."""
        self.reverse = self.sort == name and not self.reverse
        self.sort = name
        self.want([name])
        self.update()
        self.show()

    def do_reverse(self) -> None:
        self.reverse = not self.reverse
        self.update()
        self.show()

    # -- columns and success --------------------------------------------------------------------

    def set_columns(self, text: str) -> str:
        """Show these metrics; nothing means the main ones. Raises QueryError."""
        known = {name.casefold(): name for name in self.table.known_numbers()}
        names = []
        for word in text.replace(",", " ").split():
            if word.casefold() not in known:
                raise QueryError(unknown(word, list(known.values())))
            names.append(known[word.casefold()])
        self.metrics = names or None
        self.want_columns()
        self.show()
        return ""

    def do_columns(self) -> None:
        hint = f"of {' '.join([*self.known_metrics()][:60])}; none: the main ones"
        self._ask("Columns:", hint, " ".join(self.metrics or []), self.set_columns)

    def set_success(self, text: str) -> str:
        """Let a condition say what success is; nothing means the rules. Raises QueryError."""
        self.take_success(self._condition(text))
        self.update()
        self.show()
        return f"success: {self.success.describe()}"

    def _condition(self, text: str) -> Query | None:
        query = parse(text, self.known_metrics())
        for term in query.terms:
            if term.kind in ("keyword", "word"):
                raise QueryError("write a condition on a score, such as recall@5>0 or pass=1")
        self.want(query.needs)
        return query if query.terms else None

    def take_success(self, condition: Query | None) -> None:
        """Success is from now on that `condition` holds; None: the rules."""
        self.success = Success(condition)

    def do_success(self) -> None:
        condition = self.success.condition
        hint = "such as recall@5>0; empty: no rule of the second help page is broken"
        self._ask("Success is:", hint, condition.text if condition else "", self.set_success)

    def use_success(self, text: str) -> None:
        """As `set_success`, before the screen is shown. Raises QueryError."""
        self.take_success(self._condition(text))
