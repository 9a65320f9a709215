import { expect, test } from "bun:test"
import { rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { Glob } from "bun"
import { codeBlocks } from "../docs/code-blocks"
import { openaiGateway } from "../fakes/openai-gateway"
import { type Belfry, binary, makeHome, runBinary, startBelfry } from "../harness/binary"
import { root } from "../harness/migrations"
import { environmentOf, goodModel } from "../harness/model-answers"
import { missing } from "../harness/peers"
import { freePort } from "../harness/ports"
import { sizes } from "../harness/sizes"
import { lean } from "./serve"

/** Decisions and figures show no commands; they are the only pages without this test. */
const NOT_GUIDES = ["docs/decisions.md", "docs/decisions/**", "docs/bench-log.md"].map(
  (pattern) => new Glob(pattern),
)

const pages = ["README.md", ...[...new Glob("docs/**/*.md").scanSync(root)].sort()].filter(
  (path) => !NOT_GUIDES.some((pattern) => pattern.match(path)),
)

/** Which words of a block a test must say in another way, and why. Everything else runs as pasted. */
const STAND_INS: [string | RegExp, string][] = [
  // A reader puts their own key there, as the text beside it says.
  ["svc_live_…", "$BELFRY_API_KEY"],
  ["AKIA…", "AKIDEXAMPLE00000"],
  // The test's server and receiver have free ports.
  [/\b(localhost|127\.0\.0\.1):8080\b/g, "$$SERVER_HOST"],
  [/\b127\.0\.0\.1:2525\b/g, "127.0.0.1:$$INBOUND_PORT"],
  [/\blocalhost:3000\b/g, "localhost:$$RECEIVER_PORT"],
  // A model takes gigabytes: a fake answers in its place.
  [/\blocalhost:11434\b/g, "localhost:$$MODEL_PORT"],
  ["ollama pull llama3.2", "true"],
  // The test's server keeps its key in its data folder.
  ["/safe/place/master.key", "$DATA_DIR/master.key"],
  // The folder of an installed service belongs to another user.
  [/\/etc\/belfry\.toml/g, "belfry.toml"],
  [/\/var\/lib\/belfry/g, "$$HOME/var-lib-belfry"],
  // The tests run inside of `./install.sh test`, and the binary is built.
  [/^\.\/install\.sh up\b.*$/gm, "belfry up"],
  [/^\.\/install\.sh test\b.*$/gm, "true"],
  [/^\.\/install\.sh$/gm, "true"],
  ["$PWD/dist", dirname(binary)],
]

/**
 * Commands that end by Ctrl-C get one after a while, unless they run in the background until they are
 * killed. What people type (a password, yes) is given.
 * Nobody answers for acme.com and smtp.example.com here. What asks them fails in a way that is told.
 */
const PRELUDE = `
set -eo pipefail
ended() { "$@" || { code=$?; [ $code = 130 ] || [ $code = 124 ]; }; }
endless() { ended timeout --signal=INT 2 "$BELFRY" "$@"; }
# A command that may end with one of the codes in $1.
failing() {
  codes=$1; shift
  "$BELFRY" "$@" || { code=$?; case " $codes " in *" $code "*) ;; *) return $code ;; esac; }
}
belfry() {
  case "$*" in
    up*) [ "$BASHPID" = $$ ] || exec "$BELFRY" "$@"; endless "$@" ;;
    serve*|listen\\ --forward*|*\\ tail*|*--watch*) endless "$@" ;;
    tui*) ended script -qec "timeout --foreground --signal=INT 2 $BELFRY tui" /dev/null > /dev/null ;;
    backup*) "$BELFRY" "$@" --data-dir "$DATA_DIR" ;;
    admin\\ bootstrap*) echo "$PASSWORD" | "$BELFRY" "$@" --password-stdin --data-dir "$DATA_DIR" ;;
    db\\ *|admin\\ rotate-master-key*) "$BELFRY" "$@" --data-dir "$DATA_DIR" ;;
    login*) # a person from here on
      echo "$PASSWORD" | "$BELFRY" "$@" --email you@example.com --password-stdin
      unset BELFRY_API_KEY ;;
    mailbox\\ release*) failing "75" "$@" ;; # this server has no relay
    providers\\ test*) failing "1 7" "$@" ;; # no such host; example.com is not verified
    webhooks\\ rotate*--now*|users\\ suspend*|users\\ revoke-sessions*) "$BELFRY" "$@" --yes ;;
    smtp\\ test\\ mail.example.com*) failing "69" "$@" ;; # no such host
    domains\\ doctor*) failing "1 8" "$@" ;;
    *) "$BELFRY" "$@" ;;
  esac
}
`

const asTested = (code: string) =>
  STAND_INS.reduce((text, [from, to]) => text.replaceAll(from, () => to.replace("$$", "$")), code)

const PASSWORD = "Correct-horse-9!"

/** A page that signs in assumes that there is an owner. */
async function makeOwner(server: Belfry) {
  const words = ["admin", "bootstrap", "--email", "you@example.com", "--password-stdin"]
  const made = await runBinary([...words, "--data-dir", server.data_dir], {
    home: server.home,
    input: PASSWORD,
  })
  expect(made).toMatchObject({ code: 0 })
}

/** The receiver of docs/webhooks.md, which knows the secret of `listen`. */
async function startReceiver(server: Belfry, folder: string) {
  const block = codeBlocks("docs/webhooks.md").find(({ code }) => code.includes("Bun.serve"))
  const port = await freePort()
  const secret = (await server.cli("listen", "--print-secret")).stdout.trim()
  const file = join(folder, "receiver.js")
  writeFileSync(
    file,
    `const handle = () => {}\n${block?.code.replace("port: 3000", `port: ${port}`)}`,
  )
  const child = Bun.spawn([process.execPath, file], {
    cwd: root,
    env: {
      PATH: process.env.PATH ?? "",
      WEBHOOK_SECRET: secret,
      NODE_PATH: join(root, "node_modules"),
    },
    stdout: "inherit",
    stderr: "inherit",
  })
  for (let n = 0; n < 500; n++) {
    if (await fetch(`http://localhost:${port}`).catch(() => undefined)) break
    await Bun.sleep(20)
  }
  return {
    port,
    async [Symbol.asyncDispose]() {
      child.kill()
      await child.exited
    },
  }
}

test("every block has a language, so that it can be run or is known to be no command", () => {
  const known = ["sh", "toml", "text", "html", "js", "ts", "python", "go", "php", "json"]
  const wrong = pages.flatMap(codeBlocks).filter(({ language }) => !known.includes(language))
  expect(wrong.map(({ path, line, language }) => `${path}:${line} "${language}"`)).toEqual([])
})

/** Those that test/docs/signatures.test.ts runs, each in its own language. */
const SIGNATURES = "Check the signature yourself"

/** Its commands exchange the program: test/scenarios/upgrading-guide.test.ts runs them on a copy. */
const EXCHANGES = "docs/upgrading.md"

const withCommands = pages
  .filter(
    (path) =>
      path !== EXCHANGES &&
      codeBlocks(path).some(({ language, heading }) => language === "sh" && heading !== SIGNATURES),
  )
  .filter((_, at) => at % sizes.run_guides === 0) // the README comes first

test.skipIf(missing("jq", "curl")).each(withCommands)(
  "the commands of %s run from top to bottom as they are pasted",
  async (path) => {
    // As the page on texts says for a gateway on the same machine.
    await using model = await openaiGateway(goodModel)
    const asking = environmentOf(model.settings)
    const env = { ...lean, ...asking, BELFRY_PROVIDERS_ALLOW_PRIVATE: "127.0.0.1/32" }
    await using server = await startBelfry({ env })
    const work = join(server.home, "work")
    await using receiver = await startReceiver(server, server.home)
    const blocks = codeBlocks(path).filter(({ heading }) => heading !== SIGNATURES)
    const settings = blocks.find(
      ({ language, code }) => language === "toml" && /data_dir/.test(code),
    )
    writeFileSync(
      join(work, "belfry.toml"),
      asTested(settings?.code ?? "").replace("$HOME", server.home),
    )
    const commands = blocks
      .filter(({ language }) => language === "sh")
      .map(({ line, code }) => `echo "@ ${path}:${line}" >&2\n${asTested(code)}`)
    const script = commands.join("\n")
    const file = join(server.home, "script.sh")
    writeFileSync(file, PRELUDE + script)
    for (const secret of ["relay-password", "ses-secret"])
      writeFileSync(join(work, secret), "0123456789abcdefghijklmnopqrstuvwxyzABCD")
    if (/^belfry login/m.test(script) && !script.includes("belfry admin bootstrap"))
      await makeOwner(server)
    const child = Bun.spawn(["bash", file], {
      cwd: work,
      env: {
        PATH: `${dirname(binary)}:${process.env.PATH}`,
        HOME: server.home,
        XDG_CONFIG_HOME: join(server.home, "config"),
        XDG_DATA_HOME: join(server.home, "data"),
        XDG_STATE_HOME: join(server.home, "state"),
        TMPDIR: join(server.home, "tmp"),
        TERM: "xterm-256color",
        BELFRY: binary,
        BELFRY_URL: server.url,
        SERVER_HOST: new URL(server.url).host,
        BELFRY_API_KEY: server.api_key,
        DATA_DIR: server.data_dir,
        RECEIVER_PORT: String(receiver.port),
        MODEL_PORT: new URL(model.url).port,
        INBOUND_PORT: String(server.smtp.inbound),
        PASSWORD,
        WEBHOOK_SECRET: (await server.cli("listen", "--print-secret")).stdout.trim(),
        ...lean,
      },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    })
    const [out, err, code] = await Promise.all([
      child.stdout.text(),
      child.stderr.text(),
      child.exited,
    ])
    if (code !== 0)
      throw new Error(`exit ${code}\n${err.slice(-3000)}\n--- stdout\n${out.slice(-1500)}`)
  },
)

const settingsBlocks = pages.flatMap(codeBlocks).filter(({ language }) => language === "toml")

test("there are settings to try", () => expect(settingsBlocks.length).toBeGreaterThan(2))

test.each(settingsBlocks.map((block) => [`${block.path}:${block.line}`, block.code]))(
  "the settings at %s are settings",
  async (_, code) => {
    const home = makeHome()
    try {
      const file = join(home, "work/belfry.toml")
      writeFileSync(file, asTested(code).replace("$HOME", home))
      const env = {
        // the page says that they come from the environment
        BELFRY_PROVIDERS_SES_ACCESS_KEY_ID: "AKIDEXAMPLE",
        BELFRY_PROVIDERS_SES_SECRET_ACCESS_KEY: "secret",
      }
      const shown = await runBinary(["config", "show", "--config", file], { home, env })
      expect({ code: shown.code, stderr: shown.stderr }).toEqual({ code: 0, stderr: "" })
    } finally {
      rmSync(home, { recursive: true, force: true })
    }
  },
)
