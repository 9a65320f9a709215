import { curlExample, type ExampleRequest, savedAs } from "../../http/example-request"
import { html, type Markup } from "../html"
import { commandLines } from "./command-lines"
import { codeBlock } from "./frame"

/** One request in one language, as a whole program that runs as it stands. */
interface ProgramExample {
  /** The name of the language for people. */
  language: string
  /** Its name in ids and classes. */
  name: string
  source: string
}

/**
 * The request in every language that can send it with its standard library alone. `command` is the
 * line of `belfry` that does the same. The URL and the credential come from the environment.
 */
export function programExamples(
  request: ExampleRequest,
  command: string | undefined,
): ProgramExample[] {
  const line = command ? [{ language: "belfry", name: "belfry", source: command }] : []
  const curl = { language: "curl", name: "curl", source: curlExample(request) }
  if (request.socket !== undefined) {
    const source = socketExample(request)
    return [curl, { language: "TypeScript", name: "typescript", source }, ...line]
  }
  return [
    curl,
    { language: "TypeScript", name: "typescript", source: typescriptExample(request) },
    { language: "Python", name: "python", source: pythonExample(request) },
    { language: "Go", name: "go", source: goExample(request) },
    { language: "PHP", name: "php", source: phpExample(request) },
    ...line,
  ]
}

const isJson = ({ produces }: ExampleRequest) => produces === "application/json"

/** For Bun, Deno and Node 18 or newer. */
function typescriptExample(request: ExampleRequest): string {
  const { method, path, credential, body } = request
  const headers = [
    ...(credential ? [`    ${typescriptProof(credential)},`] : []),
    ...(body === undefined ? [] : ['    "Content-Type": "application/json",']),
  ]
  const options = [
    ...(method === "GET" ? [] : [`  method: "${method}",`]),
    ...(headers.length > 0 ? ["  headers: {", ...headers, "  },"] : []),
    ...(body === undefined ? [] : [`  body: JSON.stringify(${literal(body, "  ", TYPESCRIPT)}),`]),
  ]
  const given = options.length > 0 ? `, {\n${options.join("\n")}\n}` : ""
  const asked = `const response = await fetch(\`\${process.env.BELFRY_URL}${path}\`${given})`
  const file = savedAs(request)
  if (file === undefined) {
    return `${asked}
console.log(response.status, await response.${isJson(request) ? "json" : "text"}())`
  }
  return `import { writeFile } from "node:fs/promises"

${asked}
if (response.ok) await writeFile("${file}", new Uint8Array(await response.arrayBuffer()))
else console.log(response.status, await response.text())`
}

/** The header of a credential, from the environment. */
function typescriptProof({ header, prefix, variable }: Credential): string {
  const value = `process.env.${variable}`
  return `"${header}": ${prefix ? `\`${prefix}\${${value}}\`` : `${value} ?? ""`}`
}

type Credential = NonNullable<ExampleRequest["credential"]>

/** For Bun and Node 22 or newer, whose WebSocket sends headers. */
const socketExample = ({ path, socket, credential }: ExampleRequest) =>
  `const url = \`\${process.env.BELFRY_URL}${path}\`.replace("http", "ws")
const headers = { ${credential ? typescriptProof(credential) : ""} }
const socket = new WebSocket(url, { protocols: "${socket}", headers })
socket.onmessage = ({ data }) => console.log(data)
socket.onclose = ({ code, reason }) => console.log(code, reason)`

function pythonExample(request: ExampleRequest): string {
  const { method, path, credential, body } = request
  const value = credential && `os.environ["${credential.variable}"]`
  const headers = [
    ...(credential
      ? [
          `        "${credential.header}": ${credential.prefix ? `"${credential.prefix}" + ` : ""}${value},`,
        ]
      : []),
    ...(body === undefined ? [] : ['        "Content-Type": "application/json",']),
  ]
  const lines = [
    `    os.environ["BELFRY_URL"] + "${path}",`,
    `    method="${method}",`,
    ...(headers.length > 0 ? ["    headers={", ...headers, "    },"] : []),
    ...(body === undefined
      ? []
      : [`    data=json.dumps(${literal(body, "    ", PYTHON)}).encode(),`]),
  ]
  const answer = isJson(request) ? "json.load(response)" : "response.read().decode()"
  const file = savedAs(request)
  const shown =
    file === undefined
      ? `        print(response.status, ${answer})`
      : `        with open("${file}", "wb") as file:\n            file.write(response.read())`
  const with_json = body !== undefined || isJson(request)
  return `${with_json ? "import json\n" : ""}import os
import urllib.error
import urllib.request

request = urllib.request.Request(
${lines.join("\n")}
)
try:
    with urllib.request.urlopen(request) as response:
${shown}
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())`
}

function goExample(request: ExampleRequest): string {
  const { method, path, credential, body } = request
  const packages = ["fmt", "io", "net/http", "os", ...(body === undefined ? [] : ["strings"])]
  const reader = body === undefined ? "nil" : "body"
  const prefix = credential?.prefix ? `"${credential.prefix}"+` : ""
  return `package main

import (
${packages.map((name) => `\t"${name}"`).join("\n")}
)

func main() {
${body === undefined ? "" : `\tbody := strings.NewReader(${goText(JSON.stringify(body, null, 2))})\n`}\trequest, err := http.NewRequest("${method}", os.Getenv("BELFRY_URL")+"${path}", ${reader})
	if err != nil {
		panic(err)
	}
${credential ? `\trequest.Header.Set("${credential.header}", ${prefix}os.Getenv("${credential.variable}"))\n` : ""}${body === undefined ? "" : '\trequest.Header.Set("Content-Type", "application/json")\n'}	response, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		panic(err)
	}
${goSaving(savedAs(request))}	fmt.Println(response.Status, string(answer))
}`
}

const goSaving = (file: string | undefined) =>
  file === undefined
    ? ""
    : `	if response.StatusCode == http.StatusOK {
		if err := os.WriteFile("${file}", answer, 0o644); err != nil {
			panic(err)
		}
		return
	}
`

function phpExample(request: ExampleRequest): string {
  const { method, path, credential, body } = request
  const value = credential && `getenv("${credential.variable}")`
  const headers = [
    ...(credential ? [`            "${credential.header}: ${credential.prefix}" . ${value},`] : []),
    ...(body === undefined ? [] : ['            "Content-Type: application/json",']),
  ]
  const lines = [
    `        "method" => "${method}",`,
    ...(headers.length > 0 ? ['        "header" => [', ...headers, "        ],"] : []),
    ...(body === undefined
      ? []
      : [`        "content" => json_encode(${literal(body, "        ", PHP)}),`]),
    '        "ignore_errors" => true, // the answer of a failure says its reason',
  ]
  return `<?php
$context = stream_context_create([
    "http" => [
${lines.join("\n")}
    ],
]);
${phpAnswer(path, savedAs(request))}`
}

const phpAnswer = (path: string, file: string | undefined) =>
  file === undefined
    ? `echo file_get_contents(getenv("BELFRY_URL") . "${path}", false, $context), "\\n";`
    : `$answer = fopen(getenv("BELFRY_URL") . "${path}", "r", false, $context);
$status = implode(preg_grep("~^HTTP/~", stream_get_meta_data($answer)["wrapper_data"]));
if (str_contains($status, " 200")) file_put_contents("${file}", $answer);
else echo stream_get_contents($answer), "\\n";`

/** How a language writes values of JSON. */
interface LiteralForm {
  step: string
  text: (value: string) => string
  name: (key: string) => string
  words: { true: string; false: string; null: string }
  list: readonly [string, string]
  record: readonly [string, string]
  /** Of a record without fields, where the brackets alone mean a list. */
  empty?: string
}

const JSON_WORDS = { true: "true", false: "false", null: "null" }
const BRACKETS = ["[", "]"] as const
const BRACES = ["{", "}"] as const

const TYPESCRIPT: LiteralForm = {
  step: "  ",
  text: (value) => JSON.stringify(value),
  name: (key) => `${/^[A-Za-z_$][\w$]*$/.test(key) ? key : JSON.stringify(key)}: `,
  words: JSON_WORDS,
  list: BRACKETS,
  record: BRACES,
}

const PYTHON: LiteralForm = {
  step: "    ",
  text: (value) => JSON.stringify(value),
  name: (key) => `${JSON.stringify(key)}: `,
  words: { true: "True", false: "False", null: "None" },
  list: BRACKETS,
  record: BRACES,
}

/** In double quotes PHP fills in variables. Its escape of a code point is another one. */
const phpText = (value: string) =>
  JSON.stringify(value)
    .replaceAll("$", "\\$")
    .replaceAll(/\\u([0-9a-f]{4})/g, "\\u{$1}")

const PHP: LiteralForm = {
  step: "    ",
  text: phpText,
  name: (key) => `${phpText(key)} => `,
  words: JSON_WORDS,
  list: BRACKETS,
  record: BRACKETS,
  empty: "new stdClass()",
}

/** A text as Go writes it: as it stands between backticks, where it has none itself. */
const goText = (text: string): string => (text.includes("`") ? JSON.stringify(text) : `\`${text}\``)

/** A value as the language writes it. `indent` is that of the line on which it begins. */
function literal(value: unknown, indent: string, form: LiteralForm): string {
  if (typeof value === "string") return form.text(value)
  if (value === null) return form.words.null
  if (typeof value === "boolean") return value ? form.words.true : form.words.false
  if (typeof value !== "object") return String(value)
  const inner = indent + form.step
  const is_list = Array.isArray(value)
  const [open, close] = is_list ? form.list : form.record
  const parts = is_list
    ? value.map((one) => literal(one, inner, form))
    : Object.entries(value).map(([key, one]) => form.name(key) + literal(one, inner, form))
  if (parts.length === 0) return is_list ? open + close : (form.empty ?? open + close)
  const is_plain = is_list && value.every((one) => typeof one !== "object" || one === null)
  const line = `${open}${parts.join(", ")}${close}`
  if (is_plain && line.length < LONGEST_LIST) return line
  return `${open}\n${parts.map((part) => `${inner}${part},\n`).join("")}${indent}${close}`
}

const LONGEST_LIST = 60

/** The request in every language. The choice is one of radio buttons, which need no script. */
export function exampleTabs(request: ExampleRequest, name: string): Markup {
  const examples = programExamples(request, commandLines[name])
  const missing = LANGUAGES.filter((one) => !examples.some(({ language }) => language === one))
  return html`${tabs(examples)}${missing.length > 0 && html`<p class="needs">${absent(missing)}</p>`}`
}

const LANGUAGES = ["Python", "Go", "PHP", "belfry"]

const absent = (missing: string[]) =>
  [
    missing.includes("Go") &&
      "The standard libraries of Python, Go and PHP have no WebSocket. There, ask for the same by HTTP from time to time.",
    missing.includes("belfry") && "No command of belfry sends this request.",
  ]
    .filter(Boolean)
    .join(" ")

/** One set of tabs on a page. */
export const tabs = (examples: ProgramExample[]): Markup => html`<fieldset class="examples">
<legend>Language</legend>
<div class="languages">${examples.map(
  ({ language, name }, at) =>
    html`<input type="radio" name="language" id="language-${name}" value="${name}"${at === 0 && CHECKED}><label for="language-${name}">${language}</label>
`,
)}</div>
${examples.map(
  ({ language, name, source }) =>
    html`<div class="example ${name}">${codeBlock(source, `Example in ${language}`)}</div>
`,
)}</fieldset>`

const CHECKED = html` checked`

/** Where the script puts a form that sends the request, with what it needs to know. */
export function tryPlace(request: ExampleRequest, path: string, query: string[]): Markup {
  const { method, credential, body } = request
  const text = body !== undefined && JSON.stringify(body, null, 2)
  return html`<div data-try data-method="${method}" data-path="${path}" data-query="${query.join(" ")}" data-credential="${String(
    credential !== undefined,
  )}"${text !== false && html` data-body="${text}"`}></div>`
}
