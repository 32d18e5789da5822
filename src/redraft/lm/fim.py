"""Prompts of models that fill in the middle, by the names of their families."""

from dataclasses import dataclass


@dataclass(frozen=True)
class FimTemplate:
    """The marks of a family around the text before and after the cursor."""

    form: str

    def fill(self, before: str, after: str) -> str:
        """Return the prompt for the text between `before` and `after`."""
        first, middle = self.form.split("{before}")
        if "{after}" in first:
            first = first.replace("{after}", after)
        else:
            middle = middle.replace("{after}", after)
        return f"{first}{before}{middle}"


_STARCODER = "<fim_prefix>{before}<fim_suffix>{after}<fim_middle>"
_QWEN = "<|fim_prefix|>{before}<|fim_suffix|>{after}<|fim_middle|>"

FAMILIES = {
    "qwen2.5-coder": _QWEN,
    "qwen3-coder": _QWEN,
    "codegemma": _QWEN,
    "starcoder": _STARCODER,
    "stable-code": _STARCODER,
    "codellama": "<PRE> {before} <SUF>{after} <MID>",
    "deepseek-coder": "<｜fim▁begin｜>{before}<｜fim▁hole｜>{after}<｜fim▁end｜>",
    "codestral": "[SUFFIX]{after}[PREFIX]{before}",
}
"""Parts of model names, in lower case, and the marks that these models were trained with."""


def fim_template(model: str) -> FimTemplate | None:
    """Return the template of a model by its name; None if it is not known to fill in the middle."""
    name = model.lower().replace("_", "-").replace("code-llama", "codellama")
    form = next((form for part, form in FAMILIES.items() if part in name), None)
    return None if form is None else FimTemplate(form)
