#!/usr/bin/env python3
"""Renders the templates of tests/data/templates with Python's jinja2, as Hugging Face's transformers does.

usage: template_expectations.py DIR          writes DIR/expected.json
       template_expectations.py DIR --print  writes it to the standard output
"""

import datetime
import json
import pathlib
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox


class Generation(jinja2.ext.Extension):
    """{% generation %} marks what a model says, for training; the text is shown as it is."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_shown"), [], [], body).set_lineno(line)

    def _shown(self, caller):
        return caller()


def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    # No HTML escapes, unlike Jinja's own.
    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(
            value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
        )

    result = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    result.filters["tojson"] = tojson
    result.globals["raise_exception"] = raise_exception
    result.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    return result


ENVIRONMENT = environment()


def rendered(text, variables):
    """What the template makes of the variables; an error without its message, which is nobody's promise."""
    try:
        return {"text": ENVIRONMENT.from_string(text).render(**variables)}
    except Exception:  # Python's own errors come through, too
        return {"error": True}


def expectations(directory):
    constructs = json.loads((directory / "constructs.json").read_text(encoding="utf-8"))
    conversations = json.loads((directory / "conversations.json").read_text(encoding="utf-8"))
    result = {
        "constructs": [rendered(case["template"], constructs["variables"]) for case in constructs["cases"]],
        "templates": {},
    }
    for path in sorted(directory.glob("*.jinja")):
        text = path.read_text(encoding="utf-8")
        shown = {}
        for name, given in conversations.items():
            variables = {
                "tools": None,
                "documents": None,
                "add_generation_prompt": True,
                "bos_token": "<s>",
                "eos_token": "</s>",
            }
            variables.update(given)
            shown[name] = rendered(text, variables)
        result["templates"][path.name] = shown
    return json.dumps(result, ensure_ascii=False, indent=1) + "\n"


def main():
    directory = pathlib.Path(sys.argv[1])
    text = expectations(directory)
    if "--print" in sys.argv[2:]:
        sys.stdout.buffer.write(text.encode("utf-8"))
    else:
        (directory / "expected.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
