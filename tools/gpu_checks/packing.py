# SPDX-License-Identifier: Apache-2.0
"""What a GPU machine gets: programs, tests and their libraries, in one file."""
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".gpu_check"
PACK = FOLDER / "pack.tar.xz"
PROGRAMS = ["bin/cuda_kernels_benchmark", "bin/outrider", "bin/outrider-coordinator", "bin/outrider-drafter", "bin/outrider-verifier",
            "tests/kernels_cuda_gpu_tests", "tests/cuda_golden_tests"]
KERNELS = "lib/liboutrider_cuda_kernels.so"
LIBRARIES = [KERNELS, "lib/liboutrider_torch_model.so"]  # that programs open at run time
EVERYWHERE = re.compile(r"(ld-linux|lib(c|m|dl|rt|util|pthread|gcc_s|stdc\+\+)\.so)")
OF_TORCH = re.compile(r"/(torch|nvidia)/")


def libraries_of(program):
    """The paths of what it loads, but what every machine or its torch has."""
    text = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    if missing := re.findall(r"(\S+) => not found", text):
        sys.exit(f"gpu_check: {program} loads {', '.join(missing)}, which this machine does not have")
    paths = re.findall(r"=> (/\S+)", text)
    return {pathlib.Path(p) for p in paths if not EVERYWHERE.search(p) and not OF_TORCH.search(p)}


# Of the languages' data, 7 MiB of a pack, nothing is asked: classes of characters and NFC are in libicuuc itself. Their
# library has to be there, so it goes along without contents: the head of an archive of no entries, as ICU's "stubdata" is.
ICU_DATA = re.compile(r"libicudata\.so\.(\d+)$")
NO_ICU_DATA = """
#include <stdint.h>
const struct { uint16_t size; uint8_t magic[2]; uint16_t info_size, zero; uint8_t is_big_endian, charset, char_size, zeros,
               format[4], format_version[4], data_version[4], padding[8]; uint32_t num_entries, more[5]; }
    icudt%s_dat __attribute__((aligned(16))) =
    {32, {0xDA, 0x27}, 20, 0, 0, 0, 2, 0, {'C', 'm', 'n', 'D'}, {1}, {0}, {0}, 0, {0}};
"""


def without_contents(library, folder):
    """A library of ICU's data that has none, in the place of this one."""
    copy = pathlib.Path(folder) / library.name
    subprocess.run(["cc", "-shared", "-x", "c", "-", "-o", copy, f"-Wl,-soname,{library.name}"], check=True, text=True,
                   input=NO_ICU_DATA % ICU_DATA.search(library.name)[1])
    return copy


def size_of_tree():
    """What travels besides: every tracked file."""
    names = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], check=True, capture_output=True, text=True).stdout
    return sum((ROOT / name).stat().st_size for name in names.split("\0") if name and (ROOT / name).is_file())


def pack(build, max_mib):
    """Writes PACK from a build; ends the program where something is missing, or too large."""
    missing = [name for name in [*PROGRAMS, *LIBRARIES] if not (build / name).exists()]
    if missing:
        sys.exit(f"gpu_check: build first: {', '.join(missing)} of {build}")
    FOLDER.mkdir(exist_ok=True)
    # Programs repeat each other's code, further back than presets remember, and calls of one place look alike where their
    # distances become addresses. More of an effort than the least is a tenth in size for three times as long.
    filters = [{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "preset": 1, "dict_size": 64 << 20}]
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory() as emptied, \
            lzma.open(PACK, "wb", filters=filters) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        def add(path, name):
            stripped = shutil.copy(path.resolve(), pathlib.Path(scratch) / pathlib.Path(name).name)
            os.chmod(stripped, 0o755)
            subprocess.run(["strip", "--strip-unneeded", stripped], check=True)
            archive.add(stripped, name)
        for name in [*PROGRAMS, *LIBRARIES]:
            add(build / name, name)
        needed = set().union(*(libraries_of(build / name) for name in [*PROGRAMS, *LIBRARIES]))
        for path in sorted(p for p in needed if f"lib/{p.name}" not in LIBRARIES):
            is_data = ICU_DATA.search(path.name) is not None
            add(without_contents(path, emptied) if is_data else path, f"lib/{path.name}")
    mib = (PACK.stat().st_size + size_of_tree()) / 2**20
    print(f"packed {PACK.relative_to(ROOT)}: {PACK.stat().st_size / 2**20:.1f} MiB, {mib:.1f} MiB with the checkout")
    if mib > max_mib:
        sys.exit(f"gpu_check: that is more than --max-size {max_mib:g}")


def unpack(folder):
    """The pack's files, below `folder`."""
    if not PACK.exists():
        sys.exit(f"gpu_check: {PACK.relative_to(ROOT)} is not there: run `tools/gpu_check --pack` where the build is")
    with tarfile.open(PACK) as archive:
        # Our own files; Pythons before 3.11.4 have no filters.
        archive.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
