"""What settings of a stack are: a name out of the table of its real options, a value where it takes one, and what it does."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields

from crossopt.crossflow.plan import Plan
from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.entries import Numerics
from crossopt.instances.codesign.stack_table import Machine


@dataclass(frozen=True, slots=True)
class Option:
    """One option that a stack has."""

    name: str
    takes: bool
    """Whether a value follows it."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a stack that exports use, and where they were read."""

    release: str
    """Of the stack, as its users name it."""
    source: str
    version: str
    names: Mapping[str, Option]

    def __str__(self) -> str:
        return f"{self.release} ({self.source}, {self.version})"

    def setting(self, name: str, value: object = None, meaning: str = "") -> "Setting":
        """A setting of this name; a ValueError where the stack has no such option, or one of another kind."""
        option = self.names.get(name)
        if option is None:
            raise ValueError(f"{name}: {self.source} has no such option")
        if option.takes == (value is None):
            raise ValueError(f"{name}: this option takes {'a' if option.takes else 'no'} value")
        return Setting(name, None if value is None else str(value), meaning)


@dataclass(frozen=True, slots=True)
class Setting:
    """One option as it is set."""

    name: str
    value: str | None
    meaning: str
    """What it does."""

    @property
    def label(self) -> str:
        return self.name if self.value is None else f"{self.name} {self.value}"


Settings = Mapping[str, str | None]
"""Settings as they were read back: by name, with their values."""


Said = tuple[tuple["Setting", ...], tuple[str, ...]]
"""Settings, and remarks on what they leave to the user."""


def no_numerics(model: Transformer, known: Numerics) -> Said:
    """A stack whose networks have their own figures of positions and norms."""
    del model, known
    return (), ()


def no_environment(model: Transformer, plan: Plan, machine: Machine) -> tuple[tuple[str, str], ...]:
    """A stack that needs no variables."""
    del model, plan, machine
    return ()


@dataclass(frozen=True, slots=True)
class Export:
    """How plans are written for a stack, and read back."""

    stack: str
    """The name of its table of rules."""
    options: Options
    settings: Callable[[Transformer, Plan], tuple[Setting, ...]]
    written: Callable[[Transformer, Plan, tuple[Setting, ...]], str]
    """The settings ready to paste."""
    parsed: Callable[[str], Settings]
    read: Callable[[Settings, Transformer, int], Plan]
    """The plan that the stack launches by these settings on so many devices."""
    remarks: Callable[[Transformer, Plan], tuple[str, ...]]
    """What is to be done beside the settings."""
    in_four_bits: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    """Settings that have another value, and other words, on devices that multiply in 4 bits."""
    environment: Callable[[Transformer, Plan, Machine], tuple[tuple[str, str], ...]] = no_environment
    """Variables of the environment that the stack needs, with their values; an empty one is to be unset."""
    numerics: Callable[[Transformer, Numerics], Said] = no_numerics
    """What takes no time: rotary positions and norms."""

    def on(self, machine: Machine, settings: tuple[Setting, ...]) -> tuple[Setting, ...]:
        """The settings as they are for these devices."""
        others = self.in_four_bits if machine.four_bits else {}
        return tuple(Setting(item.name, *others.get((item.name, item.value or ""), (item.value, item.meaning))) for item in settings)


NOTHING: dict[str, str] = {}
"""No shape of which anything is to be done."""


def options_of(release: str, source: str, version: str, with_value: str, without: str = "") -> Options:
    """A table from two lists of names."""
    names = {name: Option(name, takes=True) for name in with_value.split()} | {name: Option(name, takes=False) for name in without.split()}
    return Options(release, source, version, names)


def flags(settings: tuple[Setting, ...]) -> str:
    """Settings as a command line, one a line."""
    return " \\\n  ".join(setting.name if setting.value is None else f"{setting.name} {quoted(setting.value)}" for setting in settings)


def quoted(value: str) -> str:
    """A value as a shell takes it; several words are several values."""
    values = value.split(" ")
    return " ".join(word if all(letter.isalnum() or letter in "-_.:/," for letter in word) else f"'{word}'" for word in values)


def parsed_flags(text: str) -> Settings:
    """The command line in a text, without its comments."""
    import shlex  # noqa: PLC0415 - only what is read back needs it

    line = " ".join(part.rstrip("\\") for part in text.splitlines() if not part.startswith("#"))
    found, name = dict[str, str | None](), ""
    for word in shlex.split(line):
        if word.startswith("--"):
            name, found[word] = word, None
        else:
            found[name] = " ".join(filter(None, (found[name], word)))
    return found


def whole_number(settings: Settings, name: str, usual: int = 1) -> int:
    """The number that an option is set to."""
    value = settings.get(name)
    return usual if value is None else int(value)


UNSAID = ", which no setting here says"
"""How a remark says what makes another training of what is printed; what is to be done may follow it."""


def unknown_shapes(model: Transformer, known: str, beside: dict[str, str] = NOTHING) -> tuple[str, ...]:
    """Shapes of the network that no setting says, in words; `beside` has what is to be done about some of them."""
    said = f"{PLAIN_SHAPES} {known} {' '.join(beside)}".split()
    remarks = tuple(remark for remark in beside.values() if remark)
    odd = [field for field in fields(model) if field.name not in said and getattr(model, field.name) != field.default]
    return (*remarks, *(f"{field.name} is {getattr(model, field.name)}{UNSAID}" for field in odd))


def adapted(model: Transformer, how: str) -> dict[str, str]:
    """What is to be done about adapters (LoRA)."""
    where = f"adapters of rank {model.lora_rank} stand beside every matrix of the layers{' but the router' if model.experts > 1 else ''}"
    return {"lora_rank": f"{where}{UNSAID}: without them all weights are trained; {how}" if model.lora_rank else ""}


def peft(model: Transformer, before: str) -> dict[str, str]:
    """Remarks on adapters that Hugging Face's PEFT adds to a network of the model's own code."""
    without = ", exclude_modules=ROUTER" if model.experts > 1 else ""
    call = f'peft.get_peft_model(model, peft.LoraConfig(r={model.lora_rank}, target_modules="all-linear"{without}))'
    return adapted(model, f"{before} `{call}`")


def frozen(model: Transformer, before: str) -> dict[str, str]:
    """What is to be done about layers that are not trained."""
    parts = f"the embedding and the first {model.frozen_layers} layers are not trained"
    how = f"{before} `part.requires_grad_(False)` for each of them"
    return {"frozen_layers": f"{parts}{UNSAID}: {how}" if model.frozen_layers is not None else ""}


def windowed(model: Transformer, where: str) -> dict[str, str]:
    """What is to be done about sliding windows."""
    rest = f", but for {model.global_layers} layers that attend to all tokens" if model.global_layers else ""
    remark = f"no setting says so, and {where} has to have sliding windows of {model.window:,} tokens{rest}"
    return {"window": remark if model.window else "", "global_layers": ""}


PLAIN_SHAPES = (
    "name layers hidden heads ffn vocabulary sequence global_batch kv_heads head_size gated tied learned_positions biases experts "
    "experts_per_token capacity_factor once_a_node attention dropout precision gradient_bytes gradient_traffic scattered_gradients "
    "broadcasts own_ports weight_gathers hides_publication whole_messages attention_rate eager apart stops_early "
    "logit_peak_bytes keeps_casts"
)
"""Shapes that settings say, or that are about prices."""
