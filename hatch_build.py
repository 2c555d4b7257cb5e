"""The build step of `pip install`: compile the native kernels, or say why not."""

import importlib.util
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Pages of the reader that are documents of the repository.
DOCUMENTS = ("benchmarks/RESULTS.md", "docs/limits.md", "docs/verify.md")
BUILD = Path(__file__).parent / "k3" / "kernels" / "native" / "build.py"


class NativeKernels(BuildHookInterface):
    """Compiles beside the sources: an editable install finds them there too."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; a wheel with libraries belongs to this platform."""
        # An editable install reads them where they are.
        if version == "standard":
            for name in DOCUMENTS:
                inside = f"k3/reader/documents/{Path(name).name}"
                build_data["force_include"][name] = inside
        spec = importlib.util.spec_from_file_location("k3_native_build", BUILD)
        assert spec is not None
        assert spec.loader is not None
        build = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(build)
        try:
            made = build.build()
        except build.BuildError as error:
            print(f"k3: {error}; K3 runs on PyTorch alone", file=sys.stderr)
            return
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
        root = Path(self.root)
        build_data["artifacts"] += [str(path.relative_to(root)) for path in made]
