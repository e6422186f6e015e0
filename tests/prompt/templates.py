"""Chat templates that tests render, and a tokeniser that renders them: a character is a token."""

from __future__ import annotations

import json
from typing import Any

from jinja2.exceptions import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from fakes import FakeTokeniser
from slipstream.errors import InvalidRequest
from slipstream.prompt.output import detect
from slipstream.types import Chat

# SmolLM2-135M-Instruct's own, whole.
SMOLLM2 = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n"
    "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' +"
    " message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{"
    " '<|im_start|>assistant\n' }}{% endif %}"
)

# In the manner of Qwen: tools in the system turn, calls in tags, results in user turns, thoughts of the last turn only.
TAGGED = """\
{%- if tools %}[sys]
{%- if messages[0].role == 'system' %}{{ messages[0].content }}{% endif %}
<tools>{% for tool in tools %}{{ tool | tojson }};{% endfor %}</tools>
Write a call as <tool_call>JSON</tool_call>.[/]
{%- elif messages[0].role == 'system' %}[sys]{{ messages[0].content }}[/]
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'system' and not loop.first %}{{ raise_exception('System message must be at the beginning.') }}
{%- elif message.role == 'user' %}[user]{{ message.content }}[/]
{%- elif message.role == 'assistant' %}[assistant]
{%- if message.reasoning_content %}<think>{{ message.reasoning_content }}</think>{% endif %}{{ message.content }}
{%- for call in message.tool_calls %}
{{- '\\n' if loop.first and message.content or not loop.first }}<tool_call>
{{ {'name': call.function.name, 'arguments': call.function.arguments} | tojson }}
</tool_call>
{%- endfor %}[/]
{%- elif message.role == 'tool' %}[user]<tool_response>{{ message.content }}</tool_response>[/]
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}[assistant]{% if enable_thinking is false %}<think></think>{% endif %}{% endif %}"""

# In the manner of Gemma 2: no system, no tools, user and assistant strictly by turns.
STRICT = """\
{%- for message in messages %}
{%- if message.role not in ('user', 'assistant') %}{{ raise_exception('Only user and assistant are supported') }}
{%- elif (message.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must alternate') }}
{%- endif %}<{{ message.role }}>{{ message.content | trim }}</>
{%- endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"""

# In the manner of Llama 3.1: one call in a message, its arguments an object, and nothing beside it.
SINGLE = """\
{%- for message in messages %}
{%- if message.tool_calls %}
{%- if message.tool_calls | length != 1 %}{{ raise_exception('This model only supports single tool-calls at once!') }}
{%- endif %}<assistant>{"name": "{{ message.tool_calls[0].function.name }}", "parameters": {
{%- for key, value in message.tool_calls[0].function.arguments.items() %}"{{ key }}": {{ value | tojson }}
{%- endfor %}}}</>
{%- else %}<{{ message.role }}>{{ message.content }}</>{% endif %}
{%- if loop.first and tools %}<tools>{{ tools | tojson }}</tools>{% endif %}
{%- endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"""

# In the manner of Harmony: an answer's text stands behind the name of its channel; three efforts.
CHANNELS = """\
<rules>reasoning: {{ reasoning_effort or 'medium' }}</rules>
{%- if tools %}<tools>{{ tools | tojson }}</tools>{% endif %}
{%- for message in messages %}
{%- if message.role == 'assistant' and message.tool_calls %}
{%- if message.content and message.thinking %}{{ raise_exception('Cannot pass both content and thinking') }}{% endif %}
{%- if message.thinking %}<assistant:analysis>{{ message.thinking }}</>{% endif %}
{%- for call in message.tool_calls %}<assistant:call {{ call.function.name }}>{{ call.function.arguments | tojson }}</>
{%- endfor %}
{%- elif message.role == 'assistant' %}<assistant:final>{{ message.content }}</>
{%- else %}<{{ message.role }}>{{ message.content }}</>{% endif %}
{%- endfor %}{% if add_generation_prompt %}<assistant{% endif %}"""


def _refuse(message: str) -> None:
    raise TemplateError(message)


def _to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


class TemplateTokeniser(FakeTokeniser):
    """As transformers renders templates, without transformers."""

    def __init__(self, template: str) -> None:
        super().__init__()
        environment: Any = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _refuse
        self.chat_template = template
        self.style = detect(template)
        self._template = environment.from_string(template)

    def _render(self, chat: Chat) -> str:
        messages = [dict(message) for message in chat.messages]
        tools = [dict(tool) for tool in chat.tools] or None
        try:
            return self._template.render(messages=messages, tools=tools, add_generation_prompt=True, **chat.template)
        except Exception as error:
            raise InvalidRequest(f"the model's chat template refuses these messages: {error}") from error
