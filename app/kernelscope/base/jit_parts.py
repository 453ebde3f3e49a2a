"""How Numba compiles kernels: those for other kernels to LLVM's code, and plain loops as such.

A kernel takes in the code of all that it calls, optimises it together with its own, and becomes
machine code as a whole. Numba would make machine code of each part as well, which nobody calls;
that takes up to a fifth of the time in which a filter compiles. Imports Numba.

Parts without an array, and those that are always inlined, are left to Numba. They are short, and
LLVM's code of them changes where machine code is made of it: level *serial* of *minimum* and of
*threshold mean*, which have them in their innermost loops, would take three times as long.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from llvmlite import binding  # type: ignore[import-untyped]
from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult, compile_result


class _Code(JITCodeLibrary):  # type: ignore[misc]
    """The code of a part."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0

    @property
    def codegen(self) -> Any:
        """Numba sets a variable of the machine code; here there is none."""
        return self

    def set_env(self, name: str, environment: object) -> None:
        pass

    def serialize_using_object_code(self) -> tuple[str, bytes]:
        return self.name, self._get_module_for_linking().as_bitcode()


class _PlainCode(JITCodeLibrary):  # type: ignore[misc]
    """Code without vector registers where it names none, which stops both vectorisers of LLVM."""

    def add_ir_module(self, module: Any) -> None:
        for function in module.functions:
            if not function.is_declaration and "cpython" not in function.name:  # the kernel itself
                function.attributes.add("noimplicitfloat")
        super().add_ir_module(module)


class _PlainPart(_Code, _PlainCode):
    pass


class _KernelCompiler(Compiler):  # type: ignore[misc]
    part = plain = False

    def compile_extra(self, function: Callable[..., Any]) -> Any:
        state, names = self.state, list(inspect.signature(function).parameters)
        takes_array = any(isinstance(each, types.Array) for each in state.args)
        is_part = self.part and takes_array and not state.flags.forceinline
        given = "plain" in names and state.args[names.index("plain")] != types.none
        codegen, name = state.targetctx.codegen(), function.__qualname__
        if is_part:
            state.library = (_PlainPart if self.plain or given else _Code)(codegen, name)
        elif self.plain or given:
            state.library = _PlainCode(codegen, name)
            state.library.enable_object_caching()
        return super().compile_extra(function)


def compiler(*, part: bool, plain: bool) -> type[_KernelCompiler]:
    """Return the compiler of a kernel, for the option `pipeline_class` of `numba.njit`."""
    return type("_Compiler", (_KernelCompiler,), {"part": part, "plain": plain})


def rebuild(context: Any, kept: tuple[Any, ...]) -> Any:
    """Return the part that Numba's `CompileResult` was saved of."""
    library, descriptor, environment, signature, *_ = kept
    if len(library) > 2:  # with machine code
        return CompileResult._rebuild(context, *kept)
    name, bitcode = library
    code = _Code(context.codegen(), name)
    code._final_module = binding.parse_bitcode(bitcode)
    code._finalize_final_module()
    return compile_result(
        typing_context=context.typing_context,
        target_context=context,
        library=code,
        entry_point=context.get_executable(code, descriptor, environment),
        fndesc=descriptor,
        environment=environment,
        signature=signature,
        objectmode=False,
        lifted=(),
        reload_init=[],
    )
