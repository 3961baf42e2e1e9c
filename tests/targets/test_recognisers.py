import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferwatch.sources.procfs.cmdline import parse_cmdline
from inferwatch.targets.command import read_command
from inferwatch.targets.recognisers import ROLES, Recognised, recognise

SERVER = "vllm.entrypoints.openai.api_server"


def what(line: str, comm: str = "") -> Recognised | None:
    return recognise(read_command(line.split(), comm))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("vllm serve meta/L3 --port 9000", ("vllm", "api_server", "meta/L3", 9000)),
        ("/usr/bin/python3 /opt/venv/bin/vllm serve meta/L3", ("vllm", "api_server", "meta/L3", 8000)),
        ("python3.12 -u -X dev -m vllm serve --model=m", ("vllm", "api_server", "m", 8000)),
        (f"python -m {SERVER} --model m --served-model-name s t --port=81", ("vllm", "api_server", "s", 81)),
        (f"python -um{SERVER} --model m", ("vllm", "api_server", "m", 8000)),
        ("python /src/vllm/entrypoints/openai/api_server.py --model m", ("vllm", "api_server", "m", 8000)),
        ("/lib64/ld-linux-x86-64.so.2 /usr/bin/python3 -m vllm serve m", ("vllm", "api_server", "m", 8000)),
        ("python -m sglang.launch_server --model-path q --port 30001", ("sglang", "api_server", "q", 30001)),
        ("sglang serve --model-path q", ("sglang", "api_server", "q", 30000)),
        ("text-generation-launcher --model-id b/x -p 80", ("tgi", "launcher", "b/x", 80)),
        ("text-generation-router --port 80", ("tgi", "router", "", 80)),
        ("/opt/conda/bin/python3.10 /opt/conda/bin/text-generation-server serve b/x", ("tgi", "worker", "b/x", 3000)),
        ("tritonserver --model-repository=/models", ("triton", "server", "", 8000)),
        ("/opt/triton_python_backend_stub /models/x", ("triton", "backend", "", 8000)),
        ("./llama-server -m /m.gguf --port 8200", ("llamacpp", "server", "/m.gguf", 8200)),
        ("llama-server -m /m.gguf --alias tiny", ("llamacpp", "server", "tiny", 8080)),
        ("python -m llama_cpp.server --model /m.gguf", ("llamacpp", "server", "/m.gguf", 8000)),
        ("/usr/bin/ollama serve", ("ollama", "api_server", "", 11434)),
        ("/usr/bin/ollama runner --model /blob --port 41234", ("ollama", "runner", "", 11434)),
        ("lmdeploy serve api_server q/w --server-port 1", ("lmdeploy", "api_server", "q/w", 1)),
        ("python3 /bin/lmdeploy serve api_server q/w", ("lmdeploy", "api_server", "q/w", 23333)),
        ("trtllm-serve m/x --port 8001", ("trtllm", "api_server", "m/x", 8001)),
        ("trtllm-serve serve m/x", ("trtllm", "api_server", "m/x", 8000)),
        ("trtllm-serve disaggregated -c disagg.yaml", ("trtllm", "router", "", 8000)),
        ("trtllm-serve disaggregated_mpi_worker -c disagg.yaml", ("trtllm", "worker", "", 8000)),
        ("trtllm-serve mm_embedding_serve m/x", ("trtllm", "api_server", "m/x", 8000)),
        ("vllm serve m --port 9000 --port 9001", ("vllm", "api_server", "m", 9001)),
        ("vllm serve --port 9000 m", ("vllm", "api_server", "m", 9000)),
        ("vllm serve --enforce-eager --max-model-len=4096 --dtype half m", ("vllm", "api_server", "m", 8000)),
        ("vllm serve -O3 -tp 2 m", ("vllm", "api_server", "m", 8000)),
        ("sglang serve --port 30002 q", ("sglang", "api_server", "q", 30002)),
        ("/opt/llama-server-cuda -m /m.gguf", ("llamacpp", "server", "/m.gguf", 8080)),
        ("/nix/store/x/bin/.ollama-wrapped serve", ("ollama", "api_server", "", 11434)),
        ("vllm-cpu serve m", ("vllm", "api_server", "m", 8000)),
        ("python3-dbg -m vllm serve m", ("vllm", "api_server", "m", 8000)),
        ("python3.11d /opt/venv/bin/vllm serve m", ("vllm", "api_server", "m", 8000)),
    ],
)
def test_command_lines_of_engines(line: str, expected: tuple[str, str, str, int]) -> None:
    found = what(line)

    assert found is not None
    assert (found.engine, found.role, found.model, found.ports[0]) == expected


@pytest.mark.parametrize(
    ("title", "engine", "role"),
    [
        ("VLLM::EngineCore", "vllm", "engine_core"),
        ("VLLM::EngineCore_DP0", "vllm", "engine_core"),
        ("VLLM::Worker_DP0_TP1_EP1", "vllm", "worker"),
        ("VLLM::APIServer_1", "vllm", "api_server"),
        ("VLLM::DPCoordinator", "vllm", "coordinator"),
        ("VLLM::SomethingNew", "vllm", "child"),
        ("sglang::scheduler_TP0", "sglang", "scheduler"),
        ("sglang::detokenizer", "sglang", "detokenizer"),
        ("ray::ServeReplica:app:Model.handle_request", "ray", "replica"),
        ("ray::ProxyActor.run", "ray", "router"),
        ("ray::RayWorkerWrapper.execute_method", "vllm", "worker"),
    ],
)
def test_titles(title: str, engine: str, role: str) -> None:
    by_title, by_comm = recognise(read_command([title], "x")), what("python -c x", title[:15])

    assert by_title is not None
    assert by_comm is not None
    assert (by_title.engine, by_title.role) == (engine, role)
    assert by_comm.engine == engine


@pytest.mark.parametrize(
    "line",
    [
        "grep vllm serve",
        "bash -c vllm serve m",
        "/bin/sh /usr/bin/vllm serve m",
        "vim llama-server.cpp",
        "tail -f /var/log/vllm/serve",
        "watch vllm serve",
        "sudo vllm serve m",
        "strace -f llama-server",
        f"pytest -k {SERVER}",
        "python -c import vllm serve",
        f"python train.py -m {SERVER}",
        "python -m pytest vllm serve",
        "vllm bench serve",
        "vllm chat",
        "ollama run llama3",
        "lmdeploy chat m",
        "sglang.launch_server",
        "inferwatch run --config vllm.toml",
        "python -m inferwatch run vllm serve",
        "tritonserver-metrics-exporter",
        "python",
        "python -m",
        "python -X",
        "-",
    ],
)
def test_mentioning_an_engine_is_not_being_one(line: str) -> None:
    assert what(line) is None


def test_a_high_port_on_the_command_line_is_expected_too() -> None:
    found = what("ollama serve --somewhere 127.0.0.1:45123 44000")

    assert found is not None
    assert found.ports == (11434, 45123, 44000)


@pytest.mark.parametrize(
    "line",
    [
        "vllm serve --help",
        "vllm serve m --version",
        "vllm serve --help=ModelConfig",
        "llama-server --usage",
        "llama-server -h",
        "llama-server --version",
        "trtllm-serve --help",
        "python -m sglang.launch_server --help",
    ],
)
def test_asking_for_help_is_no_server(line: str) -> None:
    assert what(line) is None


@pytest.mark.parametrize(
    ("line", "ports"),
    [
        ("vllm serve m --max-model-len 40960", (8000,)),
        ("vllm serve m --max-num-batched-tokens=65000 --seed 50000", (8000,)),
        ("vllm serve m --data-parallel-rpc-port 45000", (8000, 45000)),
        ("vllm serve m --dist-init-addr=10.0.0.1:45001", (8000, 45001)),
    ],
)
def test_a_number_is_a_port_only_where_it_can_be_one(line: str, ports: tuple[int, ...]) -> None:
    found = what(line)

    assert found is not None
    assert found.ports == ports


@pytest.mark.parametrize(
    ("title", "engine", "role", "siblings"),
    [
        ("ray::ServeReplica:app:LLM", "ray", "replica", True),
        ("ray::ProxyActor", "ray", "router", True),
        ("ray::RayWorkerWrapper.execute_method", "vllm", "worker", True),
        ("ray::DPEngineCoreActor.run", "vllm", "engine_core", True),
    ],
)
def test_what_runs_under_ray(title: str, engine: str, role: str, siblings: bool) -> None:  # noqa: FBT001 - of a table
    found = what(title)

    assert found is not None
    assert (found.engine, found.role, found.siblings) == (engine, role, siblings)


@pytest.mark.parametrize("title", ["ray::train_fn", "ray::IDLE", "ray::MapWorker(Map)", "ray::PPO.train()"])
def test_other_work_of_ray_serves_nobody(title: str) -> None:
    assert what(title) is None
    assert what("python default_worker.py", title[:15]) is None


def test_model_names_are_made_fit_for_a_label() -> None:
    found = recognise(read_command(["vllm", "serve", "a\nb\x1b[31m" + "x" * 500], ""))

    assert found is not None
    assert found.model.startswith("a\\nb\N{REPLACEMENT CHARACTER}[31m")
    assert len(found.model) == 128


@given(st.binary(max_size=300), st.text(max_size=15))
def test_no_command_line_raises_or_has_an_open_role(data: bytes, comm: str) -> None:
    for head in (b"", b"vllm\0serve\0", b"python\0-", b"llama-server\0-m\0"):
        found = recognise(read_command(parse_cmdline(head + data, 4096).arguments, comm))
        if found is not None:
            assert found.role in ROLES
            assert found.model.isprintable()
            assert all(0 < port <= 65_535 for port in found.ports)
