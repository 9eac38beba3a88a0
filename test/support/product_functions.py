"""Kernel functions of one product on buffers, with a fill and elementwise operations behind it, as text."""

from __future__ import annotations

from dataclasses import dataclass

#: What widens an element.
_WIDENED = {"bf16": "arith.extf", "f16": "arith.extf", "i8": "arith.extsi"}


@dataclass(frozen=True)
class ProductFunction:
    """``out[batch, m, n] = body(sum over k of left[batch, m, k] * right[batch, k, n], others)``.

    Attributes:
        m, n, k: sizes; ``batch`` too, 0 for none.
        element: type of the factors.
        batch: see there.
        left_along_k: whether rows of the left factor are neighbours along k; right_along_k: columns of the right one.
        dynamic: whether ``m`` is known at run time only; dynamic_columns: whether ``n`` is, of what has no body.
        body: operations that make ``%r`` of the sum ``%p`` and ``%g0``...; none: sums are the result.
        result: type of the result.
        others: types of what the body reads besides, and their indices.
        filled: whether sums start at 0, and not at what is there.
        plan: that stands on the product.
    """

    m: int
    n: int
    k: int
    element: str = "bf16"
    batch: int = 0
    left_along_k: bool = True
    right_along_k: bool = True
    dynamic: bool = False
    dynamic_columns: bool = False
    body: str = ""
    result: str = ""
    others: tuple[tuple[str, str], ...] = ()
    filled: bool = True
    plan: str = ""

    @property
    def sums(self) -> str:
        return "i32" if self.element == "i8" else "f32"

    def _buffer(self, sizes: tuple[int, ...], element: str) -> str:
        known = [str(self.batch)] if self.batch else []
        unknown = ([self.m] if self.dynamic else []) + ([self.n] if self.dynamic_columns else [])
        return f"memref<{'x'.join([*known, *('?' if s in unknown else str(s) for s in sizes), element])}>"

    def text(self) -> str:
        """The module."""
        first = 1 if self.batch else 0
        batch, m, n, k = "d0, " * first, *(f"d{first + i}" for i in range(3))
        loops, parallel = ", ".join(f"d{i}" for i in range(3 + first)), ", ".join(f"d{i}" for i in range(2 + first))
        kinds = ", ".join(['"parallel"'] * (2 + first))
        left = self._buffer((self.m, self.k) if self.left_along_k else (self.k, self.m), self.element)
        right = self._buffer((self.n, self.k) if self.right_along_k else (self.k, self.n), self.element)
        sums, s = self._buffer((self.m, self.n), self.sums), self.sums
        out = self._buffer((self.m, self.n), self.result or s)
        maps = [f"{batch}{m}, {k}" if self.left_along_k else f"{batch}{k}, {m}"]
        maps += [f"{batch}{n}, {k}" if self.right_along_k else f"{batch}{k}, {n}", f"{batch}{m}, {n}"]
        mapped = ", ".join(f"affine_map<({loops}) -> ({x})>" for x in maps)
        widen = _WIDENED.get(self.element)
        x, y = ("%x", "%y") if widen else ("%p", "%q")
        widened = f"%x = {widen} %p : {self.element} to {s}\n%y = {widen} %q : {self.element} to {s}" if widen else ""
        kind = "i" if s == "i32" else "f"
        target = "%t" if self.body else "%o"
        others = "".join(f", %e{i}: {t}" for i, (t, _) in enumerate(self.others))
        plan = f', relax.plan = "{self.plan}"' if self.plan else ""
        return f"""
        func.func private @product(%a: {left}, %b: {right}{others}, %o: {out}) attributes {{relax.kernel}} {{
          %zero = arith.constant {"0" if s == "i32" else "0.0"} : {s}
          {self._temporary(sums, left, first)}
          {self._fill(parallel, kinds, sums, target)}
          linalg.generic {{indexing_maps = [{mapped}], iterator_types = [{kinds}, "reduction"], relax.contraction{plan}}}
              ins(%a, %b : {left}, {right}) outs({target} : {sums}) {{
          ^bb0(%p: {self.element}, %q: {self.element}, %w: {s}):
            {widened}
            %u = arith.mul{kind} {x}, {y} : {s}
            %v = arith.add{kind} %w, %u : {s}
            linalg.yield %v : {s}
          }}
          {self._epilogue(parallel, kinds, sums, out)}
          return
        }}"""

    def _temporary(self, sums: str, left: str, first: int) -> str:
        if not self.body:
            return ""
        if not self.dynamic:
            return f"%t = memref.alloc() : {sums}"
        axis = first if self.left_along_k else first + 1
        return f"%c = arith.constant {axis} : index\n%d = memref.dim %a, %c : {left}\n%t = memref.alloc(%d) : {sums}"

    def _fill(self, parallel: str, kinds: str, sums: str, target: str) -> str:
        if not self.filled:
            return ""
        s = self.sums
        return f"""
          linalg.generic {{indexing_maps = [affine_map<({parallel}) -> ()>, affine_map<({parallel}) -> ({parallel})>],
              iterator_types = [{kinds}]}} ins(%zero : {s}) outs({target} : {sums}) {{
          ^bb0(%p: {s}, %q: {s}):
            linalg.yield %p : {s}
          }}"""

    def _epilogue(self, parallel: str, kinds: str, sums: str, out: str) -> str:
        if not self.body:
            return ""
        maps = ", ".join(f"affine_map<({parallel}) -> ({at})>" for at in (parallel, *(i for _, i in self.others), parallel))
        inputs = ", ".join(["%t", *(f"%e{i}" for i in range(len(self.others)))])
        types = ", ".join([sums, *(t for t, _ in self.others)])
        read = [f"%g{i}: {t[:-1].split('x')[-1]}" for i, (t, _) in enumerate(self.others)]
        arguments = ", ".join([f"%p: {self.sums}", *read, f"%q: {self.result or self.sums}"])
        return f"""
          linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
              ins({inputs} : {types}) outs(%o : {out}) {{
          ^bb0({arguments}):
            {self.body}
            linalg.yield %r : {self.result or self.sums}
          }}"""
