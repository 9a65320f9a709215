import { curlExample, type ExampleRequest, savedAs } from "../../http/example-request"
import { goText, phpLiteral, pythonLiteral, typescriptLiteral } from "./program-literals"

/** One request in one language, as a whole program that runs as it stands. */
export interface ProgramExample {
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
  const line =
    command === undefined ? [] : [{ language: "belfry", name: "belfry", source: command }]
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
  const value = credential && `process.env.${credential.variable}`
  const header = credential?.prefix ? `\`${credential.prefix}\${${value}}\`` : `${value} ?? ""`
  const headers = [
    ...(credential ? [`    "${credential.header}": ${header},`] : []),
    ...(body === undefined ? [] : ['    "Content-Type": "application/json",']),
  ]
  const options = [
    ...(method === "GET" ? [] : [`  method: "${method}",`]),
    ...(headers.length > 0 ? ["  headers: {", ...headers, "  },"] : []),
    ...(body === undefined ? [] : [`  body: JSON.stringify(${typescriptLiteral(body, "  ")}),`]),
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

/** For Bun and Node 22 or newer, whose WebSocket sends headers. */
const socketExample = ({ path, socket }: ExampleRequest) =>
  `const url = \`\${process.env.BELFRY_URL}${path}\`.replace("http", "ws")
const headers = { "X-API-Key": process.env.BELFRY_API_KEY ?? "" }
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
      : [`    data=json.dumps(${pythonLiteral(body, "    ")}).encode(),`]),
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
      : [`        "content" => json_encode(${phpLiteral(body, "        ")}),`]),
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
