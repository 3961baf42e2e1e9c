"""The serving engines that are recognised by what their processes run or call themselves; one table."""

from dataclasses import dataclass
from typing import Final

from inferwatch.targets.command import Command
from inferwatch.targets.expected_ports import PortOptions, expected_ports
from inferwatch.targets.text import clean

# Where clients connect. Only these are ever asked for a page: what workers listen on (NCCL, torch.distributed, gloo)
# takes a stranger's request for a broken peer.
FRONT_ROLES: Final = frozenset({"api_server", "router", "server", "main"})
# A target that has none of these is what is left of one.
HEADS: Final = FRONT_ROLES | {"launcher"}
CHILD: Final = "child"
MAIN: Final = "main"  # of a target that a user's rule names and nothing here recognises
CUSTOM: Final = "custom"
COMM_BYTES: Final = 15  # what the kernel keeps of a title that is only in the main thread's name
UNDER_RAY: Final = "ray::"  # their parent is Ray's, so processes of one engine are put together by it


@dataclass(frozen=True, slots=True)
class Start:
    """A way in which an engine's process is started.

    Args:
        role: What the process is.
        programs: Names of executables or scripts.
        modules: Python modules.
        verbs: Words that must follow, in this order.
        model_follows: Whether the word after that is the model, where it is no option.
    """

    role: str
    programs: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    model_follows: bool = False

    def matches(self, command: Command) -> bool:
        """Return whether a process was started so."""
        if command.words[: len(self.verbs)] != self.verbs:
            return False
        return command.program in self.programs or any(command.runs_module(module) for module in self.modules)


@dataclass(frozen=True, slots=True)
class Engine:
    """What is known of an engine's processes.

    Args:
        name: Value of the label `engine`.
        starts: How its processes are started; the first that matches counts.
        titles: Beginning of a title, to the role; the first that matches counts.
        model_options: Options that tell the model, the served name first.
        port_options: Options that tell the port of the HTTP server, with the port when it is not given.
        siblings: Whether its processes are one target when they have the same parent, which is not recognised itself.
    """

    name: str
    starts: tuple[Start, ...]
    titles: tuple[tuple[str, str], ...] = ()
    model_options: tuple[str, ...] = ()
    port_options: PortOptions = ((("--port",), 8000),)
    siblings: bool = False


@dataclass(frozen=True, slots=True)
class Recognised:
    """What a process was recognised as.

    Args:
        engine: Name of its engine.
        role: What it does there.
        model: Model that its command line tells, otherwise empty.
        ports: Ports at which its HTTP server is expected, the most likely first.
        siblings: See `Engine`.
    """

    engine: str
    role: str
    model: str = ""
    ports: tuple[int, ...] = ()
    siblings: bool = False


ENGINES: Final = (
    Engine(
        "vllm",
        starts=(
            Start("api_server", ("vllm",), ("vllm", "vllm.entrypoints.cli.main"), ("serve",), model_follows=True),
            Start("api_server", modules=("vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server")),
        ),
        titles=(
            ("VLLM::APIServer", "api_server"),
            ("VLLM::EngineCore", "engine_core"),
            ("VLLM::Worker", "worker"),
            ("VLLM::DPCoordinator", "coordinator"),
            ("VLLM::", CHILD),
            ("ray::RayWorkerWrapper", "worker"),
            ("ray::RayWorkerProc", "worker"),
            ("ray::DPEngineCoreActor", "engine_core"),
            ("ray::DPMoEEngineCoreActor", "engine_core"),
        ),
        model_options=("--served-model-name", "--model", "--model-tag"),
    ),
    Engine(
        "sglang",
        starts=(
            Start("api_server", modules=("sglang.launch_server",)),
            Start("api_server", ("sglang",), ("sglang", "sglang.cli.main"), ("serve",), model_follows=True),
            Start("router", ("sglang-router", "sglang_router"), ("sglang_router.launch_router",)),
            Start("launcher", modules=("sglang_router.launch_server",)),
        ),
        titles=(
            ("sglang::scheduler", "scheduler"),
            ("sglang::detokenizer", "detokenizer"),
            ("sglang::tokenizer", "tokenizer"),
            ("sglang::data_parallel_controller", "controller"),
            ("sglang::http_server", "api_server"),
            ("sglang::", CHILD),
        ),
        model_options=("--served-model-name", "--model-path", "--model"),
        port_options=((("--port",), 30000),),
    ),
    Engine(
        "tgi",
        starts=(
            Start("launcher", ("text-generation-launcher",)),
            Start("router", ("text-generation-router",)),
            Start("worker", ("text-generation-server",), ("text_generation_server.cli",), ("serve",), True),
        ),
        model_options=("--model-id", "--served-model-name", "--tokenizer-name"),
        port_options=((("--port", "-p"), 3000),),
    ),
    Engine(
        "triton",
        starts=(
            Start("server", ("tritonserver",)),
            Start("backend", ("triton_python_backend_stub", "trtllmExecutorWorker")),
        ),
        # it serves metrics on a port of their own
        port_options=((("--http-port",), 8000), (("--metrics-port",), 8002)),
    ),
    Engine(
        "llamacpp",
        starts=(Start("server", ("llama-server",)),),
        model_options=("--alias", "-a", "--model", "-m", "-hf", "--hf-repo"),
        port_options=((("--port",), 8080),),
    ),
    Engine(  # of llama-cpp-python
        "llamacpp",
        starts=(Start("server", modules=("llama_cpp.server",)),),
        model_options=("--model_alias", "--model"),
    ),
    Engine(
        "ollama",
        starts=(
            Start("api_server", ("ollama",), verbs=("serve",)),
            Start("runner", ("ollama",), verbs=("runner",)),
            Start("runner", ("ollama_llama_server",)),
        ),
        port_options=(((), 11434),),
    ),
    Engine(
        "lmdeploy",
        starts=(
            Start("api_server", ("lmdeploy",), ("lmdeploy",), ("serve", "api_server"), model_follows=True),
            Start("router", ("lmdeploy",), ("lmdeploy",), ("serve", "proxy")),
            Start("api_server", modules=("lmdeploy.serve.openai.api_server",), model_follows=True),
        ),
        model_options=("--model-name",),
        port_options=((("--server-port",), 23333),),
    ),
    Engine(
        "trtllm",
        starts=(
            Start("api_server", ("trtllm-serve",), verbs=("serve",), model_follows=True),
            Start("api_server", ("trtllm-serve",), verbs=("mm_embedding_serve",), model_follows=True),
            Start("router", ("trtllm-serve",), verbs=("disaggregated",)),
            Start("worker", ("trtllm-serve",), verbs=("disaggregated_mpi_worker",)),
            Start("api_server", ("trtllm-serve",), model_follows=True),
        ),
        model_options=("--served_model_name",),
    ),
    Engine(
        "ray",
        starts=(),
        titles=(
            ("ray::ServeReplica", "replica"),
            ("ray::ServeController", "controller"),
            ("ray::ProxyActor", "router"),
            ("ray::HTTPProxyActor", "router"),
        ),
        siblings=True,
    ),
)
ROLES: Final = frozenset(
    {CHILD, MAIN}
    | {start.role for engine in ENGINES for start in engine.starts}
    | {role for engine in ENGINES for _, role in engine.titles}
)


PROGRAMS: Final = frozenset(program for engine in ENGINES for start in engine.starts for program in start.programs)
TITLE_MARK: Final = "::"  # in all of them
SCRIPT: Final = ".py"


def recognise(command: Command) -> Recognised | None:
    """Return what a process is, None when it is nothing known."""
    if any(TITLE_MARK in title for title in command.titles) and (found := _by_title(command)) is not None:
        return found
    if command.program not in PROGRAMS and not command.module and not command.path.endswith(SCRIPT):
        return None  # what nearly all processes are
    if command.asks_for_help:
        return None
    for engine in ENGINES:
        for start in engine.starts:
            if start.matches(command):
                model = command.option(engine.model_options) or _following(command, start)
                return Recognised(engine.name, start.role, clean(model), expected_ports(engine.port_options, command))
    return None


def _by_title(command: Command) -> Recognised | None:
    for engine in ENGINES:
        for title, role in engine.titles:
            if any(_is_titled(own, title) for own in command.titles):
                ports = tuple(default for _, default in engine.port_options) if role in FRONT_ROLES else ()
                siblings = engine.siblings or title.startswith(UNDER_RAY)
                return Recognised(engine.name, role, ports=ports, siblings=siblings)
    return None


def _is_titled(own: str, title: str) -> bool:
    """Return whether a process calls itself so; the kernel cuts the name of a thread."""
    return own.startswith(title) or (len(own) == COMM_BYTES and title.startswith(own))


def _following(command: Command, start: Start) -> str:
    """Return the model where it is no option but stands behind the verbs."""
    return command.positional(len(start.verbs)) if start.model_follows else ""
