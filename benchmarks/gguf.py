"""A checkpoint in llama.cpp's format, by the converter in llama.cpp's own source.

    python benchmarks/gguf.py SOURCE DIR FILE.gguf [--outtype bf16]

SOURCE is vendor/llama.cpp of llama-cpp-python's source package, whose converter needs
transformers 4 and sentencepiece. It also wants a tokenizer and the released Python:
random checkpoints have neither, so the file says that it has no vocabulary, and the
converter reads a copy of the config that names no code. Builds nothing: the library is
`cmake -S SOURCE -B build -DBUILD_SHARED_LIBS=ON && cmake --build build --target llama`,
and LLAMA_CPP_LIB_PATH=build/bin leads llama-cpp-python to it.
"""

import argparse
import json
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any


def without_code(folder: Path, made: Path) -> None:
    """Fill `made` with links to a checkpoint's files and a config without code."""
    for path in folder.iterdir():
        if path.name != "config.json":
            (made / path.name).symlink_to(path.resolve())
    config = json.loads((folder / "config.json").read_text())
    config.pop("auto_map", None)
    (made / "config.json").write_text(json.dumps(config))


def no_vocabulary(model: Any) -> None:
    """Take the place of the converter's look for a tokenizer."""
    model.gguf_writer.add_tokenizer_model("none")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("dir", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--outtype", choices=("bf16", "f32"), default="bf16")
    args = parser.parse_args()
    sys.path[:0] = [str(args.source), str(args.source / "gguf-py")]
    import_module("conversion.kimi_k3").KimiK3Model.set_vocab = no_vocabulary
    converter = import_module("convert_hf_to_gguf")
    with tempfile.TemporaryDirectory() as kept:
        made = Path(kept, args.dir.resolve().name)  # the file tells this name
        made.mkdir()
        without_code(args.dir, made)
        words = [str(made), "--outtype", args.outtype, "--outfile", str(args.file)]
        sys.argv = ["convert_hf_to_gguf.py", *words]
        converter.main()


if __name__ == "__main__":
    main()
