"""Compares models of other libraries, compiled, with PyTorch: graphs, segmentation, detection, medicine, filters, diffusion.

    .venv/bin/python test/conformance/library_models.py LIBRARY [--jobs N] [--keep FILE] [NAME ...]

``LIBRARY`` is one of the package names below; each is installed with ``pip install --no-deps``, and what its import asks for.
Models are built small, with random weights. A line for each that is not right, and how many are; what cannot be built, or
torch.export does not take, does not count. ``--keep FILE`` is that of ``transformers_models.py``.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from library_diffusers import diffusers_models
from model_runs import SIZES, Case, Tensors, is_stable, main_of, outcome, randomize

#: A model, and its inputs by name for so many rows.
Entry = tuple[Callable[[], torch.nn.Module], Callable[[int], dict[str, torch.Tensor]]]


def image(channels: int, *size: int) -> Callable[[int], dict[str, torch.Tensor]]:
    """Images, or volumes, as the only input."""
    return lambda rows: {"x": torch.randn(rows, channels, *size)}


class Positional(torch.nn.Module):
    """A function, or a model, that is called by position."""

    def __init__(self, function: Callable[..., Any]):
        super().__init__()
        self.function = function

    def forward(self, *tensors: torch.Tensor) -> Any:
        return self.function(*tensors)


def built(cls: Callable[..., torch.nn.Module], known: dict[str, Any]) -> torch.nn.Module:
    """A class with what its signature asks for. Raises KeyError for what is not known."""
    wanted = [p for p in inspect.signature(cls).parameters.values() if p.default is p.empty]
    return cls(**{p.name: known[p.name] for p in wanted if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)})


def segmentation_models_pytorch() -> Iterator[tuple[str, Entry]]:
    """Each architecture with a ResNet, and some with encoders of each kind."""
    import segmentation_models_pytorch as library

    encoders = (
        "mobilenet_v2",
        "efficientnet-b0",
        "mit_b0",
        "densenet121",
        "timm-regnetx_002",
        "mobileone_s0",
        "tu-convnext_atto",
    )
    for name in (
        "Unet",
        "UnetPlusPlus",
        "MAnet",
        "Linknet",
        "FPN",
        "PSPNet",
        "DeepLabV3",
        "DeepLabV3Plus",
        "PAN",
        "UPerNet",
        "Segformer",
    ):
        for encoder in ("resnet18", *(encoders if name in ("Unet", "FPN", "DeepLabV3Plus") else ())):
            make = functools.partial(getattr(library, name), encoder, encoder_weights=None, classes=4)
            yield f"{name}/{encoder}", (make, image(3, 64, 96))


def ultralytics() -> Iterator[tuple[str, Entry]]:
    """Detection, segmentation, poses, boxes that are turned, classes, of each generation."""
    from ultralytics.nn import tasks

    kinds = {
        "-seg": "Segmentation",
        "-pose": "Pose",
        "-obb": "OBB",
        "-cls": "Classification",
        "-world": "World",
        "rtdetr": "RTDETRDetection",
    }
    names = (
        "yolov3-tiny",
        "yolov5n",
        "yolov6n",
        "yolov8n",
        "yolov8n-ghost",
        "yolov9t",
        "yolov10n",
        "yolo11n",
        "yolo12n",
        "yolo26n",
        "yolov8n-seg",
        "yolo11n-seg",
        "yolo26n-seg",
        "yolov8n-pose",
        "yolo11n-pose",
        "yolo26n-pose",
        "yolov8n-obb",
        "yolo26n-obb",
        "yolov8n-cls",
        "yolo11n-cls",
        "yolov8s-worldv2",
        "rtdetr-resnet50",
        "rtdetr-l",
    )
    for name in names:
        kind = next((k for word, k in kinds.items() if word in name), "Detection")
        yield name, (functools.partial(getattr(tasks, f"{kind}Model"), f"{name}.yaml", verbose=False), image(3, 64, 96))


def torch_geometric() -> Iterator[tuple[str, Entry]]:
    """Each convolution, aggregation and whole model, on graphs of 20 edges."""
    import torch_geometric.nn as library

    def nodes(rows: int) -> torch.Tensor:
        return torch.randn(5 + rows, 8)

    def edges(rows: int) -> torch.Tensor:
        return torch.randint(5 + rows, (2, 20))

    def groups(rows: int) -> torch.Tensor:
        return torch.randint(3, (5 + rows,)).sort().values

    given = {
        "x": nodes,
        "x_0": nodes,
        "edge_index": edges,
        "edge_type": lambda rows: torch.randint(3, (20,)),
        "pos": lambda rows: torch.randn(5 + rows, 3),
        "pseudo": lambda rows: torch.rand(20, 2),
        "batch": groups,
    }
    degrees = {
        "aggregators": ["mean", "max", "std"],
        "scalers": ["identity", "amplification"],
        "deg": torch.tensor([1, 3, 4, 2]),
    }
    known = {
        "in_channels": 8,
        "out_channels": 16,
        "channels": 8,
        "num_relations": 3,
        "K": 2,
        "edge_dim": None,
        "kernel_size": 2,
        "dim": 2,
        "num_layers": 2,
        "alpha": 0.1,
        "shared_weights": True,
        "k": 3,
        "t": 1.0,
        "num_heads": 2,
        **degrees,
    }

    for name in library.conv.__all__:
        cls = getattr(library, name)
        wanted = [p.name for p in inspect.signature(cls.forward).parameters.values() if p.default is p.empty]
        known["nn"] = torch.nn.Linear(16 if "Edge" in name else 8, 16)

        def inputs(rows: int, wanted: list[str] = wanted) -> dict[str, torch.Tensor]:
            return {n: given[n](rows) for n in wanted if n not in ("self", "kwargs")}

        yield name, (functools.partial(built, cls, dict(known)), inputs)
    for name in ("GCN", "GraphSAGE", "GIN", "GAT", "PNA", "EdgeCNN"):
        options = {"norm": "batch_norm", "jk": "cat", **(degrees if name == "PNA" else {})}
        make = functools.partial(getattr(library, name), 8, 16, 3, 4, **options)
        yield f"{name} of three layers", (make, lambda rows: {"x": nodes(rows), "edge_index": edges(rows)})
    for name in ("global_add_pool", "global_mean_pool", "global_max_pool"):
        pool = functools.partial(getattr(library, name), size=3)
        yield name, (functools.partial(Positional, pool), lambda rows: {"x": nodes(rows), "batch": groups(rows)})


def monai() -> Iterator[tuple[str, Entry]]:
    """Networks for images and volumes."""
    from monai.networks import nets

    few = {"features": (8, 8, 16, 16, 16, 8)}
    diffusion = {"num_res_blocks": 1, "channels": (8, 16), "attention_levels": (False, True), "norm_num_groups": 8}
    for d in (2, 3):
        size = (64, 64) if d == 2 else (32, 32, 32)
        patches = {"spatial_dims": d, "hidden_size": 32, "mlp_dim": 64, "num_layers": 2, "num_heads": 2}
        models: dict[str, Callable[[], torch.nn.Module]] = {
            "UNet": lambda d=d: nets.UNet(d, 1, 2, (8, 16, 32), (2, 2), num_res_units=1),
            "BasicUNet": lambda d=d: nets.BasicUNet(d, 1, 2, **few),
            "BasicUNetPlusPlus": lambda d=d: nets.BasicUNetPlusPlus(d, 1, 2, **few),
            "AttentionUnet": lambda d=d: nets.AttentionUnet(d, 1, 2, (8, 16, 32), (2, 2)),
            "SegResNet": lambda d=d: nets.SegResNet(d, 8, 1, 2),
            "VNet": lambda d=d: nets.VNet(d, 1, 2),
            "DynUNet": lambda d=d: nets.DynUNet(d, 1, 2, [3, 3, 3], [1, 2, 2], [2, 2], filters=[8, 16, 32]),
            "UNETR": lambda d=d, size=size: nets.UNETR(1, 2, size, 8, 32, 64, 2, spatial_dims=d),
            "HighResNet": lambda d=d: nets.HighResNet(d, 1, 2),
            "DenseNet121": lambda d=d: nets.DenseNet121(d, 1, 3),
            "resnet10": lambda d=d: nets.resnet10(spatial_dims=d, n_input_channels=1, num_classes=3),
            "SEResNet50": lambda d=d: nets.SEResNet50(spatial_dims=d, in_channels=1, num_classes=3),
            "EfficientNetBN": lambda d=d: nets.EfficientNetBN(
                "efficientnet-b0", False, spatial_dims=d, in_channels=1, num_classes=3
            ),
            "ViT": lambda d=d, size=size, p=patches: nets.ViT(1, size, (8,) * d, classification=True, **p),
            "MedNeXt": lambda d=d: nets.MedNeXt(d, 4, blocks_down=(1, 1), blocks_bottleneck=1, blocks_up=(1, 1)),
            "RegUNet": lambda d=d: nets.RegUNet(d, 1, 4, 2),
            "LocalNet": lambda d=d: nets.LocalNet(d, 1, 4, (0, 1, 2)),
            "GlobalNet": lambda d=d, size=size: nets.GlobalNet(list(size), d, 1, 4, 2),
            "VQVAE": lambda d=d: nets.VQVAE(d, 1, 1, (8, 16), 1, (8, 16), ((2, 4, 1, 1),) * 2, ((2, 4, 1, 1, 0),) * 2, 16, 8),
        }
        for name, make in models.items():
            yield f"{name} {d}D", (make, image(1, *size))
        swin = {"feature_size": 12, "depths": (1, 1, 1, 1), "num_heads": (1, 2, 2, 2), "window_size": 4}
        yield f"SwinUNETR {d}D", (functools.partial(nets.SwinUNETR, 1, 2, spatial_dims=d, **swin), image(1, *(64,) * d))
        yield (
            f"DiffusionModelUNet {d}D",
            (
                functools.partial(nets.DiffusionModelUNet, d, 1, 1, num_head_channels=8, **diffusion),
                lambda rows, size=size: {"x": torch.randn(rows, 1, *size), "timesteps": torch.randint(1000, (rows,))},
            ),
        )


def vit_pytorch() -> Iterator[tuple[str, Entry]]:
    """Each vision transformer whose arguments are known."""
    import pkgutil

    import vit_pytorch as library

    known = {
        "image_size": 64,
        "patch_size": 8,
        "num_classes": 10,
        "dim": 32,
        "depth": 2,
        "heads": 2,
        "mlp_dim": 64,
        "frames": 8,
        "frame_patch_size": 2,
        "image_patch_size": 8,
        "spatial_depth": 1,
        "temporal_depth": 1,
        "seq_len": 64,
        "cls_depth": 1,
        "max_tokens_per_depth": (16, 8),
        "num_memories_per_layer": 2,
        "channels": 3,
        "ndim": 2,
        "input_shape": (64, 64),
        "dim_head": 16,
        "num_register_tokens": 2,
        "num_jumbo_cls": 1,
        "jumbo_cls_k": 2,
        "jumbo_ff_mult": 2,
    }
    for module in pkgutil.iter_modules(library.__path__):
        try:
            found = importlib.import_module(f"vit_pytorch.{module.name}")
        except (ImportError, OSError):  # of a package that is not installed
            continue
        shape = (
            (3, 64) if "1d" in module.name else (3, 8, 64, 64) if "3d" in module.name or "vivit" in module.name else (3, 64, 64)
        )
        for name, cls in vars(found).items():
            if inspect.isclass(cls) and issubclass(cls, torch.nn.Module) and cls.__module__ == found.__name__ and "ViT" in name:
                make = functools.partial(built, cls, known)
                yield (
                    f"{module.name}.{name}",
                    (
                        lambda make=make: Positional(make()),
                        lambda rows, shape=shape: {"x": torch.randn(rows, *shape)},
                    ),
                )


def kornia() -> Iterator[tuple[str, Entry]]:
    """Filters, colors, geometry, and what solves systems of equations."""
    import kornia as library

    known = {
        "kernel_size": (3, 3),
        "sigma": (1.5, 1.5),
        "factor": 1.4,
        "angle": torch.tensor([30.0]),
        "brightness_factor": 0.3,
        "contrast_factor": 0.3,
        "gamma": 2.2,
        "hue_factor": 0.3,
        "saturation_factor": 1.3,
        "kernel": torch.ones(3, 3),
        "dsize": (48, 40),
        "size": (48, 40),
        "sigma_color": 0.1,
        "sigma_space": (1.5, 1.5),
        "window_size": 5,
        "eps": 0.1,
        "direction": 0.5,
        "translation": torch.tensor([[3.0, 2.0]]),
        "scale_factor": torch.tensor([[1.2, 0.9]]),
        "alpha": 0.5,
        "max_val": 1.0,
        "shear": torch.tensor([[0.1, 0.2]]),
        "threshold": 0.5,
    }
    for place in ("color", "filters", "enhance", "geometry.transform", "morphology", "losses", "metrics"):
        module = functools.reduce(getattr, place.split("."), library)
        for name in sorted(dir(module)):
            cls = getattr(module, name)
            if not inspect.isclass(cls) or not issubclass(cls, torch.nn.Module):
                continue
            wanted = [p.name for p in inspect.signature(cls.forward).parameters.values() if p.default is p.empty][1:]
            channels = 1 if "GrayscaleTo" in name else 4 if name.startswith("Rgba") else 3

            def inputs(rows: int, wanted: list[str] = wanted, channels: int = channels) -> dict[str, torch.Tensor]:
                return {n: torch.rand(rows, channels, 48, 64) for n in wanted if n not in ("args", "kwargs")}

            yield f"{place}.{name}", (functools.partial(built, cls, known), inputs)
    geometry, enhance = library.geometry, library.enhance
    functions: dict[str, tuple[Callable[..., Any], Callable[[int], dict[str, torch.Tensor]]]] = {
        "warp_perspective": (
            lambda x, m: geometry.transform.warp_perspective(x, m, (40, 56)),
            lambda rows: {"x": torch.rand(rows, 3, 48, 64), "m": torch.eye(3) + 0.02 * torch.randn(rows, 3, 3)},
        ),
        "find_homography_dlt": (geometry.find_homography_dlt, lambda rows: {n: torch.randn(rows, 8, 2) for n in "ab"}),
        "find_fundamental": (
            lambda a, b: geometry.epipolar.find_fundamental(a, b, torch.ones(a.shape[:2])),
            lambda rows: {n: torch.randn(rows, 9, 2) for n in "ab"},
        ),
        "rotation_matrix_to_quaternion": (
            geometry.conversions.rotation_matrix_to_quaternion,
            lambda rows: {"x": torch.linalg.qr(torch.randn(rows, 3, 3))[0]},
        ),
        "equalize_clahe": (lambda x: enhance.equalize_clahe(x, grid_size=(4, 4)), image(3, 64, 64)),
        "jpeg": (lambda x: enhance.jpeg_codec_differentiable(x.sigmoid(), torch.tensor([50.0])), image(3, 64, 64)),
    }
    for name, (function, inputs) in functions.items():
        yield name, (functools.partial(Positional, function), inputs)


LIBRARIES: dict[str, Callable[[], Iterator[tuple[str, Entry]]]] = {
    f.__name__: f for f in (kornia, monai, segmentation_models_pytorch, torch_geometric, ultralytics, vit_pytorch)
} | {"diffusers": diffusers_models}


def case(library: str, name: str) -> Case:
    """The model with random weights, by names of its inputs or by position. Raises what it raises where it does not run."""
    make, inputs = dict(LIBRARIES[library]())[name]
    torch.manual_seed(0)
    model = make().eval()
    randomize(model)
    first = inputs(SIZES[0][0])
    called = Tensors(model, list(first)).eval()
    try:
        called(*first.values())
    except TypeError:
        called = Tensors(_ByPosition(model), list(first)).eval()
    if not is_stable(called, first):
        raise ValueError("results are random")
    return Case(called, lambda rows, _: inputs(rows))


class _ByPosition(torch.nn.Module):
    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.model = model

    def forward(self, **tensors: torch.Tensor) -> Any:
        return self.model(*tensors.values())


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in LIBRARIES:
        sys.exit(f"expected {', '.join(LIBRARIES)}, got {sys.argv[1:2]}")
    library = sys.argv.pop(1)
    main_of(
        __doc__ or "",
        lambda: [n for n, _ in LIBRARIES[library]()],
        functools.partial(outcome, functools.partial(case, library)),
    )
