"""``relaxir generate``: a folder of Hugging Face and a prompt in; text on stdout as it comes, on stderr how fast it came."""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Any

from ..dialect.errors import RelaxError
from ..lowering.relax_pipeline import NARROW
from .cli_numbers import seed, temperature
from .cli_output import tell
from .cli_paths import Read
from .sizes import count

__all__ = ["add_generate"]

#: Any of these makes a tokenizer.
_TOKENIZERS = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model")


def add_generate(commands: Any) -> None:
    """Adds the command to the others."""
    command = commands.add_parser("generate", help="text from a Hugging Face folder, compiled and prepared once")
    command.add_argument("folder", type=Read, metavar="FOLDER", help="config.json, safetensors and a tokenizer")
    command.add_argument("--prompt", required=True, metavar="TEXT")
    command.add_argument("--max-new-tokens", type=count, default=64, metavar="N", help="(default: %(default)s)")
    command.add_argument("--max-length", type=count, metavar="N", help="tokens of prompt and answer that there is code for")
    command.add_argument("--weights", choices=NARROW, help="dtype that weights of products are stored in")
    command.add_argument("--activations", choices=["int8"], help="of products with int8 and int4 weights (default: floats)")
    command.add_argument("--kv-cache", choices=["f16", "bf16"], help="dtype of kept keys and values (default: f32)")
    command.add_argument(
        "--temperature", type=temperature, metavar="T", help="draw tokens, 0: the likeliest (default: as the folder says)"
    )
    command.add_argument("--seed", type=seed, default=0, metavar="N", help="for tokens that are drawn (default: %(default)s)")
    command.add_argument("--jobs", type=count, default=1, metavar="N", help="threads that prepare weights")
    command.set_defaults(command=_generate)


def _generate(arguments: argparse.Namespace) -> None:
    from ..dialect.checks import expect_count
    from ..transformers import load
    from .cli_progress import progress_hook

    expect_count(arguments.max_new_tokens, "a number of tokens from 1 on as --max-new-tokens")
    import torch
    import transformers

    transformers.utils.logging.set_verbosity_error()
    tokenizer = _tokenizer(arguments.folder)
    started = time.perf_counter()
    with progress_hook("prepare", arguments.quiet) as hook:
        model: Any = load(
            arguments.folder,
            arguments.weights,
            activations=arguments.activations,
            kv_cache=arguments.kv_cache,
            max_length=arguments.max_length,
            jobs=arguments.jobs,
            progress=hook,
        )
    loaded = time.perf_counter() - started
    if not arguments.quiet:
        print(f"loaded {arguments.folder} in {loaded:.2f} s", file=sys.stderr)
    tokens = tokenizer(arguments.prompt, return_tensors="pt", return_token_type_ids=False)
    if not tokens["input_ids"].numel():
        raise RelaxError("expected a prompt of one token or more, got none")
    drawn: dict[str, Any] = {}
    if arguments.temperature is not None:
        drawn = {"do_sample": True, "temperature": arguments.temperature} if arguments.temperature else {"do_sample": False}
    torch.manual_seed(arguments.seed)
    shown = None if arguments.json else transformers.TextStreamer(tokenizer, skip_prompt=True, skip_special_tokens=True)
    clock, prompt = _Clock(shown), tokens["input_ids"].shape[1]
    made = model.generate(**tokens, max_new_tokens=arguments.max_new_tokens, streamer=clock, **drawn)
    if arguments.json:
        text = tokenizer.decode(made[0, prompt:], skip_special_tokens=True)
        tell(arguments, text, {"text": text, "seconds_loading": loaded, **clock.data(prompt)})
    if not arguments.quiet:
        print(clock.text(prompt), file=sys.stderr)


def _tokenizer(folder: str) -> Any:
    import transformers

    if not any(os.path.exists(os.path.join(folder, name)) for name in _TOKENIZERS):  # transformers makes an empty one
        raise RelaxError(f"'{folder}': expected a tokenizer ({', '.join(_TOKENIZERS)}), got none")
    try:
        return transformers.AutoTokenizer.from_pretrained(folder)
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = (str(error) or type(error).__name__).strip().splitlines()[0]
        raise RelaxError(f"'{folder}': expected a tokenizer that transformers can read, got {reason}") from error


class _Clock:
    """Hands tokens on, and notes when they come: first the prompt, then one at a time."""

    def __init__(self, streamer: Any):
        self._streamer, self._times = streamer, list[float]()

    def put(self, value: Any) -> None:
        self._times.append(time.perf_counter())
        if self._streamer is not None:
            self._streamer.put(value)

    def end(self) -> None:
        if self._streamer is not None:
            self._streamer.end()

    def data(self, prompt: int) -> dict[str, float]:
        """The same as :meth:`text`, as numbers."""
        begun, first, last = self._times[0], self._times[1], self._times[-1]
        more = len(self._times) - 2
        return {
            "prompt_tokens": prompt,
            "seconds_to_first": first - begun,
            "tokens": more + 1,
            "seconds_of_others": last - first,
        }

    def text(self, prompt: int) -> str:
        """How long the prompt and the first token took, and how many tokens came in a second after that."""
        begun, first, last = self._times[0], self._times[1], self._times[-1]
        more = len(self._times) - 2
        rate = f"{more / (last - first):.1f} tokens/s" if more else "no more"
        return f"prompt of {prompt} tokens and the first new one: {first - begun:.2f} s; then {more} tokens: {rate}"
