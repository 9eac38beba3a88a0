"""The torch modules of the cases, with random weights: single operations, and models from transformers' configurations."""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

Made = tuple[nn.Module, dict[str, torch.Tensor]]

#: Tokens that a decoding step finds in its cache.
PAST = 128

#: Rows of a weight that share a scale, for four bits.
GROUP = 32


def linear(m: int, n: int, k: int) -> Made:
    """``x @ w.T`` without bias."""
    return nn.Linear(k, n, bias=False), {"input": torch.randn(m, k)}


class Narrow(nn.Module):
    """Layers ``x @ (q * scale).T`` on narrow weights ``q[out, in]``; the reference multiplies in f32.

    Attributes:
        dtype: ``"bf16"``, ``"int8"`` (a scale per output) or ``"int4"`` (a scale per output and :data:`GROUP` inputs; stored as
            int8 here, each peer packs it).
    """

    def __init__(self, dtype: str, size: int, layers: int):
        super().__init__()
        self.dtype = dtype
        for i in range(layers):
            values = torch.randn(size, size)
            if dtype == "bf16":
                self.register_buffer(f"q{i}", (values * size**-0.5).to(torch.bfloat16))
                continue
            largest, spread = (127, 32) if dtype == "int8" else (7, 2.5)
            groups = 1 if dtype == "int8" else size // GROUP
            self.register_buffer(f"q{i}", (values * spread).round().clamp(-largest, largest).to(torch.int8))
            self.register_buffer(f"s{i}", (0.9 + 0.2 * torch.rand(size, groups)) / (spread * size**0.5))
        self.layers = layers

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i in range(self.layers):
            x = x @ self.wide(i).to(x.dtype).T
        return x

    def wide(self, i: int) -> torch.Tensor:
        """The weight of a layer in f32."""
        q = getattr(self, f"q{i}").float()
        if self.dtype == "bf16":
            return q
        scale = getattr(self, f"s{i}")
        return (q.view(q.shape[0], scale.shape[1], -1) * scale[:, :, None]).view(q.shape)


def narrow(dtype: str, m: int, size: int, layers: int) -> Made:
    """A stack of square layers with narrow weights."""
    return Narrow(dtype, size, layers), {"x": torch.randn(m, size)}


class _Rows(nn.Module):
    def __init__(self, name: str, size: int):
        super().__init__()
        self.name = name
        if name == "layer_norm":
            self.norm = nn.LayerNorm(size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.name == "layer_norm":
            return self.norm(x)
        return F.gelu(x) if self.name == "gelu" else torch.softmax(x, 1)


def rows(name: str, size: int) -> Made:
    """``softmax``, ``layer_norm`` or ``gelu`` of a square."""
    return _Rows(name, size), {"x": 2 * torch.randn(size, size)}


class _Attention(nn.Module):
    def __init__(self, causal: bool):
        super().__init__()
        self.causal = causal

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)


def attention(heads: int, length: int, size: int, causal: bool) -> Made:
    """Attention of one sequence."""
    return _Attention(causal), {name: torch.randn(1, heads, length, size) for name in "qkv"}


def mlp(batch: int) -> Made:
    """1024, 4096, 1024 around a gelu."""
    return nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)), {"input": torch.randn(batch, 1024)}


class _Output(nn.Module):
    """A model of transformers that returns one tensor."""

    def __init__(self, model: nn.Module, output: str, **options: object):
        super().__init__()
        self.model, self.output, self.options = model, output, options

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return getattr(self.model(x, **self.options), self.output)


def bert(batch: int, length: int = 128) -> Made:
    """BERT-base."""
    from transformers import BertConfig, BertModel

    model = BertModel(BertConfig(attn_implementation="sdpa"))
    return _Output(model, "last_hidden_state"), {"x": torch.randint(0, 30000, (batch, length))}


class Decode(nn.Module):
    """One step of a decoder behind a cache: logits, and what the step adds to the cache.

    Attributes:
        prompt: the tokens that the cache is of.
    """

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model
        self.prompt: list[int] = []

    def forward(self, x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        from transformers.cache_utils import DynamicCache

        cache = DynamicCache()
        for i in range(keys.shape[0]):
            cache.update(keys[i], values[i], i)
        place = torch.full((1, 1), keys.shape[3])
        logits = self.model(x, past_key_values=cache, position_ids=place, use_cache=True).logits
        added = [(layer.keys[:, :, -1:], layer.values[:, :, -1:]) for layer in cache.layers]
        return logits, torch.stack([k for k, _ in added]), torch.stack([v for _, v in added])


def _decoder(model: nn.Module, vocabulary: int, length: int, past: int = PAST) -> Made:
    """Prefill with the last token's logits, as decoding needs them; or, for a length of 1, a step of :class:`Decode`."""
    ids = torch.randint(0, vocabulary, (1, past + 1 if length == 1 else length))
    if length > 1:
        return _Output(model, "logits", use_cache=False, logits_to_keep=1), {"x": ids}
    with torch.no_grad():
        layers = model.eval()(ids[:, :past], use_cache=True, logits_to_keep=1).past_key_values.layers
    keys, values = torch.stack([layer.keys for layer in layers]), torch.stack([layer.values for layer in layers])
    decode = Decode(model)
    decode.prompt = ids[0, :past].tolist()
    return decode, {"x": ids[:, past:].clone(), "keys": keys, "values": values}


def gpt2(length: int) -> Made:
    """GPT-2 small."""
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(attn_implementation="sdpa"))
    return _decoder(model, 50000, length)


def llama(hidden: int, layers: int, length: int, weights: str = "f32", past: int = PAST) -> Made:
    """A stack of Llama's blocks of real size under a small vocabulary; for narrow weights, see :func:`_round`."""
    from transformers import LlamaConfig, LlamaForCausalLM

    heads, shared, inner = {2048: (32, 4, 5632), 4096: (32, 8, 11008)}[hidden]
    config = LlamaConfig(vocab_size=4096, hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads,
                         num_key_value_heads=shared, intermediate_size=inner,
                         max_position_embeddings=max(2048, length, past + 1), attn_implementation="sdpa")  # fmt: skip
    model = LlamaForCausalLM(config)
    for part in model.modules():
        if weights != "f32" and isinstance(part, nn.Linear):
            _round(part.weight.data, weights)
    return _decoder(model, 4000, length, past)


def rounded(made: Made) -> Made:
    """A model in f32 whose parameters and inputs are numbers of bf16."""
    module, inputs = made
    narrow = {name: x.to(torch.bfloat16).to(x.dtype) if x.is_floating_point() else x for name, x in inputs.items()}
    return module.to(torch.bfloat16).to(torch.float32), narrow


def _round(weight: torch.Tensor, dtype: str) -> None:
    """Rounds an f32 weight ``[out, in]`` to what ``dtype`` can store, so that each peer stores it as it likes with little loss.

    int8: 255 values per output. int4: 16 values per output and :data:`GROUP` inputs, the largest -8 times a scale that is an
    f16, as in GGUF's Q4_0.
    """
    if dtype == "bf16":
        weight.copy_(weight.to(torch.bfloat16))
        return
    groups = weight.view(weight.shape[0], 1 if dtype == "int8" else -1, GROUP if dtype == "int4" else weight.shape[1])
    largest = groups.gather(2, groups.abs().argmax(2, keepdim=True))
    scale = largest.abs() / 127 if dtype == "int8" else (largest / -8).half().float()
    low, high = (-127, 127) if dtype == "int8" else (-8, 7)
    groups.copy_((groups / scale).round().clamp(low, high) * scale)


class _Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions around a shortcut."""

    def __init__(self, channels: int, width: int, stride: int):
        super().__init__()
        out = 4 * width
        self.conv1, self.bn1 = nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out)
        self.downsample = None
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        return F.relu(self.bn3(self.conv3(x)) + shortcut)


class _ResNet50(nn.Module):
    """He et al., Deep Residual Learning for Image Recognition, arXiv:1512.03385; strides at the 3x3, as in torchvision."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        blocks, channels = [], 64
        for i, depth in enumerate((3, 4, 6, 3)):
            for j in range(depth):
                blocks.append(_Bottleneck(channels, 64 << i, 2 if i and not j else 1))
                channels = 256 << i
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(2048, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        return self.fc(self.blocks(x).mean((2, 3)))


def resnet50(batch: int = 1) -> Made:
    """ResNet-50 with random running statistics on so many images."""
    module = _ResNet50()
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
    return module, {"x": torch.randn(batch, 3, 224, 224)}


def whisper() -> Made:
    """The encoder of Whisper small on 30 seconds: two 1D convolutions, then 12 blocks of 1500 positions."""
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = WhisperConfig(d_model=768, encoder_layers=12, encoder_attention_heads=12, encoder_ffn_dim=3072,
                           attn_implementation="sdpa")  # fmt: skip
    return _Output(WhisperEncoder(config), "last_hidden_state"), {"x": torch.randn(1, 80, 3000)}


def wav2vec2() -> Made:
    """wav2vec 2.0 base on 5 seconds of sound."""
    from transformers import Wav2Vec2Config, Wav2Vec2Model

    return _Output(Wav2Vec2Model(Wav2Vec2Config(attn_implementation="sdpa")), "last_hidden_state"), {"x": torch.randn(1, 80000)}


def distilbert(batch: int) -> Made:
    """DistilBERT, 128 tokens."""
    from transformers import DistilBertConfig, DistilBertModel

    model = DistilBertModel(DistilBertConfig(attn_implementation="sdpa"))
    return _Output(model, "last_hidden_state"), {"x": torch.randint(0, 30000, (batch, 128))}


def qwen2(length: int) -> Made:
    """Four blocks of Qwen2-0.5B under a small vocabulary."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    config = Qwen2Config(vocab_size=4096, hidden_size=896, num_hidden_layers=4, num_attention_heads=14, num_key_value_heads=2,
                         intermediate_size=4864, attn_implementation="sdpa")  # fmt: skip
    return _decoder(Qwen2ForCausalLM(config), 4000, length)


def mixtral(length: int) -> Made:
    """Two blocks of Mixtral's form, an eighth as large: eight experts, of which a token takes two."""
    from transformers import MixtralConfig, MixtralForCausalLM

    config = MixtralConfig(vocab_size=4096, hidden_size=1024, num_hidden_layers=2, num_attention_heads=16,
                           num_key_value_heads=4, intermediate_size=3584, attn_implementation="sdpa")  # fmt: skip
    return _decoder(MixtralForCausalLM(config), 4000, length)


def qwen3_moe(length: int, weights: str = "f32") -> Made:
    """Two blocks of Qwen3-MoE's form, half as wide: 64 experts, of which a token takes eight.

    The router tells experts apart more than one of random numbers does: mostly the same are taken, however it is rounded.
    """
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

    config = Qwen3MoeConfig(vocab_size=4096, hidden_size=1024, num_hidden_layers=2, num_attention_heads=16,
                            num_key_value_heads=4, head_dim=64, intermediate_size=1024, moe_intermediate_size=512,
                            num_experts=64, num_experts_per_tok=8, norm_topk_prob=True, max_position_embeddings=2048,
                            attn_implementation="sdpa")  # fmt: skip
    model = Qwen3MoeForCausalLM(config)
    for name, part in model.named_parameters():
        if name.endswith("mlp.gate.weight"):
            part.data *= 40
        elif weights != "f32" and part.ndim > 1 and "embed_tokens" not in name:
            for matrix in part.data if part.ndim > 2 else [part.data]:
                _round(matrix, weights)
    return _decoder(model, 4000, length)
