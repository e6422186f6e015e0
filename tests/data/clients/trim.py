"""Makes the small copies in this folder from requests captured in full: python trim.py FOLDER

The same text becomes the same short text everywhere and different texts stay different, so that what extends what is
as it was. Schemas keep their first properties. Names, roles, types, order and nesting of everything else stay.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

LONGEST = 140  # characters of a text
PROPERTIES = 2  # of a schema
HEADERS = ("anthropic-version", "anthropic-beta", "authorization", "x-api-key", "content-type", "upgrade", "x-app")
LISTS = ("messages", "input", "tools", "system")


def text(value: str) -> str:
    if len(value) <= LONGEST:
        return value
    if value[0] in "{[":
        try:
            return json.dumps(trim(json.loads(value)))
        except ValueError:
            pass
    tag = hashlib.sha256(value.encode()).hexdigest()[:8]
    ending = "\n</system-reminder>" if value.rstrip().endswith("</system-reminder>") else ""
    return f"{value[: LONGEST - 60]} ... {tag}{ending}"


def schema(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    made = {key: schema(item) for key, item in value.items() if key not in ("description", "$schema", "enum")}
    if isinstance(value.get("properties"), dict):
        kept = list(value["properties"])[:PROPERTIES]
        made["properties"] = {key: schema(value["properties"][key]) for key in kept}
        if "required" in made:
            made["required"] = [key for key in made["required"] if key in kept]
    return made


def trim(value: Any) -> Any:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, list):
        return [trim(item) for item in value]
    if isinstance(value, dict):
        is_schema = ("input_schema", "parameters", "schema")
        return {key: schema(item) if key in is_schema else trim(item) for key, item in value.items()}
    return value


def written(body: Any) -> str:
    """An item a line, so that a difference can be read."""
    if not isinstance(body, dict):
        return json.dumps(body)
    lines: list[str] = []
    for key, value in body.items():
        if key in LISTS and isinstance(value, list) and value:
            items = ",\n  ".join(json.dumps(item, ensure_ascii=False) for item in value)
            lines.append(f'"{key}": [\n  {items}]')
        else:
            lines.append(f'"{key}": {json.dumps(value, ensure_ascii=False)}')
    return "{\n " + ",\n ".join(lines) + "}"


def main(source: Path) -> None:
    here = Path(__file__).parent
    for path in sorted(source.glob("*/*.json")):
        whole = json.loads(path.read_text())
        asked = whole["request"]
        headers = {name: value for name, value in asked["headers"].items() if name.lower() in HEADERS}
        body = written(trim(asked["body"]))
        target = here / path.parent.name / path.name
        target.parent.mkdir(exist_ok=True)
        target.write_text(
            f'{{"what": {json.dumps(whole["meta"]["what"])},\n"method": "{asked["method"]}",\n'
            f'"path": "{asked["path"]}",\n"headers": {json.dumps(headers)},\n"body": {body}}}\n'
        )
        assert json.loads(target.read_text())["body"] == trim(asked["body"])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
