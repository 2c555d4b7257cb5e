"""Model under transformers' interface: from_pretrained, forward, generate, save."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig, GenerationMixin, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast

from k3.checkpoint import locate, save
from k3.checkpoint.load import load
from k3.config import K3Config
from k3.errors import RequestError
from k3.hf import options, rows
from k3.hf.config import KimiK3Config
from k3.hf.sampler import SeededSampler
from k3.hf.state_cache import StateCache
from k3.model import Model, stored


class KimiK3ForConditionalGeneration(PreTrainedModel, GenerationMixin):
    """`core` is the k3.model.Model; parameters carry the checkpoint's names."""

    config_class = KimiK3Config
    main_input_name = "input_ids"
    input_modalities = ("text", "image")
    core: Model

    def __init__(self, config: KimiK3Config, model: Model | None = None) -> None:
        """Wrap a model, or make a fresh one with the initial weights of a config."""
        super().__init__(config)
        if model is None:
            dtype = options.trunk(config.dtype)
            model = Model(config.released, dtype=dtype).init_weights()
        stored.refuse(model, "transformers' interface")
        # Not a child: its children stand here under the checkpoint's names.
        object.__setattr__(self, "core", model)
        for name, child in model.named_children():
            self.add_module(name, child)
        self.generation_config = ends(config.released, None)
        self.post_init()

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | os.PathLike[str],
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Load a directory in the released layout, or "tiny", as k3.load does.

        Options: config, dtype (the file's by default), device_map (one device),
        experts ("packed", "dequantized", "mmap"), output_loading_info. Options that
        choose among files of a hub have no effect: nothing is downloaded.
        Raises: RequestError for any other option; CheckpointError, ConfigError.
        """
        asked = options.read(args, kwargs)
        folder = locate.locate(pretrained_model_name_or_path)
        released = K3Config.load(folder)
        config = KimiK3Config(released=released, dtype=asked.dtype)
        config.name_or_path = str(folder)
        dtype = options.trunk(config.dtype)
        core = load(folder, dtype=dtype, device=asked.device, experts=asked.experts)
        model = cls(config, core)
        model.generation_config = ends(released, folder)
        model.eval()
        return (model, options.NOTHING_MISSING) if asked.loading_info else model

    def save_pretrained(
        self, save_directory: str | os.PathLike[str], **kwargs: Any
    ) -> None:
        """Write the released layout: config, shards, index and generation_config.

        Options: max_shard_size (bytes or "5GB"), experts ("packed" or "dense").
        Raises: RequestError for any other option.
        """
        chosen = options.saving(kwargs)
        if chosen is not None:
            save.save(self.core, save_directory, **chosen)
            self.generation_config.save_pretrained(save_directory)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Take other weights; caches made before belong to them no longer."""
        return self.core.load_state_dict(*args, **kwargs)

    def init_weights(self) -> None:
        """Leave the weights: the core has made or loaded its own."""

    def get_input_embeddings(self) -> torch.nn.Module:
        """Return the embedding table."""
        return self.core.language_model.model.embed_tokens

    def get_output_embeddings(self) -> torch.nn.Module:
        """Return the head."""
        return self.core.language_model.lm_head

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        *,
        cache: StateCache | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        logits_to_keep: int | Tensor = 0,
        pixel_values: Tensor | None = None,
        grid_thws: Tensor | None = None,
        past_key_values: StateCache | None = None,
        return_dict: bool | None = None,
    ) -> Any:
        """Logits [B T W] in fp32, with the loss if there are labels.

        A token that attention_mask masks is not there, on either side. `cache`, or
        past_key_values, is changed in place and returned; without one, a new one is
        returned if use_cache says so (by default in eval mode without labels).
        `pixel_values` [N 3 P P] and `grid_thws` [n 3] are images whose placeholders
        are already as many as their rows.
        Raises: RequestError, ShapeError.
        """
        wants = labels is None and not self.training if use_cache is None else use_cache
        cache = options.one_cache(cache, past_key_values, wants)
        seen = 0 if cache is None else cache.seen
        new = rows.new_columns(attention_mask, input_ids, seen)
        features = options.features(self.core, pixel_values, grid_thws)
        keep = 0 if labels is not None else logits_to_keep
        logits = self._run(input_ids, new, cache, (features, keep))
        loss = None
        if labels is not None:
            wanted = rows.targets(labels, new, self.config.released.ignore_index)
            size = self.config.released.text.vocab_size
            loss = self.loss_function(logits, wanted, vocab_size=size)
            logits = options.kept(logits, logits_to_keep)
        out = CausalLMOutputWithPast(loss=loss, logits=logits, cache=cache)
        return out.to_tuple() if return_dict is False else out

    def _run(
        self,
        ids: Tensor,
        new: Tensor | None,
        cache: StateCache | None,
        given: tuple[Tensor | None, int | Tensor],
    ) -> Tensor:
        """One pass; masked tokens are left out and their columns filled again."""
        features, keep = given
        last = isinstance(keep, int) and keep == 1
        more: dict[str, Any] = {
            "features": features,
            "logits": "last" if last else "all",
        }
        if cache is not None:
            more["state"] = cache.begin(self.core, len(ids))
        if new is None:
            out = self.core(ids, **more)
        else:
            more["cu_seqlens"] = rows.ends(new)
            out = self.core(ids[new][None], **more)
        logits = out
        if cache is not None:
            logits, state = out
            cache.moved(state, ids.shape[1])
        if new is not None and not last:
            logits = rows.spread(logits[0], new)
        return logits if last else options.kept(logits, keep)

    def prepare_inputs_for_generation(
        self,
        input_ids: Tensor,
        next_sequence_length: int | None = None,
        *,
        cache: StateCache | None = None,
        attention_mask: Tensor | None = None,
        is_first_iteration: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Return what the next pass takes; images go with the first alone."""
        if next_sequence_length is not None:
            input_ids = input_ids[:, -next_sequence_length:]
        given = {
            "input_ids": input_ids,
            "attention_mask": attention_mask,
            "cache": cache,
        }
        names = ["use_cache", "logits_to_keep"]
        if is_first_iteration or not kwargs.get("use_cache", True):
            names += ["pixel_values", "grid_thws"]
        return given | {name: kwargs[name] for name in names if name in kwargs}

    def _prepare_cache_for_generation(
        self,
        generation_config: GenerationConfig,
        model_kwargs: dict[str, Any],
        *rest: Any,
    ) -> None:
        """Start from an empty StateCache; transformers' own cannot hold K3's state."""
        if generation_config.cache_implementation is not None:
            raise RequestError(
                "K3 carries a DecodeState: cache_implementation must be left out, got "
                f"{generation_config.cache_implementation!r}"
            )
        if generation_config.use_cache and model_kwargs.get("cache") is None:
            model_kwargs["cache"] = StateCache()

    def generate(
        self,
        inputs: Tensor | None = None,
        *,
        seed: int | Sequence[int] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Generate as transformers does, or with `seed` as k3.model.generate does.

        With a seed (one for all rows, or one for each) tokens are drawn by k3's
        sampler: temperature, top_k, top_p and min_p mean what they mean there, with
        its defaults, and the same seed gives the same tokens.
        """
        if seed is not None:
            drawn = SeededSampler(options.sampling(kwargs), seed)
            kwargs["logits_processor"] = [
                *(kwargs.get("logits_processor") or []),
                drawn,
            ]
            kwargs["do_sample"] = False
        return super().generate(inputs, **kwargs)


def ends(config: K3Config, folder: Path | None) -> GenerationConfig:
    """Return generation_config.json, ending also where config.json ends."""
    if folder is not None and (folder / "generation_config.json").is_file():
        made = GenerationConfig.from_pretrained(folder)
    else:
        made = GenerationConfig()
    found = made.eos_token_id
    listed = list(found) if isinstance(found, list) else [found]
    listed = [x for x in dict.fromkeys([config.eos_token_id, *listed]) if x is not None]
    made.eos_token_id = listed[0] if len(listed) == 1 else listed or None
    made.bos_token_id, made.pad_token_id = config.bos_token_id, config.pad_token_id
    return made
