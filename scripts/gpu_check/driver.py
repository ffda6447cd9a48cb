"""Which CUDA driver a run would talk to, asked without building anything, and what machine it is
on. Nothing here changes a setting of the GPU."""
import ctypes
import os
import platform
import re
import shutil
import subprocess


class NoDriver(Exception):
    """There is nothing to run over; the text says why."""


def probe(library):
    """What the library says of itself and its first device. Raises NoDriver."""
    name = library or os.environ.get("REFRAIN_CUDA_DRIVER") or "libcuda.so.1"
    try:
        driver = ctypes.CDLL(name)
    except OSError as error:
        raise NoDriver(f"no CUDA driver: {error}") from error

    def call(function, *arguments):
        try:
            code = getattr(driver, function)(*arguments)
        except AttributeError:
            raise NoDriver(f"no CUDA driver: {name} exports no {function}") from None
        if code != 0:
            raise NoDriver(f"no usable CUDA driver: {function} of {name} answers {code}"
                           + {34: ", as the toolkit's stub does", 100: ": no device"}.get(code, ""))

    call("cuInit", 0)
    version, count, device = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    text = ctypes.create_string_buffer(256)
    call("cuDriverGetVersion", ctypes.byref(version))
    call("cuDeviceGetCount", ctypes.byref(count))
    if count.value == 0:
        raise NoDriver(f"no usable CUDA driver: {name} has no device")
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDeviceGetName", text, len(text), device)
    simulated = hasattr(driver, "simControl")
    cuda = f"{version.value // 1000}.{version.value % 1000 // 10}"
    return {"name": text.value.decode(errors="replace"), "devices": count.value, "library": name,
            "cuda_version": cuda, "driver": cuda if simulated else release() or cuda,
            "simulated": simulated}


def release():
    """The driver's own version, as "580.95.05"; None where the kernel's module does not say."""
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8") as file:
            found = re.search(r"\b\d{3}\.\d+(\.\d+)?\b", file.read())
            return found and found.group()
    except OSError:
        found = first_line(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"])
        return found if found and re.fullmatch(r"[\d.]+", found) else None


def first_line(command, wanted=""):
    """The first line of what a program prints that has `wanted` in it; None where it will not."""
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = [line.strip() for line in done.stdout.splitlines() if wanted in line]
    return lines[0] if done.returncode == 0 and lines else None


def machine():
    """The machine and its tools, as far as they say."""
    cpu = None
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            cpu = next((line.split(":", 1)[1].strip() for line in file
                        if line.startswith("model name")), None)
    except OSError:
        pass
    return {"kernel": f"{platform.system()} {platform.release()}",
            "architecture": platform.machine(), "cpu": cpu, "cores": os.cpu_count(),
            "compiler": first_line(["g++", "--version"]),
            "cmake": first_line(["cmake", "--version"]),
            "nvcc": first_line(["nvcc", "--version"], "release")}
