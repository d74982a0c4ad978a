"""Mutants of a source file: every place where one operator applies, one change at a time.

Changes are made in the text, at the places that the syntax tree gives, so that a mutant differs from the source in one
line and reads like a diff. Docstrings, messages of errors, annotations, decorators and imports are left alone.

Beside the usual operators (signs, constants, comparisons, conditions, statements) there are those of this field:

* *factor*: 2 before a term of a sum, a product, or what an oracle is asked with;
* *reduction*: mean for sum, min for max, smallest for largest, and back;
* *participation*: all clients for the active ones, a fraction of 1, and back;
* *round*: the round before or after;
* *time*: a field of a state for the local variable of the same name, which is its new value, and back;
* *stale*: a field of a state that is not replaced.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["Mutant", "mutants"]

Span = tuple[int, int]

RENAMED = {
    "max": "min",
    "min": "max",
    "maximum": "minimum",
    "minimum": "maximum",
    "largest": "smallest",
    "smallest": "largest",
    "argmax": "argmin",
    "argmin": "argmax",
    "any": "all",
    "all": "any",
    "ceil": "floor",
    "floor": "ceil",
    "zeros_like": "ones_like",
    "mean": "sum",
    "sum": "mean",
}
PARTICIPATION = {"n_active": "n_clients", "n_clients": "n_active"}
DROPPED = {"abs", "sqrt", "square", "exp", "log", "log1p", "expm1"}
BOUNDARY: dict[type, str] = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
REVERSED: dict[type, str] = {
    ast.Lt: ">",
    ast.LtE: ">=",
    ast.Gt: "<",
    ast.GtE: "<=",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
SYMBOL: dict[type, str] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
AUGMENTED: dict[type, tuple[str, str, str]] = {
    ast.Add: ("sign", "+=", "-="),
    ast.Sub: ("sign", "-=", "+="),
    ast.Mult: ("ratio", "*=", "/="),
    ast.Div: ("ratio", "/=", "*="),
}
SYMMETRIC = {
    "multiply",
    "isinstance",
    "getattr",
    "hasattr",
    "max",
    "min",
    "maximum",
    "minimum",
    "array_namespace",
    "zip",
    "range",
}
ASKED = {"solve", "evaluate", "hessian_product", "value", "gradient"}
LAYOUT = {"keepdims", "strict", "copy", "dtype", "device"}  # keywords whose constants are no mathematics
SMALL, GROSS = 1e-6, 1e6  # constants below SMALL are allowances for rounding: none, or a million times as much
NEW = ("{}_next", "{}_new", "{}_plus", "new_{}", "next_{}")
OLD = ("{}_old", "{}_previous", "{}_last", "old_{}", "previous_{}", "last_{}")


class Mutant(NamedTuple):
    """A changed source."""

    operator: str
    function: str  # qualified name of where the change is
    line: str  # the changed lines, before, without indentation
    becomes: str  # and after
    source: str  # of the whole file

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is recognised by in the table of equivalent mutants: line numbers would not last."""
        return self.function, self.line, self.becomes


def mutants(source: str) -> list[Mutant]:
    """Return all mutants of a source, each different from it and from the others as a program.

    Examples
    --------
    >>> [m.becomes for m in mutants("def f(a, b):\\n    return a - b")]
    ['return a + b', 'return 2 * a - b', 'return a - 2 * b']
    """
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    pieces = [_Piece(finder, node) for node in _statements(ast.parse(source))]
    seen, found = {(piece.start, piece.dump()) for piece in pieces}, []
    for edit in finder.edits:
        piece = next(piece for piece in pieces if piece.start <= edit.start and edit.end <= piece.end)
        try:
            program = piece.start, piece.dump(edit)
        except SyntaxError:  # such as a removed minus of "a ** -b"
            continue
        if program not in seen:
            seen.add(program)
            found.append(_applied(source, edit))
    return found


class _Edit(NamedTuple):
    operator: str
    function: str
    start: int  # in bytes, as the syntax tree counts
    end: int
    text: str


def _applied(source: str, edit: _Edit) -> Mutant:
    data = source.encode()
    changed = data[: edit.start] + edit.text.encode() + data[edit.end :]
    first = data.rfind(b"\n", 0, edit.start) + 1
    after = len(data) - edit.end
    last, last_changed = (_line_end(text, len(text) - after) for text in (data, changed))
    line, becomes = data[first:last].decode().strip(), changed[first:last_changed].decode().strip()
    return Mutant(edit.operator, edit.function, line, becomes, changed.decode())


def _line_end(text: bytes, start: int) -> int:
    end = text.find(b"\n", start)
    return len(text) if end < 0 else end


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield the statements of a module, those in its classes one by one: an edit is in one of them."""
    for node in tree.body:
        yield from node.body if isinstance(node, ast.ClassDef) else [node]


class _Piece:
    """A statement with its lines: two edits in it make one program of the file if they make one of the statement."""

    def __init__(self, finder: _Finder, node: ast.stmt) -> None:
        self.data = finder.data
        self.start, self.end = finder.starts[node.lineno - 1], finder.span(node)[1]

    def dump(self, edit: _Edit | None = None) -> str:
        """Return the syntax tree, after an edit if there is one."""
        start, end, text = (edit.start, edit.end, edit.text.encode()) if edit else (self.end, self.end, b"")
        changed = self.data[self.start : start] + text + self.data[end : self.end]
        return ast.dump(ast.parse(b"if True:\n" + changed if changed[:1].isspace() else changed))


@dataclass
class _Scope:
    """What a function knows: its parameters with their annotations, and where names are assigned."""

    parameters: dict[str, str] = field(default_factory=dict)
    assigned: dict[str, int] = field(default_factory=dict)  # name -> the first line on which it has a value


class _Finder(ast.NodeVisitor):
    def __init__(self, source: str) -> None:
        self.data = source.encode()
        self.starts = [0]
        for line in self.data.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.edits: list[_Edit] = []
        self.names: list[str] = []
        self.scopes: list[_Scope] = [_Scope()]
        self.states: dict[str, list[str]] = {}  # NamedTuples of the file: name -> fields
        self.parents: list[ast.AST] = []
        self.in_text = False
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef) and any(_name(base) == "NamedTuple" for base in node.bases):
                self.states[node.name] = [_name(s.target) for s in node.body if isinstance(s, ast.AnnAssign)]

    # ---- places ----

    def span(self, node: Any) -> Span:
        return (self.starts[node.lineno - 1] + node.col_offset, self.starts[node.end_lineno - 1] + node.end_col_offset)

    def text(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.data[start:end].decode()

    def between(self, left: ast.AST, right: ast.AST, symbol: str) -> Span:
        """Where the symbol stands between two nodes; what comments say does not count."""
        start, end = self.span(left)[1], self.span(right)[0]
        gap = re.sub(rb"#[^\n]*", lambda found: b" " * len(found[0]), self.data[start:end])
        at = start + gap.index(symbol.encode())
        return at, at + len(symbol)

    def add(self, operator: str, where: Span, text: str) -> None:
        self.edits.append(_Edit(operator, ".".join(self.names) or "module", *where, text))

    def replace(self, operator: str, node: ast.AST, text: str) -> None:
        self.add(operator, self.span(node), text)

    def before(self, operator: str, node: ast.AST, text: str) -> None:
        start = self.span(node)[0]
        self.add(operator, (start, start), text)

    @property
    def parent(self) -> ast.AST | None:
        return self.parents[-2] if len(self.parents) > 1 else None

    # ---- walking ----

    def visit(self, node: ast.AST) -> None:
        if self.in_text and isinstance(node, ast.expr) and not self._is_where_it_says(node):
            return
        self.parents.append(node)
        super().visit(node)
        self.parents.pop()

    def _is_where_it_says(self, node: ast.expr) -> bool:
        """Before Python 3.12 places inside f-strings may be wrong."""
        if isinstance(node, ast.JoinedStr | ast.FormattedValue):
            return True
        try:
            return ast.dump(ast.parse(self.text(node), mode="eval").body) == ast.dump(node)
        except (SyntaxError, UnicodeDecodeError):
            return False

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.names.append(node.name)
        for statement in node.body:
            self.visit(statement)
        self.names.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name in ("__repr__", "__str__"):
            return
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        scope = _Scope({a.arg: ast.unparse(a.annotation) if a.annotation else "" for a in arguments})
        scope.assigned = dict.fromkeys(scope.parameters, node.lineno)
        for name, line in _assignments(node):
            scope.assigned.setdefault(name, line)
        self.scopes.append(scope)
        self.names.append(node.name)
        for default in [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]:
            self.visit(default)
        for statement in node.body:
            self.visit(statement)
        self.names.pop()
        self.scopes.pop()

    def visit_Import(self, node: ast.Import) -> None:
        pass

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        pass

    def visit_Raise(self, node: ast.Raise) -> None:
        pass

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        outer, self.in_text = self.in_text, True
        for value in node.values:
            if isinstance(value, ast.FormattedValue):  # not its format
                self.visit(value.value)
        self.in_text = outer

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)
        if not isinstance(node.value, ast.Name) or node.value.id[:1].islower():  # not dict[str, Array]
            self.visit(node.slice)

    # ---- statements ----

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return  # a docstring
        if isinstance(node.value, ast.Call):
            self.replace("statement", node, "pass")
        self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if isinstance(target, ast.Name):
            if target.id == "__all__":
                return
            if len(self.scopes) > 1 and self.scopes[-1].assigned.get(target.id, node.lineno) < node.lineno:
                self.replace("statement", node, "pass")
        elif isinstance(target, ast.Attribute | ast.Subscript):
            self.replace("statement", node, "pass")
        self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.replace("statement", node, "pass")
        if type(node.op) in AUGMENTED:
            operator, old, new = AUGMENTED[type(node.op)]
            self.add(operator, self.between(node.target, node.value, old), new)
        self.visit(node.value)

    def visit_Break(self, node: ast.Break) -> None:
        self.replace("statement", node, "pass")

    def visit_Continue(self, node: ast.Continue) -> None:
        self.replace("statement", node, "pass")

    def visit_If(self, node: ast.If) -> None:
        if _name(node.test) == "TYPE_CHECKING":
            return
        guard = len(node.body) == 1 and isinstance(node.body[0], ast.Raise) and not node.orelse
        self._condition(node.test, guard)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._condition(node.test, False)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._condition(node.test, False)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._condition(test, False)
        self.generic_visit(node)

    def _condition(self, test: ast.expr, guard: bool) -> None:
        """A guard that is turned round refuses what is right, which says nothing of its own: it is taken away."""
        if isinstance(test, ast.Constant):
            return
        self.replace("guard" if guard else "condition", test, "False" if guard else f"(not ({self.text(test)}))")

    # ---- expressions ----

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(self.parent, ast.keyword) and self.parent.arg in LAYOUT:
            return
        if isinstance(value, bool):
            self.replace("constant", node, str(not value))
        elif isinstance(value, int | float):
            for other in _other_numbers(value):
                self.replace("constant", node, repr(other))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        start = self.span(node)[0]
        if isinstance(node.op, ast.USub):
            self.add("sign", (start, start + 1), "")
        elif isinstance(node.op, ast.Not) and not isinstance(self.parent, ast.If | ast.While | ast.IfExp):
            self.add("condition", (start, start + len("not ")), "")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if any(isinstance(side, ast.JoinedStr) or _is_string(side) for side in (node.left, node.right)):
            self.generic_visit(node)
            return
        match node.op:
            case ast.Add():
                self.add("sign", self.between(node.left, node.right, "+"), "-")
            case ast.Sub():
                self.add("sign", self.between(node.left, node.right, "-"), "+")
            case ast.Mult():
                self.add("ratio", self.between(node.left, node.right, "*"), "/")
            case ast.Div():
                self.add("ratio", self.between(node.left, node.right, "/"), "*")
            case ast.Pow():
                start = self.between(node.left, node.right, "**")[0]
                self.add("power", (start, self.span(node)[1]), "")
        if isinstance(node.op, ast.Add | ast.Sub):
            for term in (node.left, node.right):
                if not _is_sum(term) and not _has_number(term):
                    self.before("factor", term, "2 * ")
        elif (
            isinstance(node.op, ast.Mult | ast.Div) and not isinstance(self.parent, ast.BinOp) and not _has_number(node)
        ):
            self.before("factor", node, "2 * ")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for dropped in node.values:
            kept = [value for value in node.values if value is not dropped]
            word = " and " if isinstance(node.op, ast.And) else " or "
            self.replace("condition", node, "(" + word.join(f"({self.text(value)})" for value in kept) + ")")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        tested = isinstance(self.parent, ast.If | ast.While | ast.IfExp | ast.comprehension) and len(node.ops) == 1
        for left, op, right in zip(sides, node.ops, sides[1:], strict=False):
            kind = type(op)
            if kind in BOUNDARY:
                self.add("boundary", self.between(left, right, SYMBOL[kind]), BOUNDARY[kind])
            if not tested:  # else it is the condition turned round
                word = SYMBOL.get(kind) or {ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in"}[kind]
                self.add("comparison", self.between(left, right, word), REVERSED[kind])
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = _name(node.func)
        if name in DROPPED and len(node.args) == 1 and not node.keywords:
            self.replace("call", node, f"({self.text(node.args[0])})")
        if name in RENAMED and not (name in ("sum", "mean") and isinstance(node.func, ast.Name)):
            end = self.span(node.func)[1]
            self.add("reduction", (end - len(name), end), RENAMED[name])
        if name in ("_replace", "replace"):
            self._without_keywords("stale", node)
        elif name == "solve":
            self._without_keywords("keyword", node)
        if name in ASKED and isinstance(node.func, ast.Attribute) and _name(node.func.value) == "oracle":
            for value in [*node.args, *(k.value for k in node.keywords if k.arg not in ("solver", "stop"))]:
                if not _has_number(value):
                    self.replace("factor", value, f"2 * ({self.text(value)})")
        self._stale_fields(node, name)
        if name not in SYMMETRIC:
            for a, b in zip(node.args, node.args[1:], strict=False):
                if all(isinstance(x, ast.Name | ast.Attribute) for x in (a, b)):
                    gap = self.data[self.span(a)[1] : self.span(b)[0]].decode()
                    self.add("order", (self.span(a)[0], self.span(b)[1]), self.text(b) + gap + self.text(a))
        self.visit(node.func)
        messages = name in ("require", "warn")
        for value in [*node.args, *node.keywords]:
            if not (messages and isinstance(value, ast.JoinedStr | ast.Constant)):
                self.visit(value)

    def _without_keywords(self, operator: str, node: ast.Call) -> None:
        """Each keyword left out, with the comma that separates it."""
        parts = [*node.args, *node.keywords]
        for i, part in enumerate(parts):
            if isinstance(part, ast.keyword) and part.arg is not None:
                start, end = self.span(part)
                if i > 0:
                    start = self.between(parts[i - 1], part, ",")[0]  # behind brackets of the part before
                elif len(parts) > 1:
                    end = self.span(parts[1])[0]
                self.add(operator, (start, end), "")

    def _stale_fields(self, node: ast.Call, name: str) -> None:
        """A new state keeps one field of the old one."""
        fields = self.states.get(name)
        old = next((p for p, of in self.scopes[-1].parameters.items() if of == name), None)
        if fields is None or old is None:
            return
        for argument, of in zip(node.args, fields, strict=False):
            if self.text(argument) != f"{old}.{of}":
                self.replace("stale", argument, f"{old}.{of}")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        base = _name(node.value)
        if isinstance(node.ctx, ast.Load):
            if node.attr in PARTICIPATION and base in ("round", "self", "objective"):
                end = self.span(node)[1]
                self.add("participation", (end - len(node.attr), end), PARTICIPATION[node.attr])
            elif node.attr == "fraction" and base == "round":
                self.replace("participation", node, "1.0")
            elif node.attr == "n" and base == "round":
                self.replace("round", node, "(round.n + 1)")
                self.replace("round", node, "(round.n - 1)")
            for other in self._other_times(node, base):
                self.replace("time", node, other)
        self.visit(node.value)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            for other in self._other_values(node):
                self.replace("time", node, other)

    def _bound(self, name: str, line: int) -> bool:
        return self.scopes[-1].assigned.get(name, line) < line

    def _other_times(self, node: ast.Attribute, base: str) -> Iterator[str]:
        """The new value of a field, that field of another state, or the mean in the place of the model."""
        scope = self.scopes[-1]
        if base not in scope.parameters or scope.parameters[base] not in self.states:
            return
        if self._bound(node.attr, node.lineno):
            yield node.attr
        for other, of in scope.parameters.items():
            if other != base and node.attr in self.states.get(of, ()):
                yield f"{other}.{node.attr}"
        if node.attr == "theta":
            yield from (p for p in ("mean", "message") if scope.parameters.get(p) == "Array")

    def _other_values(self, node: ast.Name) -> Iterator[str]:
        scope, name = self.scopes[-1], node.id
        states = {p: self.states[of] for p, of in scope.parameters.items() if of in self.states}
        if name in scope.assigned:
            wanted = "theta" if name in ("mean", "message") and scope.parameters.get(name) == "Array" else name
            if wanted != name or (name not in scope.parameters and self._bound(name, node.lineno)):
                yield from (f"{p}.{wanted}" for p, fields in states.items() if wanted in fields)
        for form in (*NEW, *OLD):
            yield from (
                other
                for other in scope.assigned
                if self._bound(other, node.lineno) and (other == form.format(name) or name == form.format(other))
            )


def _assignments(function: ast.FunctionDef) -> Iterator[tuple[str, int]]:
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno


def _name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_string(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_sum(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub)


def _has_number(node: ast.expr) -> bool:
    """Whether a product has a factor that is a number: to change it is to change the product."""
    if isinstance(node, ast.UnaryOp):
        return _has_number(node.operand)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        return _has_number(node.left) or _has_number(node.right)
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _other_numbers(value: int | float) -> list[int | float]:
    kind = type(value)
    if value == 0:
        return [kind(1)]
    if value == 1:
        return [kind(0), kind(2)]
    if isinstance(value, int):
        return [value - 1, value + 1]
    return [0.0, GROSS * value] if abs(value) < SMALL else [2.0 * value]
