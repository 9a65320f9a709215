import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type AppParts, routeTable } from "../../../src/app"
import { curlExample, type ExampleRequest, exampleRequest } from "../../../src/http/example-request"
import { isDescribed } from "../../../src/http/route"
import { commandLines } from "../../../src/pages/docs/command-lines"
import { FIRST_COMMAND, FIRST_EMAIL } from "../../../src/pages/docs/home-page"
import { programExamples } from "../../../src/pages/docs/program-examples"
import { root } from "../../harness/migrations"
import { missing } from "../../harness/peers"
import { program } from "../../harness/program"
import { sharedService } from "../../harness/shared-service"

const service = await sharedService()
const { url } = service.listen()
const folder = mkdtempSync(join(tmpdir(), "belfry-examples-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const routes = routeTable({} as AppParts).filter(isDescribed)

/** Values that a careless writer of literals would break. */
const AWKWARD: ExampleRequest = {
  method: "POST",
  path: "/v1/emails",
  credential: { header: "Authorization", prefix: "Bearer ", variable: "BELFRY_TOKEN" },
  produces: "application/json",
  body: {
    "with space": `it's "quoted" $HOME $\{x} {$y} \`tick\` \\ back\nline\ttab \u0001 \u2028 ünï 🙂`,
    empty: { record: {}, list: [], text: "" },
    words: [true, false, null, 1.5, -3],
    lists: [[1, 2], [{ a: "b" }]],
  },
}

const requests = [
  ...routes.map((route) => ({
    name: `${route.method} ${route.path}`,
    request: exampleRequest(route),
  })),
  { name: "first", request: FIRST_EMAIL },
  { name: "awkward", request: AWKWARD },
]

const written = requests.flatMap(({ name, request }) =>
  programExamples(request, commandLines[name]).map((example) => ({ route: name, ...example })),
)

const sourcesOf = (language: string) => written.filter(({ name }) => name === language)

/** Every example of a language as a file of its own. Gives the names of the files. */
function filesOf(language: string, ending: string): string[] {
  const own = join(folder, language)
  mkdirSync(own, { recursive: true })
  return sourcesOf(language).map(({ source }, at) => {
    const path = join(own, `example${at}.${ending}`)
    writeFileSync(path, `${source}\n`)
    return path
  })
}

/** What a program printed, after it ended well. */
async function ran(cmd: string[], env: Record<string, string> = {}): Promise<string> {
  const home = { PATH: process.env.PATH ?? "", HOME: folder, GOCACHE: join(folder, "go-cache") }
  const child = Bun.spawn(cmd, {
    cwd: folder,
    env: { ...home, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  })
  const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()])
  expect([cmd.slice(0, 3), await child.exited, err]).toEqual([cmd.slice(0, 3), 0, ""])
  return out
}

test("there is an example of each request in each language", () => {
  const sockets = routes.filter(({ socket }) => socket !== undefined).length
  for (const language of ["curl", "typescript", "python", "go", "php"]) {
    const wanted = requests.length - (["curl", "typescript"].includes(language) ? 0 : sockets)
    expect([language, sourcesOf(language).length]).toEqual([language, wanted])
  }
  for (const { source } of written) expect(source).not.toMatch(/undefined|\[object/)
})

describe("every example is a program of its language:", () => {
  test("TypeScript, in the strict mode of its compiler", async () => {
    const settings = {
      extends: join(root, "tsconfig.json"),
      compilerOptions: {
        moduleDetection: "force",
        typeRoots: [join(root, "node_modules/@types")],
      },
      include: ["*.ts"],
      exclude: [],
    }
    filesOf("typescript", "ts")
    const own = join(folder, "typescript/tsconfig.json")
    writeFileSync(own, JSON.stringify(settings))
    const compiler = join(root, "node_modules/typescript/bin/tsc")
    await ran([process.execPath, compiler, "--noEmit", "--project", own])
    writeFileSync(join(folder, "typescript/wrong.ts"), "const a: string = 1\n")
    const wrong = Bun.spawnSync([process.execPath, compiler, "--noEmit", "--project", own])
    expect(wrong.stdout.toString().match(/error TS/g)).toHaveLength(2) // and an unused name
  })

  test("shell", async () => {
    for (const path of [...filesOf("curl", "sh"), ...filesOf("belfry", "sh")]) {
      await ran(["sh", "-n", path])
    }
  })

  test.skipIf(missing("python3"))("Python", async () => {
    await ran(["python3", "-m", "py_compile", ...filesOf("python", "py")])
  })

  test.skipIf(missing("go"))("Go, in its own format", async () => {
    expect(await ran([join(goRoot, "gofmt"), "-l", ...filesOf("go", "go")])).toBe("")
  })

  test.skipIf(missing("php"))("PHP", async () => {
    const files = filesOf("php", "php")
    const script =
      "foreach (array_slice($argv, 1) as $file) token_get_all(file_get_contents($file), TOKEN_PARSE);"
    await ran(["php", "-r", script, ...files])
  })
})

let goRoot = ""
beforeAll(async () => {
  if (missing("go")) return
  const asked = Bun.spawn(["go", "env", "GOROOT"], { stdout: "pipe" })
  goRoot = join((await asked.stdout.text()).trim(), "bin")
})

describe("the first email is sent, as it is pasted, by", () => {
  /** How a reader runs it. */
  const runs: Record<string, { file: string; needs: Parameters<typeof missing>; run: string[] }> = {
    curl: { file: "first.sh", needs: ["curl"], run: ["sh", "first.sh"] },
    typescript: { file: "first.ts", needs: [], run: [process.execPath, "first.ts"] },
    python: { file: "first.py", needs: ["python3"], run: ["python3", "first.py"] },
    go: { file: "first.go", needs: ["go"], run: ["go", "run", "first.go"] },
    php: { file: "first.php", needs: ["php"], run: ["php", "first.php"] },
  }

  const sent = async (env: Record<string, string>, name: string) => {
    const { file, run } = runs[name] ?? { file: "", run: [] }
    const example = programExamples(FIRST_EMAIL, FIRST_COMMAND).find((one) => one.name === name)
    writeFileSync(join(folder, file), `${example?.source}\n`)
    return await ran(run, env)
  }

  for (const [name, { needs }] of Object.entries(runs)) {
    test.skipIf(missing(...needs))(name, async () => {
      const { call, key } = await service.project()
      const out = await sent({ BELFRY_URL: url, BELFRY_API_KEY: key }, name)
      expect(out).toContain("queued")
      const { body } = await call("GET", "/v1/emails")
      expect(body.data).toMatchObject([
        { to: { email: "you@mailbox.test" }, subject: "It works", status: "queued" },
      ])
    })
  }

  test("belfry", async () => {
    const { call, key } = await service.project()
    const line = FIRST_COMMAND.replace("belfry", program.map((word) => `"${word}"`).join(" "))
    writeFileSync(join(folder, "first-command.sh"), `${line}\n`)
    await ran(["sh", "first-command.sh"], { BELFRY_URL: url, BELFRY_API_KEY: key })
    const { body } = await call("GET", "/v1/emails")
    expect(body.data).toMatchObject([{ subject: "It works" }])
  })
})

test("the examples of the operations that send are accepted, as they are pasted", async () => {
  const { call, key } = await service.project()
  for (const route of ["POST /v1/emails", "POST /v1/emails/batch", "POST /v1/emails/preflight"]) {
    const example = written.find((one) => one.route === route && one.name === "curl")
    writeFileSync(join(folder, "sends.sh"), `${example?.source}\n`)
    const out = await ran(["sh", "sends.sh"], { BELFRY_URL: url, BELFRY_API_KEY: key })
    expect([route, out.slice(0, 40)]).toEqual([route, expect.not.stringContaining('"error"')])
  }
  expect((await call("GET", "/v1/emails")).body.meta.total).toBe(3)
  const line = commandLines["POST /v1/emails"]
  expect(line).toContain("@mailbox.test --to ann@mailbox.test")
})

describe("values of JSON arrive unchanged in", () => {
  const { path: _, ...rest } = AWKWARD
  const request: ExampleRequest = { ...rest, path: "/echo" }
  const echo = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (one) =>
      new Response(await one.text(), { headers: { "content-type": "application/json" } }),
  })
  afterAll(() => echo.stop(true))
  const env = { BELFRY_URL: `http://127.0.0.1:${echo.port}`, BELFRY_TOKEN: "t" }
  const sourceOf = (name: string) =>
    name === "curl"
      ? curlExample(request)
      : (programExamples(request, undefined).find((one) => one.name === name)?.source ?? "")

  /** A program that prints what came back, as JSON alone. */
  const echoed: Record<
    string,
    {
      file: string
      needs: Parameters<typeof missing>
      run: string[]
      of: (source: string) => string
    }
  > = {
    curl: { file: "echo.sh", needs: ["curl"], run: ["sh", "echo.sh"], of: (source) => source },
    typescript: {
      ...{ file: "echo.ts", needs: [], run: [process.execPath, "echo.ts"] },
      of: (source) =>
        source.replace("response.status, await response.json()", "await response.text()"),
    },
    python: {
      ...{ file: "echo.py", needs: ["python3"], run: ["python3", "echo.py"] },
      of: (source) =>
        source.replace("response.status, json.load(response)", "response.read().decode()"),
    },
    go: {
      ...{ file: "echo.go", needs: ["go"], run: ["go", "run", "echo.go"] },
      of: (source) => source.replace("response.Status, string(answer)", "string(answer)"),
    },
    php: { file: "echo.php", needs: ["php"], run: ["php", "echo.php"], of: (source) => source },
  }

  for (const [name, { file, needs, run, of }] of Object.entries(echoed)) {
    test.skipIf(missing(...needs))(name, async () => {
      writeFileSync(join(folder, file), `${of(sourceOf(name))}\n`)
      expect(JSON.parse(await ran(run, env))).toEqual(AWKWARD.body)
    })
  }
})

describe("an answer that is a file, or a failure, is told well by", () => {
  const bytes = Uint8Array.from({ length: 256 }, (_, n) => n)
  const reason = JSON.stringify({ error: { code: "service_unavailable" } })
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: ({ url: asked }) =>
      asked.endsWith("/file") ? new Response(bytes) : new Response(reason, { status: 503 }),
  })
  afterAll(() => server.stop(true))
  const env = { BELFRY_URL: `http://127.0.0.1:${server.port}` }

  const runs: Record<string, { file: string; needs: Parameters<typeof missing>; run: string[] }> = {
    curl: { file: "get.sh", needs: ["curl"], run: ["sh", "get.sh"] },
    typescript: { file: "get.ts", needs: [], run: [process.execPath, "get.ts"] },
    python: { file: "get.py", needs: ["python3"], run: ["python3", "get.py"] },
    go: { file: "get.go", needs: ["go"], run: ["go", "run", "get.go"] },
    php: { file: "get.php", needs: ["php"], run: ["php", "get.php"] },
  }

  for (const [name, { file, needs, run }] of Object.entries(runs)) {
    const got = async (request: Omit<ExampleRequest, "method">) => {
      const all = programExamples({ method: "GET", ...request }, undefined)
      writeFileSync(join(folder, file), `${all.find((one) => one.name === name)?.source}\n`)
      return await ran(run, env)
    }
    test.skipIf(missing(...needs))(name, async () => {
      for (const [produces, saved] of Object.entries({
        "*/*": "file",
        "message/rfc822": "mail.eml",
      })) {
        rmSync(join(folder, saved), { force: true })
        expect(await got({ path: "/file", produces })).toBe("")
        expect(await Bun.file(join(folder, saved)).bytes()).toEqual(bytes)
      }
      const told = await got({ path: "/readyz", produces: "application/json" })
      expect(told).toContain("service_unavailable")
      if (name !== "curl") {
        expect(await got({ path: "/gone", produces: "*/*" })).toContain("service_unavailable")
        expect(await Bun.file(join(folder, "file")).bytes()).toEqual(bytes)
      }
    })
  }
})

test("the examples of the mailbox ask for what exists, and all languages ask for the same", () => {
  const of = (route: string) =>
    written.filter((one) => one.route === route).map(({ source }) => source)
  const files = of("GET /v1/mailbox/{mail_id}/attachments/{attachment_id}")
  expect(files.every((source) => /\/attachments\/0\b|\S+ 0 --save-as/.test(source))).toBe(true)
  const checks = of("POST /v1/mailbox/{mail_id}/check")
  expect(checks.every((source) => /links\W+(?:true|True)|--links/.test(source))).toBe(true)
  expect(of("DELETE /v1/mailbox").filter((source) => source.includes("ann@"))).toEqual([])
  const email = of("GET /v1/emails/{email_id}/attachments/{attachment_id}")
  expect(email.filter((source) => /attachments\/0\b/.test(source))).toEqual([])
})
